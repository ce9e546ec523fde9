/* SPDX-License-Identifier: BSD-2-Clause */
/* See end.h. Polls yield now and then, since two ends may share one CPU. */
#include "end.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void die(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n > sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	if (write(2, text, (size_t)n) < 0)
		_exit(2);
	_exit(1);
}

double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

struct ibv_context *end_device(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	const char *want = getenv("VRB_TEST_DEV");
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && i < n && !ctx; i++)
		if (!want || !strcmp(want, ibv_get_device_name(list[i])))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!ctx) {
		fprintf(stderr, "skipped: no RDMA device\n");
		_exit(77);
	}
	return ctx;
}

static void fill(struct end_opts *o)
{
	if (!o->type)
		o->type = IBV_QPT_RC;
	if (!o->send_wr)
		o->send_wr = 128;
	if (!o->recv_wr)
		o->recv_wr = 128;
	if (!o->sges)
		o->sges = 1;
	if (!o->cqe)
		o->cqe = o->send_wr + o->recv_wr;
	if (!o->len)
		o->len = 4096;
	if (!o->mtu)
		o->mtu = IBV_MTU_4096;
	if (!o->timeout)
		o->timeout = 14;
	if (!o->retry)
		o->retry = 7;
	if (!o->rnr_retry)
		o->rnr_retry = 7;
}

static void open_memory(struct end *e)
{
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC;

	e->buf =
		mmap(NULL, e->opts.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(e->buf != MAP_FAILED);
	memset(e->buf, 0, e->opts.len);
	e->mr = ibv_reg_mr(e->pd, e->buf, e->opts.len, all);
	if (!e->mr)
		die("ibv_reg_mr: %s", strerror(errno));
}

static void modify(struct end *e, struct ibv_qp_attr *a, int mask)
{
	int err = ibv_modify_qp(e->qp, a, mask | IBV_QP_STATE);

	if (err)
		die("ibv_modify_qp to state %d: %s", (int)a->qp_state, strerror(err));
}

void end_init(struct end *e)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_READ |
						   IBV_ACCESS_REMOTE_ATOMIC};

	modify(e, &a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

void end_open(struct end *e, const struct end_opts *o)
{
	struct ibv_qp_init_attr init = {0};

	memset(e, 0, sizeof(*e));
	if (o)
		e->opts = *o;
	fill(&e->opts);
	e->own_ctx = !e->opts.ctx;
	e->ctx = e->own_ctx ? end_device() : e->opts.ctx;
	MUST((e->pd = ibv_alloc_pd(e->ctx)) != NULL);
	if (e->opts.channel)
		MUST((e->chan = ibv_create_comp_channel(e->ctx)) != NULL);
	MUST((e->cq = ibv_create_cq(e->ctx, (int)e->opts.cqe, e, e->chan, 0)) != NULL);
	open_memory(e);
	init.send_cq = init.recv_cq = e->cq;
	init.qp_type = e->opts.type;
	init.cap = (struct ibv_qp_cap){e->opts.send_wr, e->opts.recv_wr, e->opts.sges, e->opts.sges,
				       e->opts.inline_max};
	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp)
		die("ibv_create_qp: %s", strerror(errno));
	MUST(!ibv_query_gid(e->ctx, 1, 0, &e->id.gid));
	e->id.qpn = e->qp->qp_num;
	e->id.rkey = e->mr->rkey;
	e->id.addr = (uintptr_t)e->buf;
	e->id.len = e->opts.len;
	end_init(e);
}

void end_connect(struct end *e, const struct end_id *peer)
{
	bool rc = e->opts.type == IBV_QPT_RC;
	struct ibv_qp_attr a;

	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = e->opts.mtu,
				 .dest_qp_num = peer->qpn,
				 .max_dest_rd_atomic = 16,
				 .min_rnr_timer = 1,
				 .ah_attr = {.is_global = 1,
					     .port_num = 1,
					     .grh = {.dgid = peer->gid, .hop_limit = 64}}};
	modify(e, &a,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = (uint8_t)e->opts.timeout,
				 .retry_cnt = (uint8_t)e->opts.retry,
				 .rnr_retry =
					 (uint8_t)(e->opts.rnr_retry < 0 ? 0 : e->opts.rnr_retry),
				 .max_rd_atomic = 16};
	modify(e, &a,
	       IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_MAX_QP_RD_ATOMIC
				   : 0));
}

void end_close(struct end *e)
{
	MUST(!ibv_destroy_qp(e->qp));
	MUST(!ibv_destroy_cq(e->cq));
	if (e->chan)
		MUST(!ibv_destroy_comp_channel(e->chan));
	MUST(!ibv_dereg_mr(e->mr));
	MUST(!ibv_dealloc_pd(e->pd));
	if (e->own_ctx)
		MUST(!ibv_close_device(e->ctx));
	munmap(e->buf, e->opts.len);
}

bool put_all(int fd, const void *p, size_t n)
{
	return send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n;
}

bool get_all(int fd, void *p, size_t n)
{
	return recv(fd, p, n, MSG_WAITALL) == (ssize_t)n;
}

bool end_meet(struct end *e, int sock, struct end_id *peer)
{
	char ready = 'r';

	if (!put_all(sock, &e->id, sizeof(e->id)) || !get_all(sock, peer, sizeof(*peer)))
		return false;
	end_connect(e, peer);
	return put_all(sock, &ready, 1) && get_all(sock, &ready, 1);
}

int end_recv(struct end *e, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)e->buf + off, len, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

int end_send(struct end *e, uint64_t id, size_t off, uint32_t len, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)e->buf + off, len, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = flags};
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, &wr, &bad);
}

int end_rdma(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t len, uint64_t raddr,
	     uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, len, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = op,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {raddr, rkey}};
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, &wr, &bad);
}

int end_atomic(struct end *e, bool cas, uint64_t raddr, uint32_t rkey, uint64_t add, uint64_t swap)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, 8, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = cas ? IBV_WR_ATOMIC_CMP_AND_SWP
					       : IBV_WR_ATOMIC_FETCH_AND_ADD,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.atomic = {raddr, add, swap, rkey}};
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, &wr, &bad);
}

bool end_wc(struct end *e, struct ibv_wc *wc, int ms)
{
	double until = 0;

	for (uint64_t i = 1;; i++) {
		int n = ibv_poll_cq(e->cq, 1, wc);

		if (n == 1)
			return true;
		MUST(n == 0);
		if (i % 64)
			continue;
		sched_yield();
		if (!until)
			until = now_s() + ms / 1000.0;
		if (now_s() > until)
			return false;
	}
}

void end_done(struct end *e, uint64_t id)
{
	struct ibv_wc wc;

	if (!end_wc(e, &wc, WAIT_MS))
		die("no completion within %d s; wanted id %llu", WAIT_MS / 1000,
		    (unsigned long long)id);
	if (wc.status != IBV_WC_SUCCESS || wc.wr_id != id)
		die("completion id %llu, %s; wanted id %llu", (unsigned long long)wc.wr_id,
		    ibv_wc_status_str(wc.status), (unsigned long long)id);
}
