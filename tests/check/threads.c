/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many threads: each posts and polls on queue pairs of its own and of others, registers and gives
 * up regions and makes and destroys queue pairs, all on one context. All of it is legal, so nothing
 * may be said; with a thread sanitizer, nothing of that either.
 */
#include "kit.h"
#include "support/cases.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS	200

static void *work(void *p)
{
	const struct lab *shared = p;
	struct lab l = *shared;
	struct ibv_sge s;

	MUST((l.cq = ibv_create_cq(l.ctx, 64, NULL, NULL, 0)) != NULL);
	lab_qps(&l);
	for (int i = 0; i < ROUNDS; i++) {
		l.mr = ibv_reg_mr(l.pd, l.buf, LAB_LEN, IBV_ACCESS_LOCAL_WRITE);
		MUST(l.mr);
		s = lab_sge(&l);
		MUST(!lab_recv(&l, &s, 1));
		MUST(!lab_send(&l, &s, 1, IBV_SEND_SIGNALED));
		lab_poll(&l, 2, NULL);
		MUST(!ibv_dereg_mr(l.mr));
		if (i % 20)
			continue;
		for (int k = 0; k < 2; k++)
			MUST(!ibv_destroy_qp(l.qp[k]));
		lab_qps(&l);
	}
	for (int k = 0; k < 2; k++)
		MUST(!ibv_destroy_qp(l.qp[k]));
	MUST(!ibv_destroy_cq(l.cq));
	return NULL;
}

static void test_own(void)
{
	pthread_t t[THREADS];
	struct lab l;

	lab_open(&l, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, &l);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	lab_close(&l);
	want("");
}

/* ---- one queue pair, posted to and polled by all */

static _Atomic int to_poll;

static void *share(void *p)
{
	struct lab *l = p;
	struct ibv_sge s = lab_sge(l);
	struct ibv_wc wc;

	for (int i = 0; i < ROUNDS; i++) {
		MUST(!lab_recv(l, &s, 1));
		MUST(!lab_send(l, &s, 1, IBV_SEND_SIGNALED));
		for (int k = 0; k < 2; k++) {
			if (ibv_poll_cq(l->cq, 1, &wc) != 1)
				continue;
			MUST(wc.status == IBV_WC_SUCCESS);
			to_poll--;
		}
	}
	return NULL;
}

static void test_shared(void)
{
	pthread_t t[THREADS];
	struct lab l;

	lab_open(&l,
		 &(struct opt){.send_wr = 4 * ROUNDS, .recv_wr = 4 * ROUNDS, .cqe = 16 * ROUNDS});
	to_poll = 2 * THREADS * ROUNDS;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, share, &l);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	lab_poll(&l, to_poll, NULL);
	lab_close(&l);
	want("");
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {{"own", test_own}, {"shared", test_shared}};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
