/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles through the real verbs API: each knob changes what the device says and does, and what it
 * does not change works as ever. A profile is the process's own, so each test begins with it.
 */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void with(const char *profile)
{
	MUST(!setenv("VERBENA_PROFILE", profile, 1));
}

/* The text as a file. */
static void with_text(const char *text)
{
	int fd = memfd_create("profile", 0);
	char path[64];

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	with(path);
}

/* What is explained meanwhile. */
struct ear {
	int fd, was;
};

static void begin_to_listen(struct ear *e)
{
	setenv("VERBENA_EXPLAIN", "1", 1);
	e->fd = memfd_create("stderr", 0);
	e->was = dup(2);
	MUST(e->fd >= 0 && e->was >= 0 && dup2(e->fd, 2) == 2);
}

static void want_heard(struct ear *e, const char *text)
{
	char said[4096] = "";

	MUST(dup2(e->was, 2) == 2);
	MUST(pread(e->fd, said, sizeof(said) - 1, 0) > 0);
	if (!strstr(said, text))
		die("said: %s", said);
	close(e->fd);
	close(e->was);
}

static struct ibv_cq *make_cq(struct pair *p, int cqe)
{
	struct ibv_cq *cq = ibv_create_cq(p->ctx, cqe, NULL, NULL, 0);

	MUST(cq);
	return cq;
}

/* The errno of a QP with these capabilities, or 0 and what was granted. */
static int try_qp(struct pair *p, struct ibv_cq *cq, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = *cap};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(p->pd, &a);
	*cap = a.cap;
	if (!qp)
		return errno;
	MUST(!ibv_destroy_qp(qp));
	return 0;
}

#define QP_ERR(p, cq, ...) try_qp(p, cq, &(struct ibv_qp_cap){__VA_ARGS__})

static int try_srq(struct pair *p, uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr a = {.attr = {.max_wr = wr, .max_sge = sge}};
	struct ibv_srq *srq;

	errno = 0;
	srq = ibv_create_srq(p->pd, &a);
	if (!srq)
		return errno;
	MUST(!ibv_destroy_srq(srq));
	return 0;
}

static void message_works(struct pair *p)
{
	struct ibv_cq *cq[2] = {make_cq(p, 2 * PAIR_WR), make_cq(p, 2 * PAIR_WR)};
	struct ibv_wc wc;

	pair_connect(p, IBV_QPT_RC, cq);
	memset(p->buf, 7, 100);
	pair_recv(p, 1, 8);
	pair_send(p, 0, 7, 100, IBV_SEND_SIGNALED);
	for (int i = 0; i < 2; i++) {
		while (!ibv_poll_cq(cq[i], 1, &wc))
			;
		MUST(wc.status == IBV_WC_SUCCESS);
	}
	MUST(!memcmp(p->buf, p->buf + PAIR_LEN / 2, 100));
	pair_close_qps(p);
	MUST(!ibv_destroy_cq(cq[0]) && !ibv_destroy_cq(cq[1]));
}

/* ---- limits */

static void test_sges(void)
{
	struct ibv_device_attr dev;
	struct ibv_cq *cq;
	struct pair p;

	with("sge3");
	pair_open(&p);
	cq = make_cq(&p, 8);
	MUST(!ibv_query_device(p.ctx, &dev) && dev.max_sge == 1 && dev.max_srq_sge == 1);
	MUST(QP_ERR(&p, cq, 1, 1, 3, 1, 0) == 0);
	MUST(QP_ERR(&p, cq, 1, 1, 4, 1, 0) == EINVAL);
	MUST(QP_ERR(&p, cq, 1, 1, 3, 2, 0) == EINVAL);
	MUST(try_srq(&p, 1, 1) == 0 && try_srq(&p, 1, 2) == EINVAL);
	message_works(&p);
	MUST(!ibv_destroy_cq(cq));
	pair_close(&p);
}

static void inline_limit(const char *profile, uint32_t max, uint32_t granted_for_1)
{
	struct ibv_qp_cap cap = {1, 1, 1, 1, 1};
	struct ibv_cq *cq;
	struct pair p;

	with(profile);
	pair_open(&p);
	cq = make_cq(&p, 8);
	MUST(QP_ERR(&p, cq, 1, 1, 1, 1, max) == 0 && QP_ERR(&p, cq, 1, 1, 1, 1, max + 1) == EINVAL);
	MUST(try_qp(&p, cq, &cap) == (max ? 0 : EINVAL));
	MUST(!max || cap.max_inline_data == granted_for_1);
	cap = (struct ibv_qp_cap){1, 1, 1, 1, max};
	MUST(!try_qp(&p, cq, &cap) && cap.max_inline_data == max);
	cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
	MUST(!try_qp(&p, cq, &cap) && cap.max_inline_data == 0);
	message_works(&p);
	MUST(!ibv_destroy_cq(cq));
	pair_close(&p);
}

static void test_no_inline(void)
{
	inline_limit("noinline", 0, 0);
}

static void test_inline_strict(void)
{
	inline_limit("inline101", 101, 1);
}

static void test_inline_rounded(void)
{
	inline_limit("inline220", 220, 64);
}

static void test_small(void)
{
	struct ibv_device_attr dev;
	struct ibv_cq *cq;
	struct pair p;

	with("small");
	pair_open(&p);
	MUST(!ibv_query_device(p.ctx, &dev));
	MUST(dev.max_qp_wr == 16 && dev.max_cqe == 16 && dev.max_srq_wr == 16);
	MUST(dev.max_qp_rd_atom == 1 && dev.max_qp_init_rd_atom == 1);
	cq = make_cq(&p, 16);
	errno = 0;
	MUST(!ibv_create_cq(p.ctx, 17, NULL, NULL, 0) && errno == EINVAL);
	MUST(ibv_resize_cq(cq, 17) == EINVAL);
	MUST(QP_ERR(&p, cq, 16, 16, 1, 1, 0) == 0);
	MUST(QP_ERR(&p, cq, 17, 16, 1, 1, 0) == EINVAL);
	MUST(QP_ERR(&p, cq, 16, 17, 1, 1, 0) == EINVAL);
	MUST(try_srq(&p, 16, 1) == 0 && try_srq(&p, 17, 1) == EINVAL);
	MUST(!ibv_destroy_cq(cq));
	pair_close(&p);
}

/* As many as fit, and one more, which is refused; then one is given back and its place is free. */
static void fill(struct pair *p, int room, void *(*make)(struct pair *p), int (*end)(void *object))
{
	void *object[32];

	for (int i = 0; i < room; i++)
		MUST((object[i] = make(p)) != NULL);
	errno = 0;
	MUST(!make(p) && errno == ENOMEM);
	MUST(!end(object[0]) && (object[0] = make(p)) != NULL);
	errno = 0;
	MUST(!make(p) && errno == ENOMEM);
	for (int i = 0; i < room; i++)
		MUST(!end(object[i]));
}

static struct ibv_cq *few_cq;

static void *new_pd(struct pair *p)
{
	return ibv_alloc_pd(p->ctx);
}

static int end_pd(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *new_cq(struct pair *p)
{
	return ibv_create_cq(p->ctx, 1, NULL, NULL, 0);
}

static int end_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *new_qp(struct pair *p)
{
	struct ibv_qp_init_attr a = {.send_cq = few_cq,
				     .recv_cq = few_cq,
				     .qp_type = IBV_QPT_RC,
				     .cap = {1, 1, 1, 1, 0}};

	return ibv_create_qp(p->pd, &a);
}

static int end_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *new_mr(struct pair *p)
{
	return ibv_reg_mr(p->pd, p->buf, 64, IBV_ACCESS_LOCAL_WRITE);
}

static int end_mr(void *mr)
{
	return ibv_dereg_mr(mr);
}

static void *new_ah(struct pair *p)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};

	MUST(!ibv_query_gid(p->ctx, 1, 0, &a.grh.dgid));
	return ibv_create_ah(p->pd, &a);
}

static int end_ah(void *ah)
{
	return ibv_destroy_ah(ah);
}

/* The kit has a PD and a region. */
static void test_few(void)
{
	struct ibv_device_attr dev;
	struct pair p;
	struct ear ear;

	with("few");
	begin_to_listen(&ear);
	pair_open(&p);
	MUST(!ibv_query_device(p.ctx, &dev));
	MUST(dev.max_qp == 8 && dev.max_cq == 8 && dev.max_mr == 16 && dev.max_pd == 4 &&
	     dev.max_ah == 8 && dev.max_mr_size == 1048576);
	few_cq = make_cq(&p, 8);
	fill(&p, 3, new_pd, end_pd);
	fill(&p, 7, new_cq, end_cq);
	fill(&p, 8, new_qp, end_qp);
	fill(&p, 15, new_mr, end_mr);
	fill(&p, 8, new_ah, end_ah);
	want_heard(&ear,
		   "create_many: there is no room for one more protection domain: 4 are there");
	MUST(!ibv_destroy_cq(few_cq));
	message_works(&p);
	pair_close(&p);
}

static void test_mr_size(void)
{
	const size_t most = 1048576;
	char *mem = aligned_alloc(4096, most + 4096);
	struct ibv_mr *mr;
	struct pair p;
	struct ear ear;

	MUST(mem);
	with("few");
	pair_open(&p);
	begin_to_listen(&ear);
	errno = 0;
	MUST(!ibv_reg_mr(p.pd, mem, most + 1, IBV_ACCESS_LOCAL_WRITE) && errno == EINVAL);
	want_heard(&ear, "length of the memory region: 1048577 asked for, the limit is 1048576");
	MUST((mr = ibv_reg_mr(p.pd, mem, most, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, most + 1, 0) ==
		     IBV_REREG_MR_ERR_INPUT &&
	     errno == EINVAL);
	MUST(!ibv_dereg_mr(mr));
	pair_close(&p);
	free(mem);
}

/* What a program leaves in a context that it closes does not count any more. */
static void test_few_left(void)
{
	struct pair p;

	with("few");
	for (int i = 0; i < 10; i++) {
		struct ibv_context *ctx;

		pair_open(&p);
		ctx = ibv_open_device(p.ctx->device);
		MUST(ctx);
		for (int k = 0; k < 3; k++)
			MUST(ibv_alloc_pd(ctx));
		MUST(!ibv_close_device(ctx));
		pair_close(&p);
	}
}

/* max_rd_atomic: the kit asks for one, which is the least; 2 are refused. */
static void test_rd_atomic(void)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD}, more = {.max_rd_atomic = 2};
	struct ibv_cq *cq[2];
	struct pair p;

	with_text("max_rd_atomic = 1");
	pair_open(&p);
	cq[0] = cq[1] = make_cq(&p, 64);
	pair_connect(&p, IBV_QPT_RC, cq);
	MUST(!ibv_modify_qp(p.qp[0], &a, IBV_QP_STATE));
	MUST(ibv_modify_qp(p.qp[0], &more, IBV_QP_MAX_QP_RD_ATOMIC) == EINVAL);
	more = (struct ibv_qp_attr){.max_dest_rd_atomic = 2};
	MUST(ibv_modify_qp(p.qp[0], &more, IBV_QP_MAX_DEST_RD_ATOMIC) == EINVAL);
	pair_close_qps(&p);
	MUST(!ibv_destroy_cq(cq[0]));
	pair_close(&p);
}

/* ---- what is not offered */

static void test_no_times(void)
{
	struct ibv_cq_init_attr_ex plain = {.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS}, timed;
	struct ibv_modify_cq_attr mod = {IBV_CQ_ATTR_MODERATE, {4, 4}};
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_device_attr_ex dev;
	struct ibv_cq_ex *cq;
	struct pair p;

	with("notime");
	pair_open(&p);
	MUST(!ibv_query_device_ex(p.ctx, NULL, &dev));
	MUST(!dev.completion_timestamp_mask && !dev.hca_core_clock);
	MUST(!dev.cq_mod_caps.max_cq_count && !dev.cq_mod_caps.max_cq_period);
	MUST(ibv_query_rt_values_ex(p.ctx, &v) == EOPNOTSUPP);
	for (int wall = 0; wall < 2; wall++) {
		timed = plain;
		timed.wc_flags |= wall ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK
				       : IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
		errno = 0;
		MUST(!ibv_create_cq_ex(p.ctx, &timed) && errno == EOPNOTSUPP);
	}
	MUST((cq = ibv_create_cq_ex(p.ctx, &plain)) != NULL);
	MUST(ibv_modify_cq(ibv_cq_ex_to_cq(cq), &mod) == EOPNOTSUPP);
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	message_works(&p);
	pair_close(&p);
}

/* ---- how errors are told */

static void want_minus_one(int ret, int err)
{
	MUST(ret == -1 && errno == err);
	errno = 0;
}

static void test_minus_one(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct pair p;

	with("minusone");
	pair_open(&p);
	init.send_cq = init.recv_cq = cq = make_cq(&p, 8);
	MUST((qp = ibv_create_qp(p.pd, &init)) != NULL);
	want_minus_one(ibv_post_send(qp, &send, &bad_send), EINVAL);
	want_minus_one(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	MUST(bad_send == &send && bad_recv == &recv);
	want_minus_one(ibv_modify_qp(qp, &rts, IBV_QP_STATE), EINVAL);
	want_minus_one(ibv_resize_cq(cq, 0), EINVAL);
	want_minus_one(ibv_destroy_cq(cq), EBUSY);
	want_minus_one(ibv_dealloc_pd(p.pd), EBUSY);
	init.cap.max_send_wr = 1u << 30;
	MUST(!ibv_create_qp(p.pd, &init) && errno == EINVAL);
	MUST(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	message_works(&p);
	pair_close(&p);
}

/* ---- states */

static void test_reset_to_reset(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET}, err = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp *qp;
	struct pair p;

	with("strict");
	pair_open(&p);
	init.send_cq = init.recv_cq = make_cq(&p, 8);
	MUST((qp = ibv_create_qp(p.pd, &init)) != NULL);
	MUST(ibv_modify_qp(qp, &reset, IBV_QP_STATE) == EINVAL);
	MUST(!ibv_modify_qp(qp, &err, IBV_QP_STATE));
	MUST(!ibv_modify_qp(qp, &reset, IBV_QP_STATE));
	MUST(ibv_modify_qp(qp, &reset, IBV_QP_STATE) == EINVAL);
	MUST(!ibv_destroy_qp(qp) && !ibv_destroy_cq(init.send_cq));
	pair_close(&p);
}

/* Posts in ERR: refused with the profile, flushed without; the builders like the posts. */
static void posts_in_err(bool refused)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC,
					   .cap = {4, 4, 1, 1, 0},
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .send_ops_flags = IBV_QP_EX_WITH_SEND};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	int want = refused ? EINVAL : 0, n = 0;
	struct ibv_wc wc;
	struct ibv_qp *qp;
	struct pair p;

	pair_open(&p);
	init.pd = p.pd;
	init.send_cq = init.recv_cq = make_cq(&p, 8);
	MUST((qp = ibv_create_qp_ex(p.ctx, &init)) != NULL);
	MUST(!ibv_modify_qp(qp, &err, IBV_QP_STATE));
	MUST(ibv_post_send(qp, &send, &bad_send) == want);
	MUST(ibv_post_recv(qp, &recv, &bad_recv) == want);
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	ibv_wr_send(ibv_qp_to_qp_ex(qp));
	MUST(ibv_wr_complete(ibv_qp_to_qp_ex(qp)) == want);
	while (ibv_poll_cq(init.send_cq, 1, &wc) == 1)
		n++;
	MUST(n == (refused ? 0 : 3));
	MUST(!ibv_destroy_qp(qp) && !ibv_destroy_cq(init.send_cq));
	pair_close(&p);
}

static void test_posts_in_err(void)
{
	with("strict");
	posts_in_err(true);
}

static void test_posts_in_err_plain(void)
{
	with("plain");
	posts_in_err(false);
}

static void last_wqe(bool wanted)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 0, 1, 0, 0}};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event ev;
	struct ibv_qp *qp;
	struct pair p;

	pair_open(&p);
	fcntl(p.ctx->async_fd, F_SETFL, fcntl(p.ctx->async_fd, F_GETFL) | O_NONBLOCK);
	init.send_cq = init.recv_cq = make_cq(&p, 8);
	MUST((init.srq = ibv_create_srq(p.pd, &srq_attr)) != NULL);
	MUST((qp = ibv_create_qp(p.pd, &init)) != NULL);
	MUST(!ibv_modify_qp(qp, &err, IBV_QP_STATE));
	if (wanted) {
		MUST(!ibv_get_async_event(p.ctx, &ev));
		MUST(ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && ev.element.qp == qp);
		ibv_ack_async_event(&ev);
	}
	MUST(ibv_get_async_event(p.ctx, &ev) && errno == EAGAIN);
	MUST(!ibv_destroy_qp(qp) && !ibv_destroy_srq(init.srq) && !ibv_destroy_cq(init.send_cq));
	pair_close(&p);
}

static void test_no_last_wqe(void)
{
	with("strict");
	last_wqe(false);
}

static void test_last_wqe_plain(void)
{
	with("plain");
	last_wqe(true);
}

/* ---- GIDs: empty, v1, v2, empty, v1, v2, ... */

static int rtr_with(struct pair *p, struct ibv_qp *qp, uint8_t index)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = qp->qp_num,
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.sgid_index = index, .hop_limit = 1}}};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	int err;

	MUST(!ibv_query_gid(p->ctx, 1, 2, &rtr.ah_attr.grh.dgid));
	MUST(!ibv_modify_qp(qp, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	err = ibv_modify_qp(qp, &rtr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	MUST(!ibv_modify_qp(qp, &reset, IBV_QP_STATE));
	return err;
}

static void test_gids(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	union ibv_gid none = {{0}}, gid;
	struct ibv_gid_entry e[16], first;
	struct ibv_port_attr port;
	struct ibv_qp *qp;
	struct ear ear;
	ssize_t n;
	struct pair p;

	with("gids");
	pair_open(&p);
	MUST(!ibv_query_port(p.ctx, 1, &port) && port.gid_tbl_len == 16);
	MUST(!ibv_query_gid(p.ctx, 1, 0, &gid) && !memcmp(&gid, &none, sizeof(gid)));
	MUST(ibv_query_gid_ex(p.ctx, 1, 0, &first, 0) == ENODATA);
	n = ibv_query_gid_table(p.ctx, e, 16, 0);
	MUST(n >= 2 && n % 2 == 0);
	for (ssize_t i = 0; i < n; i++) {
		MUST(e[i].gid_type == (i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1));
		MUST(e[i].gid_index == i / 2 * 3 + 1 + i % 2);
		MUST(!memcmp(&e[i].gid, &e[i - i % 2].gid, sizeof(gid)));
	}
	init.send_cq = init.recv_cq = make_cq(&p, 8);
	MUST((qp = ibv_create_qp(p.pd, &init)) != NULL);
	begin_to_listen(&ear);
	MUST(rtr_with(&p, qp, 0) == EINVAL && rtr_with(&p, qp, 1) == EINVAL);
	want_heard(&ear, "modify_gid_v1: sgid_index 1 is");
	MUST(rtr_with(&p, qp, 2) == 0 && rtr_with(&p, qp, 15) == EINVAL);
	MUST(!ibv_destroy_qp(qp) && !ibv_destroy_cq(init.send_cq));
	message_works(&p);
	pair_close(&p);
}

/* An answer by a handle made from a completion takes the v2 entry. */
static void test_gids_from_wc(void)
{
	struct ibv_cq *cq[2];
	struct ibv_ah_attr ah;
	struct ibv_wc wc;
	struct pair p;

	with("gids");
	pair_open(&p);
	cq[0] = make_cq(&p, 2 * PAIR_WR);
	cq[1] = make_cq(&p, 2 * PAIR_WR);
	pair_connect(&p, IBV_QPT_UD, cq);
	pair_recv(&p, 1, 8);
	pair_send(&p, 0, 7, 100, IBV_SEND_SIGNALED);
	while (!ibv_poll_cq(cq[1], 1, &wc))
		;
	MUST(wc.status == IBV_WC_SUCCESS && wc.wc_flags & IBV_WC_GRH);
	MUST(!ibv_init_ah_from_wc(p.ctx, 1, &wc, (struct ibv_grh *)(void *)(p.buf + PAIR_LEN / 2),
				  &ah));
	MUST(ah.grh.sgid_index % 3 == 2);
	pair_close_qps(&p);
	MUST(!ibv_destroy_cq(cq[0]) && !ibv_destroy_cq(cq[1]));
	pair_close(&p);
}

/* ---- memory */

static void test_memlock(void)
{
	struct rlimit limit = {PAIR_LEN + 8192, PAIR_LEN + 8192};
	struct ibv_mr *mr, *rest;
	struct pair p;
	struct ear ear;
	char *mem;

	with("memlock");
	MUST(!setrlimit(RLIMIT_MEMLOCK, &limit));
	pair_open(&p); /* has PAIR_LEN */
	mem = aligned_alloc(4096, 16384);
	MUST(mem);
	begin_to_listen(&ear);
	errno = 0;
	MUST(!ibv_reg_mr(p.pd, mem, 8193, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
	want_heard(&ear, "reg_memlock: registering 12288 bytes on top of 65536");
	MUST((mr = ibv_reg_mr(p.pd, mem, 8192, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	errno = 0;
	MUST(!ibv_reg_mr(p.pd, mem, 1, 0) && errno == ENOMEM);
	/* a range in two pages counts as two; what cannot grow stays */
	MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem + 4095, 4098, 0) ==
		     IBV_REREG_MR_ERR_INPUT &&
	     errno == ENOMEM);
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem + 4096, 4096, 0));
	MUST((rest = ibv_reg_mr(p.pd, mem, 1, 0)) != NULL);
	MUST(!ibv_dereg_mr(rest) && !ibv_dereg_mr(mr));
	MUST((mr = ibv_reg_mr(p.pd, mem, 8192, 0)) != NULL);
	MUST(!ibv_dereg_mr(mr));
	message_works(&p);
	pair_close(&p);
	free(mem);
}

/* ---- everything at once, and mistakes */

static void test_harsh(void)
{
	struct pair p;

	with("harsh");
	pair_open(&p);
	pair_close(&p);
}

static void test_cx(void)
{
	struct pair p;

	with("cx");
	pair_open(&p);
	message_works(&p);
	pair_close(&p);
}

/* Opening a device is refused, and text is said. */
static void want_said(const char *text)
{
	struct ibv_device **list;
	struct ear ear;
	int n = 0;

	list = ibv_get_device_list(&n);
	if (!list || !n)
		_exit(77);
	begin_to_listen(&ear);
	errno = 0;
	MUST(!ibv_open_device(list[0]) && errno);
	want_heard(&ear, text);
	ibv_free_device_list(list);
}

static void test_wrong_file(void)
{
	with_text("max_send_sge = 3\nmax_recv_sgee = 1\n");
	want_said("line 2, column 1: `max_recv_sgee`, but expected a knob");
}

static void test_wrong_explained(void)
{
	with_text("\nmax_send_sge = 0\n");
	want_said("verbena: profile: the device profile is not usable (line 2, column 16)");
}

static void test_no_file(void)
{
	with("nonsense");
	want_said("nonsense: No such file or directory, and no profile has that name; there are: "
		  "plain sge1");
}

static void test_long_file(void)
{
	char text[9000];

	memset(text, '\n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	with_text(text);
	want_said("more than 8192 bytes");
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"sges", test_sges},
		{"no_inline", test_no_inline},
		{"inline_strict", test_inline_strict},
		{"inline_rounded", test_inline_rounded},
		{"small", test_small},
		{"rd_atomic", test_rd_atomic},
		{"no_times", test_no_times},
		{"minus_one", test_minus_one},
		{"reset_to_reset", test_reset_to_reset},
		{"posts_in_err", test_posts_in_err},
		{"posts_in_err_plain", test_posts_in_err_plain},
		{"no_last_wqe", test_no_last_wqe},
		{"last_wqe_plain", test_last_wqe_plain},
		{"gids", test_gids},
		{"gids_from_wc", test_gids_from_wc},
		{"few", test_few},
		{"few left behind", test_few_left},
		{"region size", test_mr_size},
		{"memlock", test_memlock},
		{"harsh", test_harsh},
		{"cx", test_cx},
		{"wrong_file", test_wrong_file},
		{"wrong_explained", test_wrong_explained},
		{"no_file", test_no_file},
		{"long_file", test_long_file},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
