/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests and answers into the rings or onto the wire: at most TURN_BYTES of a queue pair in a
 * turn, the rest stays on a list. A queue pair that finds a ring full waits on the peer's stalled
 * list. An acknowledgement that is owed rides with a request, if it is not to be overtaken by it.
 */
#include "hca/direct.h"
#include "hca/tap.h"
#include "hca/trace.h"
#include "hca/wire.h"
#include "hca/work.h"

#define TURN_BYTES   65536u
#define TURN_PACKETS 64u

/* less than a send of the wire takes */
#define ONE_SEND_MESSAGES 8u
#define ONE_SEND_PACKETS  48u
#define ONE_SEND_BYTES	  49152u

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
	q->count.tx_packets++;
	q->count.tx_bytes += tx->pkt.len;
}

/* The next UD message's destination. */
static struct vrb_peer *ud_peer(struct vrb_engine *e, const struct vrb_qp *c, bool *multicast)
{
	const struct vrb_swqe *w = vrb_wq_entry(&c->sq, c->sq_send);
	struct vrb_peer *p = NULL;

	*multicast = false;
	if (c->sq_send == c->sq.tail || !w->ud.av)
		return NULL;
	*multicast = w->ud.qpn == VRB_MULTICAST_QPN;
	if (w->ud.av->route != VRB_ROUTE_LOCAL)
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
	if (vrb_unlikely(e->tap))
		vrb_tap_out(e, q, NULL);
	for (n = 1; n <= VRB_SLOTS; n++) {
		struct vrb_peer *p = e->peer[n];

		if (p && p->tx_open && vrb_shm_room(&p->tx, e->tx.pkt.len))
			push(e, p, q, NULL);
	}
}

static bool by_wire(const struct vrb_engine *e, const struct vrb_hqp *q)
{
	return e->tx.av ? e->tx.av->route == VRB_ROUTE_WIRE : q->wire.addr != NULL;
}

/* On the wire a plain acknowledgement that is owed travels in the same send as the requests before
 * it, or ahead of them where they take several sends: programs count on it that what they have sent
 * is complete when they get the answer (perftest with events and a send queue of one entry). */
static void ack_along(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now)
{
	struct vrb_qp *c = &q->core;

	if (!c->ack_pending || c->resp_pending || !vrb_qp_poll_response(c, now, &e->tx, &e->fx))
		return;
	vrb_engine_apply(e);
	if (vrb_unlikely(e->trace))
		vrb_trace_answer(e, q, false);
	q->acks_owed = 0;
	q->acked = e->tx.pkt.psn;
	vrb_work_drop_acks(q);
	vrb_wire_push(e, q);
}

/* Whether all that may be sent leaves in one send, probably. */
static bool is_one_send(const struct vrb_qp *c)
{
	uint32_t n = c->sq.tail - c->sq_send, bytes = 0;

	if (n > ONE_SEND_MESSAGES)
		return false;
	for (uint32_t i = 0; i < n; i++)
		bytes += ((const struct vrb_swqe *)vrb_wq_entry(&c->sq, c->sq_send + i))->len;
	return bytes <= ONE_SEND_BYTES && bytes / c->mtu + n <= ONE_SEND_PACKETS;
}

/* A send that has been begun is filled up beyond the turn's measure: half a one costs as much. */
static bool may_go_on(const struct vrb_engine *e, uint32_t n, uint32_t bytes)
{
	if (n < TURN_PACKETS && bytes < TURN_BYTES)
		return true;
	return n < 2 * TURN_PACKETS && vrb_wire_has_begun(e);
}

static bool make_traced(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now, bool by_shm)
{
	bool made;

	vrb_trace_before_request(e, q);
	made = vrb_qp_poll_request(&q->core, now, &e->tx, &e->fx);
	vrb_trace_request(e, q, made, by_shm);
	return made;
}

static inline bool make_request(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now, bool by_shm)
{
	if (vrb_unlikely(e->trace))
		return make_traced(e, q, now, by_shm);
	return vrb_qp_poll_request(&q->core, now, &e->tx, &e->fx);
}

/* What leaves by shared memory, an acknowledgement that rides along or NULL. */
static void look(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_psn *ack)
{
	if (e->tap)
		vrb_tap_out(e, q, ack);
	if (e->trace && ack)
		vrb_trace_ack_along(e, q, *ack);
}

void vrb_engine_pump(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now, bool posted)
{
	struct vrb_qp *c = &q->core;
	struct vrb_peer *p = q->peer;
	uint32_t bytes = 0, n;
	bool multicast = false;
	enum vrb_room room;

	if (vrb_unlikely(q->wire.addr) && c->ack_pending && vrb_qp_can_send(c, now) &&
	    !is_one_send(c))
		ack_along(e, q, now);
	for (n = 0; may_go_on(e, n, bytes); n++) {
		const struct vrb_psn *ack = NULL;

		if (c->type != VRB_QPT_RC && vrb_wire_flow_holds(e, q, now))
			break;
		if (c->type == VRB_QPT_UD)
			p = ud_peer(e, c, &multicast);
		room = vrb_stall_room(e, q, &(struct vrb_room_ask){p, c->mtu, now, false});
		if (vrb_unlikely(room == VRB_ROOM_STALLED)) {
			vrb_qp_on_stall(c, now);
			goto out;
		}
		if (!make_request(e, q, now, room == VRB_ROOM))
			break;
		vrb_engine_apply(e);
		bytes += e->tx.pkt.len;
		if (multicast) {
			push_multicast(e, q);
		} else if (vrb_likely(room == VRB_ROOM)) {
			if (c->ack_pending && !c->resp_pending) {
				ack = &c->ack_psn;
				c->ack_pending = false;
				q->acks_owed = 0;
				q->acked = c->ack_psn;
			}
			if (vrb_unlikely(c->tapped))
				look(e, q, ack);
			push(e, p, q, ack);
		} else if (by_wire(e, q)) {
			vrb_wire_push(e, q);
		}
	}
	vrb_engine_apply(e);
	if (vrb_likely(!posted || !vrb_wire_hold(e, q))) {
		if (vrb_unlikely(q->wire.addr) && n)
			ack_along(e, q, now);
		vrb_wire_flush(e);
	}
	if (vrb_qp_can_send(c, now) && !q->flow.until)
		vrb_engine_activate(e, q);
	else
		vrb_work_drop_active(q);
	vrb_direct_update(e, q);
out:
	vrb_engine_timer(e, q);
	vrb_work_count(e);
}

static void note_nak(struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	const struct vrb_report r = {
		.verdict = VRB_V_NAK_SENT, .qpn = q->core.qpn, .val = {pkt->syndrome, pkt->psn.v}};

	if ((pkt->syndrome & VRB_AETH_KIND_MASK) == VRB_AETH_RNR) {
		q->count.rnr_sent++;
		q->stats->rnr_naks_sent++;
	} else {
		q->stats->sequence_naks_sent += pkt->syndrome == VRB_NAK_PSN_SEQ;
	}
	vrb_hca_refuse(&r);
}

static void look_at_answer(struct vrb_engine *e, struct vrb_hqp *q, bool by_shm)
{
	if (e->tap && by_shm)
		vrb_tap_out(e, q, NULL);
	if (e->trace)
		vrb_trace_answer(e, q, by_shm);
}

/* Answers of one queue pair. plain: ACKs too, not only what is urgent. */
void vrb_engine_respond(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now, bool plain)
{
	struct vrb_qp *c = &q->core;
	struct vrb_room_ask ask = {.now = now, .answer = true};
	uint32_t bytes = 0, n;
	enum vrb_room room;

	for (n = 0; may_go_on(e, n, bytes); n++) {
		if (!(c->resp_pending || (plain && c->ack_pending)))
			break;
		ask.peer = q->peer;
		ask.len = c->resp_pending ? c->mtu : 0;
		room = vrb_stall_room(e, q, &ask);
		if (vrb_unlikely(room == VRB_ROOM_STALLED))
			break;
		if (!vrb_qp_poll_response(c, now, &e->tx, &e->fx))
			break;
		vrb_engine_apply(e);
		if (vrb_unlikely(vrb_pkt_is_nak(&e->tx.pkt)))
			note_nak(q, &e->tx.pkt);
		q->acks_owed = 0;
		q->acked = e->tx.pkt.psn;
		bytes += e->tx.pkt.len;
		if (vrb_unlikely(c->tapped))
			look_at_answer(e, q, room == VRB_ROOM);
		if (vrb_likely(room == VRB_ROOM))
			push(e, q->peer, q, NULL);
		else if (q->wire.addr)
			vrb_wire_push(e, q);
	}
	vrb_engine_apply(e);
	vrb_wire_flush(e);
	if (!c->resp_pending && !c->ack_pending)
		vrb_work_drop_acks(q);
	vrb_work_count(e);
}

void vrb_engine_ack_now(struct vrb_engine *e, struct vrb_hqp *q)
{
	vrb_engine_respond(e, q, vrb_peek(&e->now), true);
}

void vrb_engine_respond_all(struct vrb_engine *e, vrb_ns now, bool plain)
{
	struct vrb_list *n = e->acks.next, *next;

	for (; n != &e->acks; n = next) {
		next = n->next;
		vrb_engine_respond(e, vrb_list_entry(n, struct vrb_hqp, core.ack_node), now, plain);
	}
}

void vrb_engine_last_ack(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now)
{
	struct vrb_qp *c = &q->core;

	if (c->type != VRB_QPT_RC || !(q->peer || q->wire.addr) || c->state < VRB_QPS_RTR ||
	    c->state == VRB_QPS_ERR || c->epsn.v == c->attr.rq_psn ||
	    vrb_psn_eq(q->acked, c->ack_psn))
		return;
	c->ack_pending = true;
	vrb_engine_respond(e, q, now, true);
}

void vrb_engine_flush_acks(struct vrb_engine *e, vrb_ns now, bool if_urgent)
{
	if (vrb_list_empty(&e->acks) || (if_urgent && !e->acks_urgent))
		return;
	e->acks_urgent = false;
	vrb_engine_respond_all(e, now, true);
	/* what found no room stays urgent */
	e->acks_urgent |= !vrb_list_empty(&e->acks);
	vrb_work_count(e);
}
