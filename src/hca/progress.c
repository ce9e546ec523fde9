/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The duty cycle: frames in, effects executed, requests and answers out, doorbells. Everything is
 * bounded: a turn handles at most VRB_TURN_FRAMES frames of a peer and TURN_BYTES of a queue pair's
 * requests or answers, the rest stays on a list. Plain acknowledgements wait for the next turn, so
 * that an answer of the application can carry them along (the peer's counterpart is in dispatch);
 * READ responses, atomics and NAKs leave at once.
 */
#include "hca/direct.h"

#define TURN_BYTES	    65536u
#define TURN_PACKETS	    64u
#define MULTICAST_QPN	    0xffffffu
#define WAIT_FOR_RECEIVE_NS (10 * VRB_NS_PER_MS)

/* ---- effects */

static void apply_place(struct vrb_place *p)
{
	uint64_t *word = p->dst;
	uint64_t old;

	switch (p->kind) {
	case VRB_PLACE_COPY:
		vrb_place_copy(p->dst, p->src, p->len);
		break;
	case VRB_PLACE_CMP_SWAP:
		old = p->compare;
		__atomic_compare_exchange_n(word, &old, p->swap_add, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		*p->result = old;
		break;
	case VRB_PLACE_FETCH_ADD:
		*p->result = __atomic_fetch_add(word, p->swap_add, __ATOMIC_SEQ_CST);
		break;
	}
}

static void apply_async(const struct vrb_async *a)
{
	struct vrb_hasync ev = {.kind = (int)a->kind, .port = 1};
	struct vrb_hctx *ctx = NULL;

	if (a->kind == VRB_ASYNC_CQ_ERR) {
		struct vrb_hcq *cq = vrb_container_of(a->object, struct vrb_hcq, core);

		ctx = cq->ctx;
		ev.user = cq->user;
	} else if (a->kind == VRB_ASYNC_SRQ_LIMIT || a->kind == VRB_ASYNC_SRQ_ERR) {
		struct vrb_hsrq *srq = vrb_container_of(a->object, struct vrb_hsrq, core);

		ctx = srq->pd->ctx;
		ev.user = srq->user;
	} else {
		struct vrb_hqp *q = vrb_container_of(a->object, struct vrb_hqp, core);

		ctx = q->ctx;
		ev.user = q->user;
	}
	vrb_event_async(ctx, &ev);
}

static void apply_once(struct vrb_engine *e)
{
	struct vrb_fx *fx = &e->fx;
	struct vrb_cq *cq = fx->notify, *next;
	uint32_t i;

	for (i = 0; i < fx->n_place; i++)
		apply_place(&fx->place[i]);
	for (; cq; cq = next) {
		next = cq->notify_next;
		cq->notifying = false;
		cq->notify_next = NULL;
		vrb_event_completion(vrb_container_of(cq, struct vrb_hcq, core));
	}
	for (i = 0; i < fx->n_event; i++)
		apply_async(&fx->event[i]);
	for (i = 0; i < fx->n_report; i++)
		vrb_hca_refuse(&fx->report[i]);
	vrb_fx_reset(fx);
}

/* IBA C10-100: a CQ that overran takes the queue pairs on it along. One of them, or NULL. */
static struct vrb_hqp *qp_on_dead_cq(struct vrb_engine *e)
{
	for (struct vrb_list *c = e->contexts.next; c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);

		for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next) {
			struct vrb_hqp *q = vrb_list_entry(n, struct vrb_hqp, ctx_node);

			if (q->core.state != VRB_QPS_ERR && q->core.state != VRB_QPS_RESET &&
			    (q->core.scq->dead || q->core.rcq->dead))
				return q;
		}
	}
	return NULL;
}

void vrb_engine_apply(struct vrb_engine *e)
{
	bool overrun = false;
	struct vrb_hqp *q;

	for (uint32_t i = 0; i < e->fx.n_event; i++)
		overrun |= e->fx.event[i].kind == VRB_ASYNC_CQ_ERR;
	apply_once(e);
	while (vrb_unlikely(overrun) && (q = qp_on_dead_cq(e))) {
		struct vrb_report r = {.verdict = VRB_V_CQ_OVERRUN, .qpn = q->core.qpn};

		r.val[0] = q->core.scq->dead ? q->core.scq->cap : q->core.rcq->cap;
		vrb_qp_fail(&q->core, &r, &e->fx);
		apply_once(e);
		vrb_direct_update(e, q);
	}
}

/* ---- lists */

static void count_work(struct vrb_engine *e)
{
	uint32_t n = !vrb_list_empty(&e->active) + (e->acks_urgent && !vrb_list_empty(&e->acks));

	if (atomic_load_explicit(&e->n_work, memory_order_relaxed) != n)
		atomic_store_explicit(&e->n_work, n, memory_order_relaxed);
}

void vrb_engine_activate(struct vrb_engine *e, struct vrb_hqp *q)
{
	if (q->on_active || !vrb_list_empty(&q->stall_node))
		return;
	q->on_active = true;
	vrb_list_add_tail(&e->active, &q->core.active_node);
	count_work(e);
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
	count_work(e);
}

static void drop_active(struct vrb_hqp *q)
{
	q->on_active = false;
	vrb_list_del(&q->core.active_node);
}

static void drop_acks(struct vrb_hqp *q)
{
	q->on_acks = false;
	vrb_list_del(&q->core.ack_node);
}

void vrb_engine_unstall(struct vrb_engine *e, struct vrb_hqp *q)
{
	if (vrb_list_empty(&q->stall_node))
		return;
	vrb_list_del(&q->stall_node);
	e->n_stalled--;
}

void vrb_engine_owes_none(struct vrb_engine *e, struct vrb_hqp *q)
{
	drop_acks(q);
	count_work(e);
}

void vrb_engine_forget(struct vrb_engine *e, struct vrb_hqp *q)
{
	drop_active(q);
	drop_acks(q);
	vrb_list_del(&q->core.timer_node);
	q->on_timers = false;
	vrb_engine_unstall(e, q);
	vrb_list_del(&q->peer_node);
	count_work(e);
}

void vrb_engine_timer(struct vrb_engine *e, struct vrb_hqp *q)
{
	vrb_ns d = vrb_qp_next_deadline(&q->core);

	if (d == VRB_NS_NEVER)
		return;
	if (!q->on_timers) {
		q->on_timers = true;
		vrb_list_add_tail(&e->timers, &q->core.timer_node);
	}
	if (d < e->next_deadline)
		e->next_deadline = d;
	/* The helper sleeps past this deadline: have it look again. */
	if (vrb_unlikely(d < atomic_load_explicit(&e->helper_wakes_at, memory_order_relaxed)))
		vrb_helper_kick(e);
}

void vrb_engine_run_timers(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_list todo;

	if (now < e->next_deadline)
		return;
	e->next_deadline = VRB_NS_NEVER;
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
		if (vrb_qp_next_deadline(&q->core) <= now) {
			vrb_qp_on_deadline(&q->core, now, &e->fx);
			vrb_engine_apply(e);
			vrb_engine_activate(e, q);
			vrb_direct_update(e, q);
			if (!vrb_list_empty(&q->stall_node))
				vrb_qp_on_stall(&q->core, now);
		}
		vrb_engine_timer(e, q);
	}
}

/* ---- out */

static void push(struct vrb_engine *e, struct vrb_peer *p, struct vrb_hqp *q,
		 const struct vrb_psn *ack)
{
	struct vrb_tx *tx = &e->tx;
	struct vrb_shm_grh grh;

	if (tx->av) {
		const struct vrb_hdev *dev = q->ctx->dev;

		grh.sgid = dev->gid[tx->av->sgid_index % VRB_GIDS_MAX].gid;
		grh.dgid = tx->av->dgid;
		grh.traffic_class = tx->av->traffic_class;
		grh.hop_limit = tx->av->hop_limit;
	}
	if (vrb_unlikely(q->direct_n) && vrb_op_has(tx->pkt.op, VRB_OPF_REQUEST))
		vrb_direct_tell(e, q, p);
	vrb_shm_push(&p->tx, &tx->pkt, tx->seg, ack, tx->av ? &grh : NULL);
	vrb_engine_pushed(e, p);
	q->stats->tx_packets++;
	q->stats->tx_bytes += tx->pkt.len;
}

/* True: there is room, or there is nobody whose room would matter. False: q waits on p's stalled
 * list. */
static bool room_or_stall(struct vrb_engine *e, struct vrb_peer *p, struct vrb_hqp *q, uint32_t len)
{
	if (!p || !p->tx_open || vrb_likely(vrb_shm_room(&p->tx, len)) ||
	    vrb_shm_want_credit(&p->tx, len))
		return true;
	drop_active(q);
	if (vrb_list_empty(&q->stall_node)) {
		vrb_list_add_tail(&p->stalled, &q->stall_node);
		e->n_stalled++;
	}
	count_work(e);
	return false;
}

void vrb_engine_unstall_peer(struct vrb_engine *e, struct vrb_peer *p)
{
	while (!vrb_list_empty(&p->stalled)) {
		struct vrb_hqp *q = vrb_list_entry(p->stalled.next, struct vrb_hqp, stall_node);

		vrb_engine_unstall(e, q);
		vrb_qp_on_unstall(&q->core);
		vrb_engine_activate(e, q);
		vrb_engine_owes(e, q, true);
	}
}

/* The next UD message's destination. */
static struct vrb_peer *ud_peer(struct vrb_engine *e, const struct vrb_qp *c, bool *multicast)
{
	const struct vrb_swqe *w = vrb_wq_entry(&c->sq, c->sq_send);
	struct vrb_peer *p = NULL;

	*multicast = false;
	if (c->sq_send == c->sq.tail || !w->ud.av)
		return NULL;
	*multicast = w->ud.qpn == MULTICAST_QPN;
	if (w->ud.av->route == VRB_ROUTE_NONE)
		return NULL;
	if (!*multicast)
		(void)vrb_peer_get(e, w->ud.qpn >> VRB_QPN_INDEX_BITS, &p);
	return p;
}

static void push_multicast(struct vrb_engine *e, struct vrb_hqp *q)
{
	struct vrb_peer *self;
	uint32_t n;

	(void)vrb_peer_get(e, e->slot, &self);
	q->stats->tx_multicast++;
	for (n = 1; n <= VRB_SLOTS; n++) {
		struct vrb_peer *p = e->peer[n];

		if (p && p->tx_open && vrb_shm_room(&p->tx, e->tx.pkt.len))
			push(e, p, q, NULL);
	}
}

void vrb_engine_pump(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now)
{
	struct vrb_qp *c = &q->core;
	struct vrb_peer *p = q->peer;
	uint32_t bytes = 0, n;
	bool multicast = false;

	for (n = 0; n < TURN_PACKETS && bytes < TURN_BYTES; n++) {
		const struct vrb_psn *ack = NULL;

		if (c->type == VRB_QPT_UD)
			p = ud_peer(e, c, &multicast);
		if (!room_or_stall(e, p, q, c->mtu)) {
			vrb_qp_on_stall(c, now);
			goto out;
		}
		if (!vrb_qp_poll_request(c, now, &e->tx, &e->fx))
			break;
		vrb_engine_apply(e);
		bytes += e->tx.pkt.len;
		if (multicast) {
			push_multicast(e, q);
		} else if (p && p->tx_open) {
			if (c->ack_pending && !c->resp_pending) {
				ack = &c->ack_psn;
				c->ack_pending = false;
				q->acks_owed = 0;
			}
			push(e, p, q, ack);
		}
	}
	vrb_engine_apply(e);
	if (vrb_qp_can_send(c, now))
		vrb_engine_activate(e, q);
	else
		drop_active(q);
	vrb_direct_update(e, q);
out:
	vrb_engine_timer(e, q);
	count_work(e);
}

/* Answers of one queue pair. plain: ACKs too, not only what is urgent. */
static void respond(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now, bool plain)
{
	struct vrb_qp *c = &q->core;
	uint32_t bytes = 0, n;

	for (n = 0; n < TURN_PACKETS && bytes < TURN_BYTES; n++) {
		struct vrb_peer *p = q->peer;

		if (!(c->resp_pending || (plain && c->ack_pending)))
			break;
		if (!room_or_stall(e, p, q, c->resp_pending ? c->mtu : 0))
			break;
		if (!vrb_qp_poll_response(c, now, &e->tx, &e->fx))
			break;
		vrb_engine_apply(e);
		q->acks_owed = 0;
		bytes += e->tx.pkt.len;
		if (p && p->tx_open)
			push(e, p, q, NULL);
	}
	vrb_engine_apply(e);
	if (!c->resp_pending && !c->ack_pending)
		drop_acks(q);
	count_work(e);
}

void vrb_engine_ack_now(struct vrb_engine *e, struct vrb_hqp *q)
{
	respond(e, q, e->now, true);
}

static void respond_all(struct vrb_engine *e, vrb_ns now, bool plain)
{
	struct vrb_list *n = e->acks.next, *next;

	for (; n != &e->acks; n = next) {
		next = n->next;
		respond(e, vrb_list_entry(n, struct vrb_hqp, core.ack_node), now, plain);
	}
}

void vrb_engine_flush_acks(struct vrb_engine *e, vrb_ns now, bool if_urgent)
{
	if (vrb_list_empty(&e->acks) || (if_urgent && !e->acks_urgent))
		return;
	e->acks_urgent = false;
	respond_all(e, now, true);
	/* what found no room stays urgent */
	e->acks_urgent |= !vrb_list_empty(&e->acks);
	count_work(e);
}

/* ---- in */

static void take_packet(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_shm_frame *f,
			vrb_ns now)
{
	struct vrb_qp *c = &q->core;

	if (f->has_ack) {
		struct vrb_pkt ack = {.op = vrb_opcode(VRB_TP_RC, VRB_OP_ACK),
				      .syndrome = VRB_AETH_ACK | VRB_AETH_CREDITS_UNLIMITED,
				      .pkey = 0xffff,
				      .psn = f->ack,
				      .dqpn = c->qpn};

		vrb_qp_on_packet(c, &ack, now, &e->fx);
		vrb_engine_apply(e);
	}
	vrb_qp_on_packet(c, &f->pkt, now, &e->fx);
	vrb_engine_apply(e);
	q->stats->rx_packets++;
	q->stats->rx_bytes += f->pkt.len;
	if (c->ack_pending || c->resp_pending) {
		vrb_engine_owes(e, q, true);
		if (++q->acks_owed >= VRB_ACK_BATCH)
			respond(e, q, now, true);
	}
	if (vrb_qp_can_send(c, now))
		vrb_engine_activate(e, q);
	vrb_engine_timer(e, q);
	vrb_direct_update(e, q);
}

static void dispatch_multicast(struct vrb_engine *e, struct vrb_shm_frame *f, vrb_ns now)
{
	for (struct vrb_list *c = e->contexts.next; c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);

		for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next) {
			struct vrb_hqp *q = vrb_list_entry(n, struct vrb_hqp, ctx_node);

			for (uint32_t i = 0; i < q->n_mcast; i++) {
				if (memcmp(&q->mcast[i], &f->dgid, 16))
					continue;
				q->stats->rx_multicast++;
				take_packet(e, q, f, now);
				break;
			}
		}
	}
}

static void drop_frame(struct vrb_engine *e, struct vrb_peer *p, struct vrb_shm_frame *f)
{
	struct vrb_report r = {.verdict = VRB_V_DROP_NO_QP,
			       .val = {e->slot << VRB_QPN_INDEX_BITS | f->index}};

	(void)p;
	vrb_hca_refuse(&r);
}

static void dispatch(struct vrb_engine *e, struct vrb_peer *p, struct vrb_shm_frame *f, vrb_ns now)
{
	struct vrb_hqp *q = e->qp[f->index];
	uint8_t grh[VRB_GRH_LEN];

	f->pkt.dqpn = e->slot << VRB_QPN_INDEX_BITS | f->index;
	if (vrb_op_transport(f->pkt.op) == VRB_TP_UD) {
		vrb_grh_build(grh, f, f->pkt.len);
		f->pkt.grh = grh;
		if (f->index == (MULTICAST_QPN & VRB_QPN_INDEX_MASK) && f->dgid.raw[0] == 0xff) {
			dispatch_multicast(e, f, now);
			return;
		}
		if (f->index == (MULTICAST_QPN & VRB_QPN_INDEX_MASK) &&
		    vrb_grh_is_v4_group(&f->dgid)) {
			dispatch_multicast(e, f, now);
			return;
		}
	}
	/* A connected queue pair hears its peer process only. */
	if (!q || (q->core.type != VRB_QPT_UD && q->peer != p))
		drop_frame(e, p, f);
	else if (vrb_unlikely(f->is_direct))
		vrb_direct_told(q, f->pkt.psn);
	else
		take_packet(e, q, f, now);
}

/*
 * An unreliable message that finds no receive stays in the ring for a while: the receiver may be
 * about to post one, and a sender that runs ahead is held back by the full ring instead of losing
 * what it sends. Once in vain is enough: until the queue has got a new receive, further ones are
 * dropped at once, so that nobody blocks the ring of others.
 */
static bool may_wait(struct vrb_engine *e, struct vrb_peer *p, const struct vrb_shm_frame *f,
		     vrb_ns now)
{
	struct vrb_hqp *q = e->qp[f->index];
	const struct vrb_wq *wq;

	if (!vrb_op_has(f->pkt.op, VRB_OPF_NEEDS_RQ) || vrb_op_transport(f->pkt.op) == VRB_TP_RC ||
	    !q)
		return false;
	if (q->core.state < VRB_QPS_RTR || q->core.state == VRB_QPS_ERR ||
	    q->core.type == VRB_QPT_RC)
		return false;
	if (q->core.type == VRB_QPT_UC && q->peer != p)
		return false;
	wq = q->core.srq ? &q->core.srq->wq : &q->core.rq;
	if (wq->head != wq->tail) {
		q->wait_until = 0;
		return false;
	}
	if (!q->wait_until || q->wait_tail != wq->tail) {
		q->wait_tail = wq->tail;
		q->wait_until = now + WAIT_FOR_RECEIVE_NS;
	}
	return now < q->wait_until;
}

static uint32_t drain(struct vrb_engine *e, struct vrb_peer *p, vrb_ns now)
{
	struct vrb_shm_frame f;
	uint32_t n;

	for (n = 0; n < VRB_TURN_FRAMES; n++) {
		int r = vrb_shm_next(&p->rx, &f);

		if (r == 0)
			break;
		if (r < 0) {
			struct vrb_report bad = {.verdict = VRB_V_LINK_BAD_FRAME, .val = {p->slot}};

			vrb_hca_refuse(&bad);
			vrb_peer_cut(p);
			vrb_shm_pop(&p->rx, false, 0); /* skip it */
			continue;
		}
		if (vrb_unlikely(may_wait(e, p, &f, now)))
			break;
		dispatch(e, p, &f, now);
		if (!p->rx_open)
			return n + 1;
		vrb_shm_pop(&p->rx, f.has_data, f.data_end);
		if (vrb_shm_publish_due(&p->rx) && vrb_shm_publish(&p->rx))
			vrb_peer_wake(p);
	}
	return n;
}

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
		n += drain(e, atomic_load_explicit(&e->hot[i], memory_order_relaxed), now);
	if (vrb_unlikely(e->n_stalled))
		use_credit(e);
	for (l = e->active.next; l != &e->active; l = next) {
		next = l->next;
		vrb_engine_pump(e, vrb_list_entry(l, struct vrb_hqp, core.active_node), now);
		n++;
	}
	if (!vrb_list_empty(&e->acks))
		respond_all(e, now, false);
	vrb_engine_run_timers(e, now);
	vrb_engine_ring_bells(e);
	return n;
}
