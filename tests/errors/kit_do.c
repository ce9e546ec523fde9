/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an end does when it is asked: the verbs calls themselves. Objects are made once and left to
 * the end of the process, except those a case destroys to see what happens then.
 */
#include "kit_do.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int failed(struct k_rep *r, const char *what)
{
	snprintf(r->text, sizeof(r->text), "%s", what);
	r->err = errno ? errno : EINVAL;
	return r->err;
}

static int open_device(struct k_end *e, struct k_rep *r)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n), *dev = NULL;
	const char *want = getenv("VRB_TEST_DEV");

	for (int i = 0; list && i < n; i++)
		if (!dev && (!want || !strcmp(want, ibv_get_device_name(list[i]))))
			dev = list[i];
	if (!dev) {
		errno = ENODEV;
		return failed(r, "no device");
	}
	e->ctx = ibv_open_device(dev);
	ibv_free_device_list(list);
	if (!e->ctx)
		return failed(r, "ibv_open_device");
	if (ibv_query_gid(e->ctx, 1, 0, &e->self.gid))
		return failed(r, "ibv_query_gid");
	return 0;
}

static int make_queues(struct k_end *e, struct k_rep *r)
{
	const struct k_opts *o = &e->opts;

	for (int i = 0; i < 2; i++) {
		e->pd[i] = ibv_alloc_pd(e->ctx);
		e->cq[i] = ibv_create_cq(e->ctx, (int)o->cqe, NULL, NULL, 0);
		if (!e->pd[i] || !e->cq[i])
			return failed(r, "PD or CQ");
	}
	if (o->srq_wr) {
		struct ibv_srq_init_attr attr = {.attr = {.max_wr = o->srq_wr, .max_sge = o->sges}};

		e->srq = ibv_create_srq(e->pd[0], &attr);
		if (!e->srq)
			return failed(r, "ibv_create_srq");
	}
	return 0;
}

static int make_qp(struct k_end *e, struct k_rep *r)
{
	const struct k_opts *o = &e->opts;
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq[K_SQ],
		.recv_cq = e->cq[K_RQ],
		.srq = e->srq,
		.qp_type = o->type,
		.cap = {.max_send_wr = o->send_wr,
			.max_recv_wr = o->recv_wr,
			.max_send_sge = o->sges,
			.max_recv_sge = o->sges,
			.max_inline_data = o->inline_max},
	};

	e->qp = ibv_create_qp(e->pd[0], &init);
	if (!e->qp)
		return failed(r, "ibv_create_qp");
	e->self.qpn = e->qp->qp_num;
	return 0;
}

static void do_open(struct k_end *e, const struct k_req *q, struct k_rep *r)
{
	e->opts = q->opts;
	e->arena = mmap(NULL, K_ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (e->arena == MAP_FAILED) {
		failed(r, "mmap");
		return;
	}
	memset(e->arena, 0x5a, K_ARENA);
	if (open_device(e, r) || make_queues(e, r) || make_qp(e, r))
		return;
	r->addr = e->self;
}

static int zero_or(int v)
{
	return v < 0 ? 0 : v;
}

static int attr_init(const struct k_end *e, struct ibv_qp_attr *attr)
{
	attr->port_num = 1;
	if (e->opts.type == IBV_QPT_UD) {
		attr->qkey = e->opts.qkey;
		return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	}
	attr->qp_access_flags = e->opts.access;
	return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static union ibv_gid gid_of_v4(uint32_t a)
{
	return (union ibv_gid){.raw = {[10] = 0xff,
				       [11] = 0xff,
				       [12] = (uint8_t)(a >> 24),
				       [13] = (uint8_t)(a >> 16),
				       [14] = (uint8_t)(a >> 8),
				       [15] = (uint8_t)a}};
}

static int attr_rtr(const struct k_end *e, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (e->opts.type == IBV_QPT_UD)
		return 0;
	attr->path_mtu = e->opts.mtu;
	attr->dest_qp_num = e->opts.dest_qpn ? e->opts.dest_qpn : e->peer.qpn;
	attr->rq_psn = e->opts.rq_psn ? e->opts.rq_psn
				      : 0xfffffe; /* the PSN wraps within the first messages */
	attr->ah_attr.is_global = 1;
	attr->ah_attr.grh.dgid = e->peer.gid;
	if (e->opts.dest_v4)
		attr->ah_attr.grh.dgid = gid_of_v4(e->opts.dest_v4);
	attr->ah_attr.grh.hop_limit = 64;
	attr->ah_attr.port_num = 1;
	if (e->opts.type != IBV_QPT_RC)
		return mask;
	attr->max_dest_rd_atomic = (uint8_t)zero_or(e->opts.dest_rd_atomic);
	attr->min_rnr_timer = (uint8_t)e->opts.rnr_timer;
	return mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int attr_rts(const struct k_end *e, struct ibv_qp_attr *attr)
{
	attr->sq_psn = 0xfffffe;
	if (e->opts.type != IBV_QPT_RC)
		return IBV_QP_SQ_PSN;
	attr->timeout = (uint8_t)e->opts.timeout;
	attr->retry_cnt = (uint8_t)zero_or(e->opts.retry_cnt);
	attr->rnr_retry = (uint8_t)zero_or(e->opts.rnr_retry);
	attr->max_rd_atomic = (uint8_t)zero_or(e->opts.rd_atomic);
	return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_MAX_QP_RD_ATOMIC;
}

int k_attr(const struct k_end *e, enum ibv_qp_state to, struct ibv_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = to;
	if (to == IBV_QPS_INIT)
		return IBV_QP_STATE | attr_init(e, attr);
	if (to == IBV_QPS_RTR)
		return IBV_QP_STATE | attr_rtr(e, attr);
	if (to == IBV_QPS_RTS)
		return IBV_QP_STATE | attr_rts(e, attr);
	return IBV_QP_STATE;
}

static void do_connect(struct k_end *e, const struct k_req *q, struct k_rep *r)
{
	struct ibv_qp_attr attr;
	struct ibv_ah_attr ah = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = q->addr.gid, .hop_limit = 64}};

	e->peer = q->addr;
	if (e->opts.stop == K_STAY)
		return;
	for (int to = IBV_QPS_INIT; to <= (int)e->opts.stop; to++) {
		int mask = k_attr(e, (enum ibv_qp_state)to, &attr);

		errno = ibv_modify_qp(e->qp, &attr, mask);
		if (errno) {
			failed(r, "ibv_modify_qp");
			return;
		}
	}
	if (e->opts.type == IBV_QPT_UD) {
		e->ah = ibv_create_ah(e->pd[0], &ah);
		if (!e->ah)
			failed(r, "ibv_create_ah");
	}
}

static void do_reg(struct k_end *e, const struct k_req *q, struct k_rep *r)
{
	struct ibv_mr *mr = NULL;
	int id = 0;

	while (id < K_MRS - 1 && e->mr[id])
		id++;
	mr = ibv_reg_mr(e->pd[q->i], e->arena + q->off, q->len, q->access);
	if (!mr) {
		failed(r, "ibv_reg_mr");
		return;
	}
	e->mr[id] = mr;
	r->mr = (struct k_mr){.addr = (uintptr_t)mr->addr,
			      .len = q->len,
			      .lkey = mr->lkey,
			      .rkey = mr->rkey,
			      .id = id};
}

static void fill_sges(const struct k_wr *w, struct ibv_sge *to)
{
	for (int i = 0; i < w->n_sge && i < K_SGES; i++)
		to[i] = (struct ibv_sge){
			.addr = w->sge[i].addr, .length = w->sge[i].len, .lkey = w->sge[i].lkey};
}

static void do_send(struct k_end *e, const struct k_wr *w, struct k_rep *r)
{
	struct ibv_sge sge[K_SGES] = {0};
	struct ibv_send_wr *bad = NULL;
	struct ibv_send_wr wr = {.wr_id = w->id,
				 .sg_list = sge,
				 .num_sge = w->n_sge,
				 .opcode = w->op,
				 .imm_data = w->imm};

	fill_sges(w, sge);
	wr.send_flags = w->flags & ~K_UNSIGNALED;
	if (!(w->flags & K_UNSIGNALED))
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (e->opts.type == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->opts.dest_qpn ? e->opts.dest_qpn : e->peer.qpn;
		wr.wr.ud.remote_qkey = w->rkey ? w->rkey : e->opts.qkey;
	} else if (w->op == IBV_WR_ATOMIC_CMP_AND_SWP || w->op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = w->remote_addr;
		wr.wr.atomic.rkey = w->rkey;
		wr.wr.atomic.compare_add = w->add;
		wr.wr.atomic.swap = w->swap;
	} else {
		wr.wr.rdma.remote_addr = w->remote_addr;
		wr.wr.rdma.rkey = w->rkey;
	}
	r->err = ibv_post_send(e->qp, &wr, &bad);
	if (r->err && bad != &wr)
		k_fail(__FILE__, __LINE__, "bad_wr of ibv_post_send is not the refused WR");
}

static void do_recv(struct k_end *e, const struct k_wr *w, struct k_rep *r)
{
	struct ibv_sge sge[K_SGES] = {0};
	struct ibv_recv_wr *bad = NULL;
	struct ibv_recv_wr wr = {.wr_id = w->id, .sg_list = sge, .num_sge = w->n_sge};

	fill_sges(w, sge);
	r->err = e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
	if (r->err && bad != &wr)
		k_fail(__FILE__, __LINE__, "bad_wr of a post of receives is not the refused WR");
}

static void do_poll(struct k_end *e, const struct k_req *q, struct k_rep *r)
{
	double until = k_now() + q->ms / 1000.0;

	do {
		int n = ibv_poll_cq(e->cq[q->i], 1, &r->wc);

		if (n < 0)
			k_fail(__FILE__, __LINE__, "ibv_poll_cq returned %d", n);
		if (n == 1) {
			r->value = 1;
			return;
		}
		sched_yield();
	} while (k_now() < until);
}

static void do_event(struct k_end *e, const struct k_req *q, struct k_rep *r)
{
	double until = k_now() + q->ms / 1000.0;
	int flags = fcntl(e->ctx->async_fd, F_GETFL);
	struct ibv_async_event ev;

	fcntl(e->ctx->async_fd, F_SETFL, flags | O_NONBLOCK);
	do {
		struct pollfd p = {.fd = e->ctx->async_fd, .events = POLLIN};
		double left = until - k_now();

		if (poll(&p, 1, left > 0 ? (int)(left * 1000) : 0) != 1)
			break;
		if (ibv_get_async_event(e->ctx, &ev))
			continue;
		ibv_ack_async_event(&ev);
		if ((int)ev.event_type == q->i) {
			r->value = 1;
			return;
		}
	} while (k_now() < until);
}

static void do_modify(struct k_end *e, const struct k_req *q, struct k_rep *r)
{
	struct ibv_qp_attr attr;
	int mask = k_attr(e, (enum ibv_qp_state)q->i, &attr);

	r->err = ibv_modify_qp(e->qp, &attr, mask);
}

static void do_state(struct k_end *e, struct k_rep *r)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	r->err = ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init);
	r->value = attr.qp_state;
}

void k_do(struct k_end *e, const struct k_req *q, struct k_rep *r)
{
	switch (q->op) {
	case K_OPEN:
		do_open(e, q, r);
		break;
	case K_CONNECT:
		do_connect(e, q, r);
		break;
	case K_REG:
		do_reg(e, q, r);
		break;
	case K_DEREG:
		r->err = ibv_dereg_mr(e->mr[q->i]);
		e->mr[q->i] = NULL;
		break;
	case K_SEND:
		do_send(e, &q->wr, r);
		break;
	case K_RECV:
		do_recv(e, &q->wr, r);
		break;
	case K_MODIFY:
		do_modify(e, q, r);
		break;
	case K_STATE:
		do_state(e, r);
		break;
	case K_POKE:
		memcpy((void *)(uintptr_t)q->addr64, q->data, q->len);
		break;
	case K_PEEK:
		memcpy(r->data, (void *)(uintptr_t)q->addr64, q->len);
		break;
	case K_POLL:
		do_poll(e, q, r);
		break;
	case K_EVENT:
		do_event(e, q, r);
		break;
	case K_SAID:
		r->value = k_log_has(q->text, q->text2, 2000);
		break;
	case K_DESTROY_QP:
		r->err = ibv_destroy_qp(e->qp);
		e->qp = NULL;
		break;
	}
}
