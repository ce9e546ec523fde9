/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks of a run: when it begins to count, when it is over, what it has cost. */
#include "tools/perf/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define WINDOW_NS   (10 * VRB_NS_PER_MS)
#define PROGRESS_NS (200 * VRB_NS_PER_MS)

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * VRB_NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t vrb_perf_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

struct perf_usage vrb_perf_usage(void)
{
	struct perf_usage u = {.wall_ns = vrb_perf_now(),
			       .thread_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID)};
	struct rusage r;

	if (!getrusage(RUSAGE_SELF, &r))
		u.process_ns = (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * VRB_NS_PER_S +
			       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * VRB_NS_PER_US;
	return u;
}

bool vrb_perf_fail(struct perf_run *run, const char *fmt, ...)
{
	va_list ap;

	if (run->why[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(run->why, PERF_WHY_BYTES, fmt, ap);
	va_end(ap);
	return false;
}

void vrb_perf_begin(struct perf_run *run, uint64_t now)
{
	run->measuring = true;
	run->start = vrb_perf_usage();
	run->base_done = run->done;
	run->base_completions = run->side.completions;
	run->base_events = run->side.events;
	run->base_polls = run->side.polls;
	run->base_empty = run->side.empty_polls;
	run->end_ns = now + run->p->duration_ms * VRB_NS_PER_MS;
	run->due_ns = run->last_ns = run->told_ns = run->window_ns = run->start.wall_ns;
	run->window_done = run->done;
}

void vrb_perf_finish(struct perf_run *run)
{
	struct perf_usage u = vrb_perf_usage();
	struct perf_side *s = &run->side;

	s->posted = run->posted;
	s->completed = run->done;
	if (!run->measuring)
		return;
	s->elapsed_ns = u.wall_ns > run->start.wall_ns ? u.wall_ns - run->start.wall_ns : 0;
	s->process_ns = u.process_ns - run->start.process_ns;
	s->thread_ns = u.thread_ns - run->start.thread_ns;
	s->messages = run->done - run->base_done;
	s->completions -= run->base_completions;
	s->events -= run->base_events;
	s->polls -= run->base_polls;
	s->empty_polls -= run->base_empty;
	if (run->r && u.wall_ns < run->last_ns)
		run->r->clock_back = true;
}

void vrb_perf_tick(struct perf_run *run, uint64_t now)
{
	struct perf_result *r = run->r;

	if (now < run->last_ns)
		r->clock_back = true;
	run->last_ns = now;
	if (now >= run->window_ns + WINDOW_NS) {
		vrb_histogram_add(&r->rate, (run->done - run->window_done) * VRB_NS_PER_S /
						    (now - run->window_ns));
		run->window_ns = now;
		run->window_done = run->done;
	}
	if (run->progress && now >= run->told_ns + PROGRESS_NS) {
		run->told_ns = now;
		r->client.messages = run->done - run->base_done;
		r->client.elapsed_ns = now - run->start.wall_ns;
		run->progress(r);
	}
}

bool vrb_perf_is_over(const struct perf_run *run, uint64_t now)
{
	if (*run->talk->stop || atomic_load_explicit(&run->talk->gone, memory_order_relaxed))
		return true;
	if (!run->measuring)
		return false;
	if (run->p->iterations && run->posted - run->base_done >= run->p->iterations)
		return true;
	return now >= run->end_ns;
}

uint64_t vrb_perf_pace(struct perf_run *run, uint64_t now, uint32_t n)
{
	if (!run->p->pace)
		return now;
	run->due_ns = run->due_ns ? run->due_ns : now;
	run->due_ns += n * VRB_NS_PER_S / run->p->pace;
	if (now > run->due_ns + VRB_NS_PER_MS)
		run->due_ns = now; /* what was missed by much is not made up for in a burst */
	while (now < run->due_ns && !*run->talk->stop)
		now = vrb_perf_now();
	return now;
}
