/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a measurement was made: without it a number says little. */
#ifndef VRB_PERF_ENVIRON_H
#define VRB_PERF_ENVIRON_H

#include <jansson.h>

/* CPU, kernel, load, affinity, what a reading of the clock costs, and which libibverbs answers. */
json_t *vrb_perf_environ(void);

#endif
