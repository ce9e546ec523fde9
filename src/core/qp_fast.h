/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight line: an RC SEND of one packet, in order, with at most one SGE, to a CQ that nobody
 * has armed and that keeps no times. Each predicate either does exactly what the full step would do
 * with the same event, or does nothing and returns false; a differential test holds them equal
 * (tests/unit/core/test_fast.c). When the straight line may be taken is said in core/qp.h.
 */
#ifndef VRB_CORE_QP_FAST_H
#define VRB_CORE_QP_FAST_H

#include "core/qp.h"

/* The host address of an SGE whose key, PD, range and right are good, or 0; zero length is for the
 * full step. */
static inline uint64_t vrb_key_fast_local(const struct vrb_keytab *t, const struct vrb_sge *s,
					  uint32_t len, uint32_t pd, uint32_t need)
{
	uint32_t i = s->lkey >> 8;
	const struct vrb_key *k;
	uint64_t off;

	if (vrb_unlikely(i >= t->n))
		return 0;
	k = &t->ent[i];
	off = s->addr - k->base;
	if (vrb_unlikely(k->kind != VRB_KEY_LOCAL || k->key != s->lkey || k->pd != pd ||
			 (k->access & need) != need || off > k->len || s->len > k->len - off ||
			 !len))
		return 0;
	return k->host + off;
}

/* Appends a completion when the CQ is quiet and has room. */
static inline struct vrb_cqe *vrb_cq_fast_slot(struct vrb_cq *cq)
{
	if (vrb_unlikely(cq->armed != VRB_CQ_UNARMED || cq->closed ||
			 cq->tail - cq->head >= cq->cap))
		return NULL;
	return &cq->ring[cq->tail & cq->mask];
}

/*
 * The entry at sq.tail, filled but not posted: posts it and makes its only packet, PSN in w->first.
 * src is where the payload lies.
 */
static inline bool vrb_qp_fast_send(struct vrb_qp *qp, struct vrb_swqe *w, vrb_ns now,
				    const void **src)
{
	uint64_t at;

	if (vrb_unlikely(qp->slow_tx | (qp->sq_send != qp->sq.tail)) || w->op != VRB_WR_SEND ||
	    w->len > qp->mtu || (w->flags & VRB_WRF_FENCE))
		return false;
	if (vrb_unlikely(((qp->next_psn.v - qp->una_psn.v) & VRB_PSN_MASK) >= qp->window_max))
		return false;
	if (w->flags & VRB_WRF_INLINE) {
		*src = w->data;
	} else {
		if (w->n_sge != 1 ||
		    !(at = vrb_key_fast_local(qp->keys, w->sge, w->len, qp->pd, 0)))
			return false;
		*src = (const void *)(uintptr_t)at;
	}
	w->first = w->last = qp->next_psn;
	qp->next_psn = vrb_psn_add(qp->next_psn, 1);
	qp->sq.tail++;
	qp->sq_send++;
	if (qp->ack_deadline == VRB_NS_NEVER && qp->timeout_ns != VRB_NS_NEVER)
		qp->ack_deadline = now + qp->timeout_ns;
	return true;
}

/* A SEND Only with this PSN and length: where its payload goes, or NULL. Nothing has changed yet.
 */
static inline void *vrb_qp_fast_recv(const struct vrb_qp *qp, uint32_t psn, uint32_t len)
{
	const struct vrb_rwqe *w = vrb_wq_entry(&qp->rq, qp->rq.head);

	if (vrb_unlikely(qp->slow_rx | (psn != qp->epsn.v) | (qp->rq.head == qp->rq.tail)) ||
	    w->n_sge != 1 || len > w->sge[0].len || len > qp->mtu || !vrb_cq_fast_slot(qp->rcq))
		return NULL;
	return (void *)(uintptr_t)vrb_key_fast_local(qp->keys, w->sge, len, qp->pd,
						     VRB_ACC_LOCAL_WRITE);
}

/* The payload has been placed. */
static inline void vrb_qp_fast_recv_done(struct vrb_qp *qp, uint32_t len, bool ackreq)
{
	const struct vrb_rwqe *w = vrb_wq_entry(&qp->rq, qp->rq.head);
	struct vrb_cqe *c = vrb_cq_fast_slot(qp->rcq);

	c->wc = (struct vrb_wc){
		.wr_id = w->wr_id, .opcode = VRB_WCO_RECV, .byte_len = len, .qp_num = qp->qpn};
	c->qp = qp;
	c->is_send = 0;
	vrb_cq_commit(qp->rcq);
	qp->ack_psn = qp->epsn;
	qp->epsn = vrb_psn_add(qp->epsn, 1);
	qp->msn++;
	qp->ack_pending |= ackreq;
	qp->rq.head++;
}

/* A positive acknowledgement up to psn while only SENDs and WRITEs are outstanding. */
static inline bool vrb_qp_fast_ack(struct vrb_qp *qp, struct vrb_psn psn, vrb_ns now)
{
	uint32_t n = (psn.v - qp->una_psn.v) & VRB_PSN_MASK;

	if (vrb_unlikely(qp->slow_tx | (qp->n_rd_out != 0)) ||
	    n >= ((qp->next_psn.v - qp->una_psn.v) & VRB_PSN_MASK))
		return false;
	while (qp->sq_una != qp->sq_send) {
		const struct vrb_swqe *w = vrb_wq_entry(&qp->sq, qp->sq_una);
		struct vrb_cqe *c;

		if (((w->last.v - qp->una_psn.v) & VRB_PSN_MASK) > n)
			break;
		if (w->flags & VRB_WRF_SIGNALED) {
			c = vrb_cq_fast_slot(qp->scq);
			if (vrb_unlikely(!c || w->op > VRB_WR_SEND_IMM))
				return false; /* what was retired so far stands: acknowledging is
						 idempotent */
			c->wc = (struct vrb_wc){.wr_id = w->wr_id,
						.opcode = w->op >= VRB_WR_SEND ? VRB_WCO_SEND
									       : VRB_WCO_WRITE,
						.byte_len = w->len,
						.qp_num = qp->qpn};
			c->qp = qp;
			c->sq_free = qp->sq_una + 1;
			c->is_send = 1;
			vrb_cq_commit(qp->scq);
		} else if (vrb_unlikely(w->op > VRB_WR_SEND_IMM)) {
			return false;
		}
		qp->sq_una++;
	}
	qp->una_psn = vrb_psn_add(psn, 1);
	qp->retry_left = qp->attr.retry_cnt;
	qp->rnr_left = qp->attr.rnr_retry;
	qp->resend_guard = false;
	qp->ack_deadline = VRB_NS_NEVER;
	if (qp->una_psn.v != qp->next_psn.v && qp->timeout_ns != VRB_NS_NEVER)
		qp->ack_deadline = now + qp->timeout_ns;
	return true;
}

#endif
