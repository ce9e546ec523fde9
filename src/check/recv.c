/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives, of a queue pair or of an SRQ. */
#include "check/check.h"

#include <errno.h>

int vrb_chk_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vrb_chk_qp *q = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_qps, qp);
	struct vrb_chk_recv r = {.call = "ibv_post_recv",
				 .pc = (char *)__builtin_return_address(0) - 1};
	uint64_t before = vrb_chk_n_findings();
	uint32_t n;
	int err;

	if (vrb_unlikely(!q))
		return vrb_chk_ctx_of(qp->context)->ops.post_recv(qp, wr, bad);
	r.ring = &q->rq;
	r.made = &q->obj.site;
	r.qpn = q->qpn;
	r.ctx = q->ctx->id;
	r.pd = q->pd;
	r.is_ud = q->type == VRB_QPT_UD;
	vrb_chk_count_post(q, false);
	vrb_chk_lock(&q->lock);
	vrb_chk_check_state(r.call, q, false);
	if (vrb_unlikely(q->srq != NULL))
		VRB_CHK_NOTE(r.call, q->qpn, VRB_V_POST_ON_SRQ, 0, 0, 0);
	n = vrb_chk_recv_check(&r, wr);
	err = q->ctx->ops.post_recv(qp, wr, bad);
	vrb_chk_recv_commit(&r, wr, n, err, bad);
	vrb_chk_unlock(&q->lock);
	if (vrb_unlikely(err) && before == vrb_chk_n_findings())
		vrb_chk_refused(r.call, q->qpn, err);
	return err;
}

int vrb_chk_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vrb_chk_srq *s = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_srqs, srq);
	struct vrb_chk_recv r = {.call = "ibv_post_srq_recv",
				 .pc = (char *)__builtin_return_address(0) - 1};
	uint64_t before = vrb_chk_n_findings();
	uint32_t n;
	int err;

	if (vrb_unlikely(!s))
		return vrb_chk_ctx_of(srq->context)->ops.post_srq_recv(srq, wr, bad);
	r.ring = &s->rq;
	r.made = &s->obj.site;
	r.ctx = s->ctx->id;
	r.pd = s->pd;
	r.is_ud = s->has_ud;
	vrb_chk_count_srq(s);
	vrb_chk_lock(&s->lock);
	n = vrb_chk_recv_check(&r, wr);
	err = s->ctx->ops.post_srq_recv(srq, wr, bad);
	vrb_chk_recv_commit(&r, wr, n, err, bad);
	vrb_chk_unlock(&s->lock);
	if (vrb_unlikely(err) && before == vrb_chk_n_findings())
		vrb_chk_refused(r.call, 0, err);
	return err;
}
