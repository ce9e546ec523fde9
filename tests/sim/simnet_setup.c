/* SPDX-License-Identifier: BSD-2-Clause */
/* The standing part of simnet: memory, keys, queues and the way of a QP to RTS. */
#include <stdlib.h>
#include <string.h>

#include "sim/simnet.h"

#define SWQE_STRIDE                                                                                \
	((VRB_SWQE_HEADER + SN_INLINE_MAX + SN_SGE_MAX * sizeof(struct vrb_sge) + 15) & ~15ul)
#define RWQE_STRIDE ((VRB_RWQE_HEADER + SN_SGE_MAX * sizeof(struct vrb_sge) + 15) & ~15ul)
#define GUARD_LEN   16u
#define QKEY	    0x11111111u

static const uint32_t region_access[SN_N_REGIONS] = {
	[SN_SRC] = 0,
	[SN_DST] = VRB_ACC_LOCAL_WRITE,
	[SN_REM] = VRB_ACC_LOCAL_WRITE | VRB_ACC_REMOTE_WRITE | VRB_ACC_REMOTE_READ |
		   VRB_ACC_REMOTE_ATOMIC | VRB_ACC_MW_BIND,
};

static bool end_init(struct sn_end *e)
{
	bool ok = true;

	e->scq.ring = calloc(SN_CQ_LEN, sizeof(struct vrb_cqe));
	e->rcq.ring = calloc(SN_CQ_LEN, sizeof(struct vrb_cqe));
	e->srq_mem = calloc(SN_RQ_MAX, RWQE_STRIDE);
	ok &= e->scq.ring && e->rcq.ring && e->srq_mem;
	for (unsigned k = 0; k < SN_N_REGIONS; k++) {
		struct sn_region *g = &e->region[k];

		g->mem = malloc(SN_REGION_LEN);
		ok &= g->mem != NULL;
		if (g->mem)
			memset(g->mem, SN_GUARD, SN_REGION_LEN);
	}
	for (unsigned i = 0; i < SN_QPS_MAX; i++) {
		struct sn_qp *q = &e->qp[i];

		q->sq_mem = calloc(SN_SQ_MAX, SWQE_STRIDE);
		q->rq_mem = calloc(SN_RQ_MAX, RWQE_STRIDE);
		q->rwqe = calloc(1, RWQE_STRIDE);
		q->rd = calloc(VRB_RD_ATOMIC_MAX, sizeof(*q->rd));
		ok &= q->sq_mem && q->rq_mem && q->rwqe && q->rd;
	}
	return ok;
}

bool sn_init(struct sn *sn)
{
	bool ok;

	memset(sn, 0, sizeof(*sn));
	ok = end_init(&sn->end[0]);
	ok &= end_init(&sn->end[1]);
	if (!ok)
		sn_fini(sn);
	return ok;
}

void sn_fini(struct sn *sn)
{
	for (unsigned k = 0; k < 2; k++) {
		struct sn_end *e = &sn->end[k];

		free(e->scq.ring);
		free(e->rcq.ring);
		free(e->srq_mem);
		for (unsigned i = 0; i < SN_N_REGIONS; i++)
			free(e->region[i].mem);
		for (unsigned i = 0; i < SN_QPS_MAX; i++) {
			free(e->qp[i].sq_mem);
			free(e->qp[i].rq_mem);
			free(e->qp[i].rwqe);
			free(e->qp[i].rd);
		}
	}
}

static void cq_start(struct vrb_cq *cq)
{
	struct vrb_cqe *ring = cq->ring;

	memset(cq, 0, sizeof(*cq));
	cq->ring = ring;
	cq->cap = SN_CQ_LEN;
	cq->mask = SN_CQ_LEN - 1;
}

static void region_start(struct sn_end *e, enum sn_region_kind kind)
{
	struct sn_region *g = &e->region[kind];
	const struct vrb_key key = {
		.base = (uintptr_t)g->mem,
		.len = SN_REGION_LEN,
		.host = (uintptr_t)g->mem,
		.pd = SN_PD,
		.access = region_access[kind],
	};

	memset(g->mem, SN_GUARD, g->used);
	g->used = GUARD_LEN;
	g->n_slots = 0;
	vrb_mr_add(&e->keys, &key, &g->lkey, &g->rkey);
}

static struct vrb_gid gid_of(unsigned k, bool ipv6)
{
	struct vrb_gid g = {{0}};

	if (ipv6) {
		g.raw[0] = 0xfd;
	} else {
		g.raw[10] = g.raw[11] = 0xff;
		g.raw[12] = 10;
	}
	g.raw[15] = (uint8_t)(k + 1);
	return g;
}

void sn_start(struct sn *sn, struct vrb_link *link[2], bool ipv6)
{
	sn->now = 0;
	sn->failed = false;
	sn->why[0] = '\0';
	vrb_fx_reset(&sn->fx);
	for (unsigned k = 0; k < 2; k++) {
		struct sn_end *e = &sn->end[k];

		e->sn = sn;
		e->link = link[k];
		e->gid = gid_of(k, ipv6);
		e->to_peer = (struct vrb_av){
			.dgid = gid_of(!k, ipv6), .hop_limit = 64, .port = 1, .pd = SN_PD};
		cq_start(&e->scq);
		cq_start(&e->rcq);
		vrb_keytab_init(&e->keys, 12345 + k);
		memset(e->key_mem, 0, sizeof(e->key_mem));
		vrb_keytab_grow(&e->keys, e->key_mem, SN_KEYS);
		for (unsigned i = 0; i < SN_N_REGIONS; i++)
			region_start(e, (enum sn_region_kind)i);
		e->n_qp = 0;
		e->ack_delay = 0;
		e->requests_first = false;
		e->fast = false;
		e->tx_burst = 8;
		e->stuck_len = 0;
		memset(e->n_async, 0, sizeof(e->n_async));
		e->n_notified = 0;
	}
}

void sn_stop(struct sn *sn)
{
	vrb_link_close(sn->end[0].link);
	vrb_link_close(sn->end[1].link);
}

uint8_t *sn_slot(struct sn_end *e, enum sn_region_kind kind, uint32_t len, uint32_t align)
{
	struct sn_region *g = &e->region[kind];
	uint32_t off = (g->used + align - 1) / align * align;

	if (g->n_slots == SN_SLOTS_MAX || off + len + GUARD_LEN > SN_REGION_LEN) {
		sn_fail(e->sn, "the test wants more memory than a region has");
		return g->mem + GUARD_LEN;
	}
	g->slot[g->n_slots++] = (struct sn_slot){off, len};
	g->used = off + len + GUARD_LEN;
	return g->mem + off;
}

static void check_region(struct sn *sn, const struct sn_region *g)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i <= g->n_slots; i++) {
		uint32_t stop = i < g->n_slots ? g->slot[i].off : g->used;

		for (; at < stop; at++) {
			if (g->mem[at] != SN_GUARD) {
				sn_fail(sn, "a guard byte has been overwritten");
				return;
			}
		}
		if (i < g->n_slots)
			at += g->slot[i].len;
	}
}

void sn_check_guards(struct sn *sn)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < SN_N_REGIONS; i++)
			check_region(sn, &sn->end[k].region[i]);
}

void sn_srq(struct sn_end *e, uint32_t cap)
{
	memset(&e->srq, 0, sizeof(e->srq));
	e->srq.pd = SN_PD;
	e->srq.wq = (struct vrb_wq){.ring = e->srq_mem,
				    .stride = RWQE_STRIDE,
				    .mask = SN_RQ_MAX - 1,
				    .cap = cap,
				    .max_sge = SN_SGE_MAX};
}

struct sn_qp *sn_find_qp(struct sn_end *e, vrb_qpn qpn)
{
	for (uint32_t i = 0; i < e->n_qp; i++)
		if (e->qp[i].core.qpn == qpn)
			return &e->qp[i];
	return NULL;
}

static void qp_create(struct sn_end *e, unsigned k, const struct sn_qp_conf *c)
{
	struct sn_qp *q = &e->qp[e->n_qp];
	const struct vrb_qp_conf conf = {
		.type = c->type,
		.qpn = (k + 1) << VRB_QPN_INDEX_BITS | (e->n_qp + 1),
		.pd = SN_PD,
		.scq = &e->scq,
		.rcq = &e->rcq,
		.srq = c->srq[k] ? &e->srq : NULL,
		.keys = &e->keys,
		.sq = {.ring = q->sq_mem,
		       .stride = SWQE_STRIDE,
		       .mask = SN_SQ_MAX - 1,
		       .cap = c->sq_cap,
		       .max_sge = SN_SGE_MAX},
		.rq = {.ring = q->rq_mem,
		       .stride = RWQE_STRIDE,
		       .mask = SN_RQ_MAX - 1,
		       .cap = c->srq[k] ? 0 : c->rq_cap,
		       .max_sge = SN_SGE_MAX},
		.cur_rwqe = q->rwqe,
		.max_inline = SN_INLINE_MAX,
	};

	memset(&q->core, 0, sizeof(q->core));
	q->ack_due = VRB_NS_NEVER;
	vrb_qp_init(&q->core, &conf);
	if (c->rd_atomic > VRB_RD_ATOMIC_OWN)
		vrb_qp_give_rd(&q->core, q->rd);
}

static void qp_to_rts(struct sn_end *e, unsigned k, vrb_qpn peer, const struct sn_qp_conf *c)
{
	struct sn_qp *q = &e->qp[e->n_qp];
	struct vrb_qp *qp = &q->core;
	struct vrb_fx *fx = &e->sn->fx;
	uint32_t mtu = 128u << c->mtu_code;
	struct vrb_qp_attr a = {
		.state = VRB_QPS_INIT,
		.port = 1,
		.path_mtu = (uint8_t)c->mtu_code,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.min_rnr_timer = c->min_rnr_timer,
		.max_rd_atomic = c->rd_atomic,
		.max_dest_rd_atomic = c->rd_atomic,
		.qkey = QKEY,
		.dest_qpn = peer,
		.access = VRB_ACC_REMOTE_WRITE | VRB_ACC_REMOTE_READ | VRB_ACC_REMOTE_ATOMIC,
		.rq_psn = c->psn[!k],
		.sq_psn = c->psn[k],
		.dgid = e->to_peer.dgid,
		.is_global = 1,
		.hop_limit = 64,
	};
	bool rc = c->type == VRB_QPT_RC, ud = c->type == VRB_QPT_UD;

	vrb_qp_modify(qp, &a,
		      VRB_QPA_STATE | VRB_QPA_PKEY_INDEX | VRB_QPA_PORT |
			      (ud ? VRB_QPA_QKEY : VRB_QPA_ACCESS),
		      0, 0, fx);
	a.state = VRB_QPS_RTR;
	vrb_qp_modify(
		qp, &a,
		VRB_QPA_STATE |
			(ud ? 0
			    : VRB_QPA_AV | VRB_QPA_PATH_MTU | VRB_QPA_DEST_QPN | VRB_QPA_RQ_PSN) |
			(rc ? VRB_QPA_MAX_DEST_RD_ATOMIC | VRB_QPA_MIN_RNR_TIMER : 0),
		mtu, c->window_max, fx);
	a.state = VRB_QPS_RTS;
	vrb_qp_modify(qp, &a,
		      VRB_QPA_STATE | VRB_QPA_SQ_PSN |
			      (rc ? VRB_QPA_TIMEOUT | VRB_QPA_RETRY_CNT | VRB_QPA_RNR_RETRY |
					       VRB_QPA_MAX_QP_RD_ATOMIC
				  : 0),
		      0, 0, fx);
	vrb_fx_reset(fx);
	q->adapts = rc && c->adapts;
	q->n_requests = q->n_lost = 0;
	if (q->adapts)
		vrb_window_init(&q->window, qp, c->window_max);
}

void sn_connect(struct sn *sn, const struct sn_qp_conf *conf)
{
	for (unsigned k = 0; k < 2; k++)
		qp_create(&sn->end[k], k, conf);
	for (unsigned k = 0; k < 2; k++) {
		struct sn_end *peer = &sn->end[!k];

		qp_to_rts(&sn->end[k], k, peer->qp[peer->n_qp].core.qpn, conf);
	}
	sn->end[0].n_qp++;
	sn->end[1].n_qp++;
}
