/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of small pages or of huge ones, and no other. */
#ifndef VRB_PERF_PAGES_H
#define VRB_PERF_PAGES_H

#include "tools/perf/params.h"

/* *len is rounded up; all of it is there. Huge ones: reserved ones (hugetlbfs) when there are, else
 * those that the kernel makes by itself; NULL with a sentence when it does not. */
void *vrb_perf_pages_map(size_t *len, enum perf_pages kind, char why[PERF_WHY_BYTES]);

#endif
