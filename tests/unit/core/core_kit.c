/* SPDX-License-Identifier: BSD-2-Clause */
/* See core_kit.h. */
#include "core_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ring(struct vrb_wq *q, uint64_t *mem, uint32_t n)
{
	*q = (struct vrb_wq){.ring = (uint8_t *)mem,
			     .stride = KIT_STRIDE,
			     .mask = n - 1,
			     .cap = n,
			     .max_sge = VRB_MAX_SGE};
}

struct kit_keys kit_reg(struct kit *k, void *host, uint64_t len, uint32_t pd, uint32_t access)
{
	struct kit_keys keys;
	struct vrb_key r = {.base = (uintptr_t)host,
			    .len = len,
			    .host = (uintptr_t)host,
			    .pd = pd,
			    .access = access};

	vrb_mr_add(&k->keys, &r, &keys.l, &keys.r);
	return keys;
}

static void memory(struct kit *k)
{
	uint32_t all = VRB_ACC_LOCAL_WRITE | VRB_ACC_REMOTE_WRITE | VRB_ACC_REMOTE_READ |
		       VRB_ACC_REMOTE_ATOMIC | VRB_ACC_MW_BIND;

	struct kit_keys x;

	vrb_keytab_init(&k->keys, 42);
	vrb_keytab_grow(&k->keys, k->key_mem, KIT_KEYS);
	x = kit_reg(k, k->mem, KIT_MEM, 1, all);
	k->lkey = x.l;
	k->rkey = x.r;
	x = kit_reg(k, k->ro, KIT_RO, 1, 0);
	k->ro_lkey = x.l;
	k->ro_rkey = x.r;
	x = kit_reg(k, k->other, sizeof(k->other), 2, all);
	k->other_lkey = x.l;
	k->other_rkey = x.r;
	for (uint32_t i = 0; i < KIT_MEM; i++)
		k->wire[i] = (uint8_t)(7 * i + 1);
	for (uint32_t i = 0; i < sizeof(k->grh); i++)
		k->grh[i] = (uint8_t)(0xc0 + i);
}

static uint32_t or_else(uint32_t v, uint32_t other)
{
	return v ? v : other;
}

static uint8_t count(uint8_t v, uint8_t other)
{
	return v == 255 ? 0 : v ? v : other;
}

static void collect(struct kit *k);

static void connect(struct kit *k, const struct kit_opts *o)
{
	static const uint8_t way[] = {VRB_QPS_INIT, VRB_QPS_RTR, VRB_QPS_RTS};
	struct vrb_qp_attr a = {
		.timeout = count(o->timeout, 14),
		.retry_cnt = count(o->retry, 3),
		.rnr_retry = count(o->rnr_retry, 3),
		.min_rnr_timer = KIT_RNR,
		.max_rd_atomic = count(o->rd_atomic, 4),
		.max_dest_rd_atomic = count(o->rd_atomic, 4),
		.qkey = 0x1111,
		.dest_qpn = KIT_PEER,
		.sq_psn = or_else(o->sq_psn, KIT_SQ_PSN),
		.rq_psn = or_else(o->rq_psn, KIT_RQ_PSN),
		.access = o->access == 1 ? 0 : or_else(o->access, 2 | 4 | 8),
	};
	static const uint32_t mask[] = {
		VRB_QPA_ACCESS | VRB_QPA_QKEY,
		VRB_QPA_DEST_QPN | VRB_QPA_RQ_PSN | VRB_QPA_MAX_DEST_RD_ATOMIC |
			VRB_QPA_MIN_RNR_TIMER,
		VRB_QPA_SQ_PSN | VRB_QPA_TIMEOUT | VRB_QPA_RETRY_CNT | VRB_QPA_RNR_RETRY |
			VRB_QPA_MAX_QP_RD_ATOMIC,
	};
	uint32_t until = or_else(o->state, VRB_QPS_RTS);

	for (uint32_t i = 0; i < 3 && way[i] <= until; i++) {
		a.state = way[i];
		vrb_fx_reset(&k->fx);
		vrb_qp_modify(&k->qp, &a, mask[i] | VRB_QPA_STATE, or_else(o->mtu, KIT_MTU),
			      or_else(o->window, 64), &k->fx);
		collect(k);
	}
}

struct kit *kit_new(const struct kit_opts *o)
{
	struct kit *k = calloc(1, sizeof(*k));
	struct vrb_qp_conf c = {.type = or_else(o->type, VRB_QPT_RC), .qpn = KIT_QPN, .pd = 1};

	assert_non_null(k);
	k->now = 1000000;
	memory(k);
	k->scq = (struct vrb_cq){
		.ring = k->scq_ring, .mask = KIT_CQ - 1, .cap = or_else(o->scq_cap, KIT_CQ)};
	k->rcq = (struct vrb_cq){
		.ring = k->rcq_ring, .mask = KIT_CQ - 1, .cap = or_else(o->rcq_cap, KIT_CQ)};
	ring(&c.sq, k->sq_ring, KIT_SQ);
	ring(&c.rq, k->rq_ring, KIT_RQ);
	ring(&k->srq.wq, k->srq_ring, KIT_RQ);
	k->srq.pd = 1;
	k->av.pd = 1;
	c.scq = &k->scq;
	c.rcq = &k->rcq;
	c.srq = o->srq ? &k->srq : NULL;
	c.keys = &k->keys;
	c.cur_rwqe = (struct vrb_rwqe *)k->cur;
	vrb_qp_init(&k->qp, &c);
	connect(k, o);
	return k;
}

void kit_free(struct kit *k)
{
	free(k);
}

static void execute(const struct vrb_place *p)
{
	uint64_t *v = p->dst;

	switch (p->kind) {
	case VRB_PLACE_COPY:
		memcpy(p->dst, p->src, p->len);
		break;
	case VRB_PLACE_CMP_SWAP:
		*p->result = *v;
		if (*v == p->compare)
			*v = p->swap_add;
		break;
	case VRB_PLACE_FETCH_ADD:
		*p->result = *v;
		*v += p->swap_add;
		break;
	}
}

/* Executes the effects of a step and keeps what it said. */
static void collect(struct kit *k)
{
	struct vrb_fx *fx = &k->fx;

	for (uint32_t i = 0; i < fx->n_place; i++)
		execute(&fx->place[i]);
	for (uint32_t i = 0; i < fx->n_event; i++)
		k->event[k->n_event++ % 64] = fx->event[i];
	for (uint32_t i = 0; i < fx->n_report; i++)
		k->report[k->n_report++ % 64] = fx->report[i];
	for (struct vrb_cq *cq = fx->notify; cq; cq = cq->notify_next) {
		cq->due = 0;
		k->n_notified++;
	}
	vrb_fx_reset(fx);
}

void kit_to(struct kit *k, enum vrb_qp_state state)
{
	struct vrb_qp_attr a = {.state = (uint8_t)state, .en_sqd_async = 1};

	vrb_qp_modify(&k->qp, &a, VRB_QPA_STATE | (state == VRB_QPS_SQD ? VRB_QPA_EN_SQD_ASYNC : 0),
		      0, 0, &k->fx);
	collect(k);
}

static struct vrb_swqe *slot(struct kit *k)
{
	return vrb_wq_entry(&k->qp.sq, k->qp.sq.tail);
}

void post(struct kit *k, struct vrb_swqe w, const struct vrb_sge *sge, uint32_t n)
{
	struct vrb_swqe *s = slot(k);
	uint32_t len = 0;

	memcpy(s, &w, VRB_SWQE_HEADER);
	s->n_sge = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++) {
		s->sge[i] = sge[i];
		len += sge[i].len;
	}
	if (w.len == 0)
		s->len = len;
	vrb_qp_post(&k->qp, 1, &k->fx);
	collect(k);
}

void post_inline(struct kit *k, struct vrb_swqe w, const void *bytes, uint32_t len)
{
	struct vrb_swqe *s = slot(k);

	memcpy(s, &w, VRB_SWQE_HEADER);
	s->flags |= VRB_WRF_INLINE;
	s->n_sge = 0;
	s->len = len;
	memcpy(s->data, bytes, len);
	vrb_qp_post(&k->qp, 1, &k->fx);
	collect(k);
}

void post_op(struct kit *k, uint64_t wr_id, enum vrb_wr_op op, uint32_t off, uint32_t len)
{
	struct vrb_sge s = SGE(k, off, len);
	struct vrb_swqe w = {.wr_id = wr_id,
			     .op = (uint8_t)op,
			     .flags = VRB_WRF_SIGNALED,
			     .rkey = 0xabcd00,
			     .va = 0x10000};

	post(k, w, &s, 1);
}

static void fill_recv(struct vrb_rwqe *r, uint64_t wr_id, const struct vrb_sge *sge, uint32_t n)
{
	r->wr_id = wr_id;
	r->n_sge = n;
	r->len = 0;
	for (uint32_t i = 0; i < n; i++) {
		r->sge[i] = sge[i];
		r->len += sge[i].len;
	}
}

void post_recv_sg(struct kit *k, uint64_t wr_id, const struct vrb_sge *sge, uint32_t n)
{
	if (k->qp.srq) {
		fill_recv(vrb_wq_entry(&k->srq.wq, k->srq.wq.tail), wr_id, sge, n);
		k->srq.wq.tail++;
		return;
	}
	fill_recv(vrb_wq_entry(&k->qp.rq, k->qp.rq.tail), wr_id, sge, n);
	vrb_qp_post_recv(&k->qp, 1, &k->fx);
	collect(k);
}

void post_recv(struct kit *k, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct vrb_sge s = SGE(k, off, len);

	post_recv_sg(k, wr_id, &s, 1);
}

void give_at(struct kit *k, const struct vrb_pkt *pkt, uint32_t at)
{
	struct vrb_pkt p = *pkt;

	p.dqpn = KIT_QPN;
	if (!p.payload)
		p.payload = k->wire + at;
	vrb_qp_on_packet(&k->qp, &p, k->now, &k->fx);
	collect(k);
}

void give(struct kit *k, const struct vrb_pkt *pkt)
{
	give_at(k, pkt, 0);
}

void pass(struct kit *k, vrb_ns dt)
{
	k->now += dt;
	if (k->now < vrb_qp_next_deadline(&k->qp))
		return;
	vrb_qp_on_deadline(&k->qp, k->now, &k->fx);
	collect(k);
}

static bool next(struct kit *k, enum kit_side side)
{
	bool got = side == REQ ? vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx)
			       : vrb_qp_poll_response(&k->qp, k->now, &k->tx, &k->fx);

	collect(k);
	return got;
}

static bool same(const struct vrb_pkt *a, const struct vrb_pkt *b)
{
	uint32_t f = vrb_op_flags(a->op);

	if (a->op.v != b->op.v || a->psn.v != b->psn.v || a->len != b->len || a->flags != b->flags)
		return false;
	if ((f & VRB_OPF_AETH) && a->syndrome != b->syndrome)
		return false;
	if (b->msn && a->msn != b->msn)
		return false;
	if ((f & (VRB_OPF_RETH | VRB_OPF_ATOMICETH)) && (a->rkey != b->rkey || a->va != b->va))
		return false;
	return a->dma_len == b->dma_len && a->imm == b->imm && a->inv_rkey == b->inv_rkey &&
	       a->qkey == b->qkey && a->atomic_orig == b->atomic_orig &&
	       a->swap_add == b->swap_add && a->compare == b->compare;
}

void want(struct kit *k, enum kit_side side, const struct vrb_pkt *pkt)
{
	char got[256], exp[256];

	(void)vrb_pkt_dump(exp, sizeof(exp), pkt);
	if (!next(k, side))
		fail_msg("wanted %s, got nothing", exp);
	(void)vrb_pkt_dump(got, sizeof(got), &k->tx.pkt);
	if (!same(&k->tx.pkt, pkt))
		fail_msg("wanted %s (flags %x)\n       got    %s (flags %x)", exp, pkt->flags, got,
			 k->tx.pkt.flags);
	assert_int_equal(k->tx.pkt.pkey, 0xffff);
	if (k->qp.type != VRB_QPT_UD)
		assert_int_equal(k->tx.pkt.dqpn, KIT_PEER);
}

void want_none(struct kit *k, enum kit_side side)
{
	char got[256];

	if (!next(k, side)) {
		assert_false(side == REQ && vrb_qp_can_send(&k->qp, k->now));
		return;
	}
	(void)vrb_pkt_dump(got, sizeof(got), &k->tx.pkt);
	fail_msg("wanted nothing, got %s", got);
}

void want_payload(struct kit *k, const void *p, uint32_t n)
{
	const uint8_t *b = p;
	uint32_t at = 0;

	for (uint32_t i = 0; i < k->tx.n_seg; i++) {
		assert_true(at + k->tx.seg[i].len <= n);
		assert_memory_equal(k->tx.seg[i].base, b + at, k->tx.seg[i].len);
		at += k->tx.seg[i].len;
	}
	assert_int_equal(at, n);
}

struct vrb_wc kit_wc(struct vrb_cq *cq)
{
	struct vrb_wc wc;

	if (vrb_cq_poll(cq, 1, &wc) == 0)
		fail_msg("wanted a completion, there is none");
	return wc;
}

void want_wc(struct kit *k, uint64_t wr_id, enum vrb_wc_status status)
{
	struct vrb_wc wc = kit_wc(&k->scq);

	if (wc.wr_id != wr_id || wc.status != status)
		fail_msg("wanted wr_id %u status %u, got wr_id %u status %u", (unsigned)wr_id,
			 status, (unsigned)wc.wr_id, wc.status);
	assert_int_equal(wc.qp_num, KIT_QPN);
}

void want_recv(struct kit *k, uint64_t wr_id, enum vrb_wc_status status, uint32_t byte_len)
{
	struct vrb_wc wc = kit_wc(&k->rcq);

	if (wc.wr_id != wr_id || wc.status != status)
		fail_msg("wanted receive %u status %u, got %u status %u", (unsigned)wr_id, status,
			 (unsigned)wc.wr_id, wc.status);
	assert_int_equal(wc.qp_num, KIT_QPN);
	if (status == VRB_WC_SUCCESS)
		assert_int_equal(wc.byte_len, byte_len);
}

void want_no_wc(struct kit *k)
{
	assert_int_equal(k->scq.tail - k->scq.head, 0);
	assert_int_equal(k->rcq.tail - k->rcq.head, 0);
}

void want_event(struct kit *k, enum vrb_async_kind kind)
{
	if (k->n_event == 0)
		fail_msg("wanted event %d, there is none", kind);
	if (k->event[0].kind != kind)
		fail_msg("wanted event %d, got %d", kind, k->event[0].kind);
	k->n_event--;
	memmove(&k->event[0], &k->event[1], k->n_event * sizeof(k->event[0]));
}

void want_verdict(struct kit *k, enum vrb_verdict v)
{
	char got[512] = "nothing";

	if (k->n_report > 0)
		(void)vrb_verdict_format(got, sizeof(got), &k->report[0]);
	if (k->n_report == 0 || k->report[0].verdict != v)
		fail_msg("wanted verdict %s, got: %s", vrb_verdict_info(v)->name, got);
	assert_int_equal(k->report[0].qpn, KIT_QPN);
	k->last = k->report[0];
	k->n_report--;
	memmove(&k->report[0], &k->report[1], k->n_report * sizeof(k->report[0]));
}

void want_quiet(struct kit *k)
{
	char got[512];

	if (k->n_event > 0)
		fail_msg("an event is left: %d", k->event[0].kind);
	if (k->n_report > 0) {
		(void)vrb_verdict_format(got, sizeof(got), &k->report[0]);
		fail_msg("a report is left: %s", got);
	}
	want_no_wc(k);
}

void kit_forget(struct kit *k)
{
	k->n_event = k->n_report = 0;
}
