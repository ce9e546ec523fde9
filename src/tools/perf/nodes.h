/* SPDX-License-Identifier: BSD-2-Clause */
/* Which CPUs are near each other: the NUMA nodes of the machine. */
#ifndef VRB_PERF_NODES_H
#define VRB_PERF_NODES_H

#include <sched.h>

#include "tools/perf/params.h"

/* Two CPUs of allowed, of one node (together) or of two; false with a sentence. root: "", or the
 * folder that /sys is looked for in. */
bool vrb_perf_nodes_pick(const char *root, const cpu_set_t *allowed, bool together, int cpu[2],
			 char why[PERF_WHY_BYTES]);

#endif
