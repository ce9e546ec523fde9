/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interposers: each wraps one end of a link and does one thing to the frames that arrive there;
 * sending passes through. They can be stacked. All take ownership of `inner` on success and return
 * 0 or -ENOMEM. Chance comes only from the seed, so a run can be repeated.
 */
#ifndef VRB_LINK_FAULT_H
#define VRB_LINK_FAULT_H

#include "link/link.h"

struct vrb_fault_conf {
	uint64_t seed;
	uint32_t per_million; /* of the frames */
	vrb_ns until;	      /* no faults from then on */
};

/* The first n frames counted over all ends that share it: bit i of mask set loses frame i. */
struct vrb_loss_script {
	uint64_t mask;
	uint32_t n, seen;
};

/* script may be NULL; it decides on the frames it counts, chance on the others. */
int vrb_loss_open(struct vrb_link *inner, const struct vrb_fault_conf *conf,
		  struct vrb_loss_script *script, struct vrb_link **out);

/* A second copy comes up to spread_ns later. */
int vrb_duplicate_open(struct vrb_link *inner, const struct vrb_fault_conf *conf,
		       uint32_t spread_ns, struct vrb_link **out);

/* Holds a frame back for up to spread_ns while others pass. */
int vrb_reorder_open(struct vrb_link *inner, const struct vrb_fault_conf *conf, uint32_t spread_ns,
		     struct vrb_link **out);

/* Inverts one bit. */
int vrb_corrupt_open(struct vrb_link *inner, const struct vrb_fault_conf *conf,
		     struct vrb_link **out);

/* Delays each frame by delay_ns; those chosen by chance hold up all behind them for spread_ns more
 * (order is kept). */
int vrb_delay_open(struct vrb_link *inner, const struct vrb_fault_conf *conf, uint32_t delay_ns,
		   uint32_t spread_ns, struct vrb_link **out);

#endif
