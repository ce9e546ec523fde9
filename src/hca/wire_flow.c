/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable queue pairs on the wire. Nothing tells their sender that the receiver's socket is full
 * or that its program has no receives left, and a fabric without loss is what programs expect. So
 * every so often a packet asks for an acknowledgement, which a responder that does not know this
 * ignores (IBA 9.8: unreliable services have no acknowledgements); Verbena answers when it has
 * taken the packet, in the form of an RC ACK, and a window of packets goes out ahead of the
 * answers: a share of the peer's buffer. Nothing is repeated, and no answer is waited for longer
 * than PATIENCE_NS: a peer that stays silent is sent to as before until it is heard.
 */
#include "hca/tap.h"
#include "hca/wire.h"
#include "hca/wire_parts.h"
#include "hca/work.h"

/*
 * What is under way waits in the peer's buffer while its process stands still. It is taken to be
 * as large as ours, and half of it to be others'. The kernel counts a packet that it has not merged
 * with others with up to twice its size, and what it keeps beside.
 */
#define OURS_OF_BUFFER 2u
#define PACKET_EXTRA   512u
#define WINDOW_MAX     524288u /* bytes */
#define STREAMS_MIN    4u
#define ASKS	       8u /* in a window */
/* A UD queue pair has others to talk to; a connection whose peer has answered before waits longer,
 * for one that does not get the CPU. */
#define PATIENCE_NS    (250 * VRB_NS_PER_MS)
#define PATIENCE_UC_NS VRB_NS_PER_S
/* Windows in a row that get no answer: from a peer never heard, from one that was. */
#define SILENT_STRANGER 2u
#define SILENT_MAX	12u
#define SILENT_MAX_UC	4u
/* Those after the first are smaller: that one may still wait in the peer's buffer. */
#define SILENT_SHARE 4u
#define PKEY	     0xffffu

static uint32_t window(const struct vrb_hqp *q, const struct vrb_udp *u)
{
	uint32_t others = q->e->wire->n_streams - q->flow.is_stream,
		 most = WINDOW_MAX / q->core.mtu;
	uint32_t n = u->buffer / OURS_OF_BUFFER / (2 * q->core.mtu + PACKET_EXTRA);

	/* Who was alone has a quarter under way when a second one begins, and so on: the shares
	 * become exact with the first answers. */
	n /= others < STREAMS_MIN ? STREAMS_MIN : others + 1;
	most = most < VRB_WIRE_FLOW_MAX ? most : VRB_WIRE_FLOW_MAX;
	return n > most ? most : n ? n : 1;
}

static void set_stream(struct vrb_hqp *q, bool is_stream)
{
	struct vrb_wire *w = q->e->wire;

	w->n_streams = w->n_streams - q->flow.is_stream + is_stream;
	q->flow.is_stream = is_stream;
}

void vrb_wire_flow_reset(struct vrb_hqp *q)
{
	if (q->flow.is_stream)
		set_stream(q, false);
	q->flow = (struct vrb_hqp_flow){0};
}

void vrb_wire_flow_sent(struct vrb_hqp *q, const struct vrb_udp *u, struct vrb_pkt *pkt)
{
	struct vrb_hqp_flow *f = &q->flow;

	f->window = window(q, u);
	f->last = pkt->psn;
	if (f->out < VRB_PSN_MASK / 2)
		f->out++;
	if (++f->unasked < f->window / ASKS)
		return;
	f->unasked = 0;
	set_stream(q, true);
	pkt->flags |= VRB_PKT_ACKREQ;
}

/* A connection to a peer that answers. */
static bool is_known(const struct vrb_hqp *q)
{
	return q->core.type == VRB_QPT_UC && q->flow.was_heard;
}

bool vrb_wire_flow_holds(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now)
{
	struct vrb_hqp_flow *f = &q->flow;

	if (vrb_likely(!f->out || f->out < f->window / (f->silent ? SILENT_SHARE : 1) ||
		       f->is_mute))
		return false;
	if (!f->until) {
		f->until = vrb_ns_add(now, is_known(q) ? PATIENCE_UC_NS : PATIENCE_NS);
		vrb_engine_timer(e, q);
	}
	return true;
}

void vrb_wire_flow_expire(struct vrb_engine *e, struct vrb_hqp *q)
{
	uint32_t most = is_known(q) ? SILENT_MAX_UC : SILENT_MAX;
	struct vrb_hqp_flow *f = &q->flow;

	f->until = 0;
	f->out = 0;
	set_stream(q, false);
	if (!f->was_heard)
		most = SILENT_STRANGER;
	f->is_mute = ++f->silent >= most;
	vrb_engine_activate(e, q);
}

bool vrb_wire_flow_heard(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_pkt *ack)
{
	struct vrb_hqp_flow *f = &q->flow;
	int32_t out = vrb_psn_diff(f->last, ack->psn);

	if (!f->window || ack->op.v != vrb_opcode(VRB_TP_RC, VRB_OP_ACK).v || ack->pkey != PKEY)
		return false;
	if (vrb_unlikely(e->tap))
		vrb_tap_in(e, q, ack);
	if (out < 0 || (uint32_t)out > f->out) {
		f->silent = 0; /* of a window that was given up: it is there, and behind */
		return true;
	}
	f->out = (uint32_t)out;
	set_stream(q, f->out > f->unasked); /* more answers are to come */
	f->was_heard = true;
	f->is_mute = false;
	f->silent = 0;
	f->until = 0;
	if (vrb_qp_can_send(&q->core, vrb_peek(&e->now)))
		vrb_engine_activate(e, q);
	return true;
}

bool vrb_wire_flow_takes(const struct vrb_qp *c, const struct vrb_pkt *pkt)
{
	if (c->state < VRB_QPS_RTR || c->state == VRB_QPS_ERR || pkt->pkey != PKEY)
		return false;
	if (c->type == VRB_QPT_UC)
		return vrb_op_transport(pkt->op) == VRB_TP_UC;
	return vrb_op_transport(pkt->op) == VRB_TP_UD && pkt->qkey == c->attr.qkey;
}

static uint8_t ud_lane(const struct vrb_hqp *q, const struct vrb_wire_addr *a,
		       const struct vrb_net *net)
{
	return vrb_wire_lane(vrb_wire_hash_addresses(&a->udp->gid, &net->src),
			     vrb_wire_hash_qpns(q->core.qpn, 0));
}

void vrb_wire_flow_answer(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
			  const struct vrb_pkt *pkt, const struct vrb_net *net)
{
	bool ud = q->core.type == VRB_QPT_UD;
	vrb_qpn to = ud ? pkt->sqpn : q->core.dqpn;
	const struct vrb_udp_flow f = {.dst = net->src,
				       .lane = ud ? ud_lane(q, a, net) : q->wire.lane,
				       .tclass = net->tclass,
				       .hop_limit = VRB_UDP_HOPS};

	if (!(pkt->flags & VRB_PKT_ACKREQ) || !vrb_wire_flow_takes(&q->core, pkt))
		return;
	e->tx.av = NULL;
	e->tx.n_seg = 0;
	e->tx.pkt = (struct vrb_pkt){.op = vrb_opcode(VRB_TP_RC, VRB_OP_ACK),
				     .syndrome = VRB_AETH_ACK | VRB_AETH_CREDITS_UNLIMITED,
				     .pkey = PKEY,
				     .psn = pkt->psn,
				     .dqpn = to};
	vrb_wire_lay(e, q, a, &f);
}
