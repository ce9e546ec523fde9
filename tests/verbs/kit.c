/* SPDX-License-Identifier: BSD-2-Clause */
/* See kit.h. */
#include "kit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QKEY 0x11111111

uint64_t clock_ns(int clock)
{
	struct timespec t;

	clock_gettime((clockid_t)clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void sleep_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
		  NULL);
}

void pair_open(struct pair *p)
{
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	memset(p, 0, sizeof(*p));
	p->ctx = end_device();
	MUST((p->pd = ibv_alloc_pd(p->ctx)) != NULL);
	p->buf = aligned_alloc(4096, PAIR_LEN);
	MUST(p->buf);
	memset(p->buf, 0, PAIR_LEN);
	MUST((p->mr = ibv_reg_mr(p->pd, p->buf, PAIR_LEN, all)) != NULL);
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	int err = ibv_modify_qp(qp, a, mask | IBV_QP_STATE);

	if (err)
		die("ibv_modify_qp to state %d: %s", (int)a->qp_state, strerror(err));
}

static void to_init(struct ibv_qp *qp)
{
	bool ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qkey = QKEY,
				.qp_access_flags =
					IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	modify(qp, &a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static void to_rts(struct ibv_qp *qp, const struct ibv_ah_attr *ah, uint32_t dqpn)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = dqpn,
				.max_dest_rd_atomic = 1,
				.min_rnr_timer = 1,
				.ah_attr = *ah};
	bool rc = qp->qp_type == IBV_QPT_RC, ud = qp->qp_type == IBV_QPT_UD;

	modify(qp, &a,
	       ud ? 0
		  : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 1};
	modify(qp, &a,
	       IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_MAX_QP_RD_ATOMIC
				   : 0));
}

/* The first GID that RoCE v2 can use. */
static int gid_index(struct ibv_context *ctx, union ibv_gid *gid)
{
	struct ibv_gid_entry e;

	for (int i = 0; i < 256; i++) {
		if (ibv_query_gid_ex(ctx, 1, (uint32_t)i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		*gid = e.gid;
		return i;
	}
	die("no RoCE v2 GID");
}

void pair_connect(struct pair *p, enum ibv_qp_type type, struct ibv_cq *const cq[2])
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};

	ah.grh.sgid_index = (uint8_t)gid_index(p->ctx, &ah.grh.dgid);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {.send_cq = cq[i],
						.recv_cq = cq[i],
						.qp_type = type,
						.cap = {PAIR_WR, PAIR_WR, 1, 1, 0}};

		MUST((p->qp[i] = ibv_create_qp(p->pd, &init)) != NULL);
		to_init(p->qp[i]);
	}
	for (int i = 0; i < 2; i++)
		to_rts(p->qp[i], &ah, p->qp[!i]->qp_num);
	if (type == IBV_QPT_UD)
		MUST((p->ah = ibv_create_ah(p->pd, &ah)) != NULL);
}

void pair_close_qps(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->qp[i])
			MUST(!ibv_destroy_qp(p->qp[i]));
		p->qp[i] = NULL;
	}
	if (p->ah)
		MUST(!ibv_destroy_ah(p->ah));
	p->ah = NULL;
}

void pair_close(struct pair *p)
{
	pair_close_qps(p);
	MUST(!ibv_dereg_mr(p->mr));
	MUST(!ibv_dealloc_pd(p->pd));
	MUST(!ibv_close_device(p->ctx));
	free(p->buf);
}

void pair_recv(struct pair *p, int to, uint64_t id)
{
	struct ibv_sge s = {(uintptr_t)p->buf + PAIR_LEN / 2, PAIR_LEN / 2, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;

	MUST(!ibv_post_recv(p->qp[to], &wr, &bad));
}

void pair_send(struct pair *p, int from, uint64_t id, uint32_t len, unsigned int flags)
{
	struct ibv_sge s = {(uintptr_t)p->buf, len, p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &s,
				 .num_sge = 1,
				 .opcode = p->imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
				 .send_flags = flags,
				 .imm_data = p->imm};
	struct ibv_send_wr *bad;

	if (p->ah) {
		wr.wr.ud.ah = p->ah;
		wr.wr.ud.remote_qpn = p->qp[!from]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	MUST(!ibv_post_send(p->qp[from], &wr, &bad));
}
