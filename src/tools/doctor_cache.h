/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VRB_TOOLS_DOCTOR_CACHE_H
#define VRB_TOOLS_DOCTOR_CACHE_H

#include "tools/doctor_read.h"

#define VRB_CACHE_THREADS 64 /* at most; the first ones */

struct vrb_cache_watch {
	int misses[VRB_CACHE_THREADS], lookups[VRB_CACHE_THREADS]; /* descriptors */
	unsigned n;
	int error; /* errno when nothing can be counted */
};

/* Begins to count for the process of --pid. False: none was named. In a recorded tree it was. */
bool vrb_cache_begin(const struct vrb_doc *d, struct vrb_cache_watch *w);
/* Ends it and adds the finding; d is at the later look. */
void vrb_cache_end(struct vrb_doc *d, struct vrb_cache_watch *w);

#endif
