/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path of the face: ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq and
 * ibv_req_notify_cq. Each checks with src/rules, translates the work request into the queue's entry
 * and hands it to the engine. A chain stops at the first request that is refused; those before it
 * are posted.
 */
#include "verbs/verbs.h"

#include "hca/data.h"
#include "hca/direct.h"
#include "hca/fast.h"
#include "hca/trace.h"
#include "rules/post.h"
#include "verbs/ret.h"

#define CHECK(call)                                                                                \
	do {                                                                                       \
		enum vrb_verdict v_ = (call);                                                      \
		if (vrb_unlikely(v_ != VRB_OK))                                                    \
			return v_;                                                                 \
	} while (0)

static uint64_t total_length(const struct ibv_sge *sge, int n)
{
	uint64_t len = 0;

	for (int i = 0; i < n; i++)
		len += sge[i].length;
	return len;
}

/* Operations without a message: their SGEs and inline flag mean nothing. */
static inline bool is_local(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_BIND_MW;
}

static enum vrb_verdict check_send(const struct vv_qp *qp, const struct ibv_send_wr *wr, uint32_t n,
				   uint64_t *len, struct vrb_report *r)
{
	const struct vrb_qp *c = &qp->h->core;

	CHECK(vrb_post_sq_room(vrb_qp_sq_used(c) + n, c->sq.cap, c->unsignaled_run, r));
	CHECK(vrb_post_opcode(wr->opcode, c->type, r));
	if (vrb_unlikely(is_local(wr)))
		return VRB_OK;
	CHECK(vrb_post_num_sge(wr->num_sge, c->sq.max_sge, r));
	*len = total_length(wr->sg_list, wr->num_sge);
	if (wr->send_flags & IBV_SEND_INLINE)
		CHECK(vrb_post_inline(wr->opcode, *len, c->max_inline, r));
	if (vrb_likely(c->type != VRB_QPT_UD))
		return vrb_post_length(*len, VRB_MAX_MSG, r);
	CHECK(vrb_post_length(*len, VRB_UD_MTU, r));
	return vrb_post_ah(wr->wr.ud.ah && vv_ah(wr->wr.ud.ah)->av.pd == c->pd, r);
}

static void copy_inline(struct vrb_swqe *w, const struct ibv_send_wr *wr)
{
	uint8_t *p = w->data;

	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(p, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		p += wr->sg_list[i].length;
	}
}

static inline void fill_payload(struct vrb_swqe *w, const struct ibv_send_wr *wr)
{
	if (vrb_unlikely(wr->send_flags & IBV_SEND_INLINE)) {
		w->n_sge = 0;
		copy_inline(w, wr);
		return;
	}
	w->n_sge = (uint8_t)wr->num_sge;
	for (uint32_t i = 0; i < w->n_sge; i++)
		memcpy(&w->sge[i], &wr->sg_list[i], sizeof(w->sge[0]));
}

/* What the operation names at the other end. */
static void fill_target(const struct vv_qp *qp, struct vrb_swqe *w, const struct ibv_send_wr *wr)
{
	unsigned op = wr->opcode;

	if (op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_RDMA_READ) {
		w->va = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
	} else if (op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		w->va = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->atomic.compare = wr->wr.atomic.compare_add;
		w->atomic.swap_add = wr->wr.atomic.swap;
	} else if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w->va = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->atomic.swap_add = wr->wr.atomic.compare_add;
	} else if (qp->h->core.type == VRB_QPT_UD) {
		w->ud.av = &vv_ah(wr->wr.ud.ah)->av;
		w->ud.qpn = wr->wr.ud.remote_qpn;
		w->ud.qkey = wr->wr.ud.remote_qkey;
	}
}

static enum vrb_verdict fill_send(const struct vv_qp *qp, struct vrb_swqe *w,
				  const struct ibv_send_wr *wr, uint64_t len, struct vrb_report *r)
{
	w->wr_id = wr->wr_id;
	w->len = (uint32_t)len;
	w->op = (uint8_t)wr->opcode;
	w->flags = (uint8_t)((wr->send_flags & 0xf) | (qp->sig_all ? VRB_WRF_SIGNALED : 0));
	w->failed = 0;
	w->imm = wr->imm_data;
	if (vrb_unlikely(is_local(wr))) {
		w->n_sge = 0;
		w->flags &= (uint8_t)~VRB_WRF_INLINE;
		if (wr->opcode != IBV_WR_BIND_MW)
			return VRB_OK;
		w->rkey = wr->bind_mw.rkey;
		return vv_bind_fill(qp, w, wr->bind_mw.mw, &wr->bind_mw.bind_info, r);
	}
	fill_payload(w, wr);
	if (vrb_unlikely(wr->opcode != IBV_WR_SEND || qp->h->core.type == VRB_QPT_UD))
		fill_target(qp, w, wr);
	return VRB_OK;
}

static __attribute__((cold, noinline)) int refused(struct vrb_report *r, vrb_qpn qpn)
{
	r->qpn = qpn;
	return vv_refuse(r);
}

/* For the verdict that says why a full queue will never drain. */
static inline void count_unsignaled(struct vrb_qp *c, const struct vrb_swqe *w)
{
	c->unsignaled_run = w->flags & VRB_WRF_SIGNALED ? 0 : c->unsignaled_run + 1;
}

int vv_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct vv_qp *qp = vv_qp(ibqp);
	struct vrb_hqp *q = qp->h;
	struct vrb_engine *e = q->e;
	struct vrb_report r;
	enum vrb_verdict v;
	uint32_t n = 0;
	bool first = true;

	v = vrb_post_not_foreign(e->foreign, &r);
	if (vrb_unlikely(v != VRB_OK)) {
		*bad_wr = wr;
		return refused(&r, 0);
	}
	vrb_engine_lock(e);
	v = vrb_post_send_state(&vv_posting, q->core.state, &r);
	for (; wr && v == VRB_OK; wr = wr->next) {
		uint64_t len = 0;

		v = check_send(qp, wr, n, &len, &r);
		if (v == VRB_OK)
			v = fill_send(qp, vrb_hqp_swqe(q, n), wr, len, &r);
		if (vrb_unlikely(v != VRB_OK))
			break;
		count_unsignaled(&q->core, vrb_hqp_swqe(q, n));
		if (n || (!vrb_hqp_fast_post(q, vrb_hqp_swqe(q, 0), first && wr->next) &&
			  (wr->next || !vrb_direct_write(q, vrb_hqp_swqe(q, 0)))))
			n++;
		first = false;
	}
	vrb_engine_unhold(e);
	if (n)
		vrb_hqp_commit(q, n);
	else
		vrb_engine_ring_bells(e);
	vrb_engine_unlock(e);
	if (vrb_likely(v == VRB_OK))
		return 0;
	*bad_wr = wr;
	return refused(&r, q->core.qpn);
}

static enum vrb_verdict fill_recv(struct vrb_rwqe *w, const struct ibv_recv_wr *wr)
{
	w->wr_id = wr->wr_id;
	w->n_sge = (uint32_t)wr->num_sge;
	w->len = (uint32_t)total_length(wr->sg_list, wr->num_sge);
	for (uint32_t i = 0; i < w->n_sge; i++)
		memcpy(&w->sge[i], &wr->sg_list[i], sizeof(w->sge[0]));
	return VRB_OK;
}

static enum vrb_verdict check_recv(const struct vrb_wq *wq, const struct ibv_recv_wr *wr,
				   uint32_t n, struct vrb_report *r)
{
	CHECK(vrb_post_rq_room(wq->tail - wq->head + n, wq->cap, r));
	return vrb_post_num_sge(wr->num_sge, wq->max_sge, r);
}

int vv_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vrb_hqp *q = vv_qp(ibqp)->h;
	struct vrb_engine *e = q->e;
	struct vrb_wq *wq = &q->core.rq;
	struct vrb_report r;
	enum vrb_verdict v;
	uint32_t n = 0;

	v = vrb_post_not_foreign(e->foreign, &r);
	if (vrb_unlikely(v != VRB_OK)) {
		*bad_wr = wr;
		return refused(&r, 0);
	}
	vrb_engine_lock(e);
	v = vrb_post_recv_state(&vv_posting, q->core.state, &r);
	if (v == VRB_OK)
		v = vrb_post_not_on_srq(q->core.srq, &r);
	for (; wr && v == VRB_OK; wr = wr->next) {
		v = check_recv(wq, wr, n, &r);
		if (vrb_unlikely(v != VRB_OK))
			break;
		fill_recv(vrb_wq_entry(wq, wq->tail + n), wr);
		n++;
	}
	if (n)
		vrb_hqp_commit_recv(q, n);
	vrb_engine_unlock(e);
	if (vrb_likely(v == VRB_OK))
		return 0;
	*bad_wr = wr;
	return refused(&r, q->core.qpn);
}

int vv_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vrb_hsrq *s = vv_srq(ibsrq)->h;
	struct vrb_engine *e = s->pd->ctx->e;
	struct vrb_wq *wq = &s->core.wq;
	struct vrb_report r;
	enum vrb_verdict v;
	uint32_t from;

	v = vrb_post_not_foreign(e->foreign, &r);
	if (vrb_unlikely(v != VRB_OK)) {
		*bad_wr = wr;
		return refused(&r, 0);
	}
	vrb_engine_lock(e);
	from = wq->tail;
	for (; wr; wr = wr->next) {
		v = check_recv(wq, wr, 0, &r);
		if (vrb_unlikely(v != VRB_OK))
			break;
		fill_recv(vrb_wq_entry(wq, wq->tail), wr);
		wq->tail++;
	}
	if (vrb_unlikely(e->trace))
		vrb_trace_post_srq(e, s, from);
	vrb_engine_unlock(e);
	if (vrb_likely(v == VRB_OK))
		return 0;
	*bad_wr = wr;
	return refused(&r, 0);
}

int vv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	if (vrb_unlikely(num_entries <= 0))
		return num_entries ? -EINVAL : 0;
	return vrb_hcq_poll(vv_cq(cq)->h, (uint32_t)num_entries, (struct vrb_wc *)wc);
}

int vv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return vv_ret(vrb_hcq_arm(vv_cq(cq)->h, solicited_only));
}
