/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults on purpose in real traffic: the environment's plan (base/fault_plan.h) is applied to each
 * packet between the core and the sockets. While there is a plan all traffic goes by the wire,
 * within the host too: faults need packets. Without one e->faults is NULL and nothing here runs.
 *
 * The interposers of link/fault.h are not used: they wrap a link of whole frames and virtual time,
 * whereas packets leave here as values for a batch that makes their ICRC, and a rule may name a
 * queue pair and a message.
 *
 * All under the engine's lock, except open.
 */
#ifndef VRB_HCA_FAULTS_H
#define VRB_HCA_FAULTS_H

#include "base/fault_plan.h"
#include "hca/wire.h"

struct vrb_faults;

/* The plan of the environment, NULL when there is none; -EINVAL or another -errno, said, when it
 * cannot be used. Counts go on when a process opens the device anew; a forked child begins. */
int vrb_faults_open(struct vrb_faults **out);
bool vrb_faults_are_on(void);
/* What is held back leaves at once. */
void vrb_faults_close(struct vrb_engine *e);

/* A new queue pair gets its number. */
void vrb_faults_name(struct vrb_faults *f, struct vrb_hqp *q);

struct vrb_faults_out {
	struct vrb_wire_addr *addr;
	const struct vrb_udp_flow *flow;
	const struct vrb_pkt *pkt;
	const struct vrb_seg *seg;
};
/* A packet of q is about to leave. True: it has been taken care of. */
bool vrb_faults_tx(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_faults_out *out);

struct vrb_faults_in {
	struct vrb_wire_addr *addr;
	const struct vrb_udp_packet *p;
	const struct vrb_pkt *pkt; /* p, parsed */
};
/* A packet for q has come: how often the core is to see it now (0 to 2). */
uint32_t vrb_faults_rx(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_faults_in *in);

/* A question or answer aside (wire/ask.h): true when the rules that lose everything of their kind
 * lose it, too. Nothing is drawn for it, so that packets meet the same faults with and without. */
struct vrb_faults_aside {
	vrb_qpn qpn;
	uint32_t number, dir, ip_len;
};
bool vrb_faults_aside(const struct vrb_faults *f, const struct vrb_faults_aside *a);

/* A timer: packets held back whose time has come. */
void vrb_faults_run(struct vrb_engine *e, vrb_ns now);

#endif
