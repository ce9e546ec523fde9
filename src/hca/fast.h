/* SPDX-License-Identifier: BSD-2-Clause */
/* The straight line of a small SEND (hca/fast.c). Lock held. */
#ifndef VRB_HCA_FAST_H
#define VRB_HCA_FAST_H

#include "hca/engine.h"

/*
 * The entry at sq.tail, filled and not yet posted: true when it has been posted and its frame
 * pushed. The bell is the caller's. hold: more will follow at once; the frame stays invisible until
 * vrb_engine_unhold, so that the receiver does not pull the lines away one by one while they are
 * written.
 */
bool vrb_hqp_fast_post(struct vrb_hqp *q, struct vrb_swqe *w, bool hold);

static inline void vrb_engine_unhold(struct vrb_engine *e)
{
	if (!e->held)
		return;
	/* pairs with the acquire in vrb_shm_peek and take_line */
	atomic_store_explicit(&e->held->word, e->held_word, memory_order_release);
	e->held = NULL;
}

/* Takes plain SENDs from all rings; false when something is left for a full turn. */
bool vrb_engine_fast_drain(struct vrb_engine *e);

#endif
