/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all interposers share: the inner link, and a bounded store of arrived frames, each with the
 * time at which it is due. recv takes what has arrived from the inner link, lets the interposer's
 * judge decide over each frame (by calling vrb_hold_put never, once or more often), and hands out
 * what is due, by time and among equals in the order put.
 */
#ifndef VRB_LINK_HOLD_H
#define VRB_LINK_HOLD_H

#include "base/prng.h"
#include "link/fault.h"

#define VRB_HOLD_MAX	256 /* frames in the store */
#define VRB_HOLD_COPIES 2   /* puts per judged frame */

struct vrb_hold;
typedef void vrb_judge(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns now);

struct vrb_held {
	vrb_ns due;
	uint32_t len;
	uint8_t *bytes; /* room for one frame; slots change places, not bytes */
};

struct vrb_hold {
	struct vrb_link link;
	struct vrb_link *inner;
	vrb_judge *judge;
	struct vrb_fault_conf conf;
	struct vrb_prng rng;
	uint32_t n, given; /* frames held, sorted by due; of these, handed out by the last recv */
	struct vrb_held held[VRB_HOLD_MAX];
	uint8_t *memory;

	/* for the judges */
	struct vrb_loss_script *script;
	uint32_t delay_ns, spread_ns;
	vrb_ns last_due;
};

/* NULL without memory; then inner is still the caller's. */
struct vrb_hold *vrb_hold_create(struct vrb_link *inner, const struct vrb_fault_conf *conf,
				 vrb_judge *judge);

/* Returns the copy, for a judge that changes it. */
uint8_t *vrb_hold_put(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns due);

/* Decides by chance whether this frame is to be harmed. */
bool vrb_hold_strikes(struct vrb_hold *h, vrb_ns now);

#endif
