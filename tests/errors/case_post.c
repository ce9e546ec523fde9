/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts that are refused at once: an errno, bad_wr at the refused request, the ones before it
 * posted, the ones after it not, and the QP as it was. Both ends live in one process.
 */
#include "kit.h"

#include <errno.h>
#include <string.h>

static struct ibv_sge whole(const struct k_mr *mr)
{
	return (struct ibv_sge){.addr = mr->addr, .length = mr->len, .lkey = mr->lkey};
}

/* A pair in RTS with one region at A. */
static struct k_mr start(struct k_pair *p, const struct k_opts *o)
{
	k_pair(p, o, o);
	return k_good(&p->a, 0, 64);
}

static void want_refused(struct k_pair *p, struct ibv_send_wr *wr, int err, const char *said)
{
	struct ibv_send_wr *bad = NULL;

	K_WANT_INT(ibv_post_send(p->a.qp, wr, &bad), err);
	K_CHECK(bad == wr);
	K_WANT_SAID(&p->a, said, NULL);
	K_WANT_QUIET(&p->a, K_SQ);
}

static void send_num_sge(const struct k_case *c)
{
	struct k_opts o = {.sges = 2};
	struct k_pair p;
	struct k_mr mr = start(&p, &o);
	struct ibv_sge sge[64];
	struct ibv_send_wr wr = {.sg_list = sge, .num_sge = c->i, .opcode = IBV_WR_SEND};

	for (int i = 0; i < 64; i++)
		sge[i] = whole(&mr);
	want_refused(&p, &wr, EINVAL, "post_num_sge");
}

static void recv_num_sge(const struct k_case *c)
{
	struct k_opts o = {.sges = 2, .srq_wr = c->j ? 8 : 0};
	struct k_pair p;
	struct k_mr mr = start(&p, &o);
	struct ibv_sge sge[64];
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = c->i}, *bad = NULL;

	for (int i = 0; i < 64; i++)
		sge[i] = whole(&mr);
	if (c->j)
		K_WANT_INT(ibv_post_srq_recv(p.a.srq, &wr, &bad), EINVAL);
	else
		K_WANT_INT(ibv_post_recv(p.a.qp, &wr, &bad), EINVAL);
	K_CHECK(bad == &wr);
	K_WANT_SAID(&p.a, "post_num_sge", NULL);
}

static void inline_too_long(const struct k_case *c)
{
	struct k_opts o = {.inline_max = 64};
	struct k_pair p;
	struct k_mr mr = start(&p, &o);
	struct ibv_sge sge[2] = {whole(&mr), whole(&mr)};
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = 2,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};

	(void)c;
	sge[1].length = 1;
	want_refused(&p, &wr, EINVAL, "post_inline_len");
}

static void inline_fetching(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mr = start(&p, NULL);
	struct ibv_sge sge = {.addr = mr.addr, .length = 8, .lkey = mr.lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = (enum ibv_wr_opcode)c->i,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};

	wr.wr.atomic.remote_addr = mr.addr;
	wr.wr.atomic.rkey = mr.rkey;
	want_refused(&p, &wr, EINVAL, "post_inline_opcode");
}

static void opcode(const struct k_case *c)
{
	struct k_opts o = {.type = (enum ibv_qp_type)c->j};
	struct k_pair p;
	struct k_mr mr = start(&p, &o);
	struct ibv_sge sge = {.addr = mr.addr, .length = 8, .lkey = mr.lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = (enum ibv_wr_opcode)c->i,
				 .send_flags = IBV_SEND_SIGNALED};

	if (c->j == IBV_QPT_UD)
		wr.wr.ud.ah = p.a.ah;
	want_refused(&p, &wr, EINVAL, "post_opcode");
}

static void too_long(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mr = start(&p, NULL);
	struct ibv_sge sge[2] = {whole(&mr), whole(&mr)};
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = 2,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};

	sge[0].length = 0x80000000u;
	sge[1].length = (uint32_t)c->i;
	want_refused(&p, &wr, EINVAL, "post_length");
}

/* Three good ones, a bad one, a good one: the first three go. */
static void chain(const struct k_case *c)
{
	struct k_opts o = {.sges = 2};
	struct k_pair p;
	struct k_mr mr = start(&p, &o), theirs = k_good(&p.b, 0, 64);
	struct ibv_sge sge = whole(&mr);
	struct ibv_send_wr wr[5], *bad = NULL;
	struct k_wr r;

	memset(wr, 0, sizeof(wr));
	for (int i = 0; i < 5; i++) {
		wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
					     .next = i < 4 ? &wr[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .send_flags = IBV_SEND_SIGNALED};
		r = k_wr_send(100 + (uint64_t)i, k_whole(&theirs));
		K_WANT_INT(k_recv(&p.b, &r), 0);
	}
	wr[3].num_sge = 3;
	K_WANT_INT(ibv_post_send(p.a.qp, wr, &bad), c->want);
	K_CHECK(bad == &wr[3]);
	for (uint64_t i = 0; i < 3; i++) {
		K_WANT_WC(&p.a, K_SQ, i, IBV_WC_SUCCESS);
		K_WANT_WC(&p.b, K_RQ, 100 + i, IBV_WC_SUCCESS);
	}
	K_WANT_QUIET(&p.a, K_SQ);
	K_WANT_QUIET(&p.b, K_RQ);
	wr[4].wr_id = 9;
	K_WANT_INT(ibv_post_send(p.a.qp, &wr[4], &bad), 0);
	K_WANT_WC(&p.a, K_SQ, 9, IBV_WC_SUCCESS);
	K_WANT_WC(&p.b, K_RQ, 103, IBV_WC_SUCCESS);
}

static uint32_t granted_sends(struct k_pair *p)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	K_WANT_INT(ibv_query_qp(p->a.qp, &attr, IBV_QP_CAP, &init), 0);
	return init.cap.max_send_wr;
}

/* Fills the send queue (c->i: nothing signaled) and posts one more. */
static void sq_full(const struct k_case *c)
{
	struct k_opts o = {.send_wr = 16, .recv_wr = 64};
	struct k_pair p;
	struct k_mr mr = start(&p, &o), theirs = k_good(&p.b, 0, 64);
	struct k_wr wr = k_wr_send(0, k_whole(&mr)), r;
	uint32_t n = granted_sends(&p);
	struct ibv_wc wc;

	K_WANT_INT(n, 16); /* granted exactly as asked */
	wr.flags = c->i ? K_UNSIGNALED : 0;
	for (uint32_t i = 0; i < n + 2; i++) {
		r = k_wr_send(100 + i, k_whole(&theirs));
		K_WANT_INT(k_recv(&p.b, &r), 0);
	}
	for (uint32_t i = 0; i < n; i++) {
		wr.id = i;
		K_WANT_INT(k_send(&p.a, &wr), 0);
	}
	for (uint32_t i = 0; i < n; i++)
		K_WANT_WC(&p.b, K_RQ, 100 + i, IBV_WC_SUCCESS);
	K_WANT_INT(k_send(&p.a, &wr), ENOMEM);
	K_WANT_SAID(&p.a, c->said, NULL);
	if (c->i) { /* no completion frees an entry, ever */
		K_WANT_QUIET(&p.a, K_SQ);
		K_WANT_INT(k_send(&p.a, &wr), ENOMEM);
		return;
	}
	K_CHECK(k_poll(&p.a, K_SQ, K_WAIT_MS, &wc));
	K_WANT_INT(k_send(&p.a, &wr), 0); /* one polled, one free */
}

static void rq_full(const struct k_case *c)
{
	struct k_opts o = {.recv_wr = 8, .srq_wr = c->i ? 8 : 0};
	struct k_pair p;
	struct k_mr mr = start(&p, &o);
	struct k_wr r = k_wr_send(0, k_whole(&mr));

	for (int i = 0; i < 8; i++)
		K_WANT_INT(k_recv(&p.a, &r), 0);
	K_WANT_INT(k_recv(&p.a, &r), ENOMEM);
	K_WANT_SAID(&p.a, "post_rq_full", NULL);
}

/* A post in a state that does not take it: c->i the state, c->j 1 for a receive. */
static void state(const struct k_case *c)
{
	struct k_opts oa = {.stop = c->i ? (enum ibv_qp_state)c->i : K_STAY};
	struct k_pair p;
	struct k_mr mr;
	struct k_wr wr;

	k_pair(&p, &oa, NULL);
	mr = k_good(&p.a, 0, 64);
	wr = k_wr_send(1, k_whole(&mr));
	K_WANT_INT(c->j ? k_recv(&p.a, &wr) : k_send(&p.a, &wr), c->want);
	if (c->said)
		K_WANT_SAID(&p.a, c->said, NULL);
	K_WANT_QUIET(&p.a, c->j ? K_RQ : K_SQ);
	K_WANT_INT(k_state(&p.a), c->i);
}

/* In the error state posts are taken and flushed, in order. */
static void post_in_error(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mr = start(&p, NULL);
	struct k_wr wr = k_wr_send(0, k_whole(&mr));

	(void)c;
	wr.id = 50;
	K_WANT_INT(k_recv(&p.a, &wr), 0);
	K_WANT_INT(k_modify(&p.a, IBV_QPS_ERR), 0);
	K_WANT_WC(&p.a, K_RQ, 50, IBV_WC_WR_FLUSH_ERR);
	for (uint64_t i = 1; i <= 3; i++) {
		wr.id = i;
		wr.flags = K_UNSIGNALED; /* failures are always reported */
		K_WANT_INT(k_send(&p.a, &wr), 0);
		wr.id = 50 + i;
		K_WANT_INT(k_recv(&p.a, &wr), 0);
	}
	for (uint64_t i = 1; i <= 3; i++) {
		K_WANT_WC(&p.a, K_SQ, i, IBV_WC_WR_FLUSH_ERR);
		K_WANT_WC(&p.a, K_RQ, 50 + i, IBV_WC_WR_FLUSH_ERR);
	}
}

static void recv_on_srq(const struct k_case *c)
{
	struct k_opts o = {.srq_wr = 8};
	struct k_pair p;
	struct k_mr mr = start(&p, &o);
	struct ibv_sge sge = whole(&mr);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad = NULL;

	K_WANT_INT(ibv_post_recv(p.a.qp, &wr, &bad), c->want);
	K_CHECK(bad == &wr);
	K_WANT_SAID(&p.a, "post_on_srq", NULL);
}

static void ud_without_ah(const struct k_case *c)
{
	struct k_opts o = {.type = IBV_QPT_UD};
	struct k_pair p;
	struct k_mr mr = start(&p, &o);
	struct ibv_sge sge = whole(&mr);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	(void)c;
	want_refused(&p, &wr, EINVAL, "post_ah");
}

/* clang-format off */
static const struct k_case cases[] = {
	{"send_num_sge_3_of_2", send_num_sge, 3, 0, NULL, 0, true},
	{"send_num_sge_64_of_2", send_num_sge, 64, 0, NULL, 0, true},
	{"recv_num_sge_3_of_2", recv_num_sge, 3, 0, NULL, 0, true},
	{"srq_num_sge_3_of_2", recv_num_sge, 3, 1, NULL, 0, true},
	{"inline_65_of_64", inline_too_long, 0, 0, NULL, 0, true},
	{"inline_read", inline_fetching, IBV_WR_RDMA_READ, 0, NULL, 0, true},
	{"inline_cas", inline_fetching, IBV_WR_ATOMIC_CMP_AND_SWP, 0, NULL, 0, true},
	{"uc_read", opcode, IBV_WR_RDMA_READ, IBV_QPT_UC, NULL, 0, true},
	{"uc_cas", opcode, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QPT_UC, NULL, 0, true},
	{"ud_write", opcode, IBV_WR_RDMA_WRITE, IBV_QPT_UD, NULL, 0, true},
	{"ud_read", opcode, IBV_WR_RDMA_READ, IBV_QPT_UD, NULL, 0, true},
	{"unknown_opcode", opcode, 99, IBV_QPT_RC, NULL, 0, true},
	{"2_gib_and_1_byte", too_long, 1, 0, NULL, 0, true},
	{"4_gib", too_long, INT32_MIN, 0, NULL, 0, true},
	{"chain_stops_at_bad_wr", chain, 0, 0, NULL, EINVAL, true},
	{"sq_full", sq_full, 0, 0, "post_sq_full", 0, true},
	{"sq_full_nothing_signaled", sq_full, 1, 0, "post_sq_dead_end", 0, true},
	{"rq_full", rq_full, 0, 0, NULL, 0, true},
	{"srq_full", rq_full, 1, 0, NULL, 0, true},
	{"send_in_reset", state, IBV_QPS_RESET, 0, "post_state", EINVAL, true},
	{"send_in_init", state, IBV_QPS_INIT, 0, "post_state", EINVAL, true},
	{"send_in_rtr", state, IBV_QPS_RTR, 0, "post_state", EINVAL, true},
	{"recv_in_reset", state, IBV_QPS_RESET, 1, "post_state", EINVAL, true},
	{"recv_in_init_is_taken", state, IBV_QPS_INIT, 1, NULL, 0, true},
	{"post_in_error_is_flushed", post_in_error, 0, 0, NULL, 0, true},
	{"recv_on_qp_with_srq", recv_on_srq, 0, 0, NULL, EINVAL, true},
	{"ud_send_without_ah", ud_without_ah, 0, 0, NULL, 0, true},
};
/* clang-format on */

const struct k_group k_post_group = {"post", cases, sizeof(cases) / sizeof(cases[0])};
