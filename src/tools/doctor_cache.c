/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many of a process's look-ups in the last-level cache miss while `doctor --watch --pid` waits,
 * by perf events. In a recorded tree they are lines of later/perf/PID: misses, lookups, or errno.
 */
#include "tools/doctor_cache.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/doctor.h"

#define MANY_PERCENT 30
#define FEW_LOOKUPS  1000 /* below, a share says nothing */

static bool is_asked(const struct vrb_doc *d)
{
	return strcmp(d->pid, "self") != 0;
}

static int open_event(pid_t tid, uint64_t what)
{
	struct perf_event_attr a = {.type = PERF_TYPE_HARDWARE,
				    .size = sizeof(a),
				    .config = what,
				    .exclude_kernel = 1,
				    .exclude_hv = 1};

	return (int)syscall(SYS_perf_event_open, &a, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void add_thread(struct vrb_cache_watch *w, pid_t tid)
{
	int misses = open_event(tid, PERF_COUNT_HW_CACHE_MISSES);
	int lookups = misses < 0 ? -1 : open_event(tid, PERF_COUNT_HW_CACHE_REFERENCES);

	if (lookups < 0) {
		w->error = errno;
		if (misses >= 0)
			close(misses);
		return;
	}
	w->misses[w->n] = misses;
	w->lookups[w->n++] = lookups;
}

bool vrb_cache_begin(const struct vrb_doc *d, struct vrb_cache_watch *w)
{
	char path[64];
	const struct dirent *e;
	DIR *tasks;

	w->n = 0;
	w->error = 0;
	if (!is_asked(d) || d->root[0])
		return is_asked(d);
	snprintf(path, sizeof(path), "/proc/%s/task", d->pid);
	tasks = opendir(path);
	if (!tasks) {
		w->error = errno;
		return true;
	}
	while (w->n < VRB_CACHE_THREADS && (e = readdir(tasks)))
		if (e->d_name[0] != '.')
			add_thread(w, (pid_t)atoi(e->d_name));
	closedir(tasks);
	return true;
}

static long long sum_and_close(const int *fds, unsigned n)
{
	long long sum = 0;

	for (unsigned i = 0; i < n; i++) {
		long long v;

		if (read(fds[i], &v, sizeof(v)) == (ssize_t)sizeof(v))
			sum += v;
		close(fds[i]);
	}
	return sum;
}

/* What was counted, as a tree keeps it. */
static char *take(struct vrb_doc *d, struct vrb_cache_watch *w)
{
	char path[64], text[96];

	if (d->root[0])
		return vrb_doc_slurp(d, "/perf/%s", d->pid);
	if (w->n) {
		long long misses = sum_and_close(w->misses, w->n);

		snprintf(text, sizeof(text), "misses: %lld\nlookups: %lld\n", misses,
			 sum_and_close(w->lookups, w->n));
	} else {
		snprintf(text, sizeof(text), "errno: %d\n", w->error);
	}
	snprintf(path, sizeof(path), "/perf/%s", d->pid);
	vrb_record_file(d, path, text, strlen(text));
	return strdup(text);
}

void vrb_cache_end(struct vrb_doc *d, struct vrb_cache_watch *w)
{
	char value[32], *text;
	long long misses, lookups;
	int percent;

	if (!is_asked(d))
		return;
	text = take(d, w);
	if (!text)
		return;
	if (vrb_doc_field(text, "errno:", value, sizeof(value))) {
		vrb_doc_add(d, VRB_F_CACHE_UNTOLD, "{s:s, s:s}", "pid", d->pid, "reason",
			    strerror(atoi(value)));
	} else if (vrb_doc_field(text, "misses:", value, sizeof(value))) {
		misses = atoll(value);
		lookups = vrb_doc_field(text, "lookups:", value, sizeof(value)) ? atoll(value) : 0;
		percent = lookups > 0 ? (int)(100.0 * (double)misses / (double)lookups) : 0;
		vrb_doc_add(d,
			    percent >= MANY_PERCENT && lookups >= FEW_LOOKUPS ? VRB_F_CACHE_MISSES
									      : VRB_F_CACHE_FEW,
			    "{s:s, s:i, s:I, s:I}", "pid", d->pid, "percent", percent, "misses",
			    (json_int_t)misses, "lookups", (json_int_t)lookups);
	}
	free(text);
}
