/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One SRQ for the receives of all lanes of a channel. Each lane has a share of them, as credits:
 * what the peer may send by all lanes together never exceeds what is posted, whichever queue pair
 * takes which receive. A receive that came by a lane is posted again for that lane.
 */
#ifndef VRB_SEND_SHARED_H
#define VRB_SEND_SHARED_H

#include <infiniband/verbs.h>

#include "base/types.h"

struct vrb_buf;
struct vrb_channel;
struct vrb_lane;

struct vrb_shared {
	struct ibv_srq *srq;
	struct vrb_buf **posted; /* by slot; NULL: the slot is free */
	uint32_t *free;
	uint32_t n, n_free, limit;
	bool armed; /* the adapter will say when fewer than limit are posted */
};

/* Whether the adapter has what the options want; how many receives each of qps queue pairs gets.
 * 0: there is none, and the reason is remembered. */
uint32_t vrb_shared_share(const struct vrb_channel *ch, uint32_t qps);

/* For n lanes of ch->lane_depth receives each. */
int vrb_shared_create(struct vrb_channel *ch, uint32_t n);
void vrb_shared_destroy(struct vrb_channel *ch);

/* The buffer of a completed receive, and the lane that it came by; NULL: that lane is gone. */
struct vrb_buf *vrb_shared_take(struct vrb_channel *ch, const struct ibv_wc *wc,
				struct vrb_lane **lane);

/* As vrb_lane_refill, for all lanes at once. */
int vrb_shared_refill(struct vrb_channel *ch, bool all);

/* The adapter says that fewer than the limit are posted. */
void vrb_shared_on_limit(struct vrb_channel *ch);

/* A receive that failed, or whose lane (NULL) is gone. */
void vrb_shared_wasted(struct vrb_lane *l, struct vrb_buf *b);

/* The CQ is empty: what came before is polled. */
void vrb_shared_polled(struct vrb_channel *ch);

/* A queue pair in the error state takes no more receives, and its completions have been polled. */
bool vrb_shared_let_go(const struct vrb_lane *l);

#endif
