/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives that are too short, too late or too many for their CQ. RNR is tried with no retry, a few
 * and endless ones; the only times looked at are those the protocol promises as minimum.
 */
#include "kit.h"

#include <time.h>

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L}, NULL);
}

/* c->i bytes are sent into a receive of c->j. */
static void too_short(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 0, 65536);
	theirs = k_good(&p.b, 0, 65536);
	for (uint64_t id = 100; id < 102; id++) {
		wr = k_wr_send(id, (struct k_sge){theirs.addr, (uint32_t)c->j, theirs.lkey});
		wr.n_sge = c->j ? 1 : 0;
		K_WANT_INT(k_recv(&p.b, &wr), 0);
	}
	wr = k_wr_send(1, (struct k_sge){mine.addr, (uint32_t)c->i, mine.lkey});
	K_WANT_INT(k_send(&p.a, &wr), 0);
	wr = k_wr_send(2, (struct k_sge){mine.addr, 1, mine.lkey});
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.b, K_RQ, 100, IBV_WC_LOC_LEN_ERR);
	K_WANT_WC(&p.b, K_RQ, 101, IBV_WC_WR_FLUSH_ERR);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_REM_INV_REQ_ERR);
	K_WANT_WC(&p.a, K_SQ, 2, IBV_WC_WR_FLUSH_ERR);
	K_WANT_INT(k_state(&p.b), IBV_QPS_ERR);
	K_WANT_SAID(&p.b, "recv_too_short", NULL);
	K_WANT_SAID(&p.a, "rem_invalid", NULL);
}

static void fits_exactly(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;
	struct ibv_wc wc;

	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 0, 65536);
	theirs = k_good(&p.b, 0, 65536);
	wr = k_wr_send(100, (struct k_sge){theirs.addr, (uint32_t)c->i, theirs.lkey});
	wr.n_sge = c->i ? 1 : 0;
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(1, (struct k_sge){mine.addr, (uint32_t)c->i, mine.lkey});
	wr.n_sge = c->i ? 1 : 0;
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_CHECK(k_poll(&p.b, K_RQ, K_WAIT_MS, &wc));
	K_WANT_INT(wc.status, IBV_WC_SUCCESS);
	K_WANT_INT((long)wc.byte_len, c->i);
}

static struct k_wr request(const struct k_case *c, uint64_t id, struct k_pair *p, struct k_mr *mine)
{
	struct k_mr t;

	if (c->j != IBV_WR_RDMA_WRITE_WITH_IMM)
		return k_wr_send(id, k_whole(mine));
	t = k_good(&p->b, 16, 64);
	return k_wr_rdma(id, IBV_WR_RDMA_WRITE_WITH_IMM, k_whole(mine), t.addr, t.rkey);
}

/* Nobody posts a receive: rnr_retry c->i tries, at least 10.24 ms apart (timer code 20). */
static void rnr_fails(const struct k_case *c)
{
	struct k_opts oa = {.rnr_retry = c->i ? c->i : -1};
	struct k_opts ob = {.rnr_timer = 20, .srq_wr = c->want ? 8 : 0};
	struct k_pair p;
	struct k_mr mine;
	struct k_wr wr;
	double start;

	k_pair(&p, &oa, &ob);
	mine = k_good(&p.a, 0, 64);
	wr = request(c, 1, &p, &mine);
	start = k_now();
	K_WANT_INT(k_send(&p.a, &wr), 0);
	wr = k_wr_send(2, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	K_CHECK(k_now() - start >= c->i * 0.01024);
	K_WANT_WC(&p.a, K_SQ, 2, IBV_WC_WR_FLUSH_ERR);
	K_WANT_INT(k_state(&p.a), IBV_QPS_ERR);
	K_WANT_INT(k_state(&p.b), IBV_QPS_RTS);
	K_WANT_QUIET(&p.b, K_RQ);
	K_WANT_SAID(&p.b, "nak_rnr", NULL);
	K_WANT_SAID(&p.a, "rnr_retry_exc", NULL);
}

/* The receives come late, but in time for rnr_retry c->i. */
static void rnr_heals(const struct k_case *c)
{
	struct k_opts oa = {.rnr_retry = c->i};
	struct k_opts ob = {.rnr_timer = c->i == 7 ? 1 : 28}; /* 10 us or 164 ms */
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	k_pair(&p, &oa, &ob);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 64);
	for (uint64_t id = 1; id <= 3; id++) {
		wr = request(c, id, &p, &mine);
		K_WANT_INT(k_send(&p.a, &wr), 0);
	}
	pause_ms(c->i == 7 ? 300 : 50);
	K_WANT_QUIET(&p.a, K_SQ);
	for (uint64_t id = 1; id <= 3; id++) {
		wr = k_wr_send(100 + id, k_whole(&theirs));
		K_WANT_INT(k_recv(&p.b, &wr), 0);
		K_WANT_WC(&p.b, K_RQ, 100 + id, IBV_WC_SUCCESS);
		K_WANT_WC(&p.a, K_SQ, id, IBV_WC_SUCCESS);
	}
	K_WANT_QUIET(&p.b, K_RQ);
}

/* More completions than the receive CQ holds: they are lost, and that is said in three places. */
static void recv_cq_overrun(const struct k_case *c)
{
	struct k_opts oa = {.timeout = 8, .retry_cnt = 3}, ob = {.cqe = 4};
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;
	struct ibv_wc wc;
	int good = 0, bad = 0;

	(void)c;
	k_pair(&p, &oa, &ob);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 64);
	for (uint64_t id = 0; id < 8; id++) {
		wr = k_wr_send(100 + id, k_whole(&theirs));
		K_WANT_INT(k_recv(&p.b, &wr), 0);
	}
	for (uint64_t id = 0; id < 8; id++) {
		wr = k_wr_send(id, k_whole(&mine));
		K_WANT_INT(k_send(&p.a, &wr), 0);
	}
	K_WANT_EVENT(&p.b, IBV_EVENT_CQ_ERR);
	K_WANT_INT(k_state(&p.b), IBV_QPS_ERR);
	K_WANT_SAID(&p.b, "cq_overrun", NULL);
	for (int i = 0; i < 8; i++) {
		K_CHECK(k_poll(&p.a, K_SQ, K_WAIT_MS, &wc));
		K_WANT_INT((long)wc.wr_id, i);
		if (wc.status == IBV_WC_SUCCESS)
			K_CHECK(!bad && ++good);
		else
			bad++;
	}
	K_CHECK(good >= 4 && bad >= 1);
}

static void send_cq_overrun(const struct k_case *c)
{
	struct k_opts oa = {.cqe = 2};
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &oa, NULL);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 64);
	for (uint64_t id = 0; id < 6; id++) {
		wr = k_wr_send(100 + id, k_whole(&theirs));
		K_WANT_INT(k_recv(&p.b, &wr), 0);
	}
	for (uint64_t id = 0; id < 6; id++) {
		wr = k_wr_send(id, k_whole(&mine));
		K_WANT_INT(k_send(&p.a, &wr), 0);
	}
	K_WANT_EVENT(&p.a, IBV_EVENT_CQ_ERR);
	K_WANT_INT(k_state(&p.a), IBV_QPS_ERR);
	K_WANT_SAID(&p.a, "cq_overrun", NULL);
}

/* UC drops what it cannot deliver and goes on. */
static void uc_no_receive(const struct k_case *c)
{
	struct k_opts o = {.type = IBV_QPT_UC};
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	(void)c;
	k_pair(&p, &o, &o);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 64);
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_SAID(&p.b, "drop_no_recv", NULL);
	wr = k_wr_send(100, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(2, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 2, IBV_WC_SUCCESS);
	K_WANT_WC(&p.b, K_RQ, 100, IBV_WC_SUCCESS);
	K_WANT_QUIET(&p.b, K_RQ);
}

/* clang-format off */
static const struct k_case cases[] = {
	{"too_short_by_1", too_short, 64, 63, NULL, 0, false},
	{"too_short_for_inline_line", too_short, 8, 7, NULL, 0, false},
	{"too_short_on_packet_2", too_short, 4000, 1500, NULL, 0, false},
	{"too_short_on_last_packet", too_short, 4097, 4096, NULL, 0, false},
	{"too_short_large", too_short, 65536, 65535, NULL, 0, false},
	{"no_sge_for_1_byte", too_short, 1, 0, NULL, 0, false},
	{"fits_exactly_0", fits_exactly, 0, 0, NULL, 0, false},
	{"fits_exactly_56", fits_exactly, 56, 0, NULL, 0, false},
	{"fits_exactly_1024", fits_exactly, 1024, 0, NULL, 0, false},
	{"fits_exactly_1025", fits_exactly, 1025, 0, NULL, 0, false},
	{"fits_exactly_65536", fits_exactly, 65536, 0, NULL, 0, false},
	{"rnr_retry_0", rnr_fails, 0, IBV_WR_SEND, NULL, 0, false},
	{"rnr_retry_3", rnr_fails, 3, IBV_WR_SEND, NULL, 0, false},
	{"rnr_retry_3_srq", rnr_fails, 3, IBV_WR_SEND, NULL, 1, false},
	{"rnr_retry_0_write_imm", rnr_fails, 0, IBV_WR_RDMA_WRITE_WITH_IMM, NULL, 0, false},
	{"rnr_retry_3_receive_in_time", rnr_heals, 3, IBV_WR_SEND, NULL, 0, false},
	{"rnr_retry_7_receive_late", rnr_heals, 7, IBV_WR_SEND, NULL, 0, false},
	{"rnr_retry_7_write_imm", rnr_heals, 7, IBV_WR_RDMA_WRITE_WITH_IMM, NULL, 0, false},
	{"recv_cq_overrun", recv_cq_overrun, 0, 0, NULL, 0, false},
	{"send_cq_overrun", send_cq_overrun, 0, 0, NULL, 0, false},
	{"uc_no_receive", uc_no_receive, 0, 0, NULL, 0, false},
};
/* clang-format on */

const struct k_group k_recv_group = {"recv", cases, sizeof(cases) / sizeof(cases[0])};
