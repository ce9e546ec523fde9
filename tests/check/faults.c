/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults in work requests, one each, and exactly the finding that names it; at the end of each the
 * program tidies up, and nothing more may be said. A row: what is wrong, what is wanted.
 */
#include "kit.h"
#include "support/cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* free() and munmap() are the sanitizer's then */
#else
#define SANITIZED 0
#endif

/* ---- SGEs of a send */

enum sge_fault { UNKNOWN, STALE, RKEY, OTHER_PD, PAST_END, BEFORE, WRAPS, EMPTY };

static void spoil(struct lab *l, enum sge_fault f, struct ibv_sge *s)
{
	struct ibv_mr *mr;

	if (f == UNKNOWN)
		s->lkey = 0xdeadbe01;
	else if (f == RKEY)
		s->lkey = l->mr->rkey;
	else if (f == PAST_END)
		s->addr += LAB_LEN - 60;
	else if (f == BEFORE)
		s->addr -= 1;
	else if (f == WRAPS)
		s->addr = UINT64_MAX - 8;
	else if (f == EMPTY)
		s->length = 0;
	if (f != STALE && f != OTHER_PD)
		return;
	mr = ibv_reg_mr(f == OTHER_PD ? l->pd2 : l->pd, l->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);
	s->lkey = mr->lkey;
	if (f == STALE)
		MUST(!ibv_dereg_mr(mr));
}

static void sge_case(enum sge_fault f, const char *wanted)
{
	struct ibv_sge s, good;
	struct lab l;

	lab_open(&l, NULL);
	s = good = lab_sge(&l);
	MUST(!lab_recv(&l, &good, 1));
	spoil(&l, f, &s);
	lab_send(&l, &s, 1, IBV_SEND_SIGNALED);
	want(wanted);
	_exit(0);
}

static void test_lkey_unknown(void)
{
	sge_case(UNKNOWN, "lkey_unknown");
}
static void test_lkey_stale(void)
{
	sge_case(STALE, "lkey_stale");
}
static void test_lkey_is_rkey(void)
{
	sge_case(RKEY, "lkey_is_rkey");
}
static void test_lkey_other_pd(void)
{
	sge_case(OTHER_PD, "lkey_other_pd");
}
static void test_lkey_range_end(void)
{
	sge_case(PAST_END, "lkey_range_end");
}
static void test_lkey_range_start(void)
{
	sge_case(BEFORE, "lkey_range_start");
}
static void test_sge_wraps(void)
{
	sge_case(WRAPS, "sge_wraps");
}
static void test_sge_empty(void)
{
	sge_case(EMPTY, "sge_empty");
}

static void test_lkey_no_write(void)
{
	struct ibv_mr *mr;
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, NULL);
	MUST((mr = ibv_reg_mr(l.pd, l.buf, 4096, 0)) != NULL);
	s = (struct ibv_sge){(uintptr_t)l.buf, 64, mr->lkey};
	MUST(!lab_recv(&l, &s, 1));
	want("lkey_no_write");
	want_text("region registered at");
	_exit(0);
}

/* ---- what was granted */

static void test_granted(void)
{
	struct ibv_sge s[3];
	struct lab l;

	lab_open(&l, NULL);
	s[0] = s[1] = s[2] = lab_sge(&l);
	MUST(lab_send(&l, s, 3, IBV_SEND_SIGNALED));
	want("post_num_sge");
	s[0].length = 65;
	MUST(lab_send(&l, s, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	want("post_inline_len");
	MUST(lab_recv(&l, s, 3));
	want("post_num_sge");
	for (int i = 0; i < 16; i++)
		MUST(!lab_recv(&l, s, 1));
	want("");
	MUST(lab_recv(&l, s, 1));
	want("post_rq_full");
	lab_close(&l);
	want("");
}

static void test_sq_full(void)
{
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, &(struct opt){.recv_wr = 64, .cqe = 256});
	s = lab_sge(&l);
	for (int i = 0; i < 40; i++)
		MUST(!lab_recv(&l, &s, 1));
	for (int i = 0; i < 16; i++)
		MUST(!lab_send(&l, &s, 1, i ? 0 : IBV_SEND_SIGNALED));
	want("");
	MUST(lab_send(&l, &s, 1, 0));
	want("post_sq_full");
	lab_poll(&l, 17, NULL);
	MUST(!lab_send(&l, &s, 1, 0)); /* the signaled one has freed its own place */
	MUST(lab_send(&l, &s, 1, 0));
	want("post_sq_dead_end");
	want_text("none of them is signaled");
	lab_poll(&l, 1, NULL);
	lab_close(&l);
	want("");
}

/* The same with what was granted, which may be more than what was asked for. */

static void test_over_granted(void)
{
	struct ibv_sge s[64];
	struct lab l;

	lab_open(&l, &(struct opt){.inl = 16, .sges = 1});
	MUST(l.cap.max_send_sge < 64);
	for (int i = 0; i < 64; i++)
		s[i] = lab_sge(&l);
	MUST(lab_send(&l, s, (int)l.cap.max_send_sge + 1, IBV_SEND_SIGNALED));
	want("post_num_sge");
	s[0].length = l.cap.max_inline_data + 1;
	MUST(lab_send(&l, s, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	want("post_inline_len");
	lab_close(&l);
	want("");
}

static void test_dead_end(void)
{
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, &(struct opt){.send_wr = 4, .recv_wr = 4, .cqe = 1024});
	s = lab_sge(&l);
	for (uint32_t i = 0; i < l.cap.max_send_wr; i++)
		MUST(!lab_send(&l, &s, 1, 0));
	want("");
	lab_send(&l, &s, 1, 0); /* whether or not this device takes it */
	want("post_sq_dead_end");
	_exit(0);
}

static void test_list_unused(void)
{
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, NULL);
	s = lab_sge(&l);
	MUST(!lab_recv(&l, &s, 1));
	MUST(!lab_send(&l, &s, 0, IBV_SEND_SIGNALED));
	want("post_list_unused");
	lab_poll(&l, 2, NULL);
	lab_close(&l);
	want("");
}

static void test_state(void)
{
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, &(struct opt){.stop = STAY});
	s = lab_sge(&l);
	MUST(lab_send(&l, &s, 1, IBV_SEND_SIGNALED));
	want("post_state");
	MUST(lab_recv(&l, &s, 1));
	want("post_state");
	lab_close(&l);
	want("");
}

static void test_opcode(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .num_sge = 1}, *bad;
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, &(struct opt){.type = IBV_QPT_UC});
	s = lab_sge(&l);
	wr.sg_list = &s;
	MUST(ibv_post_send(l.qp[0], &wr, &bad));
	want("post_opcode");
	lab_close(&l);
}

static void test_ud(void)
{
	struct ibv_sge s;
	struct ibv_ah *ah;
	struct lab l;

	lab_open(&l, &(struct opt){.type = IBV_QPT_UD});
	s = lab_sge(&l);
	s.length = 39;
	MUST(!lab_recv(&l, &s, 1));
	want("ud_no_grh_room");
	ah = l.ah;
	MUST((l.ah = ibv_create_ah(l.pd2, &l.path)) != NULL);
	lab_send(&l, &s, 1, IBV_SEND_SIGNALED);
	want("post_ah");
	MUST(!ibv_destroy_ah(ah));
	lab_close(&l);
	want("");
}

/* ---- the other end's keys, which are this process's */

static void rdma(struct lab *l, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {addr, rkey}};
	struct ibv_sge s = lab_sge(l);
	struct ibv_send_wr *bad;

	wr.sg_list = &s;
	MUST(!ibv_post_send(l->qp[0], &wr, &bad));
}

static void test_rkey(void)
{
	struct lab l;

	lab_open(&l, NULL);
	rdma(&l, (uintptr_t)l.buf + 4096, l.mr->rkey);
	lab_poll(&l, 1, NULL);
	want("");
	rdma(&l, (uintptr_t)l.buf + 4096, l.mr->lkey);
	want("rkey_is_lkey");
	lab_poll(&l, 1, NULL);
	lab_close(&l);
	want("");
}

static void test_rkey_range(void)
{
	struct lab l;

	lab_open(&l, NULL);
	rdma(&l, (uintptr_t)l.buf + LAB_LEN - 1, l.mr->rkey);
	want("rkey_range_end");
	_exit(0);
}

/* ---- memory that goes away */

static void test_in_flight(void)
{
	struct ibv_sge s;
	struct ibv_wc wc;
	struct lab l;

	lab_open(&l, NULL);
	s = lab_sge(&l);
	MUST(!lab_recv(&l, &s, 1));
	MUST(!ibv_dereg_mr(l.mr));
	l.mr = NULL;
	want("mr_in_flight");
	want_text("wr_id 0x46");
	want_text("posted at");
	MUST(!lab_to(&l, 1, IBV_QPS_ERR));
	lab_poll(&l, 1, &wc);
	lab_close(&l);
	want("");
}

static void test_freed(void)
{
	struct ibv_sge s;
	struct lab l;

	if (SANITIZED)
		_exit(77);
	lab_open(&l, NULL);
	s = lab_sge(&l);
	MUST(!lab_recv(&l, &s, 1));
	free(l.buf);
	l.buf = NULL;
	want("buffer_freed");
	lab_close(&l);
	want("");
}

static void test_unmapped(void)
{
	struct ibv_sge s = {.length = 64};
	struct ibv_mr *mr;
	struct lab l;
	void *p;

	if (SANITIZED)
		_exit(77);
	lab_open(&l, NULL);
	p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(p != MAP_FAILED);
	MUST((mr = ibv_reg_mr(l.pd, p, 65536, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	s.addr = (uintptr_t)p;
	s.lkey = mr->lkey;
	MUST(!lab_recv(&l, &s, 1));
	MUST(!munmap(p, 65536));
	want("buffer_freed");
	MUST(!lab_to(&l, 1, IBV_QPS_ERR));
	MUST(!ibv_dereg_mr(mr));
	lab_close(&l);
	want("");
}

static void test_data(void)
{
	struct ibv_sge s;
	struct lab l;

	lab_open(&l, NULL);
	s = lab_sge(&l);
	MUST(!lab_send(&l, &s, 1, IBV_SEND_SIGNALED));
	l.buf[5] ^= 1;
	s.addr += 4096;
	MUST(!lab_recv(&l, &s, 1));
	lab_poll(&l, 2, NULL);
	want("data_changed");
	MUST(!lab_recv(&l, &s, 1));
	s.addr -= 4096;
	MUST(!lab_send(&l, &s, 1, IBV_SEND_SIGNALED));
	lab_poll(&l, 2, NULL);
	lab_close(&l);
	want("");
}

/* ---- failed completions */

static void test_poison(void)
{
	struct ibv_sge s;
	struct ibv_wc wc;
	struct lab l;

	lab_open(&l, NULL);
	s = lab_sge(&l);
	MUST(!lab_recv(&l, &s, 1));
	MUST(!lab_to(&l, 1, IBV_QPS_ERR));
	lab_poll(&l, 1, &wc);
	MUST(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 70);
	MUST(wc.qp_num == l.qp[1]->qp_num);
	MUST(wc.byte_len == 0x5a5a5a5a && (uint32_t)wc.opcode == 0x5a5a5a5a);
	lab_close(&l);
	want("");
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"lkey_unknown", test_lkey_unknown},
		{"lkey_stale", test_lkey_stale},
		{"lkey_is_rkey", test_lkey_is_rkey},
		{"lkey_other_pd", test_lkey_other_pd},
		{"lkey_range_end", test_lkey_range_end},
		{"lkey_range_start", test_lkey_range_start},
		{"sge_wraps", test_sge_wraps},
		{"sge_empty", test_sge_empty},
		{"lkey_no_write", test_lkey_no_write},
		{"granted", test_granted},
		{"sq_full", test_sq_full},
		{"over_granted", test_over_granted},
		{"dead_end", test_dead_end},
		{"list_unused", test_list_unused},
		{"state", test_state},
		{"opcode", test_opcode},
		{"ud", test_ud},
		{"rkey", test_rkey},
		{"rkey_range", test_rkey_range},
		{"in_flight", test_in_flight},
		{"freed", test_freed},
		{"unmapped", test_unmapped},
		{"data", test_data},
		{"poison", test_poison},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
