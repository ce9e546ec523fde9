/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's loop of one message at a time, for either face. The clock is read once for each, so
 * a sample holds one reading of it. begin and ping are constants where it is called, so they are
 * inlined: no call through a pointer is in a sample.
 */
#ifndef VRB_PERF_LATENCY_H
#define VRB_PERF_LATENCY_H

#include "tools/perf/session.h"

/* begin: the warm-up is over. ping: message number i, until it is back (READ: until it is over). */
static inline __attribute__((always_inline)) bool
vrb_perf_pings(struct perf_run *run, void *end, void (*begin)(void *end),
	       bool (*ping)(void *end, uint64_t i))
{
	unsigned share = run->p->verb == PERF_READ ? 1 : 2;
	uint64_t then = vrb_perf_now(), now = then;

	for (uint64_t i = 0; !vrb_perf_is_over(run, now); i++) {
		if (!run->measuring && i >= run->p->warmup) {
			begin(end);
			then = run->start.wall_ns;
		}
		if (run->p->pace)
			then = vrb_perf_pace(run, vrb_perf_now(), 1);
		run->posted++;
		if (!ping(end, i))
			return false;
		run->done++;
		now = vrb_perf_now();
		if (run->measuring) {
			vrb_histogram_add(&run->r->lat, now > then ? (now - then) / share : 0);
			vrb_perf_tick(run, now);
		}
		then = now;
	}
	return true;
}

#endif
