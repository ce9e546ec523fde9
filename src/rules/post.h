/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a legal post is. All checks are inline and branch only on failure; then the cold
 * vrb_post_refuse fills the report. Each returns VRB_OK or the verdict. The caller strings together
 * those it needs: the data path knows most of the values as fields of its queue.
 */
#ifndef VRB_RULES_POST_H
#define VRB_RULES_POST_H

#include "base/verdict.h"
#include "rules/attr.h"

/* Fills r and returns v. */
enum vrb_verdict vrb_post_refuse(struct vrb_report *r, enum vrb_verdict v, uint64_t a, uint64_t b)
	__attribute__((cold, noinline));

/*
 * Sending is possible in RTS, SQD (held), SQE and ERR (both flushed), receiving in all but RESET;
 * IBA 10.3.1. Some devices refuse both in ERR. Bit n: a post in state n is refused; looked at in
 * the states only that are not for traffic.
 */
struct vrb_post_states {
	uint32_t no_send, no_recv;
};
#define VRB_POST_NO_SEND ((1u << VRB_QPS_RESET) | (1u << VRB_QPS_INIT) | (1u << VRB_QPS_RTR))
#define VRB_POST_NO_RECV (1u << VRB_QPS_RESET)

enum vrb_verdict vrb_post_state(uint32_t barred, uint32_t state, struct vrb_report *r)
	__attribute__((cold, noinline));

static inline enum vrb_verdict vrb_post_send_state(const struct vrb_post_states *s, uint32_t state,
						   struct vrb_report *r)
{
	if (vrb_unlikely(state != VRB_QPS_RTS))
		return vrb_post_state(s->no_send, state, r);
	return VRB_OK;
}

static inline enum vrb_verdict vrb_post_recv_state(const struct vrb_post_states *s, uint32_t state,
						   struct vrb_report *r)
{
	if (vrb_unlikely(state - VRB_QPS_INIT > VRB_QPS_RTS - VRB_QPS_INIT))
		return vrb_post_state(s->no_recv, state, r);
	return VRB_OK;
}

/* unsignaled: how many of the newest entries were posted since the last signaled one. */
static inline enum vrb_verdict vrb_post_sq_room(uint32_t used, uint32_t cap, uint32_t unsignaled,
						struct vrb_report *r)
{
	if (vrb_unlikely(used >= cap))
		return vrb_post_refuse(
			r, unsignaled >= used ? VRB_V_POST_SQ_DEAD_END : VRB_V_POST_SQ_FULL, used,
			cap);
	return VRB_OK;
}

static inline enum vrb_verdict vrb_post_rq_room(uint32_t used, uint32_t cap, struct vrb_report *r)
{
	if (vrb_unlikely(used >= cap))
		return vrb_post_refuse(r, VRB_V_POST_RQ_FULL, used, cap);
	return VRB_OK;
}

/* num_sge is an int in the work request: a negative one is huge here, and refused. */
static inline enum vrb_verdict vrb_post_num_sge(int num_sge, uint32_t max_sge, struct vrb_report *r)
{
	if (vrb_unlikely((uint32_t)num_sge > max_sge))
		return vrb_post_refuse(r, VRB_V_POST_NUM_SGE, (uint64_t)(int64_t)num_sge, max_sge);
	return VRB_OK;
}

/* Bit n: the operation with number n of enum ibv_wr_opcode is defined for the type (IBA table 38):
 * UD has SEND and SEND with immediate; UC has no READ (4), no atomics (5, 6) and no SEND with
 * invalidate (9). */
#define VRB_POST_OPS_RC 0x3ffu
#define VRB_POST_OPS_UC 0x18fu
#define VRB_POST_OPS_UD 0x00cu

static inline uint32_t vrb_post_ops(uint32_t type)
{
	return type == VRB_QPT_RC   ? VRB_POST_OPS_RC
	       : type == VRB_QPT_UC ? VRB_POST_OPS_UC
	       : type == VRB_QPT_UD ? VRB_POST_OPS_UD
				    : 0;
}

static inline enum vrb_verdict vrb_post_opcode(uint32_t opcode, uint32_t type, struct vrb_report *r)
{
	if (vrb_unlikely(opcode > 31 || !(vrb_post_ops(type) >> opcode & 1)))
		return vrb_post_refuse(r, VRB_V_POST_OPCODE, opcode, type);
	return VRB_OK;
}

/* Inline data: SEND and WRITE, with and without immediate, and SEND with invalidate. */
#define VRB_POST_OPS_INLINE 0x20fu

static inline enum vrb_verdict vrb_post_inline(uint32_t opcode, uint64_t len, uint32_t max_inline,
					       struct vrb_report *r)
{
	if (vrb_unlikely(!(VRB_POST_OPS_INLINE >> opcode & 1)))
		return vrb_post_refuse(r, VRB_V_POST_INLINE_OPCODE, opcode, 0);
	if (vrb_unlikely(len > max_inline))
		return vrb_post_refuse(r, VRB_V_POST_INLINE_LEN, len, max_inline);
	return VRB_OK;
}

/* IBA C9-2: at most 2^31 bytes; a UD message is one packet. */
static inline enum vrb_verdict vrb_post_length(uint64_t len, uint64_t max_len, struct vrb_report *r)
{
	if (vrb_unlikely(len > max_len))
		return vrb_post_refuse(r, VRB_V_POST_LENGTH, len, max_len);
	return VRB_OK;
}

/* The handle of a UD send: present and of the QP's PD (IBA 11.4.1.1). */
static inline enum vrb_verdict vrb_post_ah(bool usable, struct vrb_report *r)
{
	if (vrb_unlikely(!usable))
		return vrb_post_refuse(r, VRB_V_POST_AH, 0, 0);
	return VRB_OK;
}

static inline enum vrb_verdict vrb_post_not_on_srq(bool has_srq, struct vrb_report *r)
{
	if (vrb_unlikely(has_srq))
		return vrb_post_refuse(r, VRB_V_POST_ON_SRQ, 0, 0);
	return VRB_OK;
}

/* A list that num_sge says nothing of. Legal, and nearly always a count that was forgotten. */
static inline enum vrb_verdict vrb_post_list(int num_sge, bool has_list, struct vrb_report *r)
{
	if (vrb_unlikely(!num_sge && has_list))
		return vrb_post_refuse(r, VRB_V_POST_LIST_UNUSED, 0, 0);
	return VRB_OK;
}

/* IBA 11.4.1.2: the first 40 bytes of a UD receive are for the GRH. */
#define VRB_RULES_GRH_LEN 40u
static inline enum vrb_verdict vrb_post_grh_room(uint64_t len, struct vrb_report *r)
{
	if (vrb_unlikely(len < VRB_RULES_GRH_LEN))
		return vrb_post_refuse(r, VRB_V_UD_NO_GRH_ROOM, len, VRB_RULES_GRH_LEN);
	return VRB_OK;
}

/* Reasons of POST_MW_BIND. */
enum {
	VRB_MW_BIND_OTHER_PD = 1, /* window, region and QP do not share one PD */
	VRB_MW_BIND_NO_RIGHT = 2, /* the region lacks MW_BIND */
	VRB_MW_BIND_TYPE = 3,	  /* a type 1 window in a work request, or type 2 in ibv_bind_mw */
	VRB_MW_BIND_RANGE = 4,	  /* outside the region */
	VRB_MW_BIND_ACCESS =
		5, /* remote write without LOCAL_WRITE on the region, or unknown bits */
	VRB_MW_BIND_ZERO_BASED = 6, /* a window on a zero-based region */
};

struct vrb_post_bind {
	uint32_t window_pd, qp_pd;
	uint32_t window_type, wanted_type; /* 1: ibv_bind_mw, 2: a work request */
	bool has_region;		   /* without one: unbind (type 1, length 0) */
	uint32_t region_pd, region_access;
	uint64_t region_addr, region_len;
	uint64_t addr, len;
	uint32_t access;
};

/* Not on the fast path. */
enum vrb_verdict vrb_post_mw_bind(const struct vrb_post_bind *b, struct vrb_report *r);

/* A forked child uses its parent's object. */
static inline enum vrb_verdict vrb_post_not_foreign(bool foreign, struct vrb_report *r)
{
	if (vrb_unlikely(foreign))
		return vrb_post_refuse(r, VRB_V_POST_DEVICE_GONE, 0, 0);
	return VRB_OK;
}

#endif
