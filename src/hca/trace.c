/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of a trace: how it is begun, written and ended. See trace.h. */
#include "hca/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hca/tap.h"

static void refuse(int err)
{
	const struct vrb_report r = {.verdict = VRB_V_RECORD_FILE, .val = {(uint64_t)err}};

	vrb_hca_refuse(&r);
}

/* ---- writing */

/* Bytes that were written; fewer than n: t->err says why. */
static size_t write_all(struct vrb_trace *t, const void *what, size_t n)
{
	const uint8_t *bytes = what;
	size_t done = 0;

	while (done < n && !t->err) {
		long r = vrb_tap_append(t->fd, bytes + done, n - done);

		if (r > 0)
			done += (size_t)r;
		else if (r != -EINTR)
			t->err = r ? (int)-r : EIO;
	}
	return done;
}

/* In place: the file's end is where records go. */
static void write_head(struct vrb_trace *t)
{
	t->head_due = false;
	(void)!syscall(SYS_pwrite64, t->fd, &t->head, sizeof(t->head), (off_t)0);
}

static void write_out(struct vrb_trace *t)
{
	uint32_t n = (uint32_t)(write_all(t, t->rec, t->n * sizeof(t->rec[0])) / sizeof(t->rec[0]));

	t->n_written += n;
	if (n < t->n) {
		t->head.n_lost += t->n - n;
		t->head_due = true;
	}
	t->n = 0;
}

void vrb_trace_put(struct vrb_trace *t, const struct vrb_trace_rec *r)
{
	if (vrb_unlikely(t->err || t->n_written + t->n >= t->n_max)) {
		t->head.n_lost++;
		t->head_due = true;
		return;
	}
	t->rec[t->n++] = *r;
	if (t->n == VRB_TRACE_ROOM)
		write_out(t);
}

void vrb_trace_flush(struct vrb_engine *e)
{
	struct vrb_trace *t = e->trace;

	if (t->n)
		write_out(t);
	if (t->head_due)
		write_head(t);
	if (vrb_unlikely(t->err) && !t->is_told) {
		t->is_told = true;
		refuse(t->err);
	}
}

/* ---- beginning and ending */

static uint64_t wall_offset(void)
{
	struct timespec t;
	vrb_ns before = vrb_clock_now();

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * VRB_NS_PER_S + (uint64_t)t.tv_nsec - before;
}

/* A process may have several engines, one after the other. */
int vrb_trace_new_file(const char *prefix, int pid)
{
	char path[4096];

	for (unsigned i = 0; i < VRB_TRACE_FILES; i++) {
		int n = snprintf(path, sizeof(path), "%s.%d.%u", prefix, pid, i), fd;

		if (n >= (int)sizeof(path))
			return -ENAMETOOLONG;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static int begin(struct vrb_trace *t, const struct vrb_engine *e, const char *prefix)
{
	const char *most = secure_getenv(VRB_TRACE_ENV_MAX);

	t->head = (struct vrb_trace_head){.magic = VRB_TRACE_MAGIC,
					  .rec_size = sizeof(t->rec[0]),
					  .pid = (uint32_t)getpid(),
					  .wall_ns = wall_offset()};
	memcpy(t->head.comm, e->stats->comm, sizeof(t->head.comm));
	t->n_max = most ? strtoull(most, NULL, 10) : VRB_TRACE_DEFAULT;
	t->n_max = t->n_max ? t->n_max : UINT64_MAX;
	t->fd = vrb_trace_new_file(prefix, getpid());
	if (t->fd < 0)
		return -t->fd;
	(void)write_all(t, &t->head, sizeof(t->head));
	return t->err;
}

void vrb_trace_open(struct vrb_engine *e)
{
	/* secure: a set-uid program makes no file that its caller names */
	const char *prefix = secure_getenv(VRB_TRACE_ENV);
	struct vrb_trace *t;
	int err = ENOMEM;

	if (!prefix || !*prefix)
		return;
	t = calloc(1, sizeof(*t));
	if (t)
		err = begin(t, e, prefix);
	if (!err) {
		vrb_engine_lock(e);
		e->trace = t;
		e->detour = true;
		vrb_engine_unlock(e);
		return;
	}
	refuse(err);
	if (t && t->fd >= 0)
		close(t->fd);
	free(t);
}

void vrb_trace_close(struct vrb_engine *e)
{
	struct vrb_trace *t = e->trace;

	if (!t)
		return;
	vrb_trace_flush(e);
	e->trace = NULL;
	close(t->fd);
	free(t);
}

void vrb_trace_disown(struct vrb_engine *e)
{
	struct vrb_trace *t = e->trace;

	if (!t)
		return;
	e->trace = NULL;
	close(t->fd);
	free(t);
}
