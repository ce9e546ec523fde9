/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: push, poll, arm. An arm fires once, by the first completion added after it
 * (IBA 11.2.6.4); completions that lie in the queue already do not count. An overrun kills the CQ:
 * what it holds can still be polled, nothing is added any more, and the steps that find a dead CQ
 * fail their QP. Other QPs of the CQ are failed by the caller, which sees the event CQ_ERR.
 */
#include "core/internal.h"

static void overrun(struct vrb_cq *cq, const struct vrb_cqe *cqe, struct vrb_fx *fx)
{
	struct vrb_report r = {
		.verdict = VRB_V_CQ_OVERRUN, .qpn = cqe->wc.qp_num, .val = {cq->cap}};

	cq->dead = true;
	vrb_fx_event(fx, VRB_ASYNC_CQ_ERR, cq);
	vrb_fx_report(fx, &r);
}

static void fire(struct vrb_cq *cq, struct vrb_fx *fx)
{
	cq->armed = VRB_CQ_UNARMED;
	cq->fire_tail = cq->tail;
	cq->has_fired = true;
	if (cq->notifying)
		return;
	cq->notifying = true;
	cq->notify_next = fx->notify;
	fx->notify = cq;
}

void vrb_cq_push(struct vrb_cq *cq, const struct vrb_cqe *cqe, bool solicited, struct vrb_fx *fx)
{
	if (cq->dead)
		return;
	if (cq->tail - cq->head >= cq->cap) {
		overrun(cq, cqe, fx);
		return;
	}
	cq->ring[cq->tail & cq->mask] = *cqe;
	vrb_cq_commit(cq);
	if (cq->armed == VRB_CQ_ARMED_ANY || (cq->armed == VRB_CQ_ARMED_SOLICITED &&
					      (solicited || cqe->wc.status != VRB_WC_SUCCESS)))
		fire(cq, fx);
}

uint32_t vrb_cq_poll(struct vrb_cq *cq, uint32_t n, struct vrb_wc *wc)
{
	uint32_t got = 0;

	for (; got < n && cq->head != cq->tail; got++) {
		const struct vrb_cqe *e = &cq->ring[cq->head & cq->mask];

		wc[got] = e->wc;
		if (e->is_send)
			e->qp->sq_free = e->sq_free;
		vrb_poke(&cq->head, cq->head + 1);
	}
	return got;
}

bool vrb_cq_is_behind(const struct vrb_cq *cq)
{
	return cq->has_fired && cq->head != cq->tail &&
	       (cq->tail != cq->fire_tail || (int32_t)(cq->arm_tail - cq->head) > 0);
}

void vrb_cq_arm(struct vrb_cq *cq, bool solicited_only)
{
	cq->arm_tail = cq->tail;
	if (!solicited_only)
		cq->armed = VRB_CQ_ARMED_ANY;
	else if (cq->armed == VRB_CQ_UNARMED)
		cq->armed = VRB_CQ_ARMED_SOLICITED;
}

void vrb_cq_purge(struct vrb_cq *cq, const struct vrb_qp *qp)
{
	uint32_t to = cq->head;

	for (uint32_t i = cq->head; i != cq->tail; i++) {
		const struct vrb_cqe *e = &cq->ring[i & cq->mask];

		if (e->qp == qp)
			continue;
		if (to != i)
			cq->ring[to & cq->mask] = *e;
		to++;
	}
	vrb_poke(&cq->tail, to);
}
