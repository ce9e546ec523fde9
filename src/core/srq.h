/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queue: a receive queue with a PD of its own and a one-shot low-water event
 * (IBA 10.2.9). */
#ifndef VRB_CORE_SRQ_H
#define VRB_CORE_SRQ_H

#include "core/effects.h"

struct vrb_srq {
	struct vrb_wq wq;
	uint32_t pd;
	uint32_t limit; /* 0: disarmed */
	uint32_t n_qps; /* QPs that take from it */
};

static inline uint32_t vrb_srq_posted(const struct vrb_srq *s)
{
	return s->wq.tail - s->wq.head;
}

/* Takes the oldest entry (copied into out, which has room for max_sge SGEs); false when empty.
 * Fires the limit event. */
bool vrb_srq_take(struct vrb_srq *s, struct vrb_rwqe *out, struct vrb_fx *fx);

/* Arms the limit; fires at once when fewer are posted. */
void vrb_srq_arm(struct vrb_srq *s, uint32_t limit, struct vrb_fx *fx);

#endif
