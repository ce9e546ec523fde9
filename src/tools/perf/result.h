/* SPDX-License-Identifier: BSD-2-Clause */
/* What one run has found, whether it can be believed, and how it is told. */
#ifndef VRB_PERF_RESULT_H
#define VRB_PERF_RESULT_H

#include <jansson.h>

#include <verbena/histogram.h>

#include "base/types.h"
#include "tools/perf/params.h"

/* One end's account. */
struct perf_side {
	uint64_t elapsed_ns, process_ns,
		thread_ns;	    /* CPU time of all threads, of the measuring one */
	uint64_t messages;	    /* done in that time */
	uint64_t posted, completed; /* of the whole run, warm-up and all */
	uint64_t completions, events, polls, empty_polls;
	int64_t retries, rnr_naks; /* -1: nobody counts them */
};

struct perf_result {
	struct perf_params params; /* as settled and granted */
	struct vrb_histogram lat;  /* ns */
	struct vrb_histogram rate; /* messages per second, of each window */
	struct perf_side client, server;
	bool server_known; /* false: it has ended before it could tell */
	bool interrupted, clock_back;
	char note[PERF_WHY_BYTES]; /* what ended it early, or "" */
};

enum { PERF_PERCENTILES = 5 };
extern const double vrb_perf_percent[PERF_PERCENTILES];
extern const char *const vrb_perf_percent_name[PERF_PERCENTILES];

/* What lat is the time of: "half of a round trip", "from post to completion". */
const char *vrb_perf_lat_meaning(const struct perf_params *p);

/* False, with a sentence, when the numbers cannot be true. */
bool vrb_perf_is_plausible(const struct perf_result *r, char why[PERF_WHY_BYTES]);

/* Of a client that never sleeps (engine poll): whether others had much of its CPU. */
#define PERF_CPU_SHORT 80.0
bool vrb_perf_is_short_of_cpu(const struct perf_result *r);

double vrb_perf_mbps(const struct perf_result *r);
double vrb_perf_rate(const struct perf_result *r);

/* Everything, with the buckets of the histogram when asked for. */
json_t *vrb_perf_result_json(const struct perf_result *r, bool with_histogram);

json_t *vrb_perf_side_json(const struct perf_side *s);
void vrb_perf_side_read(struct perf_side *s, const json_t *from);

#endif
