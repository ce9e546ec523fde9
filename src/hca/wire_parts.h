/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the wire share: wire.c, wire_io.c, wire_window.c, wire_flow.c, wire_fast.c. */
#ifndef VRB_HCA_WIRE_PARTS_H
#define VRB_HCA_WIRE_PARTS_H

#include "hca/wire.h"

/*
 * All packets between two queue pairs take one lane (RoCEv2 A17.9.2), chosen by the Toeplitz hash
 * of the addresses and the queue pairs' numbers. The hash is made of two parts: that of the
 * addresses, and that of the numbers; for datagrams only the sender's counts.
 */
uint32_t vrb_wire_hash_addresses(const struct vrb_gid *src, const struct vrb_gid *dst);
uint32_t vrb_wire_hash_qpns(vrb_qpn src, vrb_qpn dst);

static inline uint8_t vrb_wire_lane(uint32_t of_addresses, uint32_t of_qpns)
{
	return (uint8_t)((of_addresses ^ of_qpns) % VRB_UDP_LANES);
}

/* The sockets of an address of dev, opened when they are not yet. needed: now, so that a port that
 * cannot be had is explained. */
int vrb_wire_addr_get(struct vrb_engine *e, const struct vrb_hdev *dev, uint32_t index,
		      struct vrb_wire_addr **out, bool needed);
/* The sockets of a local address, or NULL. */
struct vrb_wire_addr *vrb_wire_find(struct vrb_wire *w, const struct vrb_gid *gid);

/* e->tx goes into the batch of flow f. */
void vrb_wire_lay(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
		  const struct vrb_udp_flow *f);

/* A packet for an unreliable queue pair: the peer has taken q's packets up to there. False:
 * something else. */
bool vrb_wire_flow_heard(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_pkt *ack);
/* False: the core drops it unseen; it is not waited for, nor answered. */
bool vrb_wire_flow_takes(const struct vrb_qp *c, const struct vrb_pkt *pkt);
/* Answers pkt, which has come to q in net, if it is q's and has asked. */
void vrb_wire_flow_answer(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
			  const struct vrb_pkt *pkt, const struct vrb_net *net);

/* One bounded look at the sockets of one address; the number of packets. */
uint32_t vrb_wire_drain_addr(struct vrb_engine *e, struct vrb_wire_addr *a, vrb_ns now);

/* A packet that a fault plan has held back goes on. */
void vrb_wire_again(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_packet *p);

/* A packet of q's that was kept: marks, faults, the core. */
void vrb_wire_deliver(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
		      const struct vrb_udp_packet *p, struct vrb_pkt *pkt);

/* wire_keep.c: a packet for an unreliable queue pair. KEPT: its turn has not come, and a copy
 * waits. STAYS: likewise, but there is no room for a copy. */
enum vrb_wire_fate { VRB_WIRE_GOES, VRB_WIRE_KEPT, VRB_WIRE_STAYS };
enum vrb_wire_fate vrb_wire_keep(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
				 const struct vrb_udp_packet *p, const struct vrb_pkt *pkt);
/* Sockets of the address may be moving. */
void vrb_wire_keep_moves(struct vrb_engine *e, struct vrb_wire_addr *a);
void vrb_wire_keep_run_all(struct vrb_engine *e);
static inline bool vrb_wire_keeps_some(const struct vrb_wire *w)
{
	return !vrb_list_empty(&w->keepers) || !vrb_list_empty(&w->carriers);
}
/* A packet for a queue pair of p's goes by its ring, at once or when there is room. False: it has
 * to stay where it is. */
bool vrb_wire_carry(struct vrb_engine *e, struct vrb_peer *p, vrb_qpn qpn,
		    const struct vrb_udp_packet *packet);
/* wire_io.c: a packet of another process of the user, the owner of a slot. KEPT: it is on its way.
 * STAYS: it waits for room. GOES: nobody takes it. */
enum vrb_wire_fate vrb_wire_pass_on(struct vrb_engine *e, struct vrb_wire_addr *a,
				    const struct vrb_udp_packet *p, uint32_t slot, vrb_qpn qpn);
void vrb_wire_keep_forget(struct vrb_hqp *q);
int vrb_wire_keep_open(struct vrb_wire *w); /* -errno */
void vrb_wire_keep_close(struct vrb_wire *w);

/* wire_fast.c: a plain SEND in order, taken; false: nothing was done. */
bool vrb_wire_fast_take(struct vrb_engine *e, struct vrb_wire_addr *a,
			const struct vrb_udp_packet *p);

#endif
