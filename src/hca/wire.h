/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way to other hosts: queue pairs and address handles whose destination is not reached by
 * shared memory send RoCEv2 packets over UDP (link/udp.h). The sockets of an address open with the
 * first queue pair or address handle that needs them. They are warm while something may arrive:
 * then every poll looks at them. Cold ones are watched by the helper only.
 */
#ifndef VRB_HCA_WIRE_H
#define VRB_HCA_WIRE_H

#include "hca/engine.h"
#include "link/udp.h"

#define VRB_WIRE_ADDRESSES  (VRB_DEVICES_MAX * VRB_GIDS_MAX)
#define VRB_WIRE_WINDOW_MAX 512u /* packets in flight */
#define VRB_WIRE_FLOW_MAX   512u /* packets of an unreliable queue pair that go ahead of answers */

/*
 * READs go out as requests for so many packets. The first and the last packet of an answer are
 * longer than those between, so each answer costs its sender one call more: it fills a send.
 */
static inline uint32_t vrb_wire_read_chunk(uint32_t mtu)
{
	uint32_t n = VRB_UDP_SEND_MAX / mtu + 1;

	return n < VRB_UDP_SEGMENTS ? n : VRB_UDP_SEGMENTS;
}

/* A packet that waits for a receive is looked at again so soon. */
#define VRB_WIRE_WAIT_NS VRB_NS_PER_MS

/* The sockets of one local address. */
struct vrb_wire_addr {
	struct vrb_udp *udp;
	uint32_t refs; /* queue pairs and address handles */
	bool warm;
	_Atomic bool watched; /* by the helper's epoll */
	uint32_t n_looks;     /* of polls that found something since it is watched */
	bool is_waiting;      /* `packet` waits for its queue pair to get a receive */
	struct vrb_udp_packet packet;
	vrb_ns last_rx;
	uint64_t failed_seen;
	vrb_ns moving_until; /* until then packets may take several ways (wire_keep.c) */
	uint32_t probes_seen;
};

struct vrb_wire {
	struct vrb_wire_addr addr[VRB_WIRE_ADDRESSES];
	_Atomic uint32_t n;
	uint32_t n_waiting; /* addresses */
	bool held;	    /* the batch waits for company */
	bool acks_owed; /* by queue pairs on the wire, until a look at the sockets finds nothing */
	struct vrb_wire_kept *kept; /* wire_keep.c; NULL until the first address */
	struct vrb_list kept_free, keepers, carriers;
	uint32_t n_kept;    /* that were ever used */
	uint32_t n_streams; /* unreliable queue pairs that wait for an answer (wire_flow.c) */
	struct vrb_udp_batch batch;
};

/* True when VERBENA_LINK=udp or a fault plan asks for the wire within the host too; when
 * VERBENA_LINK=shm forbids it. */
bool vrb_wire_is_forced(void);
bool vrb_wire_is_forbidden(void);

/* All under the lock, but for those that say otherwise. */
/* q is about to be connected to attr's address: opens sockets, checks the way and the path MTU.
 * 0 or -errno, with a verdict said. */
int vrb_wire_connect(struct vrb_hqp *q, const struct vrb_qp_attr *attr, uint32_t path_mtu);
void vrb_wire_disconnect(struct vrb_hqp *q);
/* After a connection, without the lock: waits, bounded, until the kernel gives us our packets. */
void vrb_wire_settle(struct vrb_engine *e, struct vrb_wire_addr *a);
/* A UD queue pair of dev may receive from now on. */
void vrb_wire_listen(struct vrb_engine *e, const struct vrb_hdev *dev);
int vrb_wire_route_ah(struct vrb_engine *e, const struct vrb_hdev *dev, struct vrb_av *av);
void vrb_wire_put_ah(struct vrb_av *av);

/* e->tx leaves for q's peer, or its address handle's, with the next flush. */
void vrb_wire_push(struct vrb_engine *e, struct vrb_hqp *q);
void vrb_wire_flush(struct vrb_engine *e);
/* In place of the flush after a post: while the peer has earlier packets of q to acknowledge, what
 * has been made may wait for company until the next poll, or the helper's tick. */
bool vrb_wire_hold(struct vrb_engine *e, const struct vrb_hqp *q);
static inline bool vrb_wire_is_held(const struct vrb_engine *e)
{
	const struct vrb_wire *w = atomic_load_explicit(&e->wire, memory_order_relaxed);

	return w && w->held;
}
/* Packets wait for the flush. */
static inline bool vrb_wire_has_begun(const struct vrb_engine *e)
{
	const struct vrb_wire *w = atomic_load_explicit(&e->wire, memory_order_relaxed);

	return w && w->batch.n;
}
/* One bounded look at all warm sockets; the number of packets. When there are none, what is owed to
 * those who have sent before is acknowledged. */
uint32_t vrb_wire_drain(struct vrb_engine *e, vrb_ns now);
/* The acknowledgement that q owes now may wait for that. False: there is something that may not, or
 * enough of it. */
bool vrb_wire_ack_waits(struct vrb_engine *e, struct vrb_hqp *q, uint32_t len);
/* Attributes of a connected queue pair have been applied. */
void vrb_wire_modified(struct vrb_hqp *q, uint32_t mask);
/* A packet that another process of the user has received for us: struct vrb_net, then its bytes, in
 * memory that may change. False: it stays where it is until the next look. */
bool vrb_wire_carried(struct vrb_engine *e, const uint8_t *bytes, uint32_t len);
/* The ring to p, where packets wait for room, is no more. */
void vrb_wire_carry_forget(struct vrb_engine *e, struct vrb_peer *p);
/* Packets of q that wait, as far as their turn or the end of their time has come. */
void vrb_wire_keep_run(struct vrb_engine *e, struct vrb_hqp *q);
/* The queue pair has heard something, or waited in vain: its window follows. */
void vrb_wire_adapt(struct vrb_hqp *q, vrb_ns now);
/* The queue pair's next request is about to be pushed. */
void vrb_wire_time(struct vrb_hqp *q, const struct vrb_pkt *pkt);
/* A packet for q was marked by the network on its way (CE); the network has marked q's own. */
void vrb_wire_on_mark(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now);
void vrb_wire_on_cnp(struct vrb_hqp *q);

/* pkt of an unreliable queue pair leaves by u. */
void vrb_wire_flow_sent(struct vrb_hqp *q, const struct vrb_udp *u, struct vrb_pkt *pkt);
void vrb_wire_flow_reset(struct vrb_hqp *q);
/* True: its window is full. It goes on when the peer has answered or its patience is over. */
bool vrb_wire_flow_holds(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now);
void vrb_wire_flow_expire(struct vrb_engine *e, struct vrb_hqp *q);

/* Something lies in our own buffers, received or to be sent, of which the kernel knows nothing. */
bool vrb_wire_has_left(const struct vrb_engine *e);

/* A poll that found nothing looks at the sockets; true when something came. No lock. */
bool vrb_wire_poll(struct vrb_engine *e);
struct pollfd;
/* The sockets from which something may come, into fd[VRB_WIRE_ADDRESSES]; how many. Lock held. */
uint32_t vrb_wire_sockets(const struct vrb_engine *e, struct pollfd *fd);
/* The next packet wakes the helper, once. No lock; while polls find packets this holds only when
 * helper_deep or n_drivers was set before, with the lock held. */
void vrb_wire_arm(struct vrb_engine *e);
/* By the helper: a socket has become readable; once per tick, true: no deep sleep yet. */
void vrb_wire_on_event(struct vrb_engine *e, int fd);
bool vrb_wire_tick(struct vrb_engine *e, vrb_ns now);

/* Before the end: what has come for others is passed on, and nothing more comes. No lock. */
void vrb_wire_leave(struct vrb_engine *e);
void vrb_wire_close(struct vrb_engine *e);
void vrb_wire_disown(struct vrb_engine *e); /* in a forked child */

#endif
