/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which queue pairs have something to do: the active list (requests), the ack list (answers) and
 * the timer list. n_work tells pollers, without the lock, whether the first two want a turn, or
 * packets are held back.
 */
#include "hca/ask.h"
#include "hca/direct.h"
#include "hca/faults.h"
#include "hca/trace.h"
#include "hca/wire.h"
#include "hca/work.h"

void vrb_work_count(struct vrb_engine *e)
{
	uint32_t n = !vrb_list_empty(&e->active) + (e->acks_urgent && !vrb_list_empty(&e->acks)) +
		     vrb_wire_is_held(e);

	if (atomic_load_explicit(&e->n_work, memory_order_relaxed) != n)
		atomic_store_explicit(&e->n_work, n, memory_order_relaxed);
}

void vrb_engine_activate(struct vrb_engine *e, struct vrb_hqp *q)
{
	if (q->on_active || !vrb_list_empty(&q->stall_node))
		return;
	q->on_active = true;
	vrb_list_add_tail(&e->active, &q->core.active_node);
	vrb_work_count(e);
}

void vrb_engine_owes(struct vrb_engine *e, struct vrb_hqp *q, bool urgent)
{
	if (!q->on_acks) {
		q->on_acks = true;
		vrb_list_add_tail(&e->acks, &q->core.ack_node);
	} else if (!urgent) {
		return;
	}
	e->acks_urgent |= urgent;
	vrb_work_count(e);
}

void vrb_work_hurry_acks(struct vrb_engine *e)
{
	if (vrb_list_empty(&e->acks))
		return;
	e->acks_urgent = true;
	vrb_work_count(e);
}

void vrb_work_drop_active(struct vrb_hqp *q)
{
	q->on_active = false;
	vrb_list_del(&q->core.active_node);
}

void vrb_work_drop_acks(struct vrb_hqp *q)
{
	q->on_acks = false;
	vrb_list_del(&q->core.ack_node);
}

void vrb_engine_owes_none(struct vrb_engine *e, struct vrb_hqp *q)
{
	vrb_work_drop_acks(q);
	vrb_work_count(e);
}

void vrb_engine_forget(struct vrb_engine *e, struct vrb_hqp *q)
{
	vrb_work_drop_active(q);
	vrb_work_drop_acks(q);
	vrb_list_del(&q->core.timer_node);
	q->on_timers = false;
	vrb_engine_unstall(e, q);
	vrb_list_del(&q->peer_node);
	vrb_work_count(e);
}

void vrb_work_look_at(struct vrb_engine *e, vrb_ns d)
{
	if (d < e->next_deadline)
		vrb_poke(&e->next_deadline, d);
	/* The helper sleeps past this deadline, by more than a tick: have it look again. */
	if (vrb_unlikely(vrb_ns_add(d, VRB_TICK_NS) <
			 atomic_load_explicit(&e->helper_wakes_at, memory_order_relaxed)))
		vrb_helper_kick(e);
}

static vrb_ns deadline_of(const struct vrb_hqp *q)
{
	vrb_ns d = vrb_qp_next_deadline(&q->core);

	if (q->flow.until && q->flow.until < d)
		d = q->flow.until;
	if (vrb_unlikely(q->kept.look_at) && q->kept.look_at < d)
		d = q->kept.look_at;
	return q->gone_at && q->gone_at < d ? q->gone_at : d;
}

/* The time of grace after the peer's end is over: what is outstanding ends in RETRY_EXC. */
static void end_grace(struct vrb_engine *e, struct vrb_hqp *q)
{
	struct vrb_report r = {
		.verdict = VRB_V_PEER_GONE, .qpn = q->core.qpn, .val = {q->gone_slot}};

	q->gone_at = 0;
	vrb_qp_on_peer_gone(&q->core, &r, &e->fx);
	vrb_engine_apply(e);
}

/* Whatever the core has made of it. */
static void note_timeout(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_psn una)
{
	const struct vrb_qp *c = &q->core;
	struct vrb_report r = {.verdict = VRB_V_ACK_TIMEOUT,
			       .qpn = c->qpn,
			       .val = {una.v, c->timeout_ns / VRB_NS_PER_MS, c->retry_left}};

	q->stats->timeouts += c->n_timeouts - q->n_timeouts;
	q->n_timeouts = c->n_timeouts;
	vrb_hca_refuse(&r);
	if (vrb_unlikely(e->trace))
		vrb_trace_verdict(e, &r);
	if (c->state == VRB_QPS_RTS && !q->gone_at)
		vrb_ask_on_timeout(e, q, una);
}

void vrb_engine_timer(struct vrb_engine *e, struct vrb_hqp *q)
{
	vrb_ns d = deadline_of(q);

	if (d == VRB_NS_NEVER)
		return;
	if (!q->on_timers) {
		q->on_timers = true;
		vrb_list_add_tail(&e->timers, &q->core.timer_node);
	}
	vrb_work_look_at(e, d);
}

void vrb_engine_run_timers(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_list todo;

	if (now < e->next_deadline)
		return;
	vrb_poke(&e->next_deadline, VRB_NS_NEVER);
	if (e->n_stalled)
		vrb_stall_run_timers(e, now);
	if (vrb_unlikely(!vrb_list_empty(&e->held_cqs)))
		vrb_moderate_run(e, now);
	if (vrb_unlikely(e->faults))
		vrb_faults_run(e, now);
	vrb_ask_run(e, now);
	if (vrb_unlikely(e->wire && (e->wire->n_waiting || !vrb_list_empty(&e->wire->carriers))))
		vrb_work_look_at(e, now + VRB_WIRE_WAIT_NS);
	vrb_list_init(&todo);
	while (!vrb_list_empty(&e->timers)) {
		struct vrb_list *n = e->timers.next;

		vrb_list_del(n);
		vrb_list_add_tail(&todo, n);
	}
	while (!vrb_list_empty(&todo)) {
		struct vrb_hqp *q = vrb_list_entry(todo.next, struct vrb_hqp, core.timer_node);

		vrb_list_del(&q->core.timer_node);
		q->on_timers = false;
		if (q->gone_at && q->gone_at <= now)
			end_grace(e, q);
		if (q->flow.until && q->flow.until <= now)
			vrb_wire_flow_expire(e, q);
		if (vrb_unlikely(q->kept.look_at) && q->kept.look_at <= now)
			vrb_wire_keep_run(e, q);
		if (vrb_qp_next_deadline(&q->core) <= now) {
			struct vrb_psn una = q->core.una_psn;

			vrb_qp_on_deadline(&q->core, now, &e->fx);
			if (vrb_unlikely(q->core.n_timeouts != q->n_timeouts))
				note_timeout(e, q, una);
			vrb_engine_apply(e);
			vrb_engine_activate(e, q);
			vrb_direct_update(e, q);
			if (!vrb_list_empty(&q->stall_node))
				vrb_qp_on_stall(&q->core, now);
			if (q->wire.addr)
				vrb_wire_adapt(q, now);
		}
		vrb_engine_timer(e, q);
	}
}
