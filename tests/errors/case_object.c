/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creating, registering and destroying: what the device refuses to make, and that nothing is taken
 * away from under an object that still uses it. One process, no traffic.
 */
#include "kit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static struct k_end end;

static void open_end(const struct k_opts *o)
{
	end.sock = -1;
	k_open(&end, o);
}

/* ---- in use */

static void pd_in_use(const struct k_case *c)
{
	struct ibv_pd *pd;
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr qp_attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_mr *mr = NULL;
	struct ibv_srq *srq = NULL;
	struct ibv_qp *qp = NULL;

	open_end(NULL);
	pd = end.pd[1];
	qp_attr.send_cq = qp_attr.recv_cq = end.cq[0];
	if (c->i == 0)
		K_CHECK((mr = ibv_reg_mr(pd, end.arena, 4096, 0)) != NULL);
	else if (c->i == 1)
		K_CHECK((srq = ibv_create_srq(pd, &srq_attr)) != NULL);
	else
		K_CHECK((qp = ibv_create_qp(pd, &qp_attr)) != NULL);
	K_WANT_INT(ibv_dealloc_pd(pd), EBUSY);
	K_WANT_SAID(&end, "busy", "1 objects");
	if (mr)
		K_WANT_INT(ibv_dereg_mr(mr), 0);
	if (srq)
		K_WANT_INT(ibv_destroy_srq(srq), 0);
	if (qp)
		K_WANT_INT(ibv_destroy_qp(qp), 0);
	K_WANT_INT(ibv_dealloc_pd(pd), 0);
}

static void cq_in_use(const struct k_case *c)
{
	open_end(NULL);
	K_WANT_INT(ibv_destroy_cq(end.cq[c->i]), EBUSY);
	K_WANT_SAID(&end, "busy", NULL);
	K_WANT_INT(ibv_destroy_qp(end.qp), 0);
	K_WANT_INT(ibv_destroy_cq(end.cq[c->i]), 0);
}

static void srq_in_use(const struct k_case *c)
{
	struct k_opts o = {.srq_wr = 8};

	(void)c;
	open_end(&o);
	K_WANT_INT(ibv_destroy_srq(end.srq), EBUSY);
	K_WANT_SAID(&end, "busy", NULL);
	K_WANT_INT(ibv_destroy_qp(end.qp), 0);
	K_WANT_INT(ibv_destroy_srq(end.srq), 0);
}

static void channel_in_use(const struct k_case *c)
{
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;

	(void)c;
	open_end(NULL);
	ch = ibv_create_comp_channel(end.ctx);
	K_CHECK(ch);
	cq = ibv_create_cq(end.ctx, 4, NULL, ch, 0);
	K_CHECK(cq);
	K_WANT_INT(ibv_destroy_comp_channel(ch), EBUSY);
	K_WANT_INT(ibv_destroy_cq(cq), 0);
	K_WANT_INT(ibv_destroy_comp_channel(ch), 0);
}

/* ---- registering */

static void reg_access(const struct k_case *c)
{
	struct k_mr mr;

	open_end(NULL);
	K_WANT_INT(k_reg(&end, 0, 0, 4096, c->i, &mr), EINVAL);
	K_WANT_SAID(&end, c->said, NULL);
}

static void want_no_mr(void *addr, size_t len, int access, const char *said)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(end.pd[0], addr, len, access);
	K_CHECK(!mr);
	K_WANT_INT(errno, said ? EFAULT : EINVAL);
	if (said)
		K_WANT_SAID(&end, said, NULL);
}

static void reg_unmapped(const struct k_case *c)
{
	char *p;

	(void)c;
	open_end(NULL);
	p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	K_CHECK(p != MAP_FAILED);
	munmap(p + 4096, 4096);
	want_no_mr(p + 4096, 100, IBV_ACCESS_LOCAL_WRITE, "reg_range");
	want_no_mr(p, 3 * 4096, IBV_ACCESS_LOCAL_WRITE, "reg_range"); /* a hole in the middle */
}

static void reg_read_only(const struct k_case *c)
{
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	(void)c;
	K_CHECK(p != MAP_FAILED);
	open_end(NULL);
	want_no_mr(p, 4096, IBV_ACCESS_LOCAL_WRITE, "reg_range");
	mr = ibv_reg_mr(end.pd[0], p, 4096, IBV_ACCESS_REMOTE_READ);
	K_CHECK(mr);
	K_WANT_INT(ibv_dereg_mr(mr), 0);
}

static void reg_wraps(const struct k_case *c)
{
	struct ibv_mr *mr;

	(void)c;
	open_end(NULL);
	mr = ibv_reg_mr(end.pd[0], (void *)(UINTPTR_MAX - 4095), 8192, IBV_ACCESS_LOCAL_WRITE);
	K_CHECK(!mr && (errno == EFAULT || errno == EINVAL));
	K_WANT_SAID(&end, "reg_range", NULL);
}

/* lkey and rkey differ, and no two regions have the same. */
static void keys_differ(const struct k_case *c)
{
	struct k_mr a, b;

	(void)c;
	open_end(NULL);
	a = k_good(&end, 0, 64);
	b = k_good(&end, 0, 64);
	K_CHECK(a.lkey != a.rkey && a.lkey != b.lkey && a.rkey != b.rkey);
	K_CHECK(a.lkey != b.rkey && b.lkey != a.rkey);
}

/* ---- creating */

static void too_much(const struct k_case *c)
{
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};

	open_end(NULL);
	K_WANT_INT(ibv_query_device(end.ctx, &dev), 0);
	attr.send_cq = attr.recv_cq = end.cq[0];
	if (c->i == 0)
		attr.cap.max_send_wr = (uint32_t)dev.max_qp_wr + 1;
	else if (c->i == 1)
		attr.cap.max_recv_wr = (uint32_t)dev.max_qp_wr + 1;
	else if (c->i == 2)
		attr.cap.max_send_sge = (uint32_t)dev.max_sge + 1;
	else if (c->i == 3)
		attr.cap.max_recv_sge = (uint32_t)dev.max_sge + 1;
	else
		attr.cap.max_inline_data = 1u << 20;
	K_CHECK(!ibv_create_qp(end.pd[0], &attr));
	K_WANT_INT(errno, EINVAL);
	K_WANT_SAID(&end, "create_limit", NULL);
}

static void cq_too_large(const struct k_case *c)
{
	struct ibv_device_attr dev;

	open_end(NULL);
	K_WANT_INT(ibv_query_device(end.ctx, &dev), 0);
	K_CHECK(!ibv_create_cq(end.ctx, c->i ? 0 : dev.max_cqe + 1, NULL, NULL, 0));
	K_WANT_INT(errno, EINVAL);
	K_WANT_SAID(&end, "create_limit", NULL);
}

static void qp_wrong(const struct k_case *c)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};

	open_end(NULL);
	attr.send_cq = attr.recv_cq = end.cq[0];
	if (c->i == 0)
		attr.recv_cq = NULL;
	else
		attr.qp_type = (enum ibv_qp_type)c->i;
	K_CHECK(!ibv_create_qp(end.pd[0], &attr));
	K_CHECK(errno == EINVAL || errno == EOPNOTSUPP);
	K_WANT_SAID(&end, c->said, NULL);
}

/* A CQ that holds completions cannot be made smaller than they are many. */
static void resize_below(const struct k_case *c)
{
	struct k_pair p;
	struct k_mr mr;
	struct k_wr wr;

	(void)c;
	k_pair(&p, NULL, NULL);
	mr = k_good(&p.a, 0, 64);
	K_WANT_INT(k_modify(&p.a, IBV_QPS_ERR), 0);
	for (uint64_t i = 0; i < 8; i++) {
		wr = k_wr_send(i, k_whole(&mr));
		K_WANT_INT(k_send(&p.a, &wr), 0);
	}
	K_CHECK(ibv_resize_cq(p.a.cq[K_SQ], 4) != 0);
	K_WANT_SAID(&p.a, "cq_too_small", NULL);
	K_WANT_INT(ibv_resize_cq(p.a.cq[K_SQ], 256), 0);
	for (uint64_t i = 0; i < 8; i++)
		K_WANT_WC(&p.a, K_SQ, i, IBV_WC_WR_FLUSH_ERR);
}

/* clang-format off */
static const struct k_case cases[] = {
	{"pd_with_mr", pd_in_use, 0, 0, NULL, 0, true},
	{"pd_with_srq", pd_in_use, 1, 0, NULL, 0, true},
	{"pd_with_qp", pd_in_use, 2, 0, NULL, 0, true},
	{"send_cq_with_qp", cq_in_use, 0, 0, NULL, 0, true},
	{"recv_cq_with_qp", cq_in_use, 1, 0, NULL, 0, true},
	{"srq_with_qp", srq_in_use, 0, 0, NULL, 0, true},
	{"channel_with_cq", channel_in_use, 0, 0, NULL, 0, true},
	{"remote_write_without_local_write", reg_access, IBV_ACCESS_REMOTE_WRITE, 0, "reg_access",
	 0, true},
	{"remote_atomic_without_local_write", reg_access, IBV_ACCESS_REMOTE_ATOMIC, 0, "reg_access",
	 0, true},
	{"access_bit_unknown", reg_access, 1 << 30, 0, "reg_access_bits", 0, true},
	{"memory_not_mapped", reg_unmapped, 0, 0, NULL, 0, true},
	{"memory_read_only", reg_read_only, 0, 0, NULL, 0, true},
	{"memory_wraps_around", reg_wraps, 0, 0, NULL, 0, true},
	{"keys_differ", keys_differ, 0, 0, NULL, 0, true},
	{"max_send_wr", too_much, 0, 0, NULL, 0, true},
	{"max_recv_wr", too_much, 1, 0, NULL, 0, true},
	{"max_send_sge", too_much, 2, 0, NULL, 0, true},
	{"max_recv_sge", too_much, 3, 0, NULL, 0, true},
	{"max_inline", too_much, 4, 0, NULL, 0, true},
	{"max_cqe", cq_too_large, 0, 0, NULL, 0, true},
	{"cqe_0", cq_too_large, 1, 0, NULL, 0, true},
	{"qp_without_cq", qp_wrong, 0, 0, "create_qp_cq", 0, true},
	{"qp_type_raw_packet", qp_wrong, IBV_QPT_RAW_PACKET, 0, "create_qp_type", 0, true},
	{"qp_type_unknown", qp_wrong, 77, 0, "create_qp_type", 0, true},
	{"cq_resized_below_content", resize_below, 0, 0, NULL, 0, true},
};
/* clang-format on */

const struct k_group k_object_group = {"object", cases, sizeof(cases) / sizeof(cases[0])};
