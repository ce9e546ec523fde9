/* SPDX-License-Identifier: BSD-2-Clause */
/* See probe.h. */
#include "probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_SECONDS 120

static cpu_set_t all_cpus;
static char class_before = '-';

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

double wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

__attribute__((constructor)) static void remember_cpus(void)
{
	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
}

void pin(int which)
{
	cpu_set_t s;
	int seen = 0;

	if (CPU_COUNT(&all_cpus) < 2) {
		fprintf(stderr, "two CPUs are needed\n");
		exit(77);
	}
	CPU_ZERO(&s);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all_cpus) && seen++ == which)
			CPU_SET(i, &s);
	if (sched_setaffinity(0, sizeof(s), &s))
		fail("sched_setaffinity");
}

/* Across a network: the child is another host. */
static void join_netns(void)
{
	const char *path = getenv("BENCH_NETNS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (!path)
		return;
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		fail(path);
	close(fd);
}

pid_t spawn(int cpu)
{
	pid_t me = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != me)
			_exit(1);
		alarm(CHILD_SECONDS);
		join_netns();
		pin(cpu);
	}
	return pid;
}

void reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "the peer ended with wait status 0x%x\n", (unsigned int)status);
		exit(WIFEXITED(status) && WEXITSTATUS(status) == 77 ? 77 : 1);
	}
}

void *shared(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE,
		       -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double median_window(const struct windows *w)
{
	double d[WINDOWS_MAX];
	int skip = w->n / 10, n = w->n - 1 - skip;

	if (n < 1)
		return 0;
	for (int i = 0; i < n; i++)
		d[i] = w->at[skip + i + 1] - w->at[skip + i];
	qsort(d, (size_t)n, sizeof(d[0]), by_value);
	return d[n / 2];
}

double median_sample(struct windows *w)
{
	if (!w->n)
		return 0;
	qsort(w->at, (size_t)w->n, sizeof(w->at[0]), by_value);
	return w->at[w->n / 2];
}

void pause_us(int us)
{
	double until = wall() + us * 1e-6;

	SPIN_UNTIL(wall() >= until);
}

double distance(void)
{
	enum { TRIPS = 25, ROUNDS = 60 };
	struct side {
		_Alignas(128) _Atomic uint64_t v;
	} *l = shared(4096);
	double t[ROUNDS];
	pid_t child = spawn(1);
	uint64_t i = 0;

	if (!child) {
		for (i = 1; i <= TRIPS * ROUNDS; i++) {
			SPIN_UNTIL(atomic_load_explicit(&l[0].v, memory_order_acquire) == i);
			atomic_store_explicit(&l[8].v, i, memory_order_release);
		}
		_exit(0);
	}
	pin(0);
	for (int r = 0; r < ROUNDS; r++) {
		double start = wall();

		for (int k = 0; k < TRIPS; k++) {
			atomic_store_explicit(&l[0].v, ++i, memory_order_release);
			SPIN_UNTIL(atomic_load_explicit(&l[8].v, memory_order_acquire) == i);
		}
		t[r] = wall() - start;
	}
	reap(child);
	munmap(l, 4096);
	qsort(t, ROUNDS, sizeof(t[0]), by_value);
	return t[ROUNDS * 3 / 10] / TRIPS / 2 * 1e9;
}

char distance_class(double ns)
{
	return ns < 38 ? 'S' : ns < 110 ? 'N' : 'F';
}

void begin(void)
{
	class_before = distance_class(distance());
}

void emit(const char *metric, long size, const char *unit, double value)
{
	char after = distance_class(distance());

	printf("%s|%ld|%s|%.6g|%c\n", metric, size, unit, value,
	       after == class_before ? after : 'X');
	fflush(stdout);
}

bool wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc == 1;
}
