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

#define VRB_WIRE_ADDRESSES 32u
/* Packets in flight. A default receive buffer holds 25 packets of 4 KiB. */
#define VRB_WIRE_WINDOW_FIRST 16u
#define VRB_WIRE_WINDOW_MAX   512u

/* The sockets of one local address. */
struct vrb_wire_addr {
	struct vrb_udp *udp;
	uint32_t refs; /* queue pairs and address handles */
	bool warm;
	vrb_ns last_rx;
	uint64_t failed_seen;
};

struct vrb_wire {
	struct vrb_wire_addr addr[VRB_WIRE_ADDRESSES];
	_Atomic uint32_t n;
	struct vrb_udp_batch batch;
};

/* True when VERBENA_LINK=udp asks for the wire within the host too; when VERBENA_LINK=shm forbids
 * it. */
bool vrb_wire_is_forced(void);
bool vrb_wire_is_forbidden(void);

/* All under the lock, except arm and wants_look. */
/* q is about to be connected to attr's address: opens sockets, checks the way and the path MTU.
 * 0 or -errno, with a verdict said. */
int vrb_wire_connect(struct vrb_hqp *q, const struct vrb_qp_attr *attr, uint32_t path_mtu);
void vrb_wire_disconnect(struct vrb_hqp *q);
/* A UD queue pair of dev may receive from now on. */
void vrb_wire_listen(struct vrb_engine *e, const struct vrb_hdev *dev);
int vrb_wire_route_ah(struct vrb_engine *e, const struct vrb_hdev *dev, struct vrb_av *av);
void vrb_wire_put_ah(struct vrb_engine *e, struct vrb_av *av);

/* e->tx leaves for q's peer, or its address handle's, with the next flush. */
void vrb_wire_push(struct vrb_engine *e, struct vrb_hqp *q);
void vrb_wire_flush(struct vrb_engine *e);
/* One bounded look at all warm sockets; the number of packets. */
uint32_t vrb_wire_drain(struct vrb_engine *e, vrb_ns now);
/* Attributes of a connected queue pair have been applied. */
void vrb_wire_modified(struct vrb_hqp *q);
/* A packet that another process of the user has received for us: struct vrb_net, then its bytes, in
 * memory that may change. */
void vrb_wire_carried(struct vrb_engine *e, const uint8_t *bytes, uint32_t len);
/* The queue pair has heard something, or waited in vain: its window follows. */
void vrb_wire_adapt(struct vrb_hqp *q);

/* A poll that found nothing looks at the sockets; true when something came. No lock. */
bool vrb_wire_poll(struct vrb_engine *e);
/* The next packet wakes the helper, once. No lock. */
void vrb_wire_arm(struct vrb_engine *e);
/* By the helper: a socket has become readable; once per tick, true: no deep sleep yet. */
void vrb_wire_on_event(struct vrb_engine *e, int fd);
bool vrb_wire_tick(struct vrb_engine *e, vrb_ns now);

void vrb_wire_close(struct vrb_engine *e);
void vrb_wire_disown(struct vrb_engine *e); /* in a forked child */

#endif
