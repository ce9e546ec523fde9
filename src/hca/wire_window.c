/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much is under way on the wire: the law is core/window.h's; here it meets the clock, the
 * receive buffer, the counters, and the congestion notifications of RoCEv2 A17.9.3.
 */
#include <sys/socket.h>

#include "hca/wire.h"
#include "hca/wire_parts.h"

#define CNP_NS (50 * VRB_NS_PER_US) /* at most one notification in this time to each queue pair */

/* What the kernel's buffer accounts for a packet beside its bytes. */
#define PACKET_EXTRA 200u

/*
 * The peer's receive buffer is not known; most hosts have the same limits. What comes while a
 * process stands still for a moment must fit there. The kernel counts a packet with up to twice its
 * size, unless it has merged it with others: the slow half of the growth is what may not fit.
 */
static uint32_t most(const struct vrb_hqp *q)
{
	socklen_t len = sizeof(int);
	uint32_t n;
	int bytes;

	if (getsockopt(q->wire.addr->udp->rx_fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) || bytes <= 0)
		return VRB_WINDOW_FIRST;
	n = (uint32_t)bytes / (q->wire.mtu + PACKET_EXTRA);
	if (n > VRB_WIRE_WINDOW_MAX)
		n = VRB_WIRE_WINDOW_MAX;
	return n < VRB_WINDOW_FIRST ? VRB_WINDOW_FIRST : n;
}

void vrb_wire_modified(struct vrb_hqp *q, uint32_t mask)
{
	if (q->core.type == VRB_QPT_RC && (mask & (VRB_QPA_AV | VRB_QPA_SQ_PSN)))
		vrb_window_init(&q->wire.window, &q->core, most(q));
}

void vrb_wire_adapt(struct vrb_hqp *q, vrb_ns now)
{
	struct vrb_hqp_wire *w = &q->wire;
	struct vrb_qp *c = &q->core;

	if (c->type != VRB_QPT_RC)
		return;
	if (vrb_unlikely(vrb_window_on_step(&w->window, c, now))) {
		q->count.retransmits++;
		q->stats->retransmits++;
	}
	q->stats->probes += c->n_probes_sent - w->n_probes;
	w->n_probes = c->n_probes_sent;
}

void vrb_wire_time(struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	if (q->core.probe_ns != VRB_NS_NEVER && vrb_window_wants_time(&q->wire.window, pkt))
		vrb_window_on_sent(&q->wire.window, &q->core, pkt, vrb_clock_now());
}

/* RoCEv2 A17.9.3: the peer hears of it, whatever becomes of the packet. */
void vrb_wire_on_mark(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now)
{
	static const uint8_t zero[VRB_CNP_PAYLOAD_LEN];
	const struct vrb_udp_flow f = {.dst = q->wire.dst,
				       .lane = q->wire.lane,
				       .tclass = (uint8_t)(q->wire.tclass & ~VRB_ECN_MASK),
				       .hop_limit = q->wire.hop_limit};

	q->stats->ecn_marked++;
	if (q->wire.cnp_at && now - q->wire.cnp_at < CNP_NS)
		return;
	q->wire.cnp_at = now;
	q->stats->cnps_sent++;
	e->tx.av = NULL;
	e->tx.n_seg = 1;
	e->tx.seg[0] = (struct vrb_seg){zero, sizeof(zero)};
	e->tx.pkt = (struct vrb_pkt){
		.op = {VRB_OPCODE_CNP},
		.flags = VRB_PKT_BECN,
		.pkey = 0xffff,
		.dqpn = q->core.dqpn,
		.len = sizeof(zero),
	};
	vrb_wire_lay(e, q, q->wire.addr, &f);
	vrb_wire_flush(e);
}

void vrb_wire_on_cnp(struct vrb_hqp *q)
{
	q->count.rx_packets++;
	if (q->core.type != VRB_QPT_RC)
		return;
	q->stats->cnps_handled++;
	vrb_window_on_mark(&q->wire.window, &q->core);
}
