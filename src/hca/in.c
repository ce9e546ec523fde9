/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames out of the rings and to their queue pairs. Plain acknowledgements wait for the next turn,
 * so that an answer of the application can carry them along.
 */
#include "hca/direct.h"
#include "hca/tap.h"
#include "hca/trace.h"
#include "hca/wire.h"
#include "hca/work.h"

#define WAIT_RELIABLE_NS   (100 * VRB_NS_PER_US)
#define WAIT_UNRELIABLE_NS (100 * VRB_NS_PER_MS)
#define WAIT_BEHIND_NS	   (200 * VRB_NS_PER_MS)
#define WAIT_ASIDE_NS	   VRB_NS_PER_S
#define WAIT_STEP_NS	   VRB_NS_PER_MS /* between two looks: more was not ours */

static void note_nak(struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	const struct vrb_report r = {
		.verdict = VRB_V_NAK_GOT, .qpn = q->core.qpn, .val = {pkt->syndrome, pkt->psn.v}};

	if ((pkt->syndrome & VRB_AETH_KIND_MASK) == VRB_AETH_RNR) {
		q->count.rnr_got++;
		q->stats->rnr_naks_received++;
	} else {
		q->count.naks_got++;
		q->stats->sequence_naks_received += pkt->syndrome == VRB_NAK_PSN_SEQ;
	}
	vrb_hca_refuse(&r);
}

/* Around the core's step, when somebody records packets or work requests. */
static void look_before(struct vrb_engine *e, const struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	if (e->tap)
		vrb_tap_before(e, q, pkt);
	if (e->trace)
		vrb_trace_before_packet(e, q, pkt);
}

static void look_after(struct vrb_engine *e, const struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	if (e->tap)
		vrb_tap_in(e, q, pkt);
	if (e->trace)
		vrb_trace_packet(e, q, pkt);
}

/* The packet is the core's, and what comes of it is done. */
static void step(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_pkt *pkt, vrb_ns now)
{
	if (vrb_unlikely(q->core.tapped))
		look_before(e, q, pkt);
	if (vrb_unlikely(vrb_pkt_is_nak(pkt)))
		note_nak(q, pkt);
	vrb_qp_on_packet(&q->core, pkt, now, &e->fx);
	if (vrb_unlikely(q->core.tapped))
		look_after(e, q, pkt);
	vrb_engine_apply(e);
}

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

		step(e, q, &ack, now);
	}
	vrb_engine_take(e, q, &f->pkt, now);
}

void vrb_engine_take(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_pkt *pkt, vrb_ns now)
{
	struct vrb_qp *c = &q->core;

	step(e, q, pkt, now);
	q->count.rx_packets++;
	q->count.rx_bytes += pkt->len;
	if (vrb_unlikely(q->wire.addr))
		vrb_wire_adapt(q, now);
	if (c->ack_pending || c->resp_pending) {
		bool waits = q->wire.addr && vrb_wire_ack_waits(e, q, pkt->len);

		vrb_engine_owes(e, q, !waits);
		if (!q->wire.addr && ++q->acks_owed >= VRB_ACK_BATCH)
			vrb_engine_respond(e, q, now, true);
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

static void drop_frame(struct vrb_engine *e, const struct vrb_shm_frame *f)
{
	struct vrb_report r = {.verdict = VRB_V_DROP_NO_QP,
			       .val = {e->slot << VRB_QPN_INDEX_BITS | f->index}};

	vrb_hca_refuse(&r);
	if (vrb_unlikely(e->tap))
		vrb_tap_stray(e, &r, false);
}

static void dispatch(struct vrb_engine *e, struct vrb_peer *p, struct vrb_shm_frame *f, vrb_ns now)
{
	struct vrb_hqp *q = e->qp[f->index];
	uint8_t grh[VRB_GRH_LEN];

	if (vrb_unlikely(f->pkt.op.v == VRB_SHM_OP_CARRIED))
		return; /* handled when it did not stay */
	f->pkt.dqpn = e->slot << VRB_QPN_INDEX_BITS | f->index;
	if (vrb_op_transport(f->pkt.op) == VRB_TP_UD) {
		vrb_grh_build(grh, f, f->pkt.len);
		f->pkt.grh = grh;
		if (f->index == (VRB_MULTICAST_QPN & VRB_QPN_INDEX_MASK) &&
		    f->dgid.raw[0] == 0xff) {
			dispatch_multicast(e, f, now);
			return;
		}
		if (f->index == (VRB_MULTICAST_QPN & VRB_QPN_INDEX_MASK) &&
		    vrb_grh_is_v4_group(&f->dgid)) {
			dispatch_multicast(e, f, now);
			return;
		}
	}
	/* A connected queue pair hears its peer process only. */
	if (!q || (q->core.type != VRB_QPT_UD && q->peer != p))
		drop_frame(e, f);
	else if (vrb_unlikely(f->is_direct))
		vrb_direct_told(q, f->pkt.psn);
	else
		take_packet(e, q, f, now);
}

/*
 * A message that finds no receive stays in the ring for a while: the receiver may be about to post
 * one (it often polls first and posts then), and a sender that runs ahead is held back by the full
 * ring. A program that has completions to poll, from which it will post again, is given more time,
 * and only time in which this process ran counts. A reliable message is then answered RNR NAK, an
 * unreliable one dropped. Once in vain is enough: until the queue has got a new receive nothing
 * waits for it again, so that nobody blocks the ring of others. What waits aside (a copy, of the
 * wire) blocks nobody and has more time: on a busy machine a program may not run for long.
 */
bool vrb_engine_may_wait(struct vrb_hqp *q, struct vrb_opcode op, vrb_ns now, bool aside)
{
	const struct vrb_qp *c = &q->core;
	const struct vrb_wq *wq = c->srq ? &c->srq->wq : &c->rq;
	vrb_ns most = aside ? WAIT_ASIDE_NS : WAIT_UNRELIABLE_NS;
	vrb_ns most_behind = aside ? WAIT_ASIDE_NS : WAIT_BEHIND_NS;
	struct vrb_hqp_wait *w = &q->wait;
	vrb_ns *spent = &w->spent;

	if (!vrb_op_has(op, VRB_OPF_NEEDS_RQ) || c->state < VRB_QPS_RTR || c->state == VRB_QPS_ERR)
		return false;
	if (vrb_likely(wq->head != wq->tail)) {
		w->on = false;
		return false;
	}
	if (!w->on || w->tail != wq->tail)
		*w = (struct vrb_hqp_wait){.on = true, .tail = wq->tail, .seen_at = now};
	if (c->type == VRB_QPT_RC)
		most = WAIT_RELIABLE_NS;
	else if (c->rcq->head != c->rcq->tail && w->spent_behind < most_behind)
		spent = &w->spent_behind;
	*spent += now - w->seen_at < WAIT_STEP_NS ? now - w->seen_at : WAIT_STEP_NS;
	w->seen_at = now;
	return w->spent < most;
}

static bool stays(struct vrb_engine *e, struct vrb_peer *p, const struct vrb_shm_frame *f,
		  vrb_ns now)
{
	struct vrb_hqp *q = e->qp[f->index];

	if (vrb_unlikely(f->pkt.op.v == VRB_SHM_OP_CARRIED))
		return !vrb_wire_carried(e, f->pkt.payload, f->pkt.len);
	return q && e->gone != p && (q->core.type == VRB_QPT_UD || q->peer == p) &&
	       vrb_engine_may_wait(q, f->pkt.op, now, false);
}

uint32_t vrb_engine_drain(struct vrb_engine *e, struct vrb_peer *p, vrb_ns now)
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
		if (vrb_unlikely(stays(e, p, &f, now)))
			break;
		if (vrb_unlikely(e->tap))
			vrb_tap_frame(e, p, &f);
		dispatch(e, p, &f, now);
		if (!p->rx_open)
			return n + 1;
		vrb_shm_pop(&p->rx, f.has_data, f.data_end);
		if (vrb_shm_publish_due(&p->rx) && vrb_shm_publish(&p->rx))
			vrb_peer_wake(p);
	}
	return n;
}
