/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all measuring programs here share. Virtual CPUs float on their host: the same two are now
 * threads of one core (class S), now two cores of one cache (N), now of two (F), and every figure
 * of shared memory changes by a factor of three with that. So each row carries the class seen
 * before and after it (X: it changed on the way), and a figure is the median of many short windows,
 * so that the milliseconds in which somebody else takes a core do not count.
 *
 * A row on stdout:  metric|size|unit|value|class
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WINDOWS_MAX 1024

struct windows {
	double at[WINDOWS_MAX + 1];
	int n;
};

double wall(void); /* seconds */
static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}
#define SPIN_UNTIL(cond)                                                                           \
	do {                                                                                       \
		while (!(cond))                                                                    \
			relax();                                                                   \
	} while (0)

/* Puts the caller on the first (0) or second (1) CPU it may use. */
void pin(int which);
/* A pinned child that dies with us, in the network namespace BENCH_NETNS when that is set; 0 in the
 * child. */
pid_t spawn(int cpu);
void reap(pid_t pid);
void *shared(size_t n); /* zeroed, resident, seen by children */

/* The cache-line distance of the two CPUs right now, in ns one way, and its class. */
double distance(void);
char distance_class(double ns);

static inline void tick(struct windows *w)
{
	if (w->n <= WINDOWS_MAX)
		w->at[w->n++] = wall();
}
/* The median window in seconds, without the first tenth. */
double median_window(const struct windows *w);

/* Single times instead of windows. */
static inline void sample(struct windows *w, double t)
{
	if (w->n <= WINDOWS_MAX)
		w->at[w->n++] = t;
}
double median_sample(struct windows *w); /* sorts */

#define WAKE_PAUSE_US 400
void pause_us(int us); /* spins */

/* The command line names it, or nothing. */
bool wanted(int argc, char **argv, const char *name);

void begin(void);							  /* before a measurement */
void emit(const char *metric, long size, const char *unit, double value); /* after it */

#endif
