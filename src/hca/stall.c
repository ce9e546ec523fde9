/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings that are full. A queue pair that finds no room for its next packet waits on the peer's
 * stalled list and has wished for credit; the peer answers the wish when it has made room, or
 * never: it may be slow, or stopped. Reliable queue pairs have a timer for that (core). After
 * STUCK_NS in which the peer has taken nothing, unreliable messages to it are lost, as on a wire,
 * so that a queue pair which talks to many is not held up by one.
 */
#include "hca/work.h"

#define STUCK_NS (500 * VRB_NS_PER_MS)

bool vrb_stall_lasts(struct vrb_engine *e, struct vrb_peer *p, vrb_ns now, vrb_ns ns)
{
	uint64_t used = (uint64_t)p->tx.used << 32 | p->tx.data_used;

	if (!p->full_since || p->full_used != used) {
		p->full_used = used;
		p->full_since = now;
	}
	if (now - p->full_since >= ns)
		return true;
	vrb_work_look_at(e, p->full_since + ns);
	return false;
}

static bool is_stuck(struct vrb_engine *e, struct vrb_peer *p, vrb_ns now)
{
	return vrb_stall_lasts(e, p, now, STUCK_NS);
}

/* Two processes that fill each other's rings with requests must still hear each other's answers. */
static uint32_t need(const struct vrb_room_ask *a)
{
	return a->answer ? a->len : a->len + VRB_SHM_FRAME_MAX;
}

static bool has_room(struct vrb_peer *p, const struct vrb_room_ask *a)
{
	return vrb_shm_line_room(&p->tx, a->answer ? 0 : VRB_SHM_KEEP) &&
	       vrb_shm_room(&p->tx, need(a));
}

enum vrb_room vrb_stall_room(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_room_ask *a)
{
	struct vrb_peer *p = a->peer;

	if (!p || !p->tx_open)
		return VRB_ROOM_NOBODY;
	if (vrb_likely(has_room(p, a)))
		return VRB_ROOM;
	(void)vrb_shm_want_credit(&p->tx, need(a));
	if (has_room(p, a))
		return VRB_ROOM;
	if (is_stuck(e, p, a->now) && q->core.type != VRB_QPT_RC)
		return VRB_ROOM_NOBODY;
	vrb_work_drop_active(q);
	/* A request that has to wait holds no answer back. */
	if (a->answer)
		vrb_work_drop_acks(q);
	if (vrb_list_empty(&q->stall_node)) {
		vrb_list_add_tail(&p->stalled, &q->stall_node);
		/* pairs with the acquire in vrb_stall_has_credit: the page is mapped, for good */
		atomic_store_explicit(&e->wish[p->slot], p->tx.m.ctl, memory_order_release);
		vrb_poke(&e->n_stalled, e->n_stalled + 1);
	}
	vrb_work_count(e);
	return VRB_ROOM_STALLED;
}

void vrb_engine_unstall(struct vrb_engine *e, struct vrb_hqp *q)
{
	if (vrb_list_empty(&q->stall_node))
		return;
	vrb_list_del(&q->stall_node);
	vrb_poke(&e->n_stalled, e->n_stalled - 1);
}

static void go_on(struct vrb_engine *e, struct vrb_hqp *q)
{
	vrb_engine_unstall(e, q);
	vrb_qp_on_unstall(&q->core);
	vrb_engine_activate(e, q);
	vrb_engine_owes(e, q, true);
}

void vrb_engine_unstall_peer(struct vrb_engine *e, struct vrb_peer *p)
{
	while (!vrb_list_empty(&p->stalled))
		go_on(e, vrb_list_entry(p->stalled.next, struct vrb_hqp, stall_node));
}

void vrb_stall_run_timers(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_list *n, *next;

	for (uint32_t i = 1; i <= VRB_SLOTS; i++) {
		struct vrb_peer *p = e->peer[i];

		if (!p || vrb_list_empty(&p->stalled) || !is_stuck(e, p, now))
			continue;
		for (n = p->stalled.next; n != &p->stalled; n = next) {
			struct vrb_hqp *q = vrb_list_entry(n, struct vrb_hqp, stall_node);

			next = n->next;
			if (q->core.type != VRB_QPT_RC)
				go_on(e, q);
		}
	}
}

bool vrb_stall_has_credit(struct vrb_engine *e)
{
	for (uint32_t i = 1; i <= VRB_SLOTS; i++) {
		struct vrb_shm_ctl *c = atomic_load_explicit(&e->wish[i], memory_order_acquire);

		if (c && !atomic_load_explicit(&c->want_credit, memory_order_acquire))
			return true;
	}
	return false;
}

void vrb_stall_use_credit(struct vrb_engine *e)
{
	const struct vrb_room_ask ask = {.len = VRB_SHM_FRAME_MAX};

	for (uint32_t i = 1; i <= VRB_SLOTS; i++) {
		struct vrb_peer *p = e->peer[i];

		if (!p)
			continue;
		if (vrb_list_empty(&p->stalled))
			atomic_store_explicit(&e->wish[i], NULL, memory_order_relaxed);
		else if (has_room(p, &ask) ||
			 (vrb_shm_want_credit(&p->tx, need(&ask)) && has_room(p, &ask)))
			vrb_engine_unstall_peer(e, p);
	}
}
