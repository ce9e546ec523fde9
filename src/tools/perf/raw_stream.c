/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As many messages as possible. The client goes round its queue pairs, posts a list where there is
 * room and credit, and takes completions; the server posts receives again and gives credit for
 * them.
 */
#include "tools/perf/raw.h"

#define DONE_PER_CLOCK	64u
#define TURNS_PER_CLOCK 256u
#define CREDIT_SHARE	4u /* of the receives: so many are told of at once */

/* How many the next list has; 0 when it has to wait. */
static uint32_t may_post(const struct perf_raw *e, const struct perf_qp *q)
{
	const struct perf_run *run = e->run;
	uint32_t n = e->p->batch;

	if (e->p->iterations && run->measuring) {
		uint64_t so_far = run->posted - run->base_done;

		if (so_far >= e->p->iterations)
			return 0;
		if (e->p->iterations - so_far < n)
			n = (uint32_t)(e->p->iterations - so_far);
	}
	if (q->posted - q->done + n > e->p->depth)
		return 0;
	return e->p->verb != PERF_SEND || q->posted + n <= q->credit ? n : 0;
}

/* One list on each queue pair; how many messages, or -1. */
static int post_round(struct perf_raw *e)
{
	int all = 0;

	for (uint32_t i = 0; i < e->n_qps; i++) {
		struct perf_qp *q = &e->qp[i];
		uint32_t n = may_post(e, q);

		if (!n)
			continue;
		if (e->p->pace)
			vrb_perf_pace(e->run, vrb_perf_now(), n);
		if (!vrb_perf_raw_post(e, q, n))
			return -1;
		e->run->posted += n;
		all += (int)n;
	}
	return all;
}

/* Receives for the server's credits. */
static bool refill_all(struct perf_raw *e)
{
	for (uint32_t i = 0; i < e->n_qps; i++)
		if (!vrb_perf_raw_refill(e, &e->qp[i], e->run->is_client))
			return false;
	return true;
}

static bool turn(struct perf_raw *e, uint32_t *unlooked)
{
	int n = post_round(e);
	bool stuck = n == 0;

	if (n < 0)
		return false;
	*unlooked += (uint32_t)n;
	if (!stuck && *unlooked < 2 * e->p->signal)
		return true;
	*unlooked = 0;
	n = vrb_perf_raw_poll(e, stuck);
	return n >= 0 && refill_all(e);
}

/* With empty queues, so that what is counted is what the time has been spent on. */
static bool begin(struct perf_raw *e)
{
	if (!vrb_perf_raw_drain(e, 0))
		return false;
	vrb_perf_begin(e->run, vrb_perf_now());
	return true;
}

bool vrb_perf_raw_stream(struct perf_raw *e)
{
	struct perf_run *run = e->run;
	uint64_t now = vrb_perf_now(), looked = 0;
	uint32_t unlooked = 0;
	bool ok = true;

	vrb_perf_raw_prepare(e);
	for (uint32_t turns = 1; ok && !vrb_perf_is_over(run, now); turns++) {
		ok = turn(e, &unlooked);
		if (run->done - looked < DONE_PER_CLOCK && turns % TURNS_PER_CLOCK)
			continue;
		looked = run->done;
		now = vrb_perf_now();
		if (run->measuring)
			vrb_perf_tick(run, now);
		else if (run->done >= e->p->warmup)
			ok = ok && begin(e);
	}
	ok = ok && vrb_perf_raw_drain(e, PERF_END);
	vrb_perf_finish(run);
	return ok;
}

static bool give_credit(struct perf_raw *e, struct perf_qp *q)
{
	uint32_t owed = q->owed;

	if (owed < e->p->recv_depth / CREDIT_SHARE)
		return true;
	q->owed = 0;
	return vrb_perf_raw_note(e, q, owed);
}

static bool sink(struct perf_raw *e)
{
	struct perf_run *run = e->run;

	for (uint32_t i = 0; i < e->n_qps; i++)
		e->qp[i].owed = 0;
	while (e->n_ended < e->n_qps) {
		int n = vrb_perf_raw_poll(e, true);

		if (*run->talk->stop ||
		    atomic_load_explicit(&run->talk->gone, memory_order_relaxed))
			return true;
		if (n < 0)
			return false;
		run->done += e->arrived;
		run->posted = run->done;
		e->arrived = 0;
		if (!run->measuring && run->done >= e->p->warmup)
			vrb_perf_begin(run, vrb_perf_now());
		if (!refill_all(e))
			return false;
		for (uint32_t i = 0; i < e->n_qps; i++)
			if (!give_credit(e, &e->qp[i]))
				return false;
	}
	return true;
}

bool vrb_perf_raw_sink(struct perf_raw *e)
{
	bool ok = true;

	if (e->p->verb == PERF_SEND)
		ok = sink(e);
	else
		vrb_perf_begin(e->run, vrb_perf_now());
	if (e->p->verb != PERF_SEND)
		vrb_perf_watch_wait(e->run->talk, 0);
	vrb_perf_finish(e->run);
	vrb_perf_watch_wait(e->run->talk, 0);
	return ok;
}
