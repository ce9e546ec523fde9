/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults in what is done with queue pairs, CQs, SRQs and processes, in the manner of faults.c.
 */
#include "kit.h"
#include "other.h"
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- ibv_modify_qp */

static void test_modify(void)
{
	struct ibv_qp_attr a;
	struct lab l;
	int mask;

	lab_open(&l, &(struct opt){.stop = IBV_QPS_INIT});
	mask = lab_attr(&l, 0, IBV_QPS_RTR, &a);
	a.min_rnr_timer = 32;
	MUST(ibv_modify_qp(l.qp[0], &a, (mask & ~IBV_QP_PATH_MTU) | IBV_QP_TIMEOUT));
	want("modify_missing modify_surplus modify_rnr_timer");
	want_text("IBV_QP_PATH_MTU (QP");
	want_text("IBV_QP_TIMEOUT (QP");
	want_text("IBV_QP_MIN_RNR_TIMER = 32 (0 to 31)  <-- out of range");
	MUST(ibv_modify_qp(l.qp[0], &a, lab_attr(&l, 0, IBV_QPS_RTS, &a)));
	want("modify_transition");
	mask = lab_attr(&l, 0, IBV_QPS_RTR, &a);
	a.ah_attr.is_global = 0;
	MUST(ibv_modify_qp(l.qp[0], &a, mask));
	want("modify_no_grh");
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.sgid_index = 200;
	MUST(ibv_modify_qp(l.qp[0], &a, mask));
	want("modify_sgid_index");
	lab_close(&l);
	want("");
}

static void test_mtu(void)
{
	struct lab l;

	lab_open(&l, &(struct opt){.mtu = IBV_MTU_1024, .mtu_b = IBV_MTU_512});
	want("mtu_unmatched");
	lab_close(&l);
	want("");
}

/* ---- CQs */

static void test_cq_worst(void)
{
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, &(struct opt){.cqe = 31});
	s = lab_sge(&l);
	MUST(!lab_recv(&l, &s, 1));
	want("");
	MUST(!lab_send(&l, &s, 1, IBV_SEND_SIGNALED));
	want("cq_worst_case");
	want_text("31 entries for queues that can have 32 completions");
	lab_poll(&l, 2, NULL);
	lab_close(&l);
	want("");
}

static void test_polled_once(void)
{
	struct ibv_sge s;
	struct ibv_wc wc;
	struct lab l;

	lab_open(&l, NULL);
	s = lab_sge(&l);
	MUST(!lab_recv(&l, &s, 1));
	MUST(!ibv_poll_cq(l.cq, 1, &wc));
	lab_close(&l);
	want("cq_polled_once");
}

/* The completion comes before the CQ is armed, and nobody polls behind that. */
static void *wait_event(void *p)
{
	struct lab *l = p;
	struct ibv_cq *cq;
	void *ctx;

	if (!ibv_get_cq_event(l->ch, &cq, &ctx))
		ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void test_lost_wakeup(void)
{
	double until = now_s() + WAIT_MS / 1e3;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct ibv_sge s, to;
	struct lab l;
	pthread_t t;

	lab_open(&l, &(struct opt){.channel = true});
	to = s = lab_sge(&l);
	to.addr += s.length;
	l.buf[2 * s.length - 1] = 0;
	MUST(!lab_recv(&l, &to, 1));
	MUST(!lab_send(&l, &s, 1, 0));
	while (!((volatile uint8_t *)l.buf)[2 * s.length - 1]) /* the completion follows */
		MUST(now_s() < until);
	MUST(!ibv_query_qp(l.qp[1], &a, IBV_QP_STATE, &init));
	usleep(1000); /* other devices have no lock to wait for */
	MUST(!ibv_req_notify_cq(l.cq, 0));
	pthread_create(&t, NULL, wait_event, &l);
	while (!strstr(heard_text(), "cq_lost_wakeup") && now_s() < until)
		usleep(10000);
	want("cq_lost_wakeup");
	lab_poll(&l, 1, NULL); /* nothing is lost by the look */
	MUST(!lab_recv(&l, &s, 1));
	MUST(!lab_send(&l, &s, 1, IBV_SEND_SIGNALED)); /* wakes the thread */
	pthread_join(t, NULL);
	lab_poll(&l, 2, NULL);
	lab_close(&l);
	want("");
}

static void test_not_armed(void)
{
	double until = now_s() + WAIT_MS / 1e3;
	struct lab l;
	pthread_t t;

	lab_open(&l, &(struct opt){.channel = true});
	pthread_create(&t, NULL, wait_event, &l);
	while (!strstr(heard_text(), "cq_not_armed") && now_s() < until)
		usleep(10000);
	want("cq_not_armed");
	_exit(0);
}

static void *destroy_cq(void *cq)
{
	ibv_destroy_cq(cq);
	return NULL;
}

static void test_unacked(void)
{
	struct ibv_sge s;
	struct ibv_cq *cq;
	struct lab l;
	void *ctx;
	pthread_t t;

	lab_open(&l, &(struct opt){.channel = true});
	s = lab_sge(&l);
	MUST(!ibv_req_notify_cq(l.cq, 0));
	MUST(!lab_recv(&l, &s, 1));
	MUST(!lab_send(&l, &s, 1, IBV_SEND_SIGNALED));
	lab_poll(&l, 2, NULL);
	MUST(!ibv_get_cq_event(l.ch, &cq, &ctx));
	for (int i = 0; i < 2; i++)
		MUST(!ibv_destroy_qp(l.qp[i]));
	/* the call hangs, as it must: another thread looks */
	pthread_create(&t, NULL, destroy_cq, l.cq);
	for (double until = now_s() + WAIT_MS / 1e3;
	     !strstr(heard_text(), "events_unacked") && now_s() < until;)
		usleep(10000);
	want("events_unacked");
	ibv_ack_cq_events(l.cq, 1);
	pthread_join(t, NULL);
}

/* ---- refused creations */

static void test_create(void)
{
	struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC, .cap = {1 << 30, 1, 1, 1, 0}};
	struct lab l;

	lab_open(&l, NULL);
	a.send_cq = a.recv_cq = l.cq;
	MUST(!ibv_create_qp(l.pd, &a));
	want("create_limit");
	MUST(!ibv_create_cq(l.ctx, 0, NULL, NULL, 0));
	want("create_limit");
	MUST(!ibv_reg_mr(l.pd, l.buf, 64, IBV_ACCESS_REMOTE_WRITE));
	want("reg_access");
	a.cap.max_send_wr = 1;
	a.cap.max_inline_data = 1 << 30;
	MUST(!ibv_create_qp(l.pd, &a));
	want("refused");
	MUST(ibv_dealloc_pd(l.pd));
	want("busy");
	want_text("one of them made at");
	lab_close(&l);
	want("");
}

/* ---- fork, exit */

static void test_fork(void)
{
	struct ibv_sge s;
	struct lab l;
	pid_t pid;
	int status;

	lab_open(&l, NULL);
	s = lab_sge(&l);
	pid = fork();
	if (!pid) {
		MUST(lab_send(&l, &s, 1, 0));
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
	want("post_device_gone");
	lab_close(&l);
	want("");
}

/* What fork() finds, when the adapter pins pages and the kernel does not copy them. */
static void fork_case(int status, const char *wanted)
{
	struct ibv_mr *mr;
	struct lab l;
	pid_t pid;
	int ended;

	lab_open(&l, NULL);
	MUST((mr = ibv_reg_mr(l.pd, l.buf + 64, 128, 0)) != NULL);
	other_fork = status;
	pid = fork();
	if (!pid)
		_exit(0);
	MUST(waitpid(pid, &ended, 0) == pid && !ended);
	want(wanted);
	MUST(!ibv_dereg_mr(mr));
	lab_close(&l);
	want("");
}

static void test_fork_unsafe(void)
{
	fork_case(IBV_FORK_DISABLED, "fork_unsafe");
}
static void test_fork_page(void)
{
	fork_case(IBV_FORK_ENABLED, "fork_page");
}
static void test_fork_unneeded(void)
{
	fork_case(IBV_FORK_UNNEEDED, "");
}

/* The receives of an SRQ end in any order: here the second of two is polled, and posted again,
 * before the first. */
static void test_srq_order(void)
{
	struct ibv_srq_init_attr s = {.attr = {.max_wr = 2, .max_sge = 1}};
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct lab l;

	lab_open(&l, &(struct opt){.stop = STAY});
	sge = lab_sge(&l);
	wr.sg_list = &sge;
	MUST((srq = ibv_create_srq(l.pd, &s)) != NULL);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr a = {.send_cq = l.cq, .srq = srq, .qp_type = IBV_QPT_RC};

		a.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1};
		MUST(!ibv_destroy_qp(l.qp[i]));
		MUST((cq[i] = ibv_create_cq(l.ctx, 8, NULL, NULL, 0)) != NULL);
		a.recv_cq = cq[i];
		MUST((l.qp[i] = ibv_create_qp(l.pd, &a)) != NULL);
	}
	for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++)
		for (int i = 0; i < 2; i++)
			MUST(!lab_to(&l, i, (enum ibv_qp_state)to));
	for (uint32_t i = 0; i < s.attr.max_wr; i++, wr.wr_id++)
		MUST(!ibv_post_srq_recv(srq, &wr, &bad));
	for (int i = 0; i < 2; i++) {
		struct ibv_send_wr send = {.sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED};
		struct ibv_send_wr *bad_send;

		MUST(!ibv_post_send(l.qp[i], &send, &bad_send));
		lab_poll(&l, 1, &wc); /* it has arrived at the other one */
	}
	for (int i = 0; i < 2; i++, wr.wr_id++) {
		while (ibv_poll_cq(cq[i], 1, &wc) == 0)
			;
		MUST(wc.status == IBV_WC_SUCCESS && !ibv_post_srq_recv(srq, &wr, &bad));
	}
	for (int i = 0; i < 2; i++)
		MUST(!ibv_destroy_qp(l.qp[i]) && !ibv_destroy_cq(cq[i]));
	MUST(!ibv_destroy_srq(srq));
	lab_qps(&l);
	lab_close(&l);
	want("");
}

static void test_mtu_active(void)
{
	struct lab l;

	other_mtu = IBV_MTU_512;
	lab_open(&l, &(struct opt){.stop = IBV_QPS_INIT});
	MUST(!lab_to(&l, 0, IBV_QPS_RTR));
	want("mtu_active");
	lab_close(&l);
	want("");
}

/* The entry in front of ours is the same address as RoCE v1. */
static void test_gid_v1(void)
{
	struct ibv_qp_attr a;
	struct lab l;
	int mask;

	setenv("VERBENA_PROFILE", "gids", 1);
	lab_open(&l, &(struct opt){.stop = IBV_QPS_INIT});
	mask = lab_attr(&l, 0, IBV_QPS_RTR, &a);
	a.ah_attr.grh.sgid_index--;
	MUST(ibv_modify_qp(l.qp[0], &a, mask));
	want("gid_v1");
	MUST(!ibv_create_ah(l.pd, &a.ah_attr));
	want("gid_v1");
	a.ah_attr.is_global = 0;
	MUST(!ibv_create_ah(l.pd, &a.ah_attr));
	want("modify_no_grh");
	lab_close(&l);
	want("");
}

static void test_leak(void)
{
	struct lab l;
	pid_t pid;
	int status;

	heard_start();
	pid = fork();
	if (!pid) {
		lab_open(&l, NULL);
		exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
	want("leak leak leak leak leak leak");
	want_text("2 times a queue pair");
	pid = fork();
	if (!pid) {
		lab_open(&l, NULL);
		lab_close(&l);
		exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
	want("");
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"modify", test_modify},
		{"mtu", test_mtu},
		{"cq_worst", test_cq_worst},
		{"polled_once", test_polled_once},
		{"lost_wakeup", test_lost_wakeup},
		{"not_armed", test_not_armed},
		{"unacked", test_unacked},
		{"create", test_create},
		{"fork", test_fork},
		{"fork_unsafe", test_fork_unsafe},
		{"fork_page", test_fork_page},
		{"fork_unneeded", test_fork_unneeded},
		{"srq_order", test_srq_order},
		{"mtu_active", test_mtu_active},
		{"gid_v1", test_gid_v1},
		{"leak", test_leak},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
