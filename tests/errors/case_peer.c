/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A far end that is not there, not ready, of another kind or gives less than was asked. The near
 * end runs out of retries, or is refused; nothing waits for ever.
 */
#include "kit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUICK .timeout = 10, .retry_cnt = 2 /* 4 ms, three tries */

/* Sends to a peer that does not answer: RETRY_EXC, the rest flushed. */
static void want_no_answer(struct k_pair *p, const char *said)
{
	struct k_mr mine = k_good(&p->a, 0, 64);
	struct k_wr wr = k_wr_send(1, k_whole(&mine));

	K_WANT_INT(k_send(&p->a, &wr), 0);
	wr.id = 2;
	wr.flags = K_UNSIGNALED;
	K_WANT_INT(k_send(&p->a, &wr), 0);
	K_WANT_WC(&p->a, K_SQ, 1, IBV_WC_RETRY_EXC_ERR);
	K_WANT_WC(&p->a, K_SQ, 2, IBV_WC_WR_FLUSH_ERR);
	K_WANT_INT(k_state(&p->a), IBV_QPS_ERR);
	if (said)
		K_WANT_SAID(&p->a, said, NULL);
	else /* whichever of the two was seen first */
		K_CHECK(k_said(&p->a, "peer_absent", NULL) || k_said(&p->a, "retry_exc", NULL));
}

/* The peer's QP stands in state c->i. */
static void peer_state(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_opts ob = {.stop = c->i == IBV_QPS_INIT ? IBV_QPS_INIT : K_STAY};
	struct k_pair p;

	if (c->i == IBV_QPS_ERR)
		ob.stop = IBV_QPS_RTS;
	k_pair(&p, &oa, &ob);
	if (c->i == IBV_QPS_ERR)
		K_WANT_INT(k_modify(&p.b, IBV_QPS_ERR), 0);
	want_no_answer(&p, "retry_exc");
	K_WANT_INT(k_state(&p.b), c->i);
}

static void peer_destroyed(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	k_pair(&p, &oa, NULL);
	mine = k_good(&p.a, 1, 64);
	theirs = k_good(&p.b, 0, 64);
	for (uint64_t id = 10; c->i && id < 12; id++) { /* the channel has been used */
		wr = k_wr_send(id, k_whole(&theirs));
		K_WANT_INT(k_recv(&p.b, &wr), 0);
		wr = k_wr_send(id, k_whole(&mine));
		K_WANT_INT(k_send(&p.a, &wr), 0);
		K_WANT_WC(&p.a, K_SQ, id, IBV_WC_SUCCESS);
		K_WANT_WC(&p.b, K_RQ, id, IBV_WC_SUCCESS);
	}
	k_destroy_qp(&p.b);
	want_no_answer(&p, NULL);
}

static void no_such_qp(const struct k_case *c)
{
	struct k_opts oa = {QUICK, .dest_qpn = 0xfffff0};
	struct k_pair p;

	(void)c;
	k_pair(&p, &oa, NULL);
	want_no_answer(&p, NULL);
}

/* RC against UC: the types do not fit, the packets are dropped. */
static void wrong_type(const struct k_case *c)
{
	struct k_opts oa = {QUICK}, ob = {.type = IBV_QPT_UC};
	struct k_pair p;

	(void)c;
	k_pair(&p, &oa, &ob);
	want_no_answer(&p, "retry_exc");
	K_WANT_SAID(&p.b, "drop_transport", NULL);
	K_WANT_INT(k_state(&p.b), IBV_QPS_RTS);
}

/* The far process ends without a word (two processes only). */
static void process_gone(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	(void)c;
	k_two_processes = true;
	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 1, 64);
	theirs = k_good(&p.b, 0, 64);
	wr = k_wr_send(100, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(10, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 10, IBV_WC_SUCCESS);
	close(p.b.sock); /* its main loop ends */
	want_no_answer(&p, "peer_gone");
}

/*
 * The far process is stopped: it is there and does not answer. c->i messages of c->j bytes are in
 * flight, more than any ring holds in one of the rows. (One-sided operations may well succeed: they
 * need its memory, not its attention.)
 */
static void process_stopped(const struct k_case *c)
{
	struct k_opts oa = {QUICK, .send_wr = 64};
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	k_two_processes = true;
	k_pair(&p, &oa, NULL);
	mine = k_good(&p.a, 0, 64 * 4096);
	theirs = k_good(&p.b, 0, 64 * 4096);
	wr = k_wr_rdma(0, IBV_WR_RDMA_WRITE, (struct k_sge){mine.addr, 64, mine.lkey}, theirs.addr,
		       theirs.rkey);
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 0, IBV_WC_SUCCESS);
	kill(p.b.pid, SIGSTOP);
	wr.op = (enum ibv_wr_opcode)c->want;
	wr.sge[0].len = (uint32_t)c->j;
	for (int i = 1; i <= c->i; i++) {
		wr.id = (uint64_t)i;
		K_WANT_INT(k_send(&p.a, &wr), 0);
	}
	for (int i = 1; i <= c->i; i++)
		K_WANT_WC(&p.a, K_SQ, (uint64_t)i,
			  i == 1 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
	K_WANT_SAID(&p.a, "retry_exc", NULL);
	kill(p.b.pid, SIGKILL);
}

static void rd_atomic(const struct k_case *c)
{
	struct k_opts oa = {.rd_atomic = c->i}, ob = {.dest_rd_atomic = c->j};
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	k_pair(&p, &oa, &ob);
	mine = k_good(&p.a, 0, 8);
	theirs = k_good(&p.b, 0, 8);
	wr = k_wr_rdma(1, IBV_WR_RDMA_READ, k_whole(&mine), theirs.addr, theirs.rkey);
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, (enum ibv_wc_status)c->want);
	K_WANT_INT(k_state(&p.a), IBV_QPS_ERR);
	if (c->i < 0) {
		K_WANT_SAID(&p.a, "rd_atomic_zero", NULL);
		K_WANT_INT(k_state(&p.b), IBV_QPS_RTS);
		return;
	}
	K_WANT_SAID(&p.b, "nak_rd_atomic", NULL);
	K_WANT_EVENT(&p.b, IBV_EVENT_QP_REQ_ERR);
	K_WANT_SAID(&p.a, "rem_invalid", NULL);
}

/* SEND with Invalidate names a key that cannot be invalidated: no NAK, the receive fails, the
 * sender runs out of retries. */
static void invalidate(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;
	struct ibv_wc wc;

	k_pair(&p, &oa, NULL);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 64);
	wr = k_wr_send(100, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(1, k_whole(&mine));
	wr.op = IBV_WR_SEND_WITH_INV;
	wr.imm = c->i ? 0xdeadbe01 : theirs.rkey;
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_CHECK(k_poll(&p.b, K_RQ, K_WAIT_MS, &wc));
	K_CHECK(wc.wr_id == 100 && wc.status != IBV_WC_SUCCESS);
	K_CHECK(k_poll(&p.a, K_SQ, K_WAIT_MS, &wc));
	K_CHECK(wc.wr_id == 1 && wc.status != IBV_WC_SUCCESS);
	K_WANT_INT(k_state(&p.b), IBV_QPS_ERR);
	K_WANT_SAID(&p.b, "recv_invalidate", NULL);
}

/* Work under way when its owner moves the QP to ERR: everything is flushed, in order. */
static void flush_by_modify(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine;
	struct k_wr wr;

	(void)c;
	k_pair(&p, NULL, NULL); /* no receive is posted: rnr_retry 7 keeps all in flight */
	mine = k_good(&p.a, 0, 64);
	for (uint64_t id = 0; id < 5; id++) {
		wr = k_wr_send(id, k_whole(&mine));
		wr.flags = id % 2 ? K_UNSIGNALED : 0;
		K_WANT_INT(k_send(&p.a, &wr), 0);
		wr = k_wr_send(50 + id, k_whole(&mine));
		K_WANT_INT(k_recv(&p.a, &wr), 0);
	}
	K_WANT_INT(k_modify(&p.a, IBV_QPS_ERR), 0);
	for (uint64_t id = 0; id < 5; id++) {
		K_WANT_WC(&p.a, K_SQ, id, IBV_WC_WR_FLUSH_ERR);
		K_WANT_WC(&p.a, K_RQ, 50 + id, IBV_WC_WR_FLUSH_ERR);
	}
}

/* ---- events that are no errors but belong to the states */

static void comm_est(const struct k_case *c)
{
	struct k_opts ob = {.stop = IBV_QPS_RTR};
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	(void)c;
	k_pair(&p, NULL, &ob);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 64);
	wr = k_wr_send(100, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_EVENT(&p.b, IBV_EVENT_COMM_EST);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_WC(&p.b, K_RQ, 100, IBV_WC_SUCCESS);
}

static void last_wqe(const struct k_case *c)
{
	struct k_opts ob = {.srq_wr = 8};
	struct k_pair p;
	struct k_mr theirs;
	struct k_wr wr;

	(void)c;
	k_pair(&p, NULL, &ob);
	theirs = k_good(&p.b, 0, 64);
	wr = k_wr_send(100, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	K_WANT_INT(k_modify(&p.b, IBV_QPS_ERR), 0);
	K_WANT_EVENT(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	K_WANT_QUIET(&p.b, K_RQ); /* the SRQ keeps its receives */
}

/* clang-format off */
static const struct k_case cases[] = {
	{"peer_in_reset", peer_state, IBV_QPS_RESET, 0, NULL, 0, false},
	{"peer_in_init", peer_state, IBV_QPS_INIT, 0, NULL, 0, false},
	{"peer_in_error", peer_state, IBV_QPS_ERR, 0, NULL, 0, false},
	{"peer_qp_destroyed", peer_destroyed, 0, 0, NULL, 0, false},
	{"peer_qp_destroyed_after_traffic", peer_destroyed, 1, 0, NULL, 0, false},
	{"no_such_qp", no_such_qp, 0, 0, NULL, 0, false},
	{"peer_of_other_type", wrong_type, 0, 0, NULL, 0, false},
	{"peer_process_gone", process_gone, 0, 0, NULL, 0, true},
	{"peer_process_stopped", process_stopped, 1, 64, NULL, IBV_WR_SEND, true},
	{"peer_process_stopped_many", process_stopped, 60, 64, NULL, IBV_WR_SEND, true},
	{"peer_process_stopped_ring_full", process_stopped, 60, 65536, NULL, IBV_WR_SEND, true},
	{"read_with_max_rd_atomic_0", rd_atomic, -1, 4, NULL, IBV_WC_LOC_QP_OP_ERR, false},
	{"read_with_max_dest_rd_atomic_0", rd_atomic, 4, -1, NULL, IBV_WC_REM_INV_REQ_ERR, false},
	{"invalidate_a_region", invalidate, 0, 0, NULL, 0, false},
	{"invalidate_unknown_key", invalidate, 1, 0, NULL, 0, false},
	{"flush_by_modify", flush_by_modify, 0, 0, NULL, 0, false},
	{"comm_established", comm_est, 0, 0, NULL, 0, false},
	{"last_wqe_reached", last_wqe, 0, 0, NULL, 0, false},
};
/* clang-format on */

const struct k_group k_peer_group = {"peer", cases, sizeof(cases) / sizeof(cases[0])};
