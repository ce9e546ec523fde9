/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair of the device: the core's state and what the engine keeps beside it. */
#ifndef VRB_HCA_QP_H
#define VRB_HCA_QP_H

#include "core/window.h"
#include "hca/hca.h"

struct vrb_peer;
struct vrb_engine;
struct vrb_wire_addr;
struct vrb_story;

/* RC, UC: the peer is reached by the wire (hca/wire.h). */
struct vrb_hqp_wire {
	struct vrb_wire_addr *addr; /* NULL: it is not */
	struct vrb_gid dst;
	uint8_t lane, tclass, hop_limit;
	uint32_t mtu;
	struct vrb_window window;
	uint32_t n_probes; /* of the core, as counted */
	vrb_ns cnp_at;	   /* when the last congestion notification left */
};

/* UC, UD: packets that went by the wire (hca/wire_flow.c). */
struct vrb_hqp_flow {
	struct vrb_psn last;
	uint32_t window;  /* how many may go ahead of the answers */
	uint32_t out;	  /* since what the peer has last answered for */
	uint32_t unasked; /* since an answer was last asked for */
	uint32_t silent;  /* windows without an answer, in a row */
	bool was_heard;
	bool is_mute;	/* nothing is waited for */
	bool is_stream; /* counted among those that share the peer's buffer */
	vrb_ns until;	/* it waits for an answer until then; 0 it does not */
};

/* UC, UD: packets whose turn has not come (hca/wire_keep.c). */
struct vrb_hqp_kept {
	struct vrb_list node, list; /* of queue pairs that keep some; UC: by PSN */
	uint32_t n;
	struct vrb_psn gap; /* what the first waits for */
	vrb_ns until;	    /* and how long; 0 it does not */
	vrb_ns look_at;	    /* when to look again; 0 nothing is kept */
};

/* A message waits for the program to post a receive (hca/in.c). */
struct vrb_hqp_wait {
	bool on;
	uint32_t tail; /* the queue's when it began */
	vrb_ns seen_at;
	vrb_ns spent, spent_behind; /* what has been waited */
};

/* What passed, of either link. The first half is written for each packet, here and nowhere else:
 * the device's row of the counters page gets it when somebody asks (stats.c). */
struct vrb_hqp_counts {
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	uint64_t retransmits, rnr_sent, rnr_got, naks_got;
};

/* Messages since it was made: what the core's indices have shown so far (vrb_stats_tally). */
struct vrb_hqp_tally {
	uint64_t sent, taken;
	uint32_t sq_una, msn; /* of the core, as seen last */
};

struct vrb_hqp {
	/* what the straight line touches, one cache line */
	struct vrb_engine *e;
	struct vrb_peer *peer; /* RC, UC: where the peer is; NULL: nowhere */
	struct vrb_stats_device *stats;
	bool on_active, on_acks, on_timers;
	bool direct_ok;	      /* exported as open for direct operations */
	uint32_t direct_n;    /* direct operations that the peer has not been told of */
	uint32_t acks_owed;   /* messages since the last acknowledgement */
	struct vrb_psn acked; /* what that said */
	struct vrb_list stall_node;

	_Alignas(64) struct vrb_hqp_counts count;
	_Alignas(64) struct vrb_qp core;
	struct vrb_hctx *ctx;
	struct vrb_hpd *pd;
	void *user;
	struct vrb_list peer_node, ctx_node;
	struct vrb_hqp_wire wire;
	struct vrb_hqp_flow flow;
	struct vrb_hqp_kept kept;
	struct vrb_hqp_wait wait;
	vrb_ns gone_at; /* the peer's process has ended: from then on this counts; 0 no */
	uint32_t gone_slot;
	struct vrb_story *story; /* hca/story.h */
	struct vrb_hqp_tally tally;
	uint32_t n_timeouts;   /* of the core, as told */
	uint32_t fault_number; /* by order of creation, while there is a fault plan */
	uint32_t traced_recvs; /* receives that have ended, while there is a trace */
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
	struct vrb_list node, qps, cqs, srqs, mrs;
};

#endif
