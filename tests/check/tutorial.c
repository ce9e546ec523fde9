/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common tutorial's program: the queue pair is left in RESET, asks for two SGEs and gets three
 * posted, and the CQ is polled once. Each of its faults is told, in the order in which they come.
 * Also: the extended calls, and what the checker leaves alone.
 */
#include "kit.h"
#include "support/cases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_tutorial(void)
{
	struct ibv_context *ctx = end_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 2, 1, 0}};
	struct ibv_send_wr wr = {
		.wr_id = 1, .num_sge = 3, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge[3];
	struct ibv_send_wr *bad;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	char *buf;

	heard_start();
	buf = calloc(1, 4096);
	MUST(pd && cq && buf);
	MUST((qp = ibv_create_qp(pd, &init)) != NULL);
	MUST((mr = ibv_reg_mr(pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	for (int i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)buf + (unsigned)i * 512, 512, mr->lkey};
	wr.sg_list = sge;
	ibv_post_send(qp, &wr, &bad);
	want("post_state post_num_sge");
	want_text("a post in QP state RESET");
	want_text("num_sge is 3, the queue was granted 2");
	MUST(!ibv_poll_cq(cq, 1, &wc));
	MUST(!ibv_destroy_qp(qp));
	want("");
	MUST(!ibv_destroy_cq(cq));
	want("cq_polled_once");
	MUST(!ibv_dereg_mr(mr));
	MUST(!ibv_dealloc_pd(pd));
	MUST(!ibv_close_device(ctx));
	free(buf);
	want("");
}

/* ---- extended calls */

static struct ibv_cq_ex *cq_ex(struct lab *l)
{
	struct ibv_cq_init_attr_ex a = {.cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};

	return ibv_create_cq_ex(l->ctx, &a);
}

static void start(struct ibv_cq_ex *ex)
{
	double until = now_s() + WAIT_MS / 1e3;
	struct ibv_poll_cq_attr a = {0};
	int err;

	while ((err = ibv_start_poll(ex, &a)) == ENOENT && now_s() < until)
		;
	MUST(!err);
}

/* A receive of a queue pair that ends: its length means nothing. */
static void test_field(void)
{
	struct ibv_cq_ex *ex;
	struct ibv_sge s;
	struct ibv_cq *old;
	struct lab l;

	lab_open(&l, &(struct opt){.stop = STAY});
	for (int i = 0; i < 2; i++)
		MUST(!ibv_destroy_qp(l.qp[i]));
	MUST((ex = cq_ex(&l)) != NULL);
	old = l.cq;
	l.cq = ibv_cq_ex_to_cq(ex);
	lab_qps(&l);
	s = lab_sge(&l);
	MUST(!lab_recv(&l, &s, 1));
	MUST(!lab_send(&l, &s, 1, IBV_SEND_SIGNALED));
	for (int i = 0; i < 2; i++) {
		start(ex);
		MUST(ex->status == IBV_WC_SUCCESS);
		(void)ibv_wc_read_byte_len(ex);
		ibv_end_poll(ex);
	}
	want("");
	MUST(!lab_recv(&l, &s, 1));
	MUST(!lab_to(&l, 1, IBV_QPS_ERR));
	start(ex);
	MUST(ex->status == IBV_WC_WR_FLUSH_ERR);
	want("");
	(void)ibv_wc_read_byte_len(ex);
	ibv_end_poll(ex);
	want("wc_invalid_field");
	want_text("byte_len of a completion with status 5 was read");
	MUST(!ibv_destroy_cq(old));
	lab_close(&l);
	want("");
}

static void test_wr(void)
{
	struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_RC,
					.cap = {4, 4, 1, 1, 16},
					.comp_mask = IBV_QP_INIT_ATTR_PD |
						     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					.send_ops_flags = IBV_QP_EX_WITH_SEND};
	struct ibv_qp_ex *ex;
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, &(struct opt){.stop = STAY, .recv_wr = 32, .cqe = 256});
	MUST(!ibv_destroy_qp(l.qp[0]));
	a.pd = l.pd;
	a.send_cq = a.recv_cq = l.cq;
	MUST((l.qp[0] = ibv_create_qp_ex(l.ctx, &a)) != NULL);
	ex = ibv_qp_to_qp_ex(l.qp[0]);
	for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++)
		for (int i = 0; i < 2; i++)
			MUST(!lab_to(&l, i, (enum ibv_qp_state)to));
	s = lab_sge(&l);
	for (int i = 0; i < 8; i++)
		MUST(!lab_recv(&l, &s, 1));
	for (int i = 0; i < 4; i++) {
		ibv_wr_start(ex);
		ex->wr_id = (uint64_t)i;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, l.mr->lkey, s.addr, 8);
		MUST(!ibv_wr_complete(ex));
	}
	lab_poll(&l, 8, NULL);
	want("");
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, l.mr->lkey + 0x1000, s.addr, 8);
	ibv_wr_abort(ex);
	want("lkey_unknown");
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, l.buf, 17);
	MUST(ibv_wr_complete(ex));
	want("post_inline_len");
	lab_close(&l);
	want("");
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"tutorial", test_tutorial},
		{"field", test_field},
		{"wr", test_wr},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
