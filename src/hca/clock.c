/* SPDX-License-Identifier: BSD-2-Clause */
/* The only clock of the software HCA: monotonic nanoseconds since boot. */
#include "hca/engine.h"

#include <time.h>

vrb_ns vrb_clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vrb_ns)t.tv_sec * VRB_NS_PER_S + (vrb_ns)t.tv_nsec;
}
