/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote keys: a WRITE, READ or atomic that names memory of the far end it must not. The far end
 * refuses it and says so in an async event; no byte is changed; the near end's work request fails
 * and both QPs are in the error state. On UC the request is dropped and nobody is told but the
 * reader of the explanation.
 */
#include "kit.h"

#include <errno.h>
#include <string.h>

enum fault { UNKNOWN, STALE, IS_LKEY, OTHER_PD, PAST_END, BEFORE, NO_RIGHT, QP_NO_RIGHT };

static bool is_atomic(int op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static int right_of(int op)
{
	if (is_atomic(op))
		return IBV_ACCESS_REMOTE_ATOMIC;
	return op == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

#define ALL_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* The target the request names: where it is, and the key as the near end believes it. */
static struct k_mr target(struct k_end *b, enum fault f, int op)
{
	int rights = ALL_RIGHTS & ~(f == NO_RIGHT ? right_of(op) : 0);
	uint32_t len = is_atomic(op) ? 60 : 64;
	struct k_mr mr;

	K_WANT_INT(
		k_reg(b, f == OTHER_PD, 8 * 4096 + 64, len, IBV_ACCESS_LOCAL_WRITE | rights, &mr),
		0);
	if (f == UNKNOWN)
		mr.rkey = 0xdeadbe01;
	else if (f == STALE)
		K_WANT_INT(k_dereg(b, &mr), 0);
	else if (f == IS_LKEY)
		mr.rkey = mr.lkey;
	else if (f == PAST_END)
		mr.addr += is_atomic(op) ? 56 : 1;
	else if (f == BEFORE)
		mr.addr -= is_atomic(op) ? 8 : 1;
	return mr;
}

static const char *fault_text(enum fault f, int op)
{
	if (f == PAST_END)
		return is_atomic(op) ? "run 4 bytes past" : "run 1 bytes past";
	if (f == BEFORE)
		return is_atomic(op) ? "lies 8 bytes before" : "lies 1 bytes before";
	return "";
}

static void want_unchanged(struct k_end *e, uint64_t addr)
{
	uint8_t now[80], was[80];

	memset(was, 0x5a, sizeof(was));
	k_peek(e, addr, now, sizeof(now));
	K_CHECK(!memcmp(now, was, sizeof(now)));
}

static void want_flushed(struct k_end *e, enum k_cq cq, uint64_t id)
{
	struct ibv_wc wc;

	K_CHECK(k_poll(e, cq, K_WAIT_MS, &wc));
	K_WANT_INT((long)wc.wr_id, (long)id);
	K_CHECK(wc.status != IBV_WC_SUCCESS);
}

static void remote(const struct k_case *c)
{
	enum fault f = (enum fault)c->j;
	struct k_opts ob = {0};
	struct k_pair p;
	struct k_mr mine, theirs, t;
	struct k_wr wr;
	bool inv;

	if (f == QP_NO_RIGHT)
		ob.access = (uint32_t)(ALL_RIGHTS & ~right_of(c->i)) | IBV_ACCESS_LOCAL_WRITE;
	k_pair(&p, NULL, &ob);
	mine = k_good(&p.a, 0, is_atomic(c->i) ? 8 : 64);
	theirs = k_good(&p.b, 0, 64);
	t = target(&p.b, f, c->i);
	wr = k_wr_send(100, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_rdma(1, (enum ibv_wr_opcode)c->i, k_whole(&mine), t.addr, t.rkey);
	K_WANT_INT(k_send(&p.a, &wr), 0);
	wr = k_wr_send(2, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	inv = c->want == IBV_WC_REM_INV_REQ_ERR;
	K_WANT_WC(&p.a, K_SQ, 1, (enum ibv_wc_status)c->want);
	K_WANT_WC(&p.a, K_SQ, 2, IBV_WC_WR_FLUSH_ERR);
	want_flushed(&p.b, K_RQ, 100);
	K_WANT_EVENT(&p.b, inv ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_ACCESS_ERR);
	K_WANT_INT(k_state(&p.a), IBV_QPS_ERR);
	K_WANT_INT(k_state(&p.b), IBV_QPS_ERR);
	K_WANT_SAID(&p.b, c->said, fault_text(f, c->i));
	K_WANT_SAID(&p.a, inv ? "rem_invalid" : "rem_access", NULL);
	want_unchanged(&p.b, t.addr);
	want_unchanged(&p.a, mine.addr);
}

static void misaligned(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine, t;
	struct k_wr wr;

	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 0, 8);
	t = k_good(&p.b, 8, 64);
	wr = k_wr_rdma(1, (enum ibv_wr_opcode)c->i, k_whole(&mine), t.addr + (uint64_t)c->j,
		       t.rkey);
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_REM_INV_REQ_ERR);
	K_WANT_EVENT(&p.b, IBV_EVENT_QP_REQ_ERR);
	K_WANT_SAID(&p.b, "nak_atomic_align", NULL);
	K_WANT_SAID(&p.a, "rem_invalid", NULL);
	want_unchanged(&p.b, t.addr);
}

/* An atomic returns 8 bytes: another length of the SGE list is refused here, nothing is sent. */
static void atomic_sge(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine, t;
	struct k_wr wr;

	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 0, 64);
	t = k_good(&p.b, 8, 64);
	wr = k_wr_rdma(1, (enum ibv_wr_opcode)c->i, k_whole(&mine), t.addr, t.rkey);
	wr.sge[0].len = (uint32_t)c->j;
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_LOC_LEN_ERR);
	K_WANT_SAID(&p.a, "sge_length", NULL);
	K_WANT_INT(k_state(&p.b), IBV_QPS_RTS);
	want_unchanged(&p.b, t.addr);
}

/* Without data there is nothing to protect: any key will do. */
static void zero_length(const struct k_case *c)
{
	struct k_pair p;
	struct k_wr wr = k_wr_rdma(1, (enum ibv_wr_opcode)c->i, (struct k_sge){0}, 0, 0xdeadbe01);

	k_pair(&p, NULL, NULL);
	wr.n_sge = 0;
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_INT(k_state(&p.b), IBV_QPS_RTS);
}

/* UC: dropped; the QP goes on with the next message. */
static void unreliable(const struct k_case *c)
{
	struct k_opts o = {.type = IBV_QPT_UC};
	struct k_pair p;
	struct k_mr mine, theirs, t;
	struct k_wr wr;

	k_pair(&p, &o, &o);
	mine = k_good(&p.a, 0, 64);
	theirs = k_good(&p.b, 0, 64);
	t = target(&p.b, (enum fault)c->j, IBV_WR_RDMA_WRITE);
	wr = k_wr_send(100, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_rdma(1, IBV_WR_RDMA_WRITE, k_whole(&mine), t.addr, t.rkey);
	K_WANT_INT(k_send(&p.a, &wr), 0);
	wr = k_wr_send(2, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_WC(&p.a, K_SQ, 2, IBV_WC_SUCCESS);
	K_WANT_WC(&p.b, K_RQ, 100, IBV_WC_SUCCESS);
	K_WANT_SAID(&p.b, c->said, fault_text((enum fault)c->j, IBV_WR_RDMA_WRITE));
	want_unchanged(&p.b, t.addr);
}

/* A key that was good, used well, and given up before the next use. */
static void dereg_between(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine, t;
	struct k_wr wr;

	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 0, 64);
	t = k_good(&p.b, 8, 64);
	for (uint64_t id = 1; id <= 4; id++) {
		wr = k_wr_rdma(id, (enum ibv_wr_opcode)c->i, k_whole(&mine), t.addr, t.rkey);
		K_WANT_INT(k_send(&p.a, &wr), 0);
		K_WANT_WC(&p.a, K_SQ, id, IBV_WC_SUCCESS);
	}
	K_WANT_INT(k_dereg(&p.b, &t), 0);
	wr.id = 5;
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 5, IBV_WC_REM_ACCESS_ERR);
	K_WANT_EVENT(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	K_WANT_SAID(&p.b, "rkey_stale", NULL);
}

/* clang-format off */
#define ROW(n, op, fault, name, said, want) {n "_" name, remote, op, fault, said, want, false}
#define ROWS(n, op) \
	ROW(n, op, UNKNOWN, "bad_rkey", "rkey_unknown", IBV_WC_REM_ACCESS_ERR), \
	ROW(n, op, STALE, "deregistered_rkey", "rkey_stale", IBV_WC_REM_ACCESS_ERR), \
	ROW(n, op, IS_LKEY, "lkey_as_rkey", "rkey_is_lkey", IBV_WC_REM_ACCESS_ERR), \
	ROW(n, op, OTHER_PD, "rkey_of_other_pd", "rkey_other_pd", IBV_WC_REM_ACCESS_ERR), \
	ROW(n, op, PAST_END, "past_end", "rkey_range_end", IBV_WC_REM_ACCESS_ERR), \
	ROW(n, op, BEFORE, "before_start", "rkey_range_start", IBV_WC_REM_ACCESS_ERR), \
	ROW(n, op, NO_RIGHT, "region_without_right", "rkey_rights", IBV_WC_REM_ACCESS_ERR), \
	ROW(n, op, QP_NO_RIGHT, "qp_without_right", "nak_qp_access", IBV_WC_REM_INV_REQ_ERR)

static const struct k_case cases[] = {
	ROWS("write", IBV_WR_RDMA_WRITE), ROWS("write_imm", IBV_WR_RDMA_WRITE_WITH_IMM),
	ROWS("read", IBV_WR_RDMA_READ), ROWS("cas", IBV_WR_ATOMIC_CMP_AND_SWP),
	ROWS("fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD),
	{"cas_misaligned_by_1", misaligned, IBV_WR_ATOMIC_CMP_AND_SWP, 1, NULL, 0, false},
	{"cas_misaligned_by_4", misaligned, IBV_WR_ATOMIC_CMP_AND_SWP, 4, NULL, 0, false},
	{"fetch_add_misaligned", misaligned, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, NULL, 0, false},
	{"cas_sge_of_4", atomic_sge, IBV_WR_ATOMIC_CMP_AND_SWP, 4, NULL, 0, false},
	{"cas_sge_of_16", atomic_sge, IBV_WR_ATOMIC_CMP_AND_SWP, 16, NULL, 0, false},
	{"write_zero_length", zero_length, IBV_WR_RDMA_WRITE, 0, NULL, 0, false},
	{"read_zero_length", zero_length, IBV_WR_RDMA_READ, 0, NULL, 0, false},
	{"uc_write_bad_rkey", unreliable, 0, UNKNOWN, "rkey_unknown", 0, false},
	{"uc_write_past_end", unreliable, 0, PAST_END, "rkey_range_end", 0, false},
	{"uc_write_without_right", unreliable, 0, NO_RIGHT, "rkey_rights", 0, false},
	{"write_after_dereg", dereg_between, IBV_WR_RDMA_WRITE, 0, NULL, 0, false},
	{"read_after_dereg", dereg_between, IBV_WR_RDMA_READ, 0, NULL, 0, false},
};
/* clang-format on */

const struct k_group k_rkey_group = {"rkey", cases, sizeof(cases) / sizeof(cases[0])};
