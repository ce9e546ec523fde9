/* SPDX-License-Identifier: BSD-2-Clause */
/* The straight line of a small SEND (hca/fast.c). Lock held. */
#ifndef VRB_HCA_FAST_H
#define VRB_HCA_FAST_H

#include "hca/engine.h"

/* The entry at sq.tail, filled and not yet posted: true when it has been posted and its frame
 * pushed. The bell is the caller's. */
bool vrb_hqp_fast_post(struct vrb_hqp *q, struct vrb_swqe *w);

/* Takes plain SENDs from all rings; false when something is left for a full turn. */
bool vrb_engine_fast_drain(struct vrb_engine *e);

#endif
