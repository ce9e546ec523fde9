// SPDX-License-Identifier: BSD-2-Clause
/*
 * A gettimeofday that runs sixteen times as fast as time does.
 *
 * perftest measures the CPU's clock anew for every message size of -a, by reading the time for
 * 0.22 s: 5 s a side and case, far more than its traffic takes. With this in LD_PRELOAD that is
 * over in a sixteenth. The latencies and rates it prints are wrong by the same factor; the cases of
 * the matrix do not look at them. It is no part of the product.
 */
#include <pthread.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

enum { HASTE = 16 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t start_us;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void start(void)
{
	start_us = now_us();
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	uint64_t us;

	(void)zone;
	pthread_once(&once, start);
	us = start_us + (now_us() - start_us) * HASTE;
	tv->tv_sec = (time_t)(us / 1000000);
	tv->tv_usec = (suseconds_t)(us % 1000000);
	return 0;
}
