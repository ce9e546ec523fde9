/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files below ports/1/counters and ports/1/hw_counters: their names, and their present values
 * as the sum over all processes of this user that have the software HCA open. A process that has
 * ended takes its numbers with it.
 */
#ifndef VRB_PRELOAD_COUNTERS_H
#define VRB_PRELOAD_COUNTERS_H

#include "base/types.h"

struct vrb_counter {
	const char *dir, *name; /* "counters", "port_xmit_data" */
	int offset;		/* in struct vrb_stats_device; -1: the value is always 0 */
	unsigned unit;		/* the file shows value / unit */
};

extern const struct vrb_counter vrb_counters[];
extern const unsigned vrb_n_counters;

/* The counter of that folder ("counters", "hw_counters") and name, or NULL. */
const struct vrb_counter *vrb_counter_find(const char *dir, size_t dir_len, const char *name);

/* Asks every process of this user; bounded to about half a second. Keeps errno. */
uint64_t vrb_counter_read(const struct vrb_counter *c, const char *device);

#endif
