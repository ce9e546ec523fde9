// SPDX-License-Identifier: BSD-2-Clause
/*
 * A gettimeofday for programs that spin on it: who calls it again and again without doing anything
 * between sleeps instead, and reads the true time afterwards.
 *
 * perftest measures the CPU's clock anew for every message size of -a: 0.22 s of reading the time,
 * 5 to 10 s a case on both sides, far more than its traffic takes. With this in LD_PRELOAD the
 * cases take as long and leave the CPU to others. It is no part of the product.
 */
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

enum { SPIN_NS = 5000, SPINS_BEFORE_SLEEP = 16, SLEEP_NS = 150000 };

static _Thread_local uint64_t last_ns;
static _Thread_local unsigned int n_spins;

static uint64_t read_clock(struct timespec *t)
{
	clock_gettime(CLOCK_REALTIME, t);
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec t;
	uint64_t now = read_clock(&t);

	(void)zone;
	n_spins = now - last_ns < SPIN_NS ? n_spins + 1 : 0;
	if (n_spins >= SPINS_BEFORE_SLEEP) {
		nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
		now = read_clock(&t);
		n_spins = 0;
	}
	last_ns = now;
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}
