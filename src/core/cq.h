/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. The ring belongs to the creator; the core pushes, hca polls, both under the
 * engine's lock. A completion of a send queue says up to which entry the queue is free once it has
 * been polled (IBA 10.7.3.1: unsignaled entries are released by a later completion).
 */
#ifndef VRB_CORE_CQ_H
#define VRB_CORE_CQ_H

#include "base/list.h"
#include "base/peek.h"
#include "base/types.h"

enum vrb_wc_status {
	VRB_WC_SUCCESS,
	VRB_WC_LOC_LEN_ERR,
	VRB_WC_LOC_QP_OP_ERR,
	VRB_WC_LOC_EEC_OP_ERR,
	VRB_WC_LOC_PROT_ERR,
	VRB_WC_WR_FLUSH_ERR,
	VRB_WC_MW_BIND_ERR,
	VRB_WC_BAD_RESP_ERR,
	VRB_WC_LOC_ACCESS_ERR,
	VRB_WC_REM_INV_REQ_ERR,
	VRB_WC_REM_ACCESS_ERR,
	VRB_WC_REM_OP_ERR,
	VRB_WC_RETRY_EXC_ERR,
	VRB_WC_RNR_RETRY_EXC_ERR,
};

enum vrb_wc_opcode {
	VRB_WCO_SEND,
	VRB_WCO_WRITE,
	VRB_WCO_READ,
	VRB_WCO_CMP_SWAP,
	VRB_WCO_FETCH_ADD,
	VRB_WCO_BIND_MW,
	VRB_WCO_LOCAL_INV,
	VRB_WCO_RECV = 128,
	VRB_WCO_RECV_WRITE_IMM = 129,
};

enum { VRB_WCF_GRH = 1, VRB_WCF_IMM = 2, VRB_WCF_INV = 8 };

struct vrb_wc { /* layout of ibv_wc */
	uint64_t wr_id;
	uint32_t status, opcode, vendor_err, byte_len;
	uint32_t imm; /* or invalidated rkey */
	uint32_t qp_num, src_qp, wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits;
	uint8_t pad[2];
};

struct vrb_qp;
struct vrb_fx;

struct vrb_cqe {
	struct vrb_wc wc;
	struct vrb_qp *qp;
	uint32_t sq_free; /* send completions: entries before this index are free once polled */
	uint32_t is_send;
};

enum { VRB_CQ_UNARMED, VRB_CQ_ARMED_SOLICITED, VRB_CQ_ARMED_ANY };

/* What the caller does for a CQ on the notify chain, in this order. */
enum {
	VRB_CQ_DUE_STAMP = 1, /* vrb_cq_stamp */
	VRB_CQ_DUE_TIMER = 2, /* an event is held back: vrb_cq_expire in hold_ns */
	VRB_CQ_DUE_EVENT = 4, /* an event of the completion channel; no timer any more */
	VRB_CQ_DUE_TRACE = 8, /* entries before tail were pushed; the caller moves told_tail */
};

/* When a completion was put into the CQ, by the device's clock and by the wall's. */
struct vrb_stamp {
	uint64_t ns, wall_ns;
};

struct vrb_cq {
	struct vrb_cqe *ring;
	uint32_t mask, cap;
	uint32_t head, tail; /* absolute; tail - head completions wait; peeked at */
	uint8_t armed;
	bool closed;  /* not for the straight line: dead, stamped or traced */
	bool dead;    /* overrun: nothing is pushed any more */
	bool stamped; /* stamp is there */
	bool traced;  /* the caller wants to see what is pushed */
	uint8_t due;  /* on the notify chain of the fx under way; the caller clears it there */
	bool has_fired;
	bool overwrites; /* full: the oldest completion makes room */
	uint64_t n_pushed;
	/* where the tail was at the last arm and at the last event, if there was one */
	uint32_t arm_tail, fire_tail;
	struct vrb_cq *notify_next; /* so far one cache line, with the creator's pointer before */
	struct vrb_stamp *stamp;    /* the creator's, beside the ring, or NULL */
	uint32_t stamp_tail;	    /* entries before it have their time */
	uint32_t told_tail;	    /* traced: entries before it have been seen */
	/* Moderation: an event for any completion waits until hold_max have come (0: no such bound)
	 * or hold_ns have passed since the first. hold_ns 0: it does not wait. */
	uint32_t hold_max;
	uint32_t n_held; /* completions since the arm, while the event waits */
	vrb_ns hold_ns;
	uint64_t n_failed; /* of n_pushed */
};

/* Pushes a copy of cqe. Full: the completion is lost, the CQ is dead and fx gets CQ_ERR (IBA
 * C10-100); or with overwrites, the oldest is lost. Fires the arm, or holds the event back. */
void vrb_cq_push(struct vrb_cq *cq, const struct vrb_cqe *cqe, bool solicited, struct vrb_fx *fx);

/* Takes up to n completions; releases send queue entries of their QPs. Returns how many. */
uint32_t vrb_cq_poll(struct vrb_cq *cq, uint32_t n, struct vrb_wc *wc);
/* Takes one with its time (zeros when the CQ has none); false: there is none. */
bool vrb_cq_poll_stamped(struct vrb_cq *cq, struct vrb_wc *wc, struct vrb_stamp *stamp);

/* The time of all that were pushed since the last call. */
void vrb_cq_stamp(struct vrb_cq *cq, struct vrb_stamp now);

/* IBA 11.2.6.4: solicited does not weaken an arm for any completion. */
void vrb_cq_arm(struct vrb_cq *cq, bool solicited_only);

/*
 * Asked before an arm for any completion: the program has fallen behind, there are completions that
 * came after the last event, or that it left lying when it armed the last time. The letter of
 * IBA 11.2.6.4 gives it no event for those; NICs do, and programs that arm first and then poll a
 * bounded number (perftest) rely on it. True: an event is due at once.
 */
bool vrb_cq_is_behind(const struct vrb_cq *cq);

/* Behind, and armed for any completion: the event, or its moderation, begins with what lies there.
 */
void vrb_cq_catch_up(struct vrb_cq *cq, struct vrb_fx *fx);

/* New bounds; an event that waits under the old ones comes at once. */
void vrb_cq_moderate(struct vrb_cq *cq, uint32_t hold_max, vrb_ns hold_ns, struct vrb_fx *fx);
/* hold_ns are over: fires what waits. */
void vrb_cq_expire(struct vrb_cq *cq, struct vrb_fx *fx);

/* Without the lock: nothing to be polled, a moment ago. */
static inline bool vrb_cq_looks_empty(const struct vrb_cq *cq)
{
	return vrb_peek(&cq->head) == vrb_peek(&cq->tail);
}

/* The entry at tail has been filled. */
static inline void vrb_cq_commit(struct vrb_cq *cq)
{
	vrb_poke(&cq->tail, cq->tail + 1);
	cq->n_pushed++;
}

/* Forgets all completions of qp (reset, destroy). */
void vrb_cq_purge(struct vrb_cq *cq, const struct vrb_qp *qp);

#endif
