/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of users that no other test shows: each case is named in `reports`, with where it was
 * reported.
 */
#include "kit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 40 /* with VRB_TEST_ROUNDS as many as that says */

static void once(struct k_pair *p, uint64_t id)
{
	struct k_mr mine = k_good(&p->a, 0, 64), theirs = k_good(&p->b, 1, 64);
	struct k_wr wr = k_wr_send(id + 1, k_whole(&theirs));

	K_WANT_INT(k_recv(&p->b, &wr), 0);
	wr = k_wr_send(id, k_whole(&mine));
	K_WANT_INT(k_send(&p->a, &wr), 0);
	K_WANT_WC(&p->a, K_SQ, id, IBV_WC_SUCCESS);
	K_WANT_WC(&p->b, K_RQ, id + 1, IBV_WC_SUCCESS);
}

/* No module, no /dev/infiniband, no capability, a network of its own with nothing but lo. */
static void bare(const struct k_case *c)
{
	struct k_pair p;

	(void)c;
	k_own_network();
	k_pair(&p, NULL, NULL);
	once(&p, 1);
}

/* Connections come and go; none fails, and nothing is left. */
static void again(const struct k_case *c)
{
	const char *want = getenv("VRB_TEST_ROUNDS");
	int rounds = want ? atoi(want) : ROUNDS;

	(void)c;
	for (int i = 0; i < rounds; i++) {
		struct k_pair p;

		k_pair(&p, NULL, NULL);
		once(&p, (uint64_t)i * 2);
		k_destroy_qp(&p.a);
		k_destroy_qp(&p.b);
		for (int k = 0; k < 2; k++) {
			struct k_end *e = k ? &p.b : &p.a;

			K_CHECK(!ibv_dereg_mr(e->mr[0]));
			for (int q = 0; q < 2; q++)
				K_CHECK(!ibv_destroy_cq(e->cq[q]) && !ibv_dealloc_pd(e->pd[q]));
			K_CHECK(!ibv_close_device(e->ctx));
			munmap(e->arena, K_ARENA);
		}
	}
}

/* The region goes while a SEND from it waits for the peer to post a receive. */
static void dereg_in_flight(const struct k_case *c)
{
	struct k_opts oa = {.rnr_retry = 7}, ob = {.rnr_timer = 16}; /* 2.6 ms */
	struct k_mr mine, theirs;
	struct k_pair p;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &oa, &ob);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 64);
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_QUIET(&p.a, K_SQ);
	K_WANT_INT(k_dereg(&p.a, &mine), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_LOC_PROT_ERR);
	K_WANT_SAID(&p.a, "lkey_stale", "deregistered");
	wr = k_wr_send(2, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	K_WANT_QUIET(&p.b, K_RQ);
}

/* 32 sends and 64 receives under way at the end: each is given back, and nothing is alarmed of. */
static void flush_all(const struct k_case *c)
{
	struct k_opts o = {.recv_wr = 64};
	struct k_mr mine;
	struct k_pair p;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &o, &o);
	mine = k_good(&p.a, 0, 64);
	for (uint64_t id = 0; id < 64; id++) {
		wr = k_wr_send(1000 + id, k_whole(&mine));
		K_WANT_INT(k_recv(&p.a, &wr), 0);
		wr = k_wr_send(id, k_whole(&mine));
		if (id < 32)
			K_WANT_INT(k_send(&p.a, &wr), 0);
	}
	K_WANT_INT(k_modify(&p.a, IBV_QPS_ERR), 0);
	for (uint64_t id = 0; id < 64; id++) {
		K_WANT_WC(&p.a, K_RQ, 1000 + id, IBV_WC_WR_FLUSH_ERR);
		if (id < 32)
			K_WANT_WC(&p.a, K_SQ, id, IBV_WC_WR_FLUSH_ERR);
	}
	K_WANT_QUIET(&p.a, K_RQ);
}

/* ---- completion channels */

struct armed {
	struct k_pair p;
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

/* A CQ with a channel; completions are made by a queue pair that flushes. */
static void arm_open(struct armed *a)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_recv_wr = 8}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	init.cap.max_recv_sge = init.cap.max_send_sge = 1;
	k_pair(&a->p, NULL, NULL);
	a->chan = ibv_create_comp_channel(a->p.a.ctx);
	a->cq = ibv_create_cq(a->p.a.ctx, 16, NULL, a->chan, 0);
	K_CHECK(a->chan && a->cq);
	init.send_cq = init.recv_cq = a->cq;
	a->qp = ibv_create_qp(a->p.a.pd[0], &init);
	K_CHECK(a->qp);
	K_CHECK(!ibv_modify_qp(a->qp, &attr,
			       IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				       IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_ERR;
	K_CHECK(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE));
}

static void complete(struct armed *a)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;

	K_CHECK(!ibv_post_recv(a->qp, &wr, &bad));
}

static bool has_event(struct armed *a, int ms)
{
	struct pollfd p = {.fd = a->chan->fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* A program that waits without ever arming waits for ever; armed, the same completion wakes it. */
static void never_armed(const struct k_case *c)
{
	struct ibv_wc wc;
	struct armed a;

	(void)c;
	arm_open(&a);
	complete(&a);
	K_CHECK(!has_event(&a, K_QUIET_MS));
	K_CHECK(ibv_poll_cq(a.cq, 1, &wc) == 1);
	K_CHECK(!ibv_req_notify_cq(a.cq, 0));
	complete(&a);
	K_CHECK(has_event(&a, K_WAIT_MS));
}

/* A completion between the last empty poll and the arming: this device gives the event at once, so
 * that the pattern does not hang; the right one polls once more all the same. */
static void between_poll_and_arm(const struct k_case *c)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct armed a;
	void *context;

	(void)c;
	arm_open(&a);
	K_CHECK(!ibv_req_notify_cq(a.cq, 0));
	complete(&a);
	K_CHECK(!ibv_get_cq_event(a.chan, &cq, &context) && cq == a.cq);
	ibv_ack_cq_events(cq, 1);
	K_CHECK(ibv_poll_cq(a.cq, 1, &wc) == 1 && ibv_poll_cq(a.cq, 1, &wc) == 0);
	complete(&a); /* in the window */
	K_CHECK(!ibv_req_notify_cq(a.cq, 0));
	K_CHECK(has_event(&a, K_WAIT_MS));
	K_CHECK(ibv_poll_cq(a.cq, 1, &wc) == 1);
}

static void *destroy_cq(void *arg)
{
	struct armed *a = arg;

	return (void *)(intptr_t)ibv_destroy_cq(a->cq);
}

/* Three events are taken and two acknowledged: destroying waits, as its manual says, and says why.
 */
static void unacknowledged(const struct k_case *c)
{
	struct ibv_cq *cq;
	struct armed a;
	struct ibv_wc wc;
	pthread_t thread;
	void *context, *result;

	(void)c;
	arm_open(&a);
	for (int i = 0; i < 3; i++) {
		K_CHECK(!ibv_req_notify_cq(a.cq, 0));
		complete(&a);
		K_CHECK(!ibv_get_cq_event(a.chan, &cq, &context));
		K_CHECK(ibv_poll_cq(a.cq, 1, &wc) == 1);
	}
	ibv_ack_cq_events(a.cq, 2);
	K_CHECK(!ibv_destroy_qp(a.qp));
	K_CHECK(!pthread_create(&thread, NULL, destroy_cq, &a));
	K_WANT_SAID(&a.p.a, "events_unacked", "completion queue waits: 1 of its events");
	ibv_ack_cq_events(a.cq, 1);
	K_CHECK(!pthread_join(thread, &result) && !result);
}

/* ---- memory */

/* Half a page is registered and fork support is on: the child uses the other half. */
static void fork_half_page(const struct k_case *c)
{
	struct k_pair p;
	int status;
	pid_t pid;

	(void)c;
	K_CHECK(!ibv_fork_init());
	k_pair(&p, NULL, NULL);
	(void)k_good(&p.a, 0, 2048);
	pid = fork();
	K_CHECK(pid >= 0);
	if (!pid) {
		memset(p.a.arena + 2048, 1, 2048);
		_exit(p.a.arena[100] == 0x5a && p.a.arena[3000] == 1 ? 0 : 1);
	}
	K_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	once(&p, 1);
}

/* The most inline data that each type is granted: asked for, found in cap, never more than that. */
static void granted_inline(const struct k_case *c)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct k_pair p;

	(void)c;
	k_pair(&p, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		struct ibv_qp_init_attr init = {.send_cq = p.a.cq[0],
						.recv_cq = p.a.cq[1],
						.qp_type = types[i],
						.cap = {4, 4, 1, 1, 512}};
		struct ibv_qp *qp = ibv_create_qp(p.a.pd[0], &init);

		K_CHECK(qp && init.cap.max_inline_data >= 512);
		init.cap.max_inline_data = 1 << 20;
		K_CHECK(!ibv_create_qp(p.a.pd[0], &init) && errno == EINVAL);
		K_WANT_SAID(&p.a, "create_limit", "cap.max_inline_data");
		K_CHECK(!ibv_destroy_qp(qp));
	}
}

/* Memory that nobody has cleared: the first field that cannot be is named. */
static void not_cleared(const struct k_case *c)
{
	struct ibv_qp_init_attr_ex init;
	struct k_pair p;

	(void)c;
	k_pair(&p, NULL, NULL);
	memset(&init, 0xa5, sizeof(init));
	init.send_cq = p.a.cq[0];
	init.recv_cq = p.a.cq[1];
	init.srq = NULL;
	init.pd = p.a.pd[0];
	init.qp_type = IBV_QPT_RC;
	K_CHECK(!ibv_create_qp_ex(p.a.ctx, &init) && errno);
	K_CHECK(k_said(&p.a, "create_limit", NULL) || k_said(&p.a, "create_invalid", NULL) ||
		k_said(&p.a, "unsupported", NULL));
}

/* One end makes packets that the other does not expect. */
static void path_mtu_differs(const struct k_case *c)
{
	struct k_opts oa = {.mtu = IBV_MTU_4096}, ob = {.mtu = IBV_MTU_1024};
	struct k_mr mine, theirs;
	struct k_pair p;
	struct k_wr wr;

	(void)c;
	k_own_network(); /* whose lo bears 4096 */
	setenv("VERBENA_LINK", "udp", 1);
	k_pair(&p, &oa, &ob);
	mine = k_good(&p.a, 0, 8192);
	theirs = k_good(&p.b, 0, 8192);
	wr = k_wr_send(2, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_REM_INV_REQ_ERR);
	K_WANT_SAID(&p.a, "nak_length", "4096 bytes where 1024 were expected");
}

/* ---- what is told afterwards */

/* What `verbena explain WORD` prints holds each of the texts. */
static void want_told(const char *word, const char *const *texts)
{
	const char *verbena = getenv("VRB_TEST_VERBENA");
	char command[512], told[16384];
	size_t n;
	FILE *f;

	if (!verbena)
		k_skip("VRB_TEST_VERBENA does not name the tool");
	snprintf(command, sizeof(command), "%s explain %s", verbena, word);
	f = popen(command, "r");
	K_CHECK(f);
	n = fread(told, 1, sizeof(told) - 1, f);
	told[n] = 0;
	K_WANT_INT(pclose(f), 0);
	for (; *texts; texts++)
		if (!strstr(told, *texts))
			k_fail(__FILE__, __LINE__, "no `%s` in:\n%s", *texts, told);
}

/* The story of a queue pair that failed: while its process lives, and from the file. */
static void story(const struct k_case *c)
{
	static const char *const texts[] = {"ERR\n",
					    "What ended it",
					    "lkey_unknown: SGE 0: lkey",
					    "use mr->lkey",
					    "ibv_modify_qp: RTR to RTS",
					    "post_num_sge",
					    "2 times",
					    NULL};
	char file[] = "/tmp/verbena-story-XXXXXX", word[16];
	int fd = mkstemp(file);
	struct k_pair p;
	struct k_mr mr;
	struct k_wr wr;

	(void)c;
	K_CHECK(fd >= 0);
	setenv("VERBENA_STORY", file, 1);
	k_pair(&p, NULL, NULL);
	mr = k_good(&p.a, 0, 64);
	for (int i = 0; i < 2; i++) {
		struct ibv_sge sge[5] = {{0}};
		struct ibv_send_wr many = {.sg_list = sge, .num_sge = 5, .opcode = IBV_WR_SEND},
				   *bad;

		K_WANT_INT(ibv_post_send(p.a.qp, &many, &bad), EINVAL);
	}
	wr = k_wr_send(1, (struct k_sge){mr.addr, 64, mr.lkey ^ 0x5500});
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_LOC_PROT_ERR);
	snprintf(word, sizeof(word), "0x%06x", p.a.self.qpn);
	want_told(word, texts);
	want_told(file, texts);
	k_destroy_qp(&p.a);
	want_told(word, texts); /* it is remembered */
	unlink(file);
}

/* Nobody answers: the tries and the reason behind the end. */
static void story_of_silence(const struct k_case *c)
{
	static const char *const texts[] = {"ack_timeout: no answer for 16 ms",
					    "3 times",
					    "retry_exc: no answer",
					    "The reason:",
					    "retry_not_ready: the peer's QP",
					    NULL};
	struct k_opts oa = {.timeout = 12, .retry_cnt = 2}, ob = {.stop = IBV_QPS_INIT};
	char word[16];
	struct k_pair p;
	struct k_mr mr;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &oa, &ob);
	mr = k_good(&p.a, 0, 64);
	wr = k_wr_send(1, k_whole(&mr));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_RETRY_EXC_ERR);
	K_WANT_SAID(&p.a, "retry_not_ready", NULL);
	snprintf(word, sizeof(word), "0x%06x", p.a.self.qpn);
	want_told(word, texts);
}

/* A message that is longer than its receive: what each end saw. */
static void story_of_nak(const struct k_case *c)
{
	static const char *const there[] = {"recv_too_short: a message of 64 bytes",
					    "nak_sent: answered PSN 0xfffffe with NAK: invalid",
					    NULL};
	static const char *const here[] = {
		"nak_got: the peer answered PSN 0xfffffe with NAK: invalid", "rem_invalid", NULL};
	struct k_mr mine, theirs;
	char word[16];
	struct k_pair p;
	struct k_wr wr;

	(void)c;
	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 32);
	wr = k_wr_send(2, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_REM_INV_REQ_ERR);
	snprintf(word, sizeof(word), "0x%06x", p.a.self.qpn);
	want_told(word, here);
	snprintf(word, sizeof(word), "0x%06x", p.b.self.qpn);
	want_told(word, there);
}

/* A file that cannot be written is said, and changes nothing else. */
static void story_nowhere(const struct k_case *c)
{
	struct k_pair p;

	(void)c;
	setenv("VERBENA_STORY", "/dev/null", 1);
	k_pair(&p, NULL, NULL);
	K_WANT_SAID(&p.a, "story_file", NULL);
	once(&p, 1);
}

/* clang-format off */
static const struct k_case cases[] = {
	{"path_mtu_differs", path_mtu_differs, 0, 0, NULL, 0, true},
	{"story", story, 0, 0, NULL, 0, true},
	{"story_of_silence", story_of_silence, 0, 0, NULL, 0, true},
	{"story_of_nak", story_of_nak, 0, 0, NULL, 0, true},
	{"story_nowhere", story_nowhere, 0, 0, NULL, 0, true},
	{"bare_namespace", bare, 0, 0, NULL, 0, true},
	{"again_and_again", again, 0, 0, NULL, 0, true},
	{"dereg_in_flight", dereg_in_flight, 0, 0, NULL, 0, false},
	{"flush_all", flush_all, 0, 0, NULL, 0, false},
	{"never_armed", never_armed, 0, 0, NULL, 0, true},
	{"between_poll_and_arm", between_poll_and_arm, 0, 0, NULL, 0, true},
	{"unacknowledged", unacknowledged, 0, 0, NULL, 0, true},
	{"fork_half_page", fork_half_page, 0, 0, NULL, 0, true},
	{"granted_inline", granted_inline, 0, 0, NULL, 0, true},
	{"not_cleared", not_cleared, 0, 0, NULL, 0, true},
};
/* clang-format on */

const struct k_group k_report_group = {"report", cases, sizeof(cases) / sizeof(cases[0])};
