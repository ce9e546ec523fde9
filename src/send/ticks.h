/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readings of an adapter's clock, which has a rate and so many bits, as nanoseconds that do not
 * wrap. Readings may come a little out of order, as those of several queue pairs do.
 */
#ifndef VRB_SEND_TICKS_H
#define VRB_SEND_TICKS_H

#include "base/types.h"

struct vrb_ticks {
	uint64_t mask; /* 0: there is no clock */
	uint64_t khz;
	uint64_t last; /* extended to 64 bits */
};

static inline uint64_t vrb_ticks_extend(struct vrb_ticks *t, uint64_t raw)
{
	uint64_t ahead = (raw - t->last) & t->mask, behind = (t->last - raw) & t->mask;

	if (behind && behind < ahead && behind <= t->last)
		return t->last - behind;
	t->last += ahead;
	return t->last;
}

static inline uint64_t vrb_ticks_ns(struct vrb_ticks *t, uint64_t raw)
{
	uint64_t ticks = vrb_ticks_extend(t, raw);

	/* In two parts, so that nothing overflows. */
	return ticks / t->khz * 1000000 + ticks % t->khz * 1000000 / t->khz;
}

#endif
