/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	a <==== RC ====> b, both of this process, which writes into a folder of its own
 *
 * A trace has every work request in the order of its life, and gives way to the program whatever
 * happens to its file.
 */
#include "records.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca/trace.h"

struct seen {
	uint32_t n, n_files, by_kind[VRB_TRACE_VERDICT + 1];
	uint64_t n_lost;
	struct vrb_trace_rec last;
};

static void read_file(void *seen, int fd)
{
	struct seen *s = seen;
	struct vrb_trace_head h;
	struct vrb_trace_rec r;
	uint64_t time = 0;

	MUST(read(fd, &h, sizeof(h)) == (ssize_t)sizeof(h) && h.magic == VRB_TRACE_MAGIC &&
	     h.rec_size == sizeof(r));
	s->n_lost += h.n_lost;
	while (read(fd, &r, sizeof(r)) == (ssize_t)sizeof(r)) {
		MUST(r.kind && r.kind <= VRB_TRACE_VERDICT);
		MUST(r.time_ns >= time);
		time = r.time_ns;
		s->by_kind[r.kind]++;
		s->n++;
		s->last = r;
	}
	s->n_files++;
	close(fd);
}

static void end(struct seen *s)
{
	*s = (struct seen){0};
	records_read(read_file, s, true);
}

/* ---- two queue pairs */

static void loop_send(struct loop *l, int n)
{
	for (int i = 0; i < n; i++) {
		struct vrb_wc wc;

		node_recv(&l->n, l->b, 1);
		node_send(&l->n, l->a, 2, 32);
		MUST(node_has_wc(&l->n, &wc, 10000) && wc.status == VRB_WC_SUCCESS);
		MUST(node_has_wc(&l->n, &wc, 10000) && wc.status == VRB_WC_SUCCESS);
	}
}

/* ---- cases */

/* Every event of a message, as often as there were messages; a second engine has a second file. */
static void test_counts(void)
{
	struct seen s;
	struct loop l;

	records_begin(VRB_TRACE_ENV);
	for (int i = 0; i < 2; i++) {
		loop_open(&l);
		loop_send(&l, 50);
		loop_close(&l);
	}
	end(&s);
	MUST(s.n_files == 2 && !s.n_lost);
	MUST(s.by_kind[VRB_TRACE_POST] == 200 && s.by_kind[VRB_TRACE_FETCH] == 100);
	MUST(s.by_kind[VRB_TRACE_ACK] == 100);
	MUST(s.by_kind[VRB_TRACE_CQE] == 200 && s.by_kind[VRB_TRACE_POLL] == 200);
	/* requests and their acknowledgements, which may stand for several */
	MUST(s.by_kind[VRB_TRACE_SENT] > 100 && s.by_kind[VRB_TRACE_GOT] > 100);
	MUST(s.by_kind[VRB_TRACE_QP] == 4);
}

/* A place where no file can be, and the program goes on. */
static void test_nowhere(void)
{
	struct loop l;

	MUST(!setenv(VRB_TRACE_ENV, "/nonexistent/trace", 1));
	loop_open(&l);
	MUST(said(VRB_V_RECORD_FILE) == 1 && !vrb_engine_current->trace);
	loop_send(&l, 10);
	loop_close(&l);
}

/* The file reaches RLIMIT_FSIZE: what does not fit is counted, and the program gets no SIGXFSZ. */
static void test_full(void)
{
	const struct rlimit limit = {
		sizeof(struct vrb_trace_head) + 100 * sizeof(struct vrb_trace_rec), RLIM_INFINITY};
	struct seen s;
	struct loop l;

	records_begin(VRB_TRACE_ENV);
	loop_open(&l);
	MUST(!setrlimit(RLIMIT_FSIZE, &limit));
	loop_send(&l, 1000);
	vrb_engine_lock(vrb_engine_current);
	vrb_trace_flush(vrb_engine_current);
	vrb_engine_unlock(vrb_engine_current);
	MUST(said(VRB_V_RECORD_FILE) == 1);
	loop_send(&l, 10);
	loop_close(&l);
	end(&s);
	MUST(s.n <= 100 && s.n_lost > 1000);
}

/* The bound of VERBENA_TRACE_MAX. */
static void test_bound(void)
{
	struct seen s;
	struct loop l;

	records_begin(VRB_TRACE_ENV);
	MUST(!setenv(VRB_TRACE_ENV_MAX, "70", 1));
	loop_open(&l);
	loop_send(&l, 100);
	MUST(said(VRB_V_RECORD_FILE) == 0);
	loop_close(&l);
	end(&s);
	MUST(s.n == 70 && s.n_lost > 500);
}

/* A child writes nothing into its parent's file, and has its own when it opens the device. */
static void test_fork(void)
{
	struct seen s;
	struct loop l;
	int status;
	pid_t pid;

	SKIP_FORK_OF_THREADS();
	records_begin(VRB_TRACE_ENV);
	loop_open(&l);
	loop_send(&l, 3);
	pid = fork();
	if (!pid) {
		struct vrb_wc wc;

		MUST(vrb_hcq_poll(l.n.cq, 1, &wc) < 0);
		loop_open(&l);
		loop_send(&l, 5);
		loop_close(&l);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
	loop_send(&l, 3);
	loop_close(&l);
	end(&s);
	MUST(s.n_files == 2 && s.by_kind[VRB_TRACE_FETCH] == 11);
}

/* What was posted and not fetched when the queue pair ends has no more than its completion. */
static void test_flushed(void)
{
	struct seen s;
	struct loop l;

	records_begin(VRB_TRACE_ENV);
	loop_open(&l);
	loop_send(&l, 20);
	MUST(!node_to(l.a, VRB_QPS_ERR));
	for (uint64_t i = 0; i < 5; i++) {
		node_send(&l.n, l.a, i, 32);
		MUST(node_wc(&l.n, i) == VRB_WC_WR_FLUSH_ERR);
	}
	loop_close(&l);
	end(&s);
	MUST(s.by_kind[VRB_TRACE_FETCH] == 20 && s.by_kind[VRB_TRACE_ACK] == 20);
	MUST(s.by_kind[VRB_TRACE_POST] == 45 && s.by_kind[VRB_TRACE_POLL] == 45);
	MUST(s.by_kind[VRB_TRACE_STATE] >= 5);
}

/* A request that the peer refuses is sent and not acknowledged. */
static void test_refused(void)
{
	struct seen s;
	struct loop l;

	records_begin(VRB_TRACE_ENV);
	loop_open(&l);
	node_write(&l.n, l.a, 2,
		   &(struct node_at){(uintptr_t)l.n.buf + NODE_LEN - 8, l.n.mr->rkey, 20});
	MUST(node_wc(&l.n, 2) == VRB_WC_REM_ACCESS_ERR);
	loop_close(&l);
	end(&s);
	MUST(s.by_kind[VRB_TRACE_FETCH] == 1 && s.by_kind[VRB_TRACE_SENT] >= 2);
	MUST(s.by_kind[VRB_TRACE_GOT] >= 2 && !s.by_kind[VRB_TRACE_ACK]);
	MUST(s.by_kind[VRB_TRACE_CQE] == 1 && s.by_kind[VRB_TRACE_POLL] == 1);
	MUST(s.by_kind[VRB_TRACE_VERDICT] >= 2);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"counts", test_counts},   {"nowhere", test_nowhere}, {"full", test_full},
		{"bound", test_bound},	   {"fork", test_fork},	      {"flushed", test_flushed},
		{"refused", test_refused},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
