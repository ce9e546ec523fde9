/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a post and a poll cost, in CPU time of the thread that does both: inline RDMA WRITEs of 8
 * bytes between two queue pairs of one process, one at a time. Run it with and without
 * libverbena-check.so in LD_PRELOAD: the difference is the checker's. Prints the least of many
 * rounds, in ns.
 */
#include "check/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 200
#define EACH   2000

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1}, *bad;
	struct ibv_sge s;
	struct lab l;
	struct ibv_wc wc;
	double best = 1e9;

	lab_open(&l, NULL);
	s = lab_sge(&l);
	s.length = 8;
	wr.sg_list = &s;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = s.addr + 4096;
	wr.wr.rdma.rkey = l.mr->rkey;
	for (int r = 0; r < ROUNDS; r++) {
		double start = cpu_ns(), ns;
		long polls = 0;

		for (int i = 0; i < EACH; i++) {
			MUST(!ibv_post_send(l.qp[0], &wr, &bad));
			do
				polls++;
			while (!ibv_poll_cq(l.cq, 1, &wc));
		}
		ns = (cpu_ns() - start) / EACH;
		if (ns < best)
			best = ns;
		if (r == ROUNDS - 1)
			printf("polls per post %.2f, ", (double)polls / EACH);
	}
	printf("post + poll %.1f ns\n", best);
	lab_close(&l);
	return 0;
}
