/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs on the wire: opening the sockets of an address, what a path bears, and who looks at
 * the sockets when. wire_io.c moves the packets, wire_window.c says how many may be under way.
 */
#include "hca/wire.h"
#include "base/toeplitz.h"
#include "hca/faults.h"
#include "hca/peer.h"
#include "hca/wire_parts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define COOLS_AFTER    VRB_NS_PER_S
#define SETTLE_NS      (250 * VRB_NS_PER_MS)
#define SETTLE_STEP_US 200u
#define STEER_STEPS    16u /* more than one process alone needs */
#define EMPTY_STEPS    64u
#define LEAVE_STEP_US  1000u
#define LEAVE_STEPS    1000u
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
	return link_is("udp") || vrb_faults_are_on();
}

bool vrb_wire_is_forbidden(void)
{
	return link_is("shm") && !vrb_faults_are_on();
}

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
		if (!w)
			return NULL;
		vrb_list_init(&w->keepers);
		vrb_list_init(&w->carriers);
		/* pairs with the acquire in vrb_wire_arm */
		atomic_store_explicit(&e->wire, w, memory_order_release);
	}
	return w;
}

struct vrb_wire_addr *vrb_wire_find(struct vrb_wire *w, const struct vrb_gid *gid)
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
	/* who sleeps on the other sockets sleeps on this one, too */
	vrb_event_wake_drivers(e);
}

/*
 * The kernel is told which packets are ours. Alone on the address that is done here; others of the
 * user may have to answer first, one of them may be stopped, and it goes on with vrb_wire_settle
 * and the helper's ticks. Until then they carry to us what comes for us (wire_io.c), so nobody
 * waits under the lock.
 */
static void steer(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	vrb_ns now = vrb_clock_now();

	for (uint32_t i = 0; i < STEER_STEPS && vrb_udp_steer_step(a->udp, now); i++)
		vrb_wire_drain_addr(e, a, now);
	vrb_helper_kick(e);
}

int vrb_wire_addr_get(struct vrb_engine *e, const struct vrb_hdev *dev, uint32_t index,
		      struct vrb_wire_addr **out, bool needed)
{
	struct vrb_wire *w = wire_get(e);
	const struct vrb_gid *gid = &dev->gid[index % VRB_GIDS_MAX].gid;
	struct vrb_wire_addr *a = w ? vrb_wire_find(w, gid) : NULL;
	uint32_t n;
	int err;

	if (!w || vrb_wire_keep_open(w))
		return refuse(VRB_V_LINK_SYSTEM, 0, -ENOMEM);
	if (a) {
		*out = a;
		return 0;
	}
	n = atomic_load_explicit(&w->n, memory_order_relaxed);
	if (n == VRB_WIRE_ADDRESSES) /* addresses have come and gone all the time */
		return refuse(VRB_V_LINK_SYSTEM, 0, -ENOSPC);
	a = &w->addr[n];
	*a = (struct vrb_wire_addr){0};
	err = vrb_udp_open(gid, dev->ifindex, e->slot, &a->udp);
	if (err)
		return needed ? refuse(VRB_V_LINK_PORT_TAKEN, 0, err) : err;
	err = vrb_meet_watch_for(e, EPOLL_CTL_ADD, VRB_EV_WIRE, a->udp->rx_fd,
				 EPOLLIN | EPOLLONESHOT);
	if (err) {
		vrb_udp_close(a->udp);
		return refuse(VRB_V_LINK_SYSTEM, 0, err);
	}
	atomic_store_explicit(&a->watched, true, memory_order_relaxed);
	/* pairs with the acquire in vrb_wire_arm */
	atomic_store_explicit(&w->n, n + 1, memory_order_release);
	steer(e, a);
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
		if (dev->gid[i].valid && !dev->gid[i].is_v1)
			if (!vrb_wire_addr_get(e, dev, i, &a, false))
				vrb_udp_want_hops(a->udp);
}

/* Takes out what has come; false: something waits for room in the ring of another. */
static bool empty(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	for (uint32_t i = 0; i < EMPTY_STEPS; i++)
		/* probes do not count as packets */
		if (!vrb_wire_drain_addr(e, a, vrb_clock_now()) &&
		    (a->is_waiting || !vrb_udp_fill(a->udp)))
			break;
	vrb_engine_ring_bells(e);
	return !a->is_waiting && vrb_list_empty(&e->wire->carriers);
}

void vrb_wire_leave(struct vrb_engine *e)
{
	struct vrb_wire *w = e->wire;
	uint32_t n = w ? w->n : 0;
	bool busy = n > 0;

	vrb_engine_lock(e);
	for (uint32_t i = 0; i < n; i++)
		vrb_udp_leave(w->addr[i].udp);
	vrb_engine_unlock(e);
	/* what the kernel was about to give us when we left comes, too */
	for (uint32_t step = 0; busy && step < LEAVE_STEPS; step++) {
		usleep(LEAVE_STEP_US);
		busy = false;
		vrb_engine_lock(e);
		vrb_engine_turn(e, vrb_clock_now());
		for (uint32_t i = 0; i < n; i++)
			busy |= !empty(e, &w->addr[i]);
		vrb_engine_unlock(e);
	}
}

void vrb_wire_close(struct vrb_engine *e)
{
	struct vrb_wire *w = e->wire;

	if (!w)
		return;
	vrb_wire_flush(e);
	e->wire = NULL;
	for (uint32_t i = 0; i < w->n; i++)
		vrb_udp_close(w->addr[i].udp);
	vrb_wire_keep_close(w);
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

uint32_t vrb_wire_hash_addresses(const struct vrb_gid *src, const struct vrb_gid *dst)
{
	return vrb_toeplitz(vrb_toeplitz_key, 0, src->raw, sizeof(src->raw)) ^
	       vrb_toeplitz(vrb_toeplitz_key, sizeof(src->raw), dst->raw, sizeof(dst->raw));
}

uint32_t vrb_wire_hash_qpns(vrb_qpn src, vrb_qpn dst)
{
	const uint8_t low[4] = {(uint8_t)(src >> 8), (uint8_t)src, (uint8_t)(dst >> 8),
				(uint8_t)dst};

	return vrb_toeplitz(vrb_toeplitz_key, 2 * sizeof(struct vrb_gid), low, sizeof(low));
}

int vrb_wire_connect(struct vrb_hqp *q, const struct vrb_qp_attr *attr, uint32_t path_mtu)
{
	struct vrb_wire_addr *a;
	int err;

	if (vrb_wire_is_forbidden()) {
		(void)refuse(VRB_V_MODIFY_UNREACHABLE, q->core.qpn, -ENETUNREACH);
		return -ETIMEDOUT;
	}
	err = vrb_wire_addr_get(q->e, q->ctx->dev, attr->sgid_index, &a, true);
	if (!err)
		err = check_way(a, &attr->dgid, q->core.qpn, path_mtu);
	if (err)
		return err;
	a->refs++;
	vrb_wire_disconnect(q);
	q->wire = (struct vrb_hqp_wire){
		.addr = a,
		.dst = attr->dgid,
		.lane = vrb_wire_lane(vrb_wire_hash_addresses(&a->udp->gid, &attr->dgid),
				      vrb_wire_hash_qpns(q->core.qpn, attr->dest_qpn)),
		.tclass = attr->traffic_class,
		.hop_limit = attr->hop_limit,
		.mtu = path_mtu,
		.n_probes = q->core.n_probes_sent,
	};
	warm(q->e, a);
	return 0;
}

/* Packets that others carry to us until then may be overtaken by later ones that come directly,
 * which an unreliable connection takes for a loss. */
void vrb_wire_settle(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	vrb_ns now = vrb_clock_now(), end = now + SETTLE_NS;
	bool busy = true;

	while (busy && now < end) {
		vrb_engine_lock(e);
		now = vrb_clock_now();
		busy = vrb_udp_steer_step(a->udp, now);
		if (busy)
			vrb_wire_drain_addr(e, a, now);
		vrb_engine_unlock(e);
		if (busy)
			usleep(SETTLE_STEP_US);
	}
}

void vrb_wire_disconnect(struct vrb_hqp *q)
{
	vrb_wire_keep_forget(q);
	vrb_wire_flow_reset(q);
	if (!q->wire.addr)
		return;
	vrb_wire_flush(q->e);
	q->wire.addr->refs--;
	q->wire.addr = NULL;
	q->core.probe_ns = VRB_NS_NEVER; /* shared memory loses nothing */
}

int vrb_wire_route_ah(struct vrb_engine *e, const struct vrb_hdev *dev, struct vrb_av *av)
{
	struct vrb_wire_addr *a;
	uint32_t mtu;
	int err = vrb_wire_is_forbidden() ? -ENETUNREACH
					  : vrb_wire_addr_get(e, dev, av->sgid_index, &a, true);

	if (!err && vrb_udp_route(a->udp, &av->dgid, &mtu))
		err = -ENETUNREACH;
	if (err)
		return err;
	a->refs++;
	av->dev = a;
	av->route = VRB_ROUTE_WIRE;
	av->flow_hash = vrb_wire_hash_addresses(&a->udp->gid, &av->dgid);
	warm(e, a);
	return 0;
}

void vrb_wire_put_ah(struct vrb_av *av)
{
	struct vrb_wire_addr *a = av->dev;

	a->refs--;
}

/* ---- who looks when */

static void arm(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	const uint32_t events = EPOLLIN | EPOLLONESHOT;
	int fd = a->udp->rx_fd;

	vrb_poke(&a->n_looks, 0);
	atomic_store_explicit(&a->watched, true, memory_order_relaxed);
	if (vrb_meet_watch_for(e, EPOLL_CTL_MOD, VRB_EV_WIRE, fd, events) == -ENOENT &&
	    vrb_meet_watch_for(e, EPOLL_CTL_ADD, VRB_EV_WIRE, fd, events) == -EEXIST)
		(void)vrb_meet_watch_for(e, EPOLL_CTL_MOD, VRB_EV_WIRE, fd, events);
}

void vrb_wire_arm(struct vrb_engine *e)
{
	/* pair with the releases in wire_get and vrb_wire_addr_get */
	struct vrb_wire *w = atomic_load_explicit(&e->wire, memory_order_acquire);
	uint32_t n = w ? atomic_load_explicit(&w->n, memory_order_acquire) : 0;

	for (uint32_t i = 0; i < n; i++)
		arm(e, &w->addr[i]);
}

uint32_t vrb_wire_sockets(const struct vrb_engine *e, struct pollfd *fd)
{
	uint32_t n = 0;

	for (uint32_t i = 0; e->wire && i < e->wire->n; i++)
		if (e->wire->addr[i].warm)
			fd[n++].fd = e->wire->addr[i].udp->rx_fd;
	return n;
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
