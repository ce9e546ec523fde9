/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting and polling. An empty poll takes no lock and reads no clock: it looks at the rings' next
 * lines and at the count of pending lists. Timers are looked at once in TIMER_POLLS empty polls
 * here, and by the helper's tick.
 */
#include "hca/data.h"
#include "hca/fast.h"
#include "hca/tap.h"
#include "hca/trace.h"
#include "hca/wire.h"

#include <errno.h>

#define TIMER_POLLS 64u
/* Empty polls in a row after which the CPU is offered to others: a peer on the same one, or
 * anybody. */
#define YIELD_TO_PEER 128u
#define YIELD	      16384u

void vrb_hqp_commit(struct vrb_hqp *q, uint32_t n)
{
	struct vrb_engine *e = q->e;

	/* round trips on the wire are measured in microseconds */
	if (vrb_unlikely(q->wire.addr))
		vrb_poke(&e->now, vrb_clock_now());
	else
		vrb_engine_timer_base(e);
	if (vrb_unlikely(e->trace))
		vrb_trace_post(e, q, n);
	vrb_qp_post(&q->core, n, &e->fx);
	vrb_engine_apply(e);
	/* A queue pair that waits for room stays in line, with its timer running. */
	if (vrb_list_empty(&q->stall_node)) {
		vrb_engine_pump(e, q, vrb_peek(&e->now), true);
	} else {
		vrb_qp_on_stall(&q->core, vrb_peek(&e->now));
		vrb_engine_timer(e, q);
	}
	/* Of frames that the straight line has pushed in any case. */
	vrb_engine_ring_bells(e);
	if (vrb_unlikely(e->tap))
		vrb_tap_flush(e);
}

void vrb_hqp_commit_recv(struct vrb_hqp *q, uint32_t n)
{
	if (vrb_unlikely(q->core.tapped) && q->e->trace)
		vrb_trace_post_recv(q->e, q, n);
	vrb_qp_post_recv(&q->core, n, &q->e->fx);
	vrb_engine_apply(q->e);
}

static void count_poll(struct vrb_engine *e)
{
	/* Only a sign of life for the helper: a lost increment does no harm, a locked one would
	 * cost. */
	atomic_store_explicit(&e->n_polls,
			      atomic_load_explicit(&e->n_polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/*
 * Whom we wait for cannot run while we spin on its CPU; on another CPU a yield would only cost us
 * our own slice. So every process says in its rings where it last looked for work.
 */
static bool shares_cpu(struct vrb_engine *e)
{
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_acquire), here;

	if (e->one_cpu)
		return true;
	here = vrb_engine_publish_cpu(e);
	for (uint32_t i = 0; i < n; i++) {
		struct vrb_peer *p = atomic_load_explicit(&e->hot[i], memory_order_acquire);

		if (!p->self &&
		    atomic_load_explicit(&p->rx.m.ctl->sender_cpu, memory_order_relaxed) == here)
			return true;
	}
	return false;
}

static inline __attribute__((always_inline)) void empty_poll(struct vrb_engine *e)
{
	uint32_t n = vrb_peek(&e->empty_polls) + 1;
	vrb_ns now;

	vrb_poke(&e->empty_polls, n);
	if (vrb_likely(n % TIMER_POLLS))
		return;
	if (n % YIELD == 0 || (n % YIELD_TO_PEER == 0 && shares_cpu(e)))
		sched_yield();
	if (vrb_peek(&e->next_deadline) == VRB_NS_NEVER)
		return;
	now = vrb_clock_now();
	if (now > vrb_peek(&e->now))
		vrb_poke(&e->now, now);
	if (now < vrb_peek(&e->next_deadline) || !vrb_engine_trylock(e))
		return;
	vrb_engine_turn(e, now);
	vrb_engine_unlock(e);
}

/* Lock held. traced: known when it is compiled, so that the ordinary poll has nothing of it. */
static inline uint32_t take(struct vrb_hcq *cq, uint32_t n, struct vrb_wc *wc, bool traced)
{
	uint32_t from = cq->core.head, got = vrb_cq_poll(&cq->core, n, wc);

	if (traced && got)
		vrb_trace_poll(cq->ctx->e, cq, from, got);
	return got;
}

static inline __attribute__((always_inline)) int poll(struct vrb_hcq *cq, uint32_t n,
						      struct vrb_wc *wc, bool traced)
{
	struct vrb_engine *e = cq->ctx->e;
	uint32_t got;

	count_poll(e);
	if (vrb_cq_looks_empty(&cq->core) && !vrb_engine_has_work(e) &&
	    (vrb_likely(!atomic_load_explicit(&e->n_wire, memory_order_relaxed)) ||
	     !vrb_wire_poll(e))) {
		empty_poll(e);
		return 0;
	}
	vrb_poke(&e->empty_polls, 0);
	vrb_engine_lock(e);
	got = take(cq, n, wc, traced);
	if (!got) {
		vrb_engine_flush_acks(e, vrb_peek(&e->now), true);
		if (vrb_likely(!atomic_load_explicit(&e->n_wire, memory_order_relaxed)) &&
		    vrb_engine_fast_drain(e))
			vrb_engine_ring_bells(e);
		else
			vrb_engine_turn(e, vrb_clock_now());
		got = take(cq, n, wc, traced);
	} else if (got < n && vrb_unlikely(e->acks_urgent)) {
		/* the caller may be about to sleep (vrb_hcq_arm) */
		vrb_engine_flush_acks(e, vrb_peek(&e->now), true);
		vrb_engine_ring_bells(e);
	}
	vrb_engine_unlock(e);
	return (int)got;
}

static __attribute__((noinline)) int poll_closer(struct vrb_hcq *cq, uint32_t n, struct vrb_wc *wc)
{
	return cq->ctx->e->foreign ? -EIO : poll(cq, n, wc, true);
}

int vrb_hcq_poll(struct vrb_hcq *cq, uint32_t n, struct vrb_wc *wc)
{
	if (vrb_unlikely(cq->ctx->e->detour))
		return poll_closer(cq, n, wc);
	return poll(cq, n, wc, false);
}

static bool take_stamped(struct vrb_hcq *cq, struct vrb_wc *wc, struct vrb_stamp *stamp)
{
	uint32_t from;
	bool got;

	if (vrb_cq_looks_empty(&cq->core))
		return false;
	vrb_engine_lock(cq->ctx->e);
	from = cq->core.head;
	got = vrb_cq_poll_stamped(&cq->core, wc, stamp);
	if (vrb_unlikely(cq->core.traced) && got)
		vrb_trace_poll(cq->ctx->e, cq, from, 1);
	vrb_engine_unlock(cq->ctx->e);
	return got;
}

/* A function of its own, so that the plain poll stays as it is. */
int vrb_hcq_poll_stamped(struct vrb_hcq *cq, struct vrb_wc *wc, struct vrb_stamp *stamp)
{
	struct vrb_engine *e = cq->ctx->e;
	int err;

	if (vrb_unlikely(e->foreign))
		return -EIO;
	if (take_stamped(cq, wc, stamp)) {
		count_poll(e);
		return 1;
	}
	err = vrb_hcq_poll(cq, 0, NULL); /* drives the engine */
	return err < 0 ? err : take_stamped(cq, wc, stamp);
}
