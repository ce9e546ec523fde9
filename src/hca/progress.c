/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The duty cycle: one turn handles frames in (in.c), requests and answers out (out.c), timers
 * (work.c) and doorbells, each bounded. Whether a turn would find something can be asked without
 * the lock.
 */
#include "hca/direct.h"
#include "hca/work.h"

/* True when a peer has answered our wish for credit (vrb_shm_publish clears it). */
static bool has_credit(struct vrb_engine *e)
{
	for (uint32_t i = 1; i <= VRB_SLOTS; i++) {
		struct vrb_peer *p = e->peer[i];

		if (p && p->tx_open && !vrb_list_empty(&p->stalled) &&
		    !atomic_load_explicit(&p->tx.m.ctl->want_credit, memory_order_acquire))
			return true;
	}
	return false;
}

bool vrb_engine_has_work(struct vrb_engine *e)
{
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_acquire);

	if (atomic_load_explicit(&e->n_work, memory_order_relaxed))
		return true;
	for (uint32_t i = 0; i < n; i++) {
		struct vrb_peer *p = atomic_load_explicit(&e->hot[i], memory_order_relaxed);

		if (vrb_shm_peek(&p->rx))
			return true;
	}
	return vrb_unlikely(e->n_stalled) && has_credit(e);
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

/* Queue pairs whose ring has room again go back to work. */
static void use_credit(struct vrb_engine *e)
{
	for (uint32_t i = 1; i <= VRB_SLOTS; i++) {
		struct vrb_peer *p = e->peer[i];

		if (p && !vrb_list_empty(&p->stalled) &&
		    (vrb_shm_room(&p->tx, VRB_SHM_FRAME_MAX) ||
		     vrb_shm_want_credit(&p->tx, VRB_SHM_FRAME_MAX)))
			vrb_engine_unstall_peer(e, p);
	}
}

uint32_t vrb_engine_turn(struct vrb_engine *e, vrb_ns now)
{
	uint32_t n = 0, i;
	struct vrb_list *l, *next;

	e->now = now;
	vrb_engine_flush_acks(e, now, true);
	for (i = 0; i < atomic_load_explicit(&e->n_hot, memory_order_relaxed); i++)
		n += vrb_engine_drain(e, atomic_load_explicit(&e->hot[i], memory_order_relaxed),
				      now);
	if (vrb_unlikely(e->n_stalled))
		use_credit(e);
	for (l = e->active.next; l != &e->active; l = next) {
		next = l->next;
		vrb_engine_pump(e, vrb_list_entry(l, struct vrb_hqp, core.active_node), now);
		n++;
	}
	if (!vrb_list_empty(&e->acks))
		vrb_engine_respond_all(e, now, false);
	vrb_engine_run_timers(e, now);
	vrb_engine_ring_bells(e);
	return n;
}
