/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One message at a time. SEND: there and back. WRITE: there and back, each side looking at the last
 * byte of its memory. READ: from post to completion.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/latency.h"
#include "tools/perf/raw.h"

#define MARKS	     250u
#define SPINS_PER_CQ 32u
#define EACH_ALIGN   4096u

static bool is_done(const struct perf_raw *e)
{
	return atomic_load_explicit(&e->run->talk->spoken, memory_order_relaxed) ||
	       *e->run->talk->stop;
}

/* Until the queue pair has room for one more. */
static bool make_room(struct perf_raw *e, struct perf_qp *q, uint32_t depth)
{
	while (q->posted - q->done >= depth)
		if (vrb_perf_raw_poll(e, true) < 0)
			return false;
	return true;
}

static void drop_each(struct perf_raw *e)
{
	void *mem = e->each ? e->each->addr : NULL;

	if (e->each)
		ibv_dereg_mr(e->each);
	e->each = NULL;
	free(mem);
}

/* Memory of its own for the next message, allocated and registered for it alone. */
static bool take_each(struct perf_raw *e)
{
	size_t len = (e->p->size + EACH_ALIGN - 1) / EACH_ALIGN * EACH_ALIGN;
	void *mem = aligned_alloc(EACH_ALIGN, len);

	e->each = mem ? ibv_reg_mr(e->pd, mem, e->p->size, IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!e->each) {
		free(mem);
		return vrb_perf_fail(e->run, "memory of one message: %s", strerror(errno));
	}
	memset(mem, 1, e->p->size);
	e->sge[0] = (struct ibv_sge){(uintptr_t)mem, e->p->size, e->each->lkey};
	return true;
}

static bool send_one(struct perf_raw *e, struct perf_qp *q)
{
	if (!e->p->slow_register)
		return make_room(e, q, e->p->depth) && vrb_perf_raw_post(e, q, 1);
	if (e->each && !make_room(e, q, 1))
		return false;
	drop_each(e);
	q->to_signal = 1;
	return take_each(e) && vrb_perf_raw_post(e, q, 1);
}

/* ---- SEND */

static bool pong_send(struct perf_raw *e)
{
	for (;;) {
		while (!e->arrived) {
			if (vrb_perf_raw_poll(e, true) < 0 && !is_done(e))
				return false;
			if (e->n_ended == e->n_qps || is_done(e))
				return true;
		}
		e->arrived--;
		if (!send_one(e, e->where))
			return false;
		e->run->posted = ++e->run->done;
		if (!e->run->measuring && e->run->done >= e->p->warmup)
			vrb_perf_begin(e->run, vrb_perf_now());
		if (!vrb_perf_raw_refill(e, e->where, false))
			return false;
	}
}

static bool ping_send(struct perf_raw *e, struct perf_qp *q)
{
	if (!send_one(e, q))
		return false;
	while (!e->arrived)
		if (vrb_perf_raw_poll(e, true) < 0)
			return false;
	e->arrived--;
	return vrb_perf_raw_refill(e, e->where, false);
}

/* ---- WRITE */

static bool await_mark(struct perf_raw *e, uint8_t mark)
{
	volatile uint8_t *at = e->mem + e->rx_at + e->p->size - 1;

	for (uint32_t i = 1; *at != mark; i++) {
		if (i % SPINS_PER_CQ)
			continue;
		if (vrb_perf_raw_poll(e, false) < 0)
			return false;
		if (is_done(e))
			return true;
	}
	return true;
}

static bool write_mark(struct perf_raw *e, struct perf_qp *q, uint8_t mark)
{
	const struct ibv_sge *last = &e->sge[e->p->sges - 1];

	((uint8_t *)(uintptr_t)last->addr)[last->length - 1] = mark;
	return make_room(e, q, e->p->depth) && vrb_perf_raw_post(e, q, 1);
}

static bool pong_write(struct perf_raw *e)
{
	for (uint64_t i = 0;; i++) {
		uint8_t mark = (uint8_t)(i % MARKS + 1);

		if (!await_mark(e, mark))
			return is_done(e);
		if (is_done(e))
			return true;
		if (!write_mark(e, &e->qp[i % e->n_qps], mark))
			return false;
		e->run->posted = ++e->run->done;
		if (!e->run->measuring && e->run->done >= e->p->warmup)
			vrb_perf_begin(e->run, vrb_perf_now());
	}
}

/* ---- all */

static bool pong(struct perf_raw *e)
{
	if (e->p->verb == PERF_SEND)
		return pong_send(e);
	if (e->p->verb == PERF_WRITE)
		return pong_write(e);
	vrb_perf_begin(e->run, vrb_perf_now()); /* the adapter answers a READ alone */
	vrb_perf_watch_wait(e->run->talk, 0);
	return true;
}

static bool ping(void *end, uint64_t i)
{
	struct perf_raw *e = end;
	struct perf_qp *q = &e->qp[i % e->n_qps];
	uint8_t mark = (uint8_t)(i % MARKS + 1);

	if (e->p->verb == PERF_SEND)
		return ping_send(e, q);
	if (e->p->verb == PERF_WRITE)
		return write_mark(e, q, mark) && await_mark(e, mark);
	return vrb_perf_raw_post(e, q, 1) && make_room(e, q, 1);
}

static void begin(void *end)
{
	struct perf_raw *e = end;

	vrb_perf_begin(e->run, vrb_perf_now());
}

bool vrb_perf_raw_lat(struct perf_raw *e)
{
	bool ok;

	vrb_perf_raw_prepare(e);
	if (e->p->slow_register)
		e->wr[0].send_flags = 0;
	if (e->run->is_client) {
		ok = vrb_perf_pings(e->run, e, begin, ping);
		if (ok && e->p->verb != PERF_WRITE)
			ok = vrb_perf_raw_drain(e, PERF_END);
		vrb_perf_finish(e->run);
	} else {
		ok = pong(e);
		vrb_perf_finish(e->run);
		vrb_perf_watch_wait(e->run->talk, 0);
	}
	drop_each(e);
	return ok;
}
