/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA WRITE without the target's help. Every process exports, read-only, which of its queue pairs
 * accept direct operations and its key table; an initiator that finds everything in order writes
 * into the target's memory by the descriptor it opened when the two met (/proc/PID/mem: dead after
 * the target's exec or end). Direct access is an optimisation: it is taken only for an operation
 * that provably succeeds; all else, and every refusal, goes through the target's responder. The
 * next frame of the queue pair is preceded by one that says how far the PSN has come meanwhile.
 *
 * Against deregistration: the initiator announces (direct_seq of the ring's control page, odd =
 * under way), fences, checks the key again, writes. Whoever withdraws a key or a queue pair clears
 * the entry, fences, and waits until every odd sequence has changed.
 */
#ifndef VRB_HCA_DIRECT_H
#define VRB_HCA_DIRECT_H

#include "hca/engine.h"

#define VRB_DIRECT_MAX	(1u << 20) /* bytes; longer WRITEs go through the ring */
#define VRB_EXPORT_KEYS (1u << 20) /* keys beyond are not exported */

struct vrb_direct_qp {
	_Atomic uint32_t ok; /* 1: connected, open for direct operations */
	uint32_t peer_qpn, pd, access;
};

struct vrb_export {
	uint32_t version, key_size;
	_Atomic uint32_t n_keys; /* 0: the table has outgrown the export */
	uint32_t pad[13];
	struct vrb_direct_qp qp[VRB_QPN_INDEX_MASK + 1];
	struct vrb_key key[VRB_EXPORT_KEYS];
};

int vrb_export_open(struct vrb_engine *e);
void vrb_export_close(struct vrb_engine *e);
/* Maps a peer's export and opens its memory; without either there is no direct access and nothing
 * else changes. */
void vrb_direct_attach(struct vrb_peer *p, int fd, int sock);
void vrb_direct_detach(struct vrb_peer *p);

/* The queue pair may have opened or closed for direct operations. Lock held. */
void vrb_direct_update(struct vrb_engine *e, struct vrb_hqp *q);
/* A key has been withdrawn: waits until no peer writes through it. Lock held. */
void vrb_direct_wait(struct vrb_engine *e);

/* The WRITE at sq.tail, filled and not posted: true when it has been executed and completed. Lock
 * held. */
bool vrb_direct_write(struct vrb_hqp *q, struct vrb_swqe *w);
/* Before a frame of q is pushed to p: tells the target how many direct operations there were. */
void vrb_direct_tell(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_peer *p);
/* The target learns it. */
void vrb_direct_told(struct vrb_hqp *q, struct vrb_psn psn);

#endif
