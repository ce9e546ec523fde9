/* SPDX-License-Identifier: BSD-2-Clause */
/* What the adapter itself counts: packets sent again, receivers that were not ready. */
#ifndef VRB_PERF_COUNTERS_H
#define VRB_PERF_COUNTERS_H

#include <stdint.h>

struct perf_counters {
	int64_t retries, rnr_naks; /* -1: nobody counts them */
};

/* From the counters page of this process on the software HCA, else from hw_counters in /sys. */
void vrb_perf_counters_read(struct perf_counters *c, const char *device, uint32_t port);

static inline int64_t vrb_perf_counter_diff(int64_t before, int64_t after)
{
	return before < 0 || after < before ? -1 : after - before;
}

#endif
