/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair of the device: the core's state and what the engine keeps beside it. */
#ifndef VRB_HCA_QP_H
#define VRB_HCA_QP_H

#include "hca/hca.h"

struct vrb_peer;
struct vrb_engine;
struct vrb_wire_addr;

/* RC, UC: the peer is reached by the wire (hca/wire.h). */
struct vrb_hqp_wire {
	struct vrb_wire_addr *addr; /* NULL: it is not */
	struct vrb_gid dst;
	uint8_t lane, tclass, hop_limit;
	bool was_rewound;
	uint32_t mtu;
	uint32_t window_256; /* packets * 256 */
	uint32_t threshold;  /* packets: beyond it the window grows by one a round trip */
	struct vrb_psn una, recover;
};

struct vrb_hqp {
	/* what the straight line touches, one cache line */
	struct vrb_engine *e;
	struct vrb_peer *peer; /* RC, UC: where the peer is; NULL: nowhere */
	struct vrb_stats_device *stats;
	bool on_active, on_acks, on_timers;
	bool direct_ok;	    /* exported as open for direct operations */
	uint32_t direct_n;  /* direct operations that the peer has not been told of */
	uint32_t acks_owed; /* messages since the last acknowledgement */
	struct vrb_list stall_node;

	_Alignas(64) struct vrb_qp core;
	struct vrb_hctx *ctx;
	struct vrb_hpd *pd;
	void *user;
	struct vrb_list peer_node, ctx_node;
	struct vrb_hqp_wire wire;
	vrb_ns wait_until;  /* an unreliable message waits for a receive until then; 0 none does */
	uint32_t wait_tail; /* the queue's tail when it began to wait */
	vrb_ns gone_at;	    /* the peer's process has ended: from then on this counts; 0 no */
	uint32_t gone_slot;
	uint32_t n_mcast;
	struct vrb_gid *mcast;
	void *mem; /* rings */
	size_t mem_size;
	struct vrb_hqp_init caps; /* as granted */
};

struct vrb_hctx {
	struct vrb_hdev *dev;
	struct vrb_engine *e;
	struct vrb_stats_device *stats;
	int async_fd;
	struct vrb_hasync *async;
	uint32_t async_head, async_tail, async_cap;
	struct vrb_list node, qps, cqs, srqs;
};

#endif
