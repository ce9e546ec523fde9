/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local keys: an SGE that names memory it must not. On the send side the work request fails where
 * it was posted and the far end sees nothing; on the receive side the receive fails with a
 * protection error and the sender learns of a remote operational error. What was posted before is
 * untouched, what comes after is flushed.
 */
#include "kit.h"

#include <errno.h>

enum op { SEND, WRITE, READ, CAS, UC_SEND, UC_WRITE, UD_SEND };
enum fault { UNKNOWN, ZERO, STALE, OTHER_PD, PAST_END, BEFORE, IS_RKEY, NO_WRITE };

#define LEN 64u

/* An SGE of LEN bytes with the fault; an atomic's has 8. */
static struct k_sge spoilt(struct k_end *e, enum fault f, uint32_t len)
{
	struct k_mr mr;
	int access = f == NO_WRITE ? 0 : IBV_ACCESS_LOCAL_WRITE;
	struct k_sge s;

	K_WANT_INT(k_reg(e, f == OTHER_PD, 8 * 4096 + 64, len, access, &mr), 0);
	s = k_whole(&mr);
	if (f == UNKNOWN)
		s.lkey = 0xdeadbe01;
	else if (f == ZERO)
		s.lkey = 0;
	else if (f == STALE)
		K_WANT_INT(k_dereg(e, &mr), 0);
	else if (f == PAST_END)
		s.addr += 1;
	else if (f == BEFORE)
		s.addr -= 1;
	else if (f == IS_RKEY)
		s.lkey = mr.rkey;
	return s;
}

static const char *fault_text(enum fault f)
{
	return f == PAST_END ? "run 1 bytes past" : f == BEFORE ? "lies 1 bytes before" : "";
}

static struct k_wr request(enum op op, uint64_t id, struct k_sge sge, const struct k_mr *target)
{
	if (op == WRITE || op == UC_WRITE)
		return k_wr_rdma(id, IBV_WR_RDMA_WRITE, sge, target->addr, target->rkey);
	if (op == READ)
		return k_wr_rdma(id, IBV_WR_RDMA_READ, sge, target->addr, target->rkey);
	if (op == CAS)
		return k_wr_rdma(id, IBV_WR_ATOMIC_CMP_AND_SWP, sge, target->addr, target->rkey);
	return k_wr_send(id, sge);
}

static struct k_opts opts_of(enum op op)
{
	struct k_opts o = {.type = IBV_QPT_RC};

	if (op == UC_SEND || op == UC_WRITE)
		o.type = IBV_QPT_UC;
	else if (op == UD_SEND)
		o.type = IBV_QPT_UD;
	return o;
}

/* A good message, the spoilt one, one behind it. */
static void gather(const struct k_case *c)
{
	enum op op = (enum op)c->i;
	struct k_opts o = opts_of(op);
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	k_pair(&p, &o, &o);
	mine = k_good(&p.a, 0, 128);
	theirs = k_good(&p.b, 0, 512);
	for (uint64_t id = 100; id < 103; id++) {
		wr = k_wr_send(id, k_whole(&theirs));
		K_WANT_INT(k_recv(&p.b, &wr), 0);
	}
	wr = k_wr_send(1, (struct k_sge){mine.addr, 16, mine.lkey});
	K_WANT_INT(k_send(&p.a, &wr), 0);
	wr = request(op, 2, spoilt(&p.a, (enum fault)c->j, op == CAS ? 8 : LEN), &theirs);
	if (op == SEND || op == UC_SEND || op == READ) {
		wr.sge[1] = wr.sge[0];
		wr.sge[0] = (struct k_sge){mine.addr, 16, mine.lkey};
		wr.n_sge = 2;
	}
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_WC(&p.a, K_SQ, 2, (enum ibv_wc_status)c->want);
	wr = k_wr_send(3, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 3, IBV_WC_WR_FLUSH_ERR);
	K_WANT_INT(k_state(&p.a), o.type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
	K_WANT_WC(&p.b, K_RQ, 100, IBV_WC_SUCCESS);
	K_WANT_QUIET(&p.b, K_RQ);
	K_WANT_INT(k_state(&p.b), IBV_QPS_RTS);
	K_WANT_SAID(&p.a, c->said, fault_text((enum fault)c->j));
	if (op == SEND || op == UC_SEND || op == READ)
		K_WANT_SAID(&p.a, c->said, "SGE 1");
}

/* The receive is spoilt; c->i says whether it comes from an SRQ. */
static void scatter(const struct k_case *c)
{
	struct k_opts ob = {.srq_wr = c->i ? 16 : 0};
	struct k_pair p;
	struct k_mr mine;
	struct k_wr wr;

	k_pair(&p, NULL, &ob);
	mine = k_good(&p.a, 0, LEN);
	wr = k_wr_send(100, spoilt(&p.b, (enum fault)c->j, LEN));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.b, K_RQ, 100, IBV_WC_LOC_PROT_ERR);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_REM_OP_ERR);
	K_WANT_INT(k_state(&p.a), IBV_QPS_ERR);
	K_WANT_INT(k_state(&p.b), IBV_QPS_ERR);
	K_WANT_SAID(&p.b, c->said, fault_text((enum fault)c->j));
	K_WANT_SAID(&p.a, "rem_op", NULL);
}

/* A zero-length SGE carries no data, so its key is not looked at. */
static void empty_sge(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	(void)c;
	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 0, LEN);
	theirs = k_good(&p.b, 0, LEN);
	wr = k_wr_send(100, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	wr = k_wr_send(1, (struct k_sge){0, 0, 0xdeadbe01});
	wr.sge[1] = k_whole(&mine);
	wr.n_sge = 2;
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_WC(&p.b, K_RQ, 100, IBV_WC_SUCCESS);
}

/* A region that its owner gives up between two posts. */
static void dereg_between(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mine, theirs;
	struct k_wr wr;

	k_pair(&p, NULL, NULL);
	mine = k_good(&p.a, 0, LEN);
	theirs = k_good(&p.b, 0, 4 * LEN);
	for (uint64_t id = 100; id < 102; id++) {
		wr = k_wr_send(id, k_whole(&theirs));
		K_WANT_INT(k_recv(&p.b, &wr), 0);
	}
	wr = k_wr_send(1, k_whole(&mine));
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 1, IBV_WC_SUCCESS);
	K_WANT_INT(k_dereg(&p.a, &mine), 0);
	wr.id = 2;
	K_WANT_INT(k_send(&p.a, &wr), 0);
	K_WANT_WC(&p.a, K_SQ, 2, IBV_WC_LOC_PROT_ERR);
	K_WANT_SAID(&p.a, c->said, NULL);
}

/* clang-format off */
#define ROW(opname, op, fault, name, said) \
	{opname "_" name, gather, op, fault, said, IBV_WC_LOC_PROT_ERR, false}
#define ROWS(n, op) \
	ROW(n, op, UNKNOWN, "bad_lkey", "lkey_unknown"), \
	ROW(n, op, ZERO, "lkey_zero", "lkey_unknown"), \
	ROW(n, op, STALE, "deregistered_lkey", "lkey_stale"), \
	ROW(n, op, OTHER_PD, "lkey_of_other_pd", "lkey_other_pd"), \
	ROW(n, op, PAST_END, "one_byte_past_end", "lkey_range_end"), \
	ROW(n, op, BEFORE, "one_byte_before_start", "lkey_range_start"), \
	ROW(n, op, IS_RKEY, "rkey_as_lkey", "lkey_is_rkey")
#define RECV_ROWS(n, srq) \
	{n "_bad_lkey", scatter, srq, UNKNOWN, "lkey_unknown", 0, false}, \
	{n "_deregistered_lkey", scatter, srq, STALE, "lkey_stale", 0, false}, \
	{n "_lkey_of_other_pd", scatter, srq, OTHER_PD, "lkey_other_pd", 0, false}, \
	{n "_one_byte_past_end", scatter, srq, PAST_END, "lkey_range_end", 0, false}, \
	{n "_one_byte_before_start", scatter, srq, BEFORE, "lkey_range_start", 0, false}, \
	{n "_rkey_as_lkey", scatter, srq, IS_RKEY, "lkey_is_rkey", 0, false}, \
	{n "_without_local_write", scatter, srq, NO_WRITE, "lkey_no_write", 0, false}

static const struct k_case cases[] = {
	ROWS("send", SEND), ROWS("write", WRITE), ROWS("read", READ), ROWS("cas", CAS),
	ROWS("uc_send", UC_SEND), ROWS("uc_write", UC_WRITE), ROWS("ud_send", UD_SEND),
	ROW("read", READ, NO_WRITE, "without_local_write", "lkey_no_write"),
	ROW("cas", CAS, NO_WRITE, "without_local_write", "lkey_no_write"),
	RECV_ROWS("recv", 0), RECV_ROWS("srq_recv", 1),
	{"empty_sge_needs_no_key", empty_sge, 0, 0, NULL, 0, false},
	{"deregistered_between_posts", dereg_between, 0, 0, "lkey_stale", 0, false},
};
/* clang-format on */

const struct k_group k_lkey_group = {"lkey", cases, sizeof(cases) / sizeof(cases[0])};
