/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets out and in: a queue pair's next packet into the batch of its flow, and what the sockets
 * have received to its queue pair, or to the process of the user that owns it.
 */
#include "base/bytes.h"
#include "hca/ask.h"
#include "hca/faults.h"
#include "hca/gsi_parts.h"
#include "hca/peer.h"
#include "hca/tap.h"
#include "hca/wire.h"
#include "hca/wire_parts.h"
#include "hca/work.h"

#include <string.h>
#include <sys/epoll.h>

#define DRAIN_MAX     128u		    /* packets of one socket in one turn */
#define CARRY_NS      (100 * VRB_NS_PER_MS) /* what is to be carried waits for room so long */
#define UNWATCH_LOOKS 64u
/* Packets, large ones counted twice, that a queue pair acknowledges together at most. */
#define ACK_MAX 128u
#define LARGE	2048u

/* ---- out */

static void say_failures(struct vrb_wire *w)
{
	struct vrb_report r = {.verdict = VRB_V_LINK_SEND};

	for (uint32_t i = 0; i < w->n; i++) {
		struct vrb_wire_addr *a = &w->addr[i];

		if (a->udp->n_send_failed == a->failed_seen)
			continue;
		a->failed_seen = a->udp->n_send_failed;
		r.val[0] = (uint64_t)a->udp->send_errno;
		vrb_hca_refuse(&r);
	}
}

void vrb_wire_lay(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
		  const struct vrb_udp_flow *f)
{
	/* 1: not migrated; path migration is not offered (IBA 17.2.8) */
	e->tx.pkt.flags |= VRB_PKT_MIGREQ;
	if (vrb_likely(!e->faults) ||
	    !vrb_faults_tx(e, q, &(struct vrb_faults_out){a, f, &e->tx.pkt, e->tx.seg})) {
		vrb_udp_push(&e->wire->batch, a->udp, f, &e->tx.pkt, e->tx.seg);
		if (vrb_unlikely(e->tap))
			vrb_tap_wire_out(e, q, a->udp, f, NULL);
	}
	if (e->wire->batch.full)
		vrb_udp_flush(&e->wire->batch);
	if (vrb_unlikely(a->udp->n_send_failed != a->failed_seen))
		say_failures(e->wire);
	q->count.tx_packets++;
	q->count.tx_bytes += e->tx.pkt.len;
}

void vrb_wire_push(struct vrb_engine *e, struct vrb_hqp *q)
{
	const struct vrb_av *av = e->tx.av;
	struct vrb_wire_addr *a = av ? av->dev : q->wire.addr;
	struct vrb_udp_flow f;

	if (av)
		f = (struct vrb_udp_flow){
			.dst = av->dgid,
			.lane = vrb_wire_lane(av->flow_hash, vrb_wire_hash_qpns(q->core.qpn, 0)),
			.tclass = av->traffic_class,
			.hop_limit = av->hop_limit};
	else
		f = (struct vrb_udp_flow){.dst = q->wire.dst,
					  .lane = q->wire.lane,
					  .tclass = q->wire.tclass,
					  .hop_limit = q->wire.hop_limit};
	vrb_wire_time(q, &e->tx.pkt);
	if (q->core.type != VRB_QPT_RC)
		vrb_wire_flow_sent(q, a->udp, &e->tx.pkt);
	vrb_wire_lay(e, q, a, &f);
}

void vrb_wire_flush(struct vrb_engine *e)
{
	struct vrb_wire *w = e->wire;

	if (vrb_likely(!w))
		return;
	if (w->held) {
		w->held = false;
		vrb_work_count(e);
	}
	if (!w->batch.n)
		return;
	vrb_udp_flush(&w->batch);
	if (vrb_unlikely(w->batch.udp->send_errno))
		say_failures(w);
}

/* What will bring an acknowledgement has been sent, beside the n newest packets. */
static bool awaits_answer(const struct vrb_qp *c, uint32_t n)
{
	struct vrb_psn asked = c->ackreq_psn;

	if (vrb_psn_diff(c->next_psn, asked) <= (int32_t)n)
		asked = c->ackreq_before;
	return vrb_psn_diff(asked, c->una_psn) >= 0;
}

bool vrb_wire_hold(struct vrb_engine *e, const struct vrb_hqp *q)
{
	const struct vrb_qp *c = &q->core;
	struct vrb_wire *w = e->wire;

	/* A lone message never waits, nor does one of a program that sleeps. A READ takes the PSNs
	 * of its answer, so that they do not tell. */
	if (vrb_likely(!q->wire.addr) || c->type != VRB_QPT_RC || c->rewound || !w->batch.n ||
	    ((const struct vrb_swqe *)vrb_wq_entry(&c->sq, c->sq_send - 1))->op == VRB_WR_READ ||
	    vrb_psn_diff(c->next_psn, c->una_psn) <= (int32_t)w->batch.n ||
	    !awaits_answer(c, w->batch.n) ||
	    atomic_load_explicit(&e->helper_deep, memory_order_relaxed) ||
	    atomic_load_explicit(&e->n_drivers, memory_order_relaxed))
		return false;
	w->held = true;
	return true;
}

/* ---- in */

static void build_grh(uint8_t out[VRB_GRH_LEN], const struct vrb_udp_packet *p)
{
	uint8_t headers[VRB_NET_MAX];
	bool v4 = vrb_gid_is_ipv4(&p->net.dst);

	memset(out, 0, VRB_GRH_LEN);
	(void)vrb_net_emit(&p->net, p->len + VRB_ICRC_LEN, headers);
	memcpy(out + (v4 ? VRB_IPV4_LEN : 0), headers, v4 ? VRB_IPV4_LEN : VRB_IPV6_LEN);
}

static void refuse(struct vrb_engine *e, const struct vrb_report *why, bool damaged)
{
	vrb_hca_refuse(why);
	if (vrb_unlikely(e->tap))
		vrb_tap_stray(e, why, damaged);
}

static void drop(struct vrb_engine *e, enum vrb_verdict v, vrb_qpn qpn)
{
	const struct vrb_report r = {.verdict = v, .val = {qpn}};

	refuse(e, &r, false);
}

/* The kernel gave us a packet of another process of the user: it goes on by shared memory, and the
 * kernel is told anew. */
enum vrb_wire_fate vrb_wire_pass_on(struct vrb_engine *e, struct vrb_wire_addr *a,
				    const struct vrb_udp_packet *p, uint32_t slot, vrb_qpn qpn)
{
	vrb_ns now = vrb_peek(&e->now);
	struct vrb_peer *peer;

	vrb_udp_steer_stranger(a->udp, now);
	vrb_wire_keep_moves(e, a);
	if (p->len <= VRB_ROCE_PACKET_MAX && !vrb_peer_get(e, slot, &peer)) {
		if (vrb_wire_carry(e, peer, qpn, p))
			return VRB_WIRE_KEPT;
		if (!vrb_stall_lasts(e, peer, now, CARRY_NS))
			return VRB_WIRE_STAYS;
	}
	return VRB_WIRE_GOES;
}

/* Not ours. False: it waits for room. */
static bool carry(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_packet *p,
		  vrb_qpn qpn)
{
	enum vrb_wire_fate fate = vrb_wire_pass_on(e, a, p, qpn >> VRB_QPN_INDEX_BITS, qpn);

	if (fate == VRB_WIRE_GOES)
		drop(e, VRB_V_DROP_SLOT, qpn);
	return fate != VRB_WIRE_STAYS;
}

enum origin { SOCKET, CARRIED, HELD };

static void take(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
		 const struct vrb_udp_packet *p, struct vrb_pkt *pkt)
{
	uint8_t grh[VRB_GRH_LEN];

	if (q->core.type == VRB_QPT_UD) {
		build_grh(grh, p);
		pkt->grh = grh;
	}
	if (vrb_unlikely(q->core.type != VRB_QPT_RC) && vrb_wire_flow_heard(e, q, pkt))
		return;
	vrb_engine_take(e, q, pkt, vrb_peek(&e->now));
	if (vrb_unlikely(q->core.type != VRB_QPT_RC))
		vrb_wire_flow_answer(e, q, a, pkt, &p->net);
}

static void hand_over(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
		      const struct vrb_udp_packet *p, struct vrb_pkt *pkt)
{
	if (vrb_likely(pkt->op.v != VRB_OPCODE_CNP)) {
		take(e, q, a, p, pkt);
		return;
	}
	vrb_wire_on_cnp(q);
	if (vrb_unlikely(e->tap))
		vrb_tap_stray(e, NULL, false);
}

static void deliver(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
		    const struct vrb_udp_packet *p, struct vrb_pkt *pkt)
{
	uint32_t n = 1;

	if (vrb_unlikely((p->net.tclass & VRB_ECN_MASK) == VRB_ECN_CE) &&
	    q->core.type != VRB_QPT_UD && pkt->op.v != VRB_OPCODE_CNP)
		vrb_wire_on_mark(e, q, vrb_peek(&e->now));
	if (vrb_unlikely(e->faults))
		n = vrb_faults_rx(e, q, &(struct vrb_faults_in){a, p, pkt});
	while (n--)
		hand_over(e, q, a, p, pkt);
}

void vrb_wire_deliver(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
		      const struct vrb_udp_packet *p, struct vrb_pkt *pkt)
{
	if (vrb_unlikely(e->tap))
		vrb_tap_arrival(e, p);
	deliver(e, q, a, p, pkt);
}

/* False: it stays where it is until its turn has come. */
static bool deliver_unreliable(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
			       const struct vrb_udp_packet *p, struct vrb_pkt *pkt)
{
	enum vrb_wire_fate fate = vrb_wire_keep(e, q, a, p, pkt);

	if (vrb_unlikely(fate != VRB_WIRE_GOES))
		return fate == VRB_WIRE_KEPT;
	deliver(e, q, a, p, pkt);
	if (vrb_unlikely(q->kept.n))
		vrb_wire_keep_run(e, q);
	return true;
}

/* False: it stays where it is until the next look. */
static bool dispatch(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_packet *p,
		     enum origin origin)
{
	struct vrb_report why = {0};
	struct vrb_hqp *q;
	struct vrb_pkt pkt;

	if (vrb_unlikely(e->tap))
		vrb_tap_arrival(e, p);
	if (vrb_pkt_parse(p->bytes, p->len, &pkt, &why) != VRB_OK) {
		refuse(e, &why, false);
		return true;
	}
	if (vrb_unlikely(pkt.dqpn >> VRB_QPN_INDEX_BITS != e->slot)) {
		if (pkt.dqpn == VRB_GSI_QPN)
			return vrb_gsi_take(e, a, p, &pkt, origin == SOCKET);
		return origin != SOCKET || carry(e, a, p, pkt.dqpn);
	}
	q = e->qp[pkt.dqpn & VRB_QPN_INDEX_MASK];
	if (!q) {
		drop(e, VRB_V_DROP_NO_QP, pkt.dqpn);
		return true;
	}
	if (q->core.type != VRB_QPT_UD &&
	    (q->wire.addr != a || memcmp(&q->wire.dst, &p->net.src, sizeof(p->net.src)))) {
		/* IBA 9.6.1.1: a connected queue pair hears its peer only */
		drop(e, VRB_V_DROP_SOURCE, pkt.dqpn);
		return true;
	}
	if (vrb_unlikely(origin == HELD))
		hand_over(e, q, a, p, &pkt);
	else if (vrb_likely(q->core.type == VRB_QPT_RC))
		deliver(e, q, a, p, &pkt);
	else
		return deliver_unreliable(e, q, a, p, &pkt);
	return true;
}

void vrb_wire_again(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_packet *p)
{
	(void)dispatch(e, a, p, HELD);
}

bool vrb_wire_carried(struct vrb_engine *e, const uint8_t *bytes, uint32_t len)
{
	uint8_t copy[VRB_ROCE_PACKET_MAX];
	struct vrb_udp_packet p = {.bytes = copy};
	struct vrb_wire_addr *a;
	bool done;

	if (len < sizeof(p.net) || len - sizeof(p.net) > sizeof(copy))
		return true;
	p.len = len - (uint32_t)sizeof(p.net);
	memcpy(&p.net, bytes, sizeof(p.net));
	p.net.df = true; /* any byte may have stood there */
	memcpy(copy, bytes + sizeof(p.net), p.len);
	a = e->wire ? vrb_wire_find(e->wire, &p.net.dst) : NULL;
	/* a message to QP 1 needs no socket of ours */
	if (!a && (p.len < VRB_BTH_LEN || vrb_get_be24(copy + 5) != VRB_GSI_QPN))
		return true;
	if (a)
		vrb_wire_keep_moves(e, a);
	done = dispatch(e, a, &p, CARRIED);
	if (e->wire && !e->wire->held)
		vrb_wire_flush(e);
	return done;
}

/* While polls find packets the helper need not be told of each: that costs the sender time. It
 * ticks meanwhile, and arms before it sleeps. */
static void unwatch(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	uint32_t n = vrb_peek(&a->n_looks) + 1;

	/* arm() sets it back without the lock: one look more or less */
	vrb_poke(&a->n_looks, n);
	if (n < UNWATCH_LOOKS || !atomic_load_explicit(&a->watched, memory_order_relaxed) ||
	    atomic_load_explicit(&e->helper_deep, memory_order_relaxed) ||
	    atomic_load_explicit(&e->n_drivers, memory_order_relaxed))
		return;
	atomic_store_explicit(&a->watched, false, memory_order_relaxed);
	(void)vrb_meet_watch_for(e, EPOLL_CTL_DEL, VRB_EV_WIRE, a->udp->rx_fd, 0);
}

/* a->packet is handled, or waits for a receive, and what has come after it with it. */
static bool take_next(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	bool waits = !dispatch(e, a, &a->packet, SOCKET);

	if (vrb_likely(waits == a->is_waiting))
		return !waits;
	e->wire->n_waiting += (uint32_t)waits - (uint32_t)a->is_waiting;
	a->is_waiting = waits;
	return !waits;
}

uint32_t vrb_wire_drain_addr(struct vrb_engine *e, struct vrb_wire_addr *a, vrb_ns now)
{
	struct vrb_report why;
	uint32_t n = 0;
	int r = 0;

	if (vrb_unlikely(a->is_waiting) && !take_next(e, a)) {
		vrb_work_look_at(e, now + VRB_WIRE_WAIT_NS);
		return 0;
	}
	if (!vrb_udp_has_more(a->udp) && !vrb_udp_fill(a->udp))
		return 0;
	for (; n < DRAIN_MAX && (r = vrb_udp_next(a->udp, &a->packet, &why)) != 0; n++) {
		if (vrb_likely(r == 1)) {
			if (vrb_likely(vrb_wire_fast_take(e, a, &a->packet) || take_next(e, a)))
				continue;
			vrb_work_look_at(e, now + VRB_WIRE_WAIT_NS);
			break;
		}
		if (r == VRB_UDP_ASK) {
			vrb_ask_on_packet(e, a, &a->packet);
			continue;
		}
		if (vrb_unlikely(e->tap))
			vrb_tap_arrival(e, &a->packet);
		refuse(e, &why, true);
	}
	/* answers to unreliable queue pairs, if any */
	if (!e->wire->held)
		vrb_wire_flush(e);
	a->last_rx = now;
	unwatch(e, a);
	return n;
}

/* ---- acknowledgements */

bool vrb_wire_ack_waits(struct vrb_engine *e, struct vrb_hqp *q, uint32_t len)
{
	e->wire->acks_owed = true;
	q->acks_owed += len > LARGE ? 2 : 1;
	return !q->core.resp_pending && q->acks_owed < ACK_MAX;
}

/* A sender that pauses may wait for them; while it goes on, each one costs as much as thousands of
 * bytes. */
static void acknowledge(struct vrb_engine *e)
{
	struct vrb_list *n = e->acks.next, *next;

	e->wire->acks_owed = false;
	for (; n != &e->acks; n = next) {
		struct vrb_hqp *q = vrb_list_entry(n, struct vrb_hqp, core.ack_node);

		next = n->next;
		if (q->wire.addr)
			vrb_engine_respond(e, q, vrb_peek(&e->now), true);
	}
}

/* epoll looks once more before it wakes anybody: a socket that a poll has emptied meanwhile wakes
 * no helper, and the answers now owed would wait for the next packet. */
static void check_helper(struct vrb_engine *e)
{
	/* pairs with the store in go_deep: it sees our n_work, or we see it asleep */
	atomic_thread_fence(memory_order_seq_cst);
	if (vrb_likely(!atomic_load_explicit(&e->helper_deep, memory_order_relaxed)))
		return;
	atomic_store_explicit(&e->helper_deep, false, memory_order_relaxed);
	vrb_helper_kick(e);
}

uint32_t vrb_wire_drain(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_wire *w = e->wire;
	uint32_t n = 0;

	if (vrb_unlikely(vrb_wire_keeps_some(w)))
		vrb_wire_keep_run_all(e);
	for (uint32_t i = 0; i < w->n; i++)
		if (w->addr[i].warm)
			n += vrb_wire_drain_addr(e, &w->addr[i], now);
	if (n)
		check_helper(e);
	else if (w->acks_owed)
		acknowledge(e);
	return n;
}

bool vrb_wire_has_left(const struct vrb_engine *e)
{
	const struct vrb_wire *w = e->wire;

	if (!w)
		return false;
	for (uint32_t i = 0; i < w->n; i++)
		if (vrb_udp_has_more(w->addr[i].udp))
			return true;
	return w->batch.n || w->acks_owed;
}

/* Packets wait to be handled; nothing of the engine is touched, nor the clock. */
static bool look(struct vrb_wire *w)
{
	if (vrb_unlikely(vrb_wire_keeps_some(w)))
		return true;
	for (uint32_t i = 0; i < w->n; i++)
		if (w->addr[i].warm && (w->addr[i].is_waiting || vrb_udp_has_more(w->addr[i].udp) ||
					vrb_udp_fill(w->addr[i].udp)))
			return true;
	return false;
}

bool vrb_wire_poll(struct vrb_engine *e)
{
	bool some = false;

	if (!vrb_engine_trylock(e))
		return false;
	vrb_wire_flush(e);
	if (look(e->wire))
		some = vrb_engine_turn(e, vrb_clock_now()) > 0;
	else if (e->wire->acks_owed)
		acknowledge(e);
	if (vrb_unlikely(e->tap))
		vrb_tap_flush(e);
	vrb_engine_unlock(e);
	return some;
}
