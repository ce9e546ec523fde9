/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creating, registering and destroying: every limit and every flag that a caller can get wrong.
 * What was asked for is granted exactly or refused; nothing is rounded here. Access flags: remote
 * writing and atomics imply that the memory may be written, so they need LOCAL_WRITE (IBA C10-55).
 */
#include "rules/object.h"

static enum vrb_verdict refuse(struct vrb_report *r, enum vrb_verdict v, uint64_t a, uint64_t b)
{
	*r = (struct vrb_report){.verdict = v, .val = {a, b}};
	return v;
}

static enum vrb_verdict limit(struct vrb_report *r, uint64_t asked, uint32_t attr, uint32_t object,
			      uint64_t max)
{
	*r = (struct vrb_report){.verdict = VRB_V_CREATE_LIMIT, .val = {asked, attr, object, max}};
	return VRB_V_CREATE_LIMIT;
}

enum vrb_verdict vrb_rules_create_qp(const struct vrb_rules_qp *q, const struct vrb_rules_limits *l,
				     struct vrb_report *r)
{
	const struct {
		uint32_t asked, attr, max;
	} cap[] = {
		{q->max_send_wr, VRB_OA_MAX_SEND_WR, l->max_qp_wr},
		{q->max_send_sge, VRB_OA_MAX_SEND_SGE, l->max_send_sge},
		{q->max_inline, VRB_OA_MAX_INLINE, l->max_inline},
		/* with an SRQ the receive queue is not there and its figures are ignored */
		{q->has_srq ? 0 : q->max_recv_wr, VRB_OA_MAX_RECV_WR, l->max_qp_wr},
		{q->has_srq ? 0 : q->max_recv_sge, VRB_OA_MAX_RECV_SGE, l->max_recv_sge},
	};

	if (q->type < VRB_QPT_RC || q->type > VRB_QPT_UD)
		return refuse(r, VRB_V_CREATE_QP_TYPE, q->type, 0);
	if (!q->has_send_cq || !q->has_recv_cq) /* IBA 10.2.4.1 */
		return refuse(r, VRB_V_CREATE_QP_CQ, q->has_send_cq, 0);
	for (unsigned i = 0; i < sizeof(cap) / sizeof(cap[0]); i++)
		if (cap[i].asked > cap[i].max)
			return limit(r, cap[i].asked, cap[i].attr, VRB_OBJ_QP, cap[i].max);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_create_cq(int64_t cqe, int64_t comp_vector,
				     const struct vrb_rules_limits *l, struct vrb_report *r)
{
	if (cqe < 1 || cqe > l->max_cqe)
		return limit(r, (uint64_t)cqe, VRB_OA_CQE, VRB_OBJ_CQ, l->max_cqe);
	if (comp_vector < 0 || comp_vector >= l->n_comp_vectors)
		return limit(r, (uint64_t)comp_vector, VRB_OA_COMP_VECTOR, VRB_OBJ_CQ,
			     l->n_comp_vectors - 1);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_one_more(uint32_t have, uint32_t max, uint32_t object,
				    struct vrb_report *r)
{
	return have < max ? VRB_OK : refuse(r, VRB_V_CREATE_MANY, have, object);
}

enum vrb_verdict vrb_rules_mr_size(uint64_t len, uint64_t max, struct vrb_report *r)
{
	return len <= max ? VRB_OK : limit(r, len, VRB_OA_LENGTH, VRB_OBJ_MR, max);
}

enum vrb_verdict vrb_rules_cq_worst(uint64_t worst, uint32_t cqe, struct vrb_report *r)
{
	if (worst > cqe) /* IBA C10-100 */
		return refuse(r, VRB_V_CQ_WORST_CASE, cqe, worst);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_modify_cq(uint32_t mask, uint32_t offered, struct vrb_report *r)
{
	if (mask & ~offered)
		return vrb_rules_unsupported(VRB_VERB_OTHER, r);
	if (!mask)
		return refuse(r, VRB_V_CREATE_INVALID, VRB_OA_ATTR_MASK, mask);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_resize_cq(int64_t cqe, uint32_t held, const struct vrb_rules_limits *l,
				     struct vrb_report *r)
{
	if (cqe < 1 || cqe > l->max_cqe)
		return limit(r, (uint64_t)cqe, VRB_OA_CQE, VRB_OBJ_CQ, l->max_cqe);
	if (cqe < held) /* IBA 11.2.6.3 */
		return refuse(r, VRB_V_CQ_TOO_SMALL, (uint64_t)cqe, held);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_create_srq(uint32_t max_wr, uint32_t max_sge,
				      const struct vrb_rules_limits *l, struct vrb_report *r)
{
	if (max_wr < 1 || max_wr > l->max_srq_wr)
		return limit(r, max_wr, VRB_OA_MAX_WR, VRB_OBJ_SRQ, l->max_srq_wr);
	if (max_sge > l->max_srq_sge)
		return limit(r, max_sge, VRB_OA_MAX_SGE, VRB_OBJ_SRQ, l->max_srq_sge);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_srq_limit(uint32_t srq_limit, uint32_t max_wr, struct vrb_report *r)
{
	if (srq_limit > max_wr)
		return limit(r, srq_limit, VRB_OA_SRQ_LIMIT, VRB_OBJ_SRQ, max_wr);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_defined(uint32_t attr, uint64_t value, uint64_t defined,
				   struct vrb_report *r)
{
	if (value & ~defined)
		return refuse(r, VRB_V_CREATE_INVALID, attr, value);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_access(uint32_t access, struct vrb_report *r)
{
	if (access & ~VRB_RULES_ACCESS_ALL)
		return refuse(r, VRB_V_REG_ACCESS_BITS, access & ~VRB_RULES_ACCESS_ALL, 0);
	if (access & (VRB_RULES_REMOTE_WRITE | VRB_RULES_REMOTE_ATOMIC) &&
	    !(access & VRB_RULES_LOCAL_WRITE)) /* IBA C10-55 */
		return refuse(r, VRB_V_REG_ACCESS, access, 0);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_reg_mr(uint64_t addr, uint64_t len, uint32_t access,
				  struct vrb_report *r)
{
	enum vrb_verdict v = vrb_rules_access(access, r);

	if (v != VRB_OK)
		return v;
	if (len && addr + (len - 1) < addr)
		return refuse(r, VRB_V_REG_RANGE, addr, len);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_destroy(uint32_t object, uint32_t n_users, struct vrb_report *r)
{
	if (n_users)
		return refuse(r, VRB_V_BUSY, object, n_users);
	return VRB_OK;
}

enum vrb_verdict vrb_rules_unsupported(enum vrb_verb verb, struct vrb_report *r)
{
	return refuse(r, VRB_V_UNSUPPORTED, verb, 0);
}
