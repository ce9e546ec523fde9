/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a legal creation or registration is: limits of the device, access flags, defined values.
 * Pure functions over plain values. Numbers of objects, attributes and verbs in reports are those
 * of the enums below; base/names.c has their names in the same order.
 */
#ifndef VRB_RULES_OBJECT_H
#define VRB_RULES_OBJECT_H

#include "base/verdict.h"
#include "rules/attr.h"

enum vrb_object {
	VRB_OBJ_CONTEXT,
	VRB_OBJ_PD,
	VRB_OBJ_MR,
	VRB_OBJ_MW,
	VRB_OBJ_AH,
	VRB_OBJ_CHANNEL,
	VRB_OBJ_CQ,
	VRB_OBJ_SRQ,
	VRB_OBJ_QP,
	VRB_OBJ_THREAD, /* of libverbena */
	VRB_N_OBJECTS
};

enum vrb_obj_attr {
	VRB_OA_MAX_SEND_WR,
	VRB_OA_MAX_RECV_WR,
	VRB_OA_MAX_SEND_SGE,
	VRB_OA_MAX_RECV_SGE,
	VRB_OA_MAX_INLINE,
	VRB_OA_CQE,
	VRB_OA_COMP_VECTOR,
	VRB_OA_MAX_WR,
	VRB_OA_MAX_SGE,
	VRB_OA_SRQ_LIMIT,
	VRB_OA_COMP_MASK,
	VRB_OA_CREATE_FLAGS,
	VRB_OA_SEND_OPS,
	VRB_OA_WC_FLAGS,
	VRB_OA_SRQ_TYPE,
	VRB_OA_MW_TYPE,
	VRB_OA_ATTR_MASK,
	VRB_OA_LENGTH,
	VRB_N_OBJ_ATTRS
};

/* Verbs that this device does not offer, for the verdict UNSUPPORTED. */
enum vrb_verb {
	VRB_VERB_IMPORT_DEVICE,
	VRB_VERB_IMPORT_PD,
	VRB_VERB_IMPORT_MR,
	VRB_VERB_IMPORT_DM,
	VRB_VERB_REG_DMABUF_MR,
	VRB_VERB_SET_ECE,
	VRB_VERB_XRC,
	VRB_VERB_OTHER,
};
enum vrb_verdict vrb_rules_unsupported(enum vrb_verb verb, struct vrb_report *r);

struct vrb_rules_limits {
	uint32_t max_qp_wr, max_send_sge, max_recv_sge, max_inline, max_cqe;
	uint32_t max_srq_wr, max_srq_sge, n_comp_vectors;
};

struct vrb_rules_qp {
	uint32_t type;
	bool has_send_cq, has_recv_cq; /* present and of the PD's context */
	bool has_srq;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};
enum vrb_verdict vrb_rules_create_qp(const struct vrb_rules_qp *q, const struct vrb_rules_limits *l,
				     struct vrb_report *r);

enum vrb_verdict vrb_rules_create_cq(int64_t cqe, int64_t comp_vector,
				     const struct vrb_rules_limits *l, struct vrb_report *r);

/* Whether one more object of a kind (enum vrb_object) may be made. */
enum vrb_verdict vrb_rules_one_more(uint32_t have, uint32_t max, uint32_t object,
				    struct vrb_report *r);
enum vrb_verdict vrb_rules_mr_size(uint64_t len, uint64_t max, struct vrb_report *r);

/* worst: completions that all queues on the CQ can have at once. */
enum vrb_verdict vrb_rules_cq_worst(uint64_t worst, uint32_t cqe, struct vrb_report *r);

/* What ibv_modify_cq is to change: one or more of the offered bits. */
enum vrb_verdict vrb_rules_modify_cq(uint32_t mask, uint32_t offered, struct vrb_report *r);

enum vrb_verdict vrb_rules_resize_cq(int64_t cqe, uint32_t held, const struct vrb_rules_limits *l,
				     struct vrb_report *r);

/* limit: srq_limit at creation (ignored there by most devices) or at ibv_modify_srq. */
enum vrb_verdict vrb_rules_create_srq(uint32_t max_wr, uint32_t max_sge,
				      const struct vrb_rules_limits *l, struct vrb_report *r);
enum vrb_verdict vrb_rules_srq_limit(uint32_t limit, uint32_t max_wr, struct vrb_report *r);

/* Bits outside `defined` in field attr. */
enum vrb_verdict vrb_rules_defined(uint32_t attr, uint64_t value, uint64_t defined,
				   struct vrb_report *r);

enum { /* numbers of ibv_access_flags */
       VRB_RULES_LOCAL_WRITE = 1 << 0,
       VRB_RULES_REMOTE_WRITE = 1 << 1,
       VRB_RULES_REMOTE_READ = 1 << 2,
       VRB_RULES_REMOTE_ATOMIC = 1 << 3,
       VRB_RULES_MW_BIND = 1 << 4,
       VRB_RULES_ZERO_BASED = 1 << 5,
       VRB_RULES_ON_DEMAND = 1 << 6,
       VRB_RULES_HUGETLB = 1 << 7,
};
/* Flags that a device may ignore (relaxed ordering is the first). */
#define VRB_RULES_ACCESS_OPTIONAL 0x3ff00000u
#define VRB_RULES_ACCESS_ALL	  (0xffu | VRB_RULES_ACCESS_OPTIONAL)
/* A window adds remote rights; ZERO_BASED makes its addresses offsets, LOCAL_WRITE is often set by
 * programs and means nothing. */
#define VRB_RULES_ACCESS_WINDOW                                                                    \
	((uint32_t)(VRB_RULES_LOCAL_WRITE | VRB_RULES_REMOTE_WRITE | VRB_RULES_REMOTE_READ |       \
		    VRB_RULES_REMOTE_ATOMIC | VRB_RULES_ZERO_BASED))

enum vrb_verdict vrb_rules_access(uint32_t access, struct vrb_report *r);

/* Access flags and range of a registration. Optional flags (relaxed ordering and its neighbours)
 * are hints and never refused. */
enum vrb_verdict vrb_rules_reg_mr(uint64_t addr, uint64_t len, uint32_t access,
				  struct vrb_report *r);

/* n_users objects still need this one. */
enum vrb_verdict vrb_rules_destroy(uint32_t object, uint32_t n_users, struct vrb_report *r);

#endif
