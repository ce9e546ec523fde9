/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks of the software HCA: monotonic nanoseconds since boot for all that it does, and the
 * wall's for completions that are to carry it. */
#include "hca/engine.h"

#include <time.h>

vrb_ns vrb_clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vrb_ns)t.tv_sec * VRB_NS_PER_S + (vrb_ns)t.tv_nsec;
}

uint64_t vrb_hca_clock(void)
{
	return vrb_clock_now();
}

struct vrb_stamp vrb_clock_stamp(const struct vrb_hcq *cq)
{
	struct vrb_stamp s = {0};
	struct timespec t;

	if (cq->stamp_ns)
		s.ns = vrb_clock_now();
	if (cq->stamp_wall) {
		clock_gettime(CLOCK_REALTIME, &t);
		s.wall_ns = (uint64_t)t.tv_sec * VRB_NS_PER_S + (uint64_t)t.tv_nsec;
	}
	return s;
}
