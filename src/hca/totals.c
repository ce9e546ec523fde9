/* SPDX-License-Identifier: BSD-2-Clause */
/* See totals.h. */
#include "hca/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/tap.h"
#include "hca/trace.h"

_Static_assert(VRB_TOTALS_DEVICES == VRB_STATS_DEVICES, "a row for each of the page");
_Static_assert(VRB_TOTALS_VERDICTS == VRB_STATS_VERDICTS, "the same numbers");

struct vrb_totals {
	int fd;
	struct stat st; /* a program may close descriptors that are not its own, and open others */
	bool failed;
	vrb_ns due;
	struct vrb_totals_file before; /* of engines that have ended */
	struct vrb_totals_file now;
};

/* The process's. Changes hands as engines begin and end, which is one at a time. */
static struct vrb_totals *mine;

static void refuse(int err)
{
	const struct vrb_report r = {.verdict = VRB_V_RECORD_FILE, .val = {(uint64_t)err}};

	vrb_hca_refuse(&r);
}

/* ---- writing */

static uint64_t ns_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * VRB_NS_PER_S + (uint64_t)t->tv_usec * VRB_NS_PER_US;
}

static int write_file(struct vrb_totals *t)
{
	struct rusage cpu;
	struct stat st;
	long n;

	if (!getrusage(RUSAGE_SELF, &cpu)) {
		t->now.user_ns = ns_of(&cpu.ru_utime);
		t->now.system_ns = ns_of(&cpu.ru_stime);
	}
	if (fstat(t->fd, &st) || st.st_dev != t->st.st_dev || st.st_ino != t->st.st_ino)
		return EBADF;
	n = vrb_tap_write_at(t->fd, &t->now, sizeof(t->now), 0);
	if (n == -EINTR)
		return 0; /* the next time */
	return n == (long)sizeof(t->now) ? 0 : n < 0 ? (int)-n : ENOSPC;
}

static void write_out(struct vrb_totals *t)
{
	int err;

	/* the copy of a process that was made without the handlers of fork */
	if (t->failed || t->now.pid != (uint32_t)getpid())
		return;
	err = write_file(t);
	t->failed = err;
	if (err)
		refuse(err);
}

/* ---- what is written */

/* The row of that name; NULL: there are too many. */
static struct vrb_totals_device *row_of(struct vrb_totals_file *f, const char *name)
{
	for (uint32_t i = 0; i < VRB_TOTALS_DEVICES; i++) {
		struct vrb_totals_device *d = &f->device[i];

		if (!d->name[0])
			memcpy(d->name, name, sizeof(d->name));
		if (!strncmp(d->name, name, sizeof(d->name)))
			return d;
	}
	return NULL;
}

static void add_device(struct vrb_totals_device *to, const struct vrb_stats_device *d,
		       const struct vrb_stats_sum *sum)
{
	to->sent += sum->sent;
	to->taken += sum->taken;
	to->completions += sum->completions;
	to->failed += sum->failed;
	to->events += sum->events;
	to->async_events += sum->async_events;
	to->tx_packets += d->tx_packets;
	to->tx_bytes += d->tx_bytes;
	to->rx_packets += d->rx_packets;
	to->rx_bytes += d->rx_bytes;
	to->retransmits += d->retransmits;
	to->timeouts += d->timeouts;
	to->probes += d->probes;
	to->rnr_naks_sent += d->rnr_naks_sent;
	to->rnr_naks_received += d->rnr_naks_received;
	to->sequence_naks_sent += d->sequence_naks_sent;
	to->sequence_naks_received += d->sequence_naks_received;
}

static void gather(struct vrb_totals *t, struct vrb_engine *e)
{
	struct vrb_stats_sum sum[VRB_STATS_DEVICES];

	t->now = t->before;
	vrb_stats_fold(e);
	vrb_stats_sum(e, sum);
	for (uint32_t i = 0; i < e->stats->n_devices; i++) {
		const struct vrb_stats_device *d = &e->stats->device[i];
		struct vrb_totals_device *to = d->name[0] ? row_of(&t->now, d->name) : NULL;

		if (to)
			add_device(to, d, &sum[i]);
	}
	for (uint32_t i = 0; i < VRB_STATS_VERDICTS; i++)
		t->now.verdict[i] += vrb_peek(&e->stats->verdict[i]);
}

void vrb_totals_write(struct vrb_engine *e)
{
	gather(e->totals, e);
	write_out(e->totals);
}

void vrb_totals_tick(struct vrb_engine *e, vrb_ns now)
{
	if (now < e->totals->due)
		return;
	e->totals->due = now + VRB_TOTALS_NS;
	vrb_totals_write(e);
}

/* ---- beginning and ending */

static struct vrb_totals *begin(const struct vrb_engine *e, const char *prefix)
{
	struct vrb_totals *t = calloc(1, sizeof(*t));
	int err;

	if (!t) {
		refuse(ENOMEM);
		return NULL;
	}
	t->before = (struct vrb_totals_file){.magic = VRB_TOTALS_MAGIC,
					     .size = sizeof(t->before),
					     .pid = (uint32_t)getpid(),
					     .began_ns = vrb_clock_now()};
	memcpy(t->before.comm, e->stats->comm, sizeof(t->before.comm));
	t->fd = vrb_trace_new_file(prefix, getpid());
	err = t->fd < 0 ? -t->fd : fstat(t->fd, &t->st) ? errno : 0;
	if (!err)
		return t;
	refuse(err);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
	return NULL;
}

void vrb_totals_open(struct vrb_engine *e)
{
	/* secure: a set-uid program makes no file that its caller names */
	const char *prefix = secure_getenv(VRB_TOTALS_ENV);

	if (!mine && prefix && *prefix)
		mine = begin(e, prefix);
	if (!mine)
		return;
	vrb_engine_lock(e);
	e->totals = mine;
	vrb_totals_write(e);
	vrb_engine_unlock(e);
}

void vrb_totals_close(struct vrb_engine *e)
{
	struct vrb_totals *t = e->totals;

	if (!t)
		return;
	vrb_totals_write(e);
	t->before = t->now;
	e->totals = NULL;
}

void vrb_totals_exit(void)
{
	if (mine)
		write_out(mine);
}

void vrb_totals_disown(void)
{
	if (!mine)
		return;
	close(mine->fd);
	free(mine);
	mine = NULL;
}
