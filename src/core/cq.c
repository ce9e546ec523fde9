/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: push, poll, arm. An arm fires once, by the first completion added after it
 * (IBA 11.2.6.4); completions that lie in the queue already do not count. With moderation the event
 * of an ordinary completion waits for company; a solicited one, and an error, is not held back. An
 * overrun kills the CQ: what it holds can still be polled, nothing is added any more, and the steps
 * that find a dead CQ fail their QP. Other QPs of the CQ are failed by the caller, which sees the
 * event CQ_ERR. There is no clock here: the caller stamps what was pushed before anybody can poll.
 */
#include "core/internal.h"

static void overrun(struct vrb_cq *cq, const struct vrb_cqe *cqe, struct vrb_fx *fx)
{
	struct vrb_report r = {
		.verdict = VRB_V_CQ_OVERRUN, .qpn = cqe->wc.qp_num, .val = {cq->cap}};

	cq->dead = cq->closed = true;
	vrb_fx_event(fx, VRB_ASYNC_CQ_ERR, cq);
	vrb_fx_report(fx, &r);
}

static void ask(struct vrb_cq *cq, uint8_t due, struct vrb_fx *fx)
{
	if (!cq->due) {
		cq->notify_next = fx->notify;
		fx->notify = cq;
	}
	cq->due |= due;
}

static void fire(struct vrb_cq *cq, struct vrb_fx *fx)
{
	cq->armed = VRB_CQ_UNARMED;
	cq->fire_tail = cq->tail;
	cq->has_fired = true;
	cq->n_held = 0;
	cq->due &= (uint8_t)~VRB_CQ_DUE_TIMER;
	ask(cq, VRB_CQ_DUE_EVENT, fx);
}

/* n more completions: true when their event may wait. The time begins with the first. */
static bool hold(struct vrb_cq *cq, uint32_t n, struct vrb_fx *fx)
{
	bool first = !cq->n_held;

	if (!cq->hold_ns)
		return false;
	cq->n_held += n;
	if (cq->hold_max && cq->n_held >= cq->hold_max)
		return false;
	if (first)
		ask(cq, VRB_CQ_DUE_TIMER, fx);
	return true;
}

/* The oldest completion goes, as if it had been polled. */
static void drop_oldest(struct vrb_cq *cq, const struct vrb_cqe *cqe, struct vrb_fx *fx)
{
	const struct vrb_cqe *e = &cq->ring[cq->head & cq->mask];
	struct vrb_report r = {
		.verdict = VRB_V_CQ_OVERWRITTEN, .qpn = cqe->wc.qp_num, .val = {cq->cap}};

	if (e->is_send)
		e->qp->sq_free = e->sq_free;
	vrb_poke(&cq->head, cq->head + 1);
	vrb_fx_report(fx, &r);
}

void vrb_cq_push(struct vrb_cq *cq, const struct vrb_cqe *cqe, bool solicited, struct vrb_fx *fx)
{
	bool urgent = solicited || cqe->wc.status != VRB_WC_SUCCESS;

	if (cq->dead)
		return;
	if (cq->tail - cq->head >= cq->cap) {
		if (!cq->overwrites) {
			overrun(cq, cqe, fx);
			return;
		}
		drop_oldest(cq, cqe, fx);
	}
	cq->ring[cq->tail & cq->mask] = *cqe;
	vrb_cq_commit(cq);
	if (vrb_unlikely(cqe->wc.status != VRB_WC_SUCCESS))
		cq->n_failed++;
	if (cq->closed)
		ask(cq,
		    (uint8_t)((cq->stamped ? VRB_CQ_DUE_STAMP : 0) |
			      (cq->traced ? VRB_CQ_DUE_TRACE : 0)),
		    fx);
	if (cq->armed == VRB_CQ_UNARMED || (cq->armed == VRB_CQ_ARMED_SOLICITED && !urgent))
		return;
	if (urgent || !hold(cq, 1, fx))
		fire(cq, fx);
}

static void take(struct vrb_cq *cq, struct vrb_wc *wc)
{
	const struct vrb_cqe *e = &cq->ring[cq->head & cq->mask];

	*wc = e->wc;
	if (e->is_send)
		e->qp->sq_free = e->sq_free;
	vrb_poke(&cq->head, cq->head + 1);
}

uint32_t vrb_cq_poll(struct vrb_cq *cq, uint32_t n, struct vrb_wc *wc)
{
	uint32_t got = 0;

	for (; got < n && cq->head != cq->tail; got++)
		take(cq, &wc[got]);
	return got;
}

bool vrb_cq_poll_stamped(struct vrb_cq *cq, struct vrb_wc *wc, struct vrb_stamp *stamp)
{
	if (cq->head == cq->tail)
		return false;
	*stamp = cq->stamped ? cq->stamp[cq->head & cq->mask] : (struct vrb_stamp){0};
	take(cq, wc);
	return true;
}

void vrb_cq_stamp(struct vrb_cq *cq, struct vrb_stamp now)
{
	for (; cq->stamp_tail != cq->tail; cq->stamp_tail++)
		cq->stamp[cq->stamp_tail & cq->mask] = now;
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

void vrb_cq_catch_up(struct vrb_cq *cq, struct vrb_fx *fx)
{
	uint32_t n = cq->tail - cq->fire_tail;

	/* while an event is held back its timer runs, for all that lies there */
	if (!cq->n_held && !hold(cq, n ? n : 1, fx))
		fire(cq, fx);
}

void vrb_cq_moderate(struct vrb_cq *cq, uint32_t hold_max, vrb_ns hold_ns, struct vrb_fx *fx)
{
	cq->hold_max = hold_max;
	cq->hold_ns = hold_ns;
	vrb_cq_expire(cq, fx);
}

void vrb_cq_expire(struct vrb_cq *cq, struct vrb_fx *fx)
{
	if (cq->n_held)
		fire(cq, fx);
}

/* No completion is pushed in a step that purges: all have their time. */
void vrb_cq_purge(struct vrb_cq *cq, const struct vrb_qp *qp)
{
	uint32_t to = cq->head;

	for (uint32_t i = cq->head; i != cq->tail; i++) {
		const struct vrb_cqe *e = &cq->ring[i & cq->mask];

		if (e->qp == qp)
			continue;
		if (to != i) {
			cq->ring[to & cq->mask] = *e;
			if (cq->stamped)
				cq->stamp[to & cq->mask] = cq->stamp[i & cq->mask];
		}
		to++;
	}
	vrb_poke(&cq->tail, to);
	cq->stamp_tail = cq->told_tail = to;
}
