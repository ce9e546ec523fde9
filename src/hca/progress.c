/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The duty cycle: one turn handles frames in (in.c), requests and answers out (out.c), timers
 * (work.c) and doorbells, each bounded. Whether a turn would find something can be asked without
 * the lock.
 */
#include "hca/direct.h"
#include "hca/tap.h"
#include "hca/wire.h"
#include "hca/work.h"

/* With more of them the lines fetched ahead would only fill the cache. */
#define FEW_PEERS 4u

bool vrb_engine_has_work(struct vrb_engine *e)
{
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_acquire);

	if (atomic_load_explicit(&e->n_work, memory_order_relaxed))
		return true;
	for (uint32_t i = 0; i < n; i++) {
		/* pairs with the releases in hot_add and hot_del */
		struct vrb_peer *p = atomic_load_explicit(&e->hot[i], memory_order_acquire);

		if (vrb_likely(n <= FEW_PEERS))
			vrb_shm_expect(&p->rx);
		if (vrb_shm_peek(&p->rx))
			return true;
	}
	return vrb_unlikely(vrb_peek(&e->n_stalled)) && vrb_stall_has_credit(e);
}

uint32_t vrb_engine_publish_cpu(struct vrb_engine *e)
{
	uint32_t here = (uint32_t)sched_getcpu() + 1;
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_acquire);

	if (here == vrb_peek(&e->cpu) && n == vrb_peek(&e->cpu_peers))
		return here;
	vrb_poke(&e->cpu, here);
	vrb_poke(&e->cpu_peers, n);
	for (uint32_t i = 0; i < n; i++) {
		/* pairs with the releases in hot_add and hot_del; our own ring is open, too */
		struct vrb_peer *p = atomic_load_explicit(&e->hot[i], memory_order_acquire);

		atomic_store_explicit(&p->tx.m.ctl->sender_cpu, here, memory_order_relaxed);
	}
	return here;
}

void vrb_engine_ring_bells(struct vrb_engine *e)
{
	if (vrb_likely(!e->n_rung))
		return;
	/* pairs with the fence in vrb_engine_arm */
	atomic_thread_fence(memory_order_seq_cst);
	while (e->n_rung) {
		struct vrb_peer *p = e->rung[--e->n_rung];

		p->ring_bell = false;
		vrb_peer_wake(p);
	}
}

uint32_t vrb_engine_turn(struct vrb_engine *e, vrb_ns now)
{
	uint32_t n = 0, i;
	struct vrb_list *l, *next;

	/* The caller has read the clock before it got the lock. */
	if (now < vrb_peek(&e->now))
		now = vrb_peek(&e->now);
	vrb_poke(&e->now, now);
	vrb_wire_flush(e);
	vrb_engine_flush_acks(e, now, true);
	for (i = 0; i < atomic_load_explicit(&e->n_hot, memory_order_relaxed); i++)
		n += vrb_engine_drain(e, atomic_load_explicit(&e->hot[i], memory_order_relaxed),
				      now);
	if (vrb_unlikely(atomic_load_explicit(&e->n_wire, memory_order_relaxed)))
		n += vrb_wire_drain(e, now);
	if (vrb_unlikely(e->n_stalled)) {
		vrb_stall_use_credit(e);
		/* answers first: requests would take the room away again */
		vrb_engine_flush_acks(e, now, true);
	}
	for (l = e->active.next; l != &e->active; l = next) {
		next = l->next;
		vrb_engine_pump(e, vrb_list_entry(l, struct vrb_hqp, core.active_node), now, false);
		n++;
	}
	if (!vrb_list_empty(&e->acks))
		vrb_engine_respond_all(e, now, false);
	vrb_engine_run_timers(e, now);
	vrb_engine_ring_bells(e);
	if (vrb_unlikely(e->tap))
		vrb_tap_flush(e);
	return n;
}
