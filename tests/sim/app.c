/* SPDX-License-Identifier: BSD-2-Clause */
/* One run: start, post and poll while virtual time jumps from event to event, end. */
#include "sim/app.h"

#include <string.h>

#define TIME_MAX  (100 * VRB_NS_PER_S)
#define STEPS_MAX 400000u

void app_start(struct app *a, struct vrb_link *link[2])
{
	a->rng = vrb_prng_seed(a->plan.seed ^ 0x5eed);
	a->ending = false;
	sn_start(&a->sn, link, a->plan.ipv6);
	memset(a->side, 0, sizeof(a->side));
	for (unsigned k = 0; k < 2; k++) {
		struct sn_end *e = &a->sn.end[k];

		a->cq_at[k] = 0;
		a->notified[k] = 0;
		e->tx_burst = a->plan.tx_burst[k];
		e->ack_delay = a->plan.ack_delay[k];
		e->requests_first = a->plan.requests_first[k];
		e->fast = a->plan.fast[k];
		if (a->plan.srq[k])
			sn_srq(e, SN_RQ_MAX);
		a->srq[k].n = a->srq[k].posted = a->srq[k].n_done = 0;
		a->srq[k].next_at = 0;
		for (unsigned i = 0; i < SN_QPS_MAX; i++) {
			struct app_rq *rq = &a->own_rq[k][i];

			rq->n = rq->posted = rq->n_done = 0;
			rq->next_at = 0;
		}
	}
	for (uint32_t i = 0; i < a->plan.n_qp; i++)
		sn_connect(&a->sn, &a->plan.qp[i]);
	app_make(a);
	for (unsigned k = 0; k < 2; k++)
		app_arm(a, k);
}

static vrb_ns pause_until(struct app *a, vrb_ns pause)
{
	return pause ? a->sn.now + 1 + vrb_prng_below(&a->rng, (uint32_t)pause) : a->sn.now;
}

static bool post_recvs(struct app *a, unsigned k, unsigned i)
{
	struct app_rq *rq = a->side[k][i].rq;
	struct sn_qp *q = &a->sn.end[k].qp[i];
	const struct vrb_wq *wq = q->core.srq ? &q->core.srq->wq : &q->core.rq;
	uint32_t burst = a->plan.recv_pause[k] ? 1 + vrb_prng_below(&a->rng, 4) : APP_RECVS_MAX;
	bool any = false;

	if (a->sn.now < rq->next_at)
		return false;
	for (; burst && rq->posted < rq->n && wq->tail - wq->head < rq->cap; burst--) {
		app_post_recv(a, k, rq, q);
		any = true;
	}
	if (any)
		rq->next_at = pause_until(a, a->plan.recv_pause[k]);
	return any;
}

static bool post_sends(struct app *a, unsigned k, unsigned i)
{
	struct app_side *s = &a->side[k][i];
	struct sn_qp *q = &a->sn.end[k].qp[i];
	uint32_t burst = a->plan.post_pause[k] ? 1 + vrb_prng_below(&a->rng, 4) : APP_MSGS_MAX;
	bool any = false;

	if (a->sn.now < s->next_at || s->error)
		return false;
	for (; burst && s->posted < s->n && vrb_qp_sq_used(&q->core) < a->plan.qp[i].sq_cap;
	     burst--) {
		app_post_send(a, k, i);
		any = true;
	}
	if (any)
		s->next_at = pause_until(a, a->plan.post_pause[k]);
	return any;
}

/* The application and the network until neither has anything to do at this instant. */
static void instant(struct app *a)
{
	bool any = true;

	for (unsigned turn = 0; turn < SN_TURNS_MAX && any && !a->sn.failed; turn++) {
		any = false;
		for (unsigned k = 0; k < 2; k++) {
			for (uint32_t i = 0; i < a->plan.n_qp; i++) {
				any |= post_recvs(a, k, i);
				any |= post_sends(a, k, i);
			}
		}
		sn_turn(&a->sn);
		any |= app_poll(a);
	}
	if (any)
		sn_fail(&a->sn, "the application finds no end at one instant");
}

static bool finished(const struct app *a)
{
	for (unsigned k = 0; k < 2; k++)
		for (uint32_t i = 0; i < a->plan.n_qp; i++)
			if (!app_side_finished(a, k, i))
				return false;
	return true;
}

static vrb_ns earlier(vrb_ns a, vrb_ns b)
{
	return a < b ? a : b;
}

/* When the network or the application has something to do next. */
static vrb_ns next_time(const struct app *a)
{
	vrb_ns next = sn_next_time(&a->sn), now = a->sn.now;

	for (unsigned k = 0; k < 2; k++) {
		if (a->cq_at[k] > now && a->sn.end[k].scq.head != a->sn.end[k].scq.tail)
			next = earlier(next, a->cq_at[k]);
		for (uint32_t i = 0; i < a->plan.n_qp; i++) {
			const struct app_side *s = &a->side[k][i];

			if (s->posted < s->n && s->next_at > now && !s->error)
				next = earlier(next, s->next_at);
			if (s->rq->posted < s->rq->n && s->rq->next_at > now)
				next = earlier(next, s->rq->next_at);
		}
	}
	return next;
}

/* Every queue ends in ERR with its completions, and nothing comes after. */
static void end(struct app *a)
{
	a->ending = true;
	for (unsigned k = 0; k < 2; k++)
		for (uint32_t i = 0; i < a->plan.n_qp; i++)
			sn_to_err(&a->sn.end[k], &a->sn.end[k].qp[i]);
	app_poll(a);
	if (!a->sn.failed && sn_next_time(&a->sn) != VRB_NS_NEVER)
		sn_fail(&a->sn, "a timer runs in ERR");
	app_check_end(a);
}

bool app_run(struct app *a)
{
	for (uint32_t step = 0; !a->sn.failed; step++) {
		vrb_ns next;

		instant(a);
		next = next_time(a);
		if (next == VRB_NS_NEVER)
			break;
		if (next <= a->sn.now || next > TIME_MAX || step > STEPS_MAX) {
			sn_fail(&a->sn, next <= a->sn.now ? "time stands still"
							  : "not finished in bounded time");
			break;
		}
		a->sn.now = next;
	}
	if (!a->sn.failed && !finished(a))
		sn_fail(&a->sn, "everything is quiet, and not everything is done");
	if (!a->sn.failed)
		end(a);
	return !a->sn.failed;
}
