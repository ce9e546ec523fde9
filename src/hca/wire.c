/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs on the wire: opening the sockets of an address, what a path bears, packets out and
 * in, and the window. The window is the network's fair share: it starts small, grows with
 * acknowledgements (by one packet for each until the threshold, by one a round trip beyond) and is
 * halved when something was lost, once per window.
 */
#include "hca/peer.h"
#include "hca/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define WINDOW_MIN	4u
#define FIRST_THRESHOLD 64u
#define COOLS_AFTER	VRB_NS_PER_S
#define STEER_NS	(250 * VRB_NS_PER_MS)
#define STEER_STEP_US	200u
#define DRAIN_MAX	128u /* packets of one socket in one turn */
/* BTH, RETH, immediate, ICRC, UDP: what a full packet needs besides payload and IP header */
#define OVERHEAD (12u + 16u + 4u + 4u + 8u)

/* ---- choice */

static bool link_is(const char *what)
{
	const char *s = getenv("VERBENA_LINK");

	return s && !strcmp(s, what);
}

bool vrb_wire_is_forced(void)
{
	return link_is("udp");
}

bool vrb_wire_is_forbidden(void)
{
	return link_is("shm");
}

static uint32_t drain_one(struct vrb_engine *e, struct vrb_wire_addr *a, vrb_ns now);

static int refuse(enum vrb_verdict v, vrb_qpn qpn, int err)
{
	struct vrb_report r = {.verdict = v, .qpn = qpn, .val = {(uint64_t)-err}};

	vrb_hca_refuse(&r);
	return err;
}

/* ---- addresses */

static struct vrb_wire *wire_get(struct vrb_engine *e)
{
	struct vrb_wire *w = atomic_load_explicit(&e->wire, memory_order_relaxed);

	if (!w) {
		w = calloc(1, sizeof(*w));
		/* pairs with the acquire in vrb_wire_arm */
		atomic_store_explicit(&e->wire, w, memory_order_release);
	}
	return w;
}

static struct vrb_wire_addr *find(struct vrb_wire *w, const struct vrb_gid *gid)
{
	uint32_t n = atomic_load_explicit(&w->n, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++)
		if (!memcmp(&w->addr[i].udp->gid, gid, sizeof(*gid)))
			return &w->addr[i];
	return NULL;
}

static void count_warm(struct vrb_engine *e, struct vrb_wire *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < atomic_load_explicit(&w->n, memory_order_relaxed); i++)
		n += w->addr[i].warm;
	atomic_store_explicit(&e->n_wire, n, memory_order_relaxed);
}

static void warm(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	a->last_rx = vrb_peek(&e->now);
	if (a->warm)
		return;
	a->warm = true;
	count_warm(e, e->wire);
}

/* Until the kernel knows which packets are ours; others of the user may have to answer for that,
 * and one of them may be stopped. What takes longer goes on with the helper's ticks. */
static void steer(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	vrb_ns now = vrb_clock_now(), end = now + STEER_NS;

	while (vrb_udp_steer_step(a->udp, now) && now < end) {
		drain_one(e, a, now);
		usleep(STEER_STEP_US);
		now = vrb_clock_now();
	}
}

/* The sockets of an address of dev. needed: by a connection; explain it when the port cannot be
 * had, and wait for the kernel to know us. Else both are for later. */
static int addr_get(struct vrb_engine *e, const struct vrb_hdev *dev, uint32_t index,
		    struct vrb_wire_addr **out, bool needed)
{
	struct vrb_wire *w = wire_get(e);
	const struct vrb_gid *gid = &dev->gid[index % VRB_GIDS_MAX].gid;
	struct vrb_wire_addr *a = w ? find(w, gid) : NULL;
	uint32_t n;
	int err;

	if (!w)
		return -ENOMEM;
	if (a) {
		if (needed)
			steer(e, a);
		*out = a;
		return 0;
	}
	n = atomic_load_explicit(&w->n, memory_order_relaxed);
	if (n == VRB_WIRE_ADDRESSES)
		return -ENOSPC;
	a = &w->addr[n];
	*a = (struct vrb_wire_addr){0};
	err = vrb_udp_open(gid, dev->ifindex, e->slot, &a->udp);
	if (err)
		return needed ? refuse(VRB_V_LINK_PORT_TAKEN, 0, err) : err;
	err = vrb_meet_watch_for(e, EPOLL_CTL_ADD, VRB_EV_WIRE, a->udp->rx_fd,
				 EPOLLIN | EPOLLONESHOT);
	if (err) {
		vrb_udp_close(a->udp);
		return err;
	}
	/* pairs with the acquire in vrb_wire_arm */
	atomic_store_explicit(&w->n, n + 1, memory_order_release);
	if (needed)
		steer(e, a);
	else
		vrb_helper_kick(e);
	*out = a;
	return 0;
}

/* A datagram QP that never talks to another host need not hear that none can reach it. */
void vrb_wire_listen(struct vrb_engine *e, const struct vrb_hdev *dev)
{
	struct vrb_wire_addr *a;

	if (vrb_wire_is_forbidden() || (dev->loopback && !vrb_wire_is_forced()))
		return;
	for (uint32_t i = 0; i < dev->n_gids; i++)
		if (dev->gid[i].valid)
			(void)addr_get(e, dev, i, &a, false);
}

void vrb_wire_close(struct vrb_engine *e)
{
	struct vrb_wire *w = e->wire;

	if (!w)
		return;
	e->wire = NULL;
	for (uint32_t i = 0; i < w->n; i++)
		vrb_udp_close(w->addr[i].udp);
	free(w);
}

void vrb_wire_disown(struct vrb_engine *e)
{
	struct vrb_wire *w = e->wire;

	for (uint32_t i = 0; w && i < w->n; i++)
		vrb_udp_disown(w->addr[i].udp);
}

/* ---- paths */

/* The way to dst, and what it carries. */
static int check_way(const struct vrb_wire_addr *a, const struct vrb_gid *dst, vrb_qpn qpn,
		     uint32_t path_mtu)
{
	struct vrb_report r = {.verdict = VRB_V_MODIFY_WIRE_MTU, .qpn = qpn};
	uint32_t carries, needs = path_mtu + OVERHEAD + (a->udp->v4 ? 20 : 40);
	int err = vrb_udp_route(a->udp, dst, &carries);

	if (err) {
		(void)refuse(VRB_V_MODIFY_UNREACHABLE, qpn, err);
		return -ETIMEDOUT;
	}
	if (needs <= carries)
		return 0;
	r.val[0] = path_mtu;
	r.val[1] = needs;
	r.val[2] = carries;
	vrb_hca_refuse(&r);
	return -EINVAL;
}

/* One lane for all packets between two queue pairs (RoCEv2 A17.9.2). */
static uint8_t lane_of(vrb_qpn a, vrb_qpn b)
{
	return (uint8_t)((a * 0x61c88647u ^ b * 0x9e3779b1u) >> 29) % VRB_UDP_LANES;
}

int vrb_wire_connect(struct vrb_hqp *q, const struct vrb_qp_attr *attr, uint32_t path_mtu)
{
	struct vrb_wire_addr *a;
	int err;

	if (vrb_wire_is_forbidden()) {
		(void)refuse(VRB_V_MODIFY_UNREACHABLE, q->core.qpn, -ENETUNREACH);
		return -ETIMEDOUT;
	}
	err = addr_get(q->e, q->ctx->dev, attr->sgid_index, &a, true);
	if (!err)
		err = check_way(a, &attr->dgid, q->core.qpn, path_mtu);
	if (err)
		return err;
	a->refs++;
	vrb_wire_disconnect(q);
	q->wire = (struct vrb_hqp_wire){
		.addr = a,
		.dst = attr->dgid,
		.lane = lane_of(q->core.qpn, attr->dest_qpn),
		.tclass = attr->traffic_class,
		.hop_limit = attr->hop_limit,
		.mtu = path_mtu,
		.window_256 = VRB_WIRE_WINDOW_FIRST * 256,
		.threshold = FIRST_THRESHOLD,
		.una = q->core.una_psn,
		.recover = q->core.una_psn,
	};
	warm(q->e, a);
	return 0;
}

void vrb_wire_disconnect(struct vrb_hqp *q)
{
	if (q->wire.addr)
		q->wire.addr->refs--;
	q->wire.addr = NULL;
}

int vrb_wire_route_ah(struct vrb_engine *e, const struct vrb_hdev *dev, struct vrb_av *av)
{
	struct vrb_wire_addr *a;
	uint32_t mtu;
	int err =
		vrb_wire_is_forbidden() ? -ENETUNREACH : addr_get(e, dev, av->sgid_index, &a, true);

	if (!err && vrb_udp_route(a->udp, &av->dgid, &mtu))
		err = -ENETUNREACH;
	if (err)
		return err;
	a->refs++;
	av->dev = a;
	av->route = VRB_ROUTE_WIRE;
	warm(e, a);
	return 0;
}

void vrb_wire_put_ah(struct vrb_engine *e, struct vrb_av *av)
{
	struct vrb_wire_addr *a = av->dev;

	(void)e;
	a->refs--;
}

/* ---- out */

void vrb_wire_push(struct vrb_engine *e, struct vrb_hqp *q)
{
	const struct vrb_av *av = e->tx.av;
	struct vrb_wire_addr *a = av ? av->dev : q->wire.addr;
	struct vrb_udp_flow f;

	if (av)
		f = (struct vrb_udp_flow){.dst = av->dgid,
					  .lane = lane_of(q->core.qpn, 0),
					  .tclass = av->traffic_class,
					  .hop_limit = av->hop_limit};
	else
		f = (struct vrb_udp_flow){.dst = q->wire.dst,
					  .lane = q->wire.lane,
					  .tclass = q->wire.tclass,
					  .hop_limit = q->wire.hop_limit};
	/* 1: not migrated; path migration is not offered (IBA 17.2.8) */
	e->tx.pkt.flags |= VRB_PKT_MIGREQ;
	vrb_udp_push(&e->wire->batch, a->udp, &f, &e->tx.pkt, e->tx.seg);
	q->stats->tx_packets++;
	q->stats->tx_bytes += e->tx.pkt.len;
}

static void say_failures(struct vrb_wire *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct vrb_wire_addr *a = &w->addr[i];

		if (a->udp->n_send_failed == a->failed_seen)
			continue;
		a->failed_seen = a->udp->n_send_failed;
		(void)refuse(VRB_V_LINK_SEND, 0, -a->udp->send_errno);
	}
}

void vrb_wire_flush(struct vrb_engine *e)
{
	struct vrb_wire *w = e->wire;
	struct vrb_udp *u;
	int old;

	if (vrb_likely(!w || !w->batch.n))
		return;
	u = w->batch.udp;
	old = vrb_cancel_off();
	vrb_udp_flush(&w->batch);
	vrb_cancel_restore(old);
	if (vrb_unlikely(u->send_errno))
		say_failures(w);
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

static void drop(enum vrb_verdict v, vrb_qpn qpn)
{
	struct vrb_report r = {.verdict = v, .val = {qpn}};

	vrb_hca_refuse(&r);
}

/* The kernel gave us a packet of another process of the user: it goes on by shared memory, and the
 * kernel is told anew. */
static void carry(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_packet *p,
		  vrb_qpn qpn)
{
	const struct vrb_seg seg[] = {{&p->net, sizeof(p->net)}, {p->bytes, p->len}};
	const struct vrb_pkt pkt = {
		.op.v = VRB_SHM_OP_CARRIED, .dqpn = qpn, .len = (uint32_t)sizeof(p->net) + p->len};
	struct vrb_peer *peer;

	vrb_udp_steer_stranger(a->udp, vrb_peek(&e->now));
	if (p->len > VRB_ROCE_PACKET_MAX || vrb_peer_get(e, qpn >> VRB_QPN_INDEX_BITS, &peer) ||
	    !vrb_shm_room(&peer->tx, pkt.len)) {
		drop(VRB_V_DROP_SLOT, qpn);
		return;
	}
	vrb_shm_push(&peer->tx, &pkt, seg, NULL, NULL);
	vrb_engine_pushed(e, peer);
}

/* may_carry: it came from a socket. */
static void dispatch(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_packet *p,
		     bool may_carry)
{
	struct vrb_report why = {0};
	uint8_t grh[VRB_GRH_LEN];
	struct vrb_hqp *q;
	struct vrb_pkt pkt;

	if (vrb_pkt_parse(p->bytes, p->len, &pkt, &why) != VRB_OK) {
		vrb_hca_refuse(&why);
		return;
	}
	if (pkt.op.v == VRB_OPCODE_CNP)
		return; /* RoCEv2 A17.9.3: accepted; the window follows losses only */
	if (pkt.dqpn >> VRB_QPN_INDEX_BITS != e->slot) {
		if (may_carry)
			carry(e, a, p, pkt.dqpn);
		return;
	}
	q = e->qp[pkt.dqpn & VRB_QPN_INDEX_MASK];
	if (!q) {
		drop(VRB_V_DROP_NO_QP, pkt.dqpn);
		return;
	}
	if (q->core.type == VRB_QPT_UD) {
		build_grh(grh, p);
		pkt.grh = grh;
	} else if (q->wire.addr != a || memcmp(&q->wire.dst, &p->net.src, sizeof(p->net.src))) {
		/* IBA 9.6.1.1: a connected queue pair hears its peer only */
		drop(VRB_V_DROP_SOURCE, pkt.dqpn);
		return;
	}
	vrb_engine_take(e, q, &pkt, vrb_peek(&e->now));
}

void vrb_wire_carried(struct vrb_engine *e, const uint8_t *bytes, uint32_t len)
{
	uint8_t copy[VRB_ROCE_PACKET_MAX];
	struct vrb_udp_packet p = {.bytes = copy};
	struct vrb_wire_addr *a;

	if (!e->wire || len < sizeof(p.net) || len - sizeof(p.net) > sizeof(copy))
		return;
	p.len = len - (uint32_t)sizeof(p.net);
	memcpy(&p.net, bytes, sizeof(p.net));
	memcpy(copy, bytes + sizeof(p.net), p.len);
	a = find(e->wire, &p.net.dst);
	if (a)
		dispatch(e, a, &p, false);
}

static bool fill(struct vrb_udp *u)
{
	int old = vrb_cancel_off();
	bool some = vrb_udp_fill(u);

	vrb_cancel_restore(old);
	return some;
}

static uint32_t drain_one(struct vrb_engine *e, struct vrb_wire_addr *a, vrb_ns now)
{
	struct vrb_udp_packet p;
	struct vrb_report why;
	bool filled = false;
	uint32_t n;

	for (n = 0; n < DRAIN_MAX; n++) {
		int r = vrb_udp_next(a->udp, &p, &why);

		if (r == 0 && !filled) {
			filled = true;
			if (fill(a->udp))
				r = vrb_udp_next(a->udp, &p, &why);
		}
		if (r == 0)
			break;
		if (r < 0)
			vrb_hca_refuse(&why);
		else
			dispatch(e, a, &p, true);
	}
	if (n)
		a->last_rx = now;
	return n;
}

uint32_t vrb_wire_drain(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_wire *w = e->wire;
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n; i++)
		if (w->addr[i].warm)
			n += drain_one(e, &w->addr[i], now);
	/* epoll looks once more before it wakes anybody: a socket that a poll has emptied meanwhile
	 * wakes no helper, and the answers now owed would wait for the next packet. */
	if (n) {
		/* pairs with the store in go_deep: it sees our n_work, or we see it asleep */
		atomic_thread_fence(memory_order_seq_cst);
		if (vrb_unlikely(atomic_load_explicit(&e->helper_deep, memory_order_relaxed))) {
			atomic_store_explicit(&e->helper_deep, false, memory_order_relaxed);
			vrb_helper_kick(e);
		}
	}
	return n;
}

/* ---- the window */

static void on_loss(struct vrb_hqp *q)
{
	struct vrb_hqp_wire *w = &q->wire;
	struct vrb_qp *c = &q->core;

	if (vrb_psn_diff(c->una_psn, w->recover) < 0)
		return; /* the same window's loss */
	w->recover = c->high_psn;
	w->threshold = w->window_256 / 512;
	if (w->threshold < WINDOW_MIN)
		w->threshold = WINDOW_MIN;
	w->window_256 = w->threshold * 256;
	q->stats->retransmits++;
}

static void grow(struct vrb_hqp_wire *w, uint32_t acked)
{
	if (w->window_256 < w->threshold * 256)
		w->window_256 += acked * 256;
	else
		w->window_256 += acked * 65536 / w->window_256;
	if (w->window_256 > VRB_WIRE_WINDOW_MAX * 256)
		w->window_256 = VRB_WIRE_WINDOW_MAX * 256;
}

void vrb_wire_adapt(struct vrb_hqp *q)
{
	struct vrb_hqp_wire *w = &q->wire;
	struct vrb_qp *c = &q->core;
	int32_t acked = vrb_psn_diff(c->una_psn, w->una);
	bool lost = c->rewound && !c->rnr_wait;

	w->una = c->una_psn;
	if (lost && !w->was_rewound)
		on_loss(q);
	else if (acked > 0 && !c->rewound)
		grow(w, (uint32_t)acked);
	w->was_rewound = lost;
	c->window_max = w->window_256 / 256;
}

void vrb_wire_modified(struct vrb_hqp *q)
{
	q->wire.una = q->wire.recover = q->core.una_psn;
	q->core.window_max = q->wire.window_256 / 256;
}

/* ---- who looks when */

bool vrb_wire_poll(struct vrb_engine *e)
{
	uint32_t n;

	if (!vrb_engine_trylock(e))
		return false;
	n = vrb_engine_turn(e, vrb_clock_now());
	vrb_engine_unlock(e);
	return n > 0;
}

void vrb_wire_arm(struct vrb_engine *e)
{
	/* pair with the releases in wire_get and addr_get */
	struct vrb_wire *w = atomic_load_explicit(&e->wire, memory_order_acquire);
	uint32_t n = w ? atomic_load_explicit(&w->n, memory_order_acquire) : 0;

	for (uint32_t i = 0; i < n; i++)
		(void)vrb_meet_watch_for(e, EPOLL_CTL_MOD, VRB_EV_WIRE, w->addr[i].udp->rx_fd,
					 EPOLLIN | EPOLLONESHOT);
}

void vrb_wire_on_event(struct vrb_engine *e, int fd)
{
	uint32_t polls = atomic_load_explicit(&e->n_polls, memory_order_relaxed);
	struct vrb_wire *w = e->wire;

	atomic_store_explicit(&e->helper_deep, false, memory_order_relaxed);
	for (uint32_t i = 0; w && i < w->n; i++)
		if (w->addr[i].udp->rx_fd == fd)
			warm(e, &w->addr[i]);
	/* A thread that sleeps in get_cq_event is woken to do it, and arms again. */
	if (atomic_load_explicit(&e->n_drivers, memory_order_relaxed))
		return;
	vrb_engine_turn(e, vrb_clock_now());
	/* Nobody polls at the moment: the next packet must wake us, too. */
	if (atomic_load_explicit(&e->n_polls, memory_order_relaxed) == polls)
		vrb_wire_arm(e);
}

bool vrb_wire_tick(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_wire *w = e->wire;
	bool cooled = false, steering = false;

	for (uint32_t i = 0; w && i < w->n; i++) {
		struct vrb_wire_addr *a = &w->addr[i];

		if (vrb_unlikely(vrb_udp_steer_step(a->udp, now))) {
			steering = true;
			warm(e, a);
		}

		if (!a->warm || a->refs || now - a->last_rx < COOLS_AFTER)
			continue;
		a->warm = false;
		cooled = true;
	}
	if (cooled) {
		count_warm(e, w);
		vrb_wire_arm(e);
	}
	return steering;
}
