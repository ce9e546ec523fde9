/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check of a list of work requests, and the builder for callers that post on their own. The
 * order is that of an adapter: what ibv_post_send refuses first, then what would fail when it is
 * processed. The sentences are those of the software HCA; one of them is ours, because we know what
 * lies at the address, not only what the key says.
 */
#include <errno.h>

#include <verbena/sgl.h>

#include "send/domain.h"
#include "send/fail.h"
#include "send/sgl.h"

#define LIST_MAX (1u << 20) /* a longer list is one that bites its tail */

struct check {
	const struct vrb_domain *d;
	const struct vrb_wr_limits *l;
	struct vrb_wr_summary s;
	struct vrb_hit hit;
};

int vrb_sgl_build(const struct vrb_domain *d, const struct iovec *iov, int n, struct ibv_sge *sge,
		  int max)
{
	struct vrb_sgl_walk w = {.regions = &d->regions, .iov = iov, .n = n};
	struct vrb_report why;
	struct ibv_sge one;
	int k, count = 0;

	while ((k = vrb_sgl_next(&w, &one, 1, UINT64_MAX, &why)) > 0) {
		if (count < max)
			sge[count] = one;
		count++;
	}
	return k < 0 ? vrb_fail_report(EFAULT, &why) : count;
}

int vrb_wr_limits(struct ibv_qp *qp, struct vrb_wr_limits *l)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int r = vrb_verbs_errno(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));

	if (r)
		return vrb_fail(r, VRB_V_SEND_CREATE, 8 /* QP */, (uint64_t)r, 0);
	*l = (struct vrb_wr_limits){.qp_type = init.qp_type,
				    .state = attr.qp_state,
				    .max_send_wr = init.cap.max_send_wr,
				    .max_send_sge = init.cap.max_send_sge,
				    .max_inline_data = init.cap.max_inline_data,
				    .sq_sig_all = init.sq_sig_all};
	return 0;
}

static int refuse(int err, enum vrb_verdict v, uint64_t a, uint64_t b)
{
	return vrb_fail(err, v, a, b, 0);
}

static bool is_send(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM ||
	       wr->opcode == IBV_WR_SEND_WITH_INV;
}

static bool is_write(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool fits_type(const struct ibv_send_wr *wr, enum ibv_qp_type type)
{
	if (type == IBV_QPT_UD)
		return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;
	if (type == IBV_QPT_UC)
		return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM ||
		       is_write(wr);
	return is_send(wr) || is_write(wr) || is_atomic(wr) || wr->opcode == IBV_WR_RDMA_READ;
}

static uint64_t bytes_of(const struct ibv_send_wr *wr)
{
	uint64_t sum = 0;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	return sum;
}

static int check_inline(struct check *c, const struct ibv_send_wr *wr, uint64_t len)
{
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		c->s.could_inline +=
			len && len <= c->l->max_inline_data && (is_send(wr) || is_write(wr));
		return 0;
	}
	c->s.inlined++;
	if (!is_send(wr) && !is_write(wr))
		return refuse(EINVAL, VRB_V_POST_INLINE_OPCODE, wr->opcode, 0);
	if (len > c->l->max_inline_data)
		return refuse(EINVAL, VRB_V_POST_INLINE_LEN, len, c->l->max_inline_data);
	return 0;
}

/* What ibv_post_send itself refuses. */
static int check_post(struct check *c, const struct ibv_send_wr *wr, uint64_t len)
{
	uint64_t most = c->l->max_message ? c->l->max_message : 1u << 31;

	if (c->l->state != IBV_QPS_RTS && c->l->state != IBV_QPS_SQD)
		return refuse(EINVAL, VRB_V_POST_STATE, c->l->state, 0);
	if (!fits_type(wr, c->l->qp_type))
		return refuse(EINVAL, VRB_V_POST_OPCODE, wr->opcode, c->l->qp_type);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > c->l->max_send_sge)
		return refuse(EINVAL, VRB_V_POST_NUM_SGE, (uint64_t)(unsigned)wr->num_sge,
			      c->l->max_send_sge);
	if (len > most)
		return refuse(EINVAL, VRB_V_POST_LENGTH, len, most);
	if (c->l->qp_type == IBV_QPT_UD && !wr->wr.ud.ah)
		return refuse(EINVAL, VRB_V_POST_AH, 0, 0);
	return check_inline(c, wr, len);
}

static void advise(struct check *c, const struct ibv_send_wr *wr, int i)
{
	const struct ibv_sge *s = &wr->sg_list[i], *before = i ? s - 1 : NULL;

	c->s.sges++;
	c->s.empty += !s->length;
	c->s.mergeable +=
		before && before->lkey == s->lkey && before->addr + before->length == s->addr;
	c->s.straddling +=
		s->length && s->length <= 64 && s->addr / 64 != (s->addr + s->length - 1) / 64;
}

/* What would end in a completion with LOC_PROT_ERR. */
static int check_sge(struct check *c, const struct ibv_send_wr *wr, int i)
{
	const struct ibv_sge *s = &wr->sg_list[i];
	struct vrb_report r = {.val = {(uint64_t)i, s->lkey, s->addr, s->length}};
	uint64_t room;

	if (!s->length)
		return 0;
	if (!vrb_regions_find(&c->d->regions, s->addr, &c->hit)) {
		r.verdict = VRB_V_LKEY_UNKNOWN;
		return vrb_fail_report(EFAULT, &r);
	}
	if (c->hit.lkey != s->lkey) {
		r.verdict = s->lkey == c->hit.rkey ? VRB_V_LKEY_IS_RKEY : VRB_V_SEND_OTHER_LKEY;
		r.val[3] = c->hit.lkey;
		return vrb_fail_report(EFAULT, &r);
	}
	room = c->hit.len - (s->addr - c->hit.base);
	if (s->length > room) {
		r.verdict = VRB_V_LKEY_RANGE_END;
		r.val[4] = s->length - room;
		r.val[5] = c->hit.len;
		return vrb_fail_report(EFAULT, &r);
	}
	if ((wr->opcode == IBV_WR_RDMA_READ || is_atomic(wr)) &&
	    !(c->hit.access & IBV_ACCESS_LOCAL_WRITE)) {
		r.verdict = VRB_V_LKEY_NO_WRITE;
		return vrb_fail_report(EFAULT, &r);
	}
	return 0;
}

static int check_wr(struct check *c, const struct ibv_send_wr *wr)
{
	uint64_t len = bytes_of(wr);
	int r = check_post(c, wr, len);

	if (r)
		return r;
	if (is_atomic(wr) && len != 8)
		return refuse(EINVAL, VRB_V_SGE_LENGTH, len, 0);
	c->s.bytes += len;
	c->s.signaled += c->l->sq_sig_all || wr->send_flags & IBV_SEND_SIGNALED;
	for (int i = 0; i < wr->num_sge && !r; i++) {
		advise(c, wr, i);
		/* Inline data needs no key. */
		if (!(wr->send_flags & IBV_SEND_INLINE))
			r = check_sge(c, wr, i);
	}
	return r;
}

/* Room for one more, and a completion that frees it. */
static int check_room(struct check *c)
{
	uint32_t taken = c->l->used + c->s.wrs;

	if (taken < c->l->max_send_wr && c->s.wrs < LIST_MAX)
		return 0;
	if (!c->l->used && !c->s.signaled)
		return refuse(ENOMEM, VRB_V_POST_SQ_DEAD_END, taken, c->l->max_send_wr);
	return refuse(ENOMEM, VRB_V_POST_SQ_FULL, taken, c->l->max_send_wr);
}

int vrb_check_send(const struct vrb_domain *d, const struct vrb_wr_limits *l,
		   const struct ibv_send_wr *first, const struct ibv_send_wr **bad,
		   struct vrb_wr_summary *summary)
{
	struct check c = {.d = d, .l = l};
	int r = 0;

	for (const struct ibv_send_wr *wr = first; wr && !r; wr = wr->next) {
		*bad = wr;
		r = check_room(&c);
		r = r ? r : check_wr(&c, wr);
		c.s.wrs++;
	}
	if (!r && c.s.wrs && l->used + c.s.wrs == l->max_send_wr && !l->used && !c.s.signaled)
		r = refuse(ENOMEM, VRB_V_POST_SQ_DEAD_END, c.s.wrs, l->max_send_wr);
	if (summary)
		*summary = c.s;
	return r;
}
