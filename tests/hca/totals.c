/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	a <==== RC ====> b, both of this process, which writes into a folder of its own
 *
 * What a process has done stands in its file however it ends, and the file gives way to the program
 * whatever happens to it.
 */
#include "records.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca/totals.h"

struct seen {
	uint32_t n_files;
	uint64_t verdict[VRB_TOTALS_VERDICTS];
	struct vrb_totals_device all; /* of all files, that have one device each */
};

static void read_file(void *seen, int fd)
{
	struct seen *s = seen;
	struct vrb_totals_file f;
	const struct vrb_totals_device *d = &f.device[0];

	MUST(read(fd, &f, sizeof(f)) == (ssize_t)sizeof(f) && f.magic == VRB_TOTALS_MAGIC &&
	     f.size == sizeof(f));
	close(fd);
	MUST(!f.device[1].name[0]);
	s->n_files++;
	s->all.sent += d->sent;
	s->all.taken += d->taken;
	s->all.tx_bytes += d->tx_bytes;
	s->all.rx_bytes += d->rx_bytes;
	s->all.retransmits += d->retransmits + d->probes + d->timeouts;
	s->all.completions += d->completions;
	s->all.failed += d->failed;
	s->all.events += d->events;
	for (uint32_t i = 0; i < VRB_TOTALS_VERDICTS; i++)
		s->verdict[i] += f.verdict[i];
}

static void look(struct seen *s, bool last)
{
	*s = (struct seen){0};
	records_read(read_file, s, last);
}

/* ---- two queue pairs */

#define LEN 32u

static void loop_send(struct loop *l, int n)
{
	for (int i = 0; i < n; i++) {
		struct vrb_wc wc;

		node_recv(&l->n, l->b, 1);
		node_send(&l->n, l->a, 2, LEN);
		MUST(node_has_wc(&l->n, &wc, 60000) && wc.status == VRB_WC_SUCCESS);
		MUST(node_has_wc(&l->n, &wc, 60000) && wc.status == VRB_WC_SUCCESS);
	}
}

static void must_have(const struct seen *s, uint64_t n)
{
	MUST(s->all.sent == n && s->all.taken == n && s->all.completions == 2 * n);
	MUST(s->all.tx_bytes >= n * LEN && s->all.rx_bytes >= n * LEN && !s->all.failed);
	/* what had to be sent once more is counted as it went */
	if (!s->all.retransmits)
		MUST(s->all.tx_bytes == n * LEN && s->all.rx_bytes == n * LEN);
}

/* ---- cases */

/* Objects that live and objects that are gone, of two engines, in one file. */
static void test_counts(void)
{
	struct seen s;
	struct loop l;

	records_begin(VRB_TOTALS_ENV);
	loop_open(&l);
	loop_send(&l, 40);
	loop_close(&l);
	loop_open(&l);
	loop_send(&l, 60);
	loop_close(&l);
	look(&s, true);
	MUST(s.n_files == 1 && s.verdict[VRB_V_QP_MOVED] >= 12);
	must_have(&s, 100);
}

/* Without the end of anything the helper has written it before long. */
static void test_killed(void)
{
	struct seen s = {0};
	int status, at[2];
	pid_t pid;
	char c;

	records_begin(VRB_TOTALS_ENV);
	MUST(!pipe(at));
	pid = fork();
	if (!pid) {
		struct loop l;

		loop_open(&l);
		loop_send(&l, 30);
		MUST(write(at[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	MUST(read(at[0], &c, 1) == 1);
	for (double until = now_s() + 60; s.all.sent < 30 && now_s() < until; usleep(10000))
		look(&s, false);
	MUST(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
	look(&s, true);
	MUST(s.n_files == 1);
	must_have(&s, 30);
}

/* exit() with everything open. */
static void test_exit(void)
{
	struct seen s;
	int status;
	pid_t pid;

	records_begin(VRB_TOTALS_ENV);
	pid = fork();
	if (!pid) {
		struct loop l;

		loop_open(&l);
		loop_send(&l, 20);
		exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
	look(&s, true);
	MUST(s.n_files == 1);
	must_have(&s, 20);
}

/* A child writes nothing into its parent's file, and has its own when it opens the device. */
static void test_fork(void)
{
	struct seen s;
	struct loop l;
	int status;
	pid_t pid;

	SKIP_FORK_OF_THREADS();
	records_begin(VRB_TOTALS_ENV);
	loop_open(&l);
	loop_send(&l, 3);
	pid = fork();
	if (!pid)
		exit(0);
	MUST(waitpid(pid, &status, 0) == pid && !status);
	pid = fork();
	if (!pid) {
		loop_open(&l);
		loop_send(&l, 5);
		loop_close(&l);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
	loop_send(&l, 3);
	loop_close(&l);
	look(&s, true);
	MUST(s.n_files == 2);
	must_have(&s, 11);
}

/* Completions with an error are counted as such. */
static void test_failed(void)
{
	struct seen s;
	struct loop l;

	records_begin(VRB_TOTALS_ENV);
	loop_open(&l);
	loop_send(&l, 20);
	MUST(!node_to(l.a, VRB_QPS_ERR));
	for (uint64_t i = 0; i < 5; i++) {
		node_send(&l.n, l.a, i, LEN);
		MUST(node_wc(&l.n, i) == VRB_WC_WR_FLUSH_ERR);
	}
	loop_close(&l);
	look(&s, true);
	MUST(s.all.completions == 45 && s.all.failed == 5 && s.all.taken == 20);
}

/* ---- files that cannot be written: the program goes on */

static void test_nowhere(void)
{
	struct loop l;

	MUST(!setenv(VRB_TOTALS_ENV, "/nonexistent/totals", 1));
	loop_open(&l);
	MUST(said(VRB_V_RECORD_FILE) == 1 && !vrb_engine_current->totals);
	loop_send(&l, 10);
	loop_close(&l);
}

static void must_give_up(struct loop *l)
{
	vrb_engine_lock(vrb_engine_current);
	vrb_totals_write(vrb_engine_current);
	vrb_totals_write(vrb_engine_current);
	vrb_engine_unlock(vrb_engine_current);
	MUST(said(VRB_V_RECORD_FILE) == 1);
	loop_send(l, 10);
	loop_close(l);
}

/* No SIGXFSZ. */
static void test_full(void)
{
	const struct rlimit limit = {100, RLIM_INFINITY};
	struct seen s;
	struct loop l;

	records_begin(VRB_TOTALS_ENV);
	loop_open(&l);
	MUST(!setrlimit(RLIMIT_FSIZE, &limit));
	must_give_up(&l);
	look(&s, true);
	MUST(s.n_files == 1);
}

/* The program has closed the descriptor and uses its number for a file of its own. */
static void test_taken(void)
{
	char name[64], target[256], path[64];
	struct stat st;
	struct loop l;
	struct seen s;
	int own, n = 0;

	records_begin(VRB_TOTALS_ENV);
	loop_open(&l);
	snprintf(path, sizeof(path), "/tmp/verbena-totals-own-XXXXXX");
	own = mkstemp(path);
	MUST(own >= 0 && !unlink(path));
	for (int fd = 3; fd < 256; fd++) {
		ssize_t len;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		len = readlink(name, target, sizeof(target));
		if (len < (ssize_t)strlen(records_folder) ||
		    strncmp(target, records_folder, strlen(records_folder)))
			continue;
		MUST(dup2(own, fd) == fd);
		n++;
	}
	MUST(n == 1);
	must_give_up(&l);
	MUST(!fstat(own, &st) && !st.st_size);
	look(&s, true);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"counts", test_counts}, {"killed", test_killed}, {"exit", test_exit},
		{"fork", test_fork},	 {"failed", test_failed}, {"nowhere", test_nowhere},
		{"full", test_full},	 {"taken", test_taken},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
