/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and receives of a run, and how they are posted. */
#include <string.h>

#include "sim/app.h"

#define PAYLOAD_BUDGET 120000u /* bytes of messages per side of a QP */
#define GRH(type)      ((type) == VRB_QPT_UD ? VRB_GRH_LEN : 0u)

static bool chance(struct app *a, uint32_t percent)
{
	return vrb_prng_chance(&a->rng, percent * 10000);
}

static uint8_t draw_op(struct app *a, enum vrb_qp_type type)
{
	static const uint8_t uc[] = {VRB_WR_SEND, VRB_WR_SEND_IMM, VRB_WR_WRITE, VRB_WR_WRITE_IMM};
	static const uint8_t rc[] = {VRB_WR_SEND,      VRB_WR_SEND_IMM,	 VRB_WR_WRITE,
				     VRB_WR_WRITE_IMM, VRB_WR_READ,	 VRB_WR_READ,
				     VRB_WR_CMP_SWAP,  VRB_WR_FETCH_ADD, VRB_WR_SEND_INV};
	uint8_t op;

	if (type == VRB_QPT_UD)
		return chance(a, 50) ? VRB_WR_SEND : VRB_WR_SEND_IMM;
	if (type == VRB_QPT_UC)
		return uc[vrb_prng_below(&a->rng, 4)];
	for (unsigned i = 0; i < 1000; i++) {
		op = rc[vrb_prng_below(&a->rng, sizeof(rc))];
		if (a->plan.ops >> op & 1)
			return op;
	}
	return VRB_WR_SEND;
}

static uint32_t draw_len(struct app *a, const struct sn_qp_conf *c, uint32_t *budget)
{
	uint32_t mtu = 128u << c->mtu_code, max = a->plan.len_max, len;
	/* edges around whole packets, small ones, anything */
	const uint32_t edges[] = {0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu - 1};

	if (a->plan.len_fixed)
		return max;
	if (c->type == VRB_QPT_UD && max > mtu)
		max = mtu;
	len = chance(a, 30)   ? edges[vrb_prng_below(&a->rng, 7)]
	      : chance(a, 30) ? vrb_prng_below(&a->rng, 64)
			      : vrb_prng_below(&a->rng, max + 1);
	if (len > max)
		len = max;
	if (len > *budget)
		len = *budget;
	*budget -= len;
	return len;
}

/* A type 2 window of the peer for a SEND with Invalidate to take away; bound by a work request. */
static uint32_t make_window(struct app *a, unsigned k, unsigned i)
{
	struct sn_end *e = &a->sn.end[k];
	struct sn_qp *q = &e->qp[i];
	struct vrb_swqe *w = vrb_wq_entry(&q->core.sq, q->core.sq.tail);
	uint32_t rkey = vrb_mw_add(&e->keys, SN_PD, VRB_KEY_MW2);
	struct vrb_wc wc;

	memset(w, 0, VRB_SWQE_HEADER);
	w->op = VRB_WR_BIND_MW;
	w->flags = VRB_WRF_SIGNALED;
	w->rkey = (rkey & ~0xffu) | ((rkey + 1) & 0xff);
	w->va = (uintptr_t)sn_slot(e, SN_REM, 32, 1);
	w->bind.len = 32;
	w->bind.access = VRB_ACC_REMOTE_WRITE;
	w->bind.mr_lkey = e->region[SN_REM].lkey;
	rkey = w->rkey;
	sn_post(e, q);
	sn_turn(&a->sn);
	if (vrb_cq_poll(&e->scq, 1, &wc) != 1 || wc.status != VRB_WC_SUCCESS ||
	    wc.opcode != VRB_WCO_BIND_MW)
		sn_fail(&a->sn, "binding a window failed");
	return rkey;
}

static void make_atomic(struct app *a, struct app_msg *m, uint64_t *value)
{
	m->expect = *value;
	m->swap_add = vrb_prng_next(&a->rng);
	m->compare = chance(a, 60) ? *value : vrb_prng_next(&a->rng);
	if (m->op == VRB_WR_FETCH_ADD)
		*value += m->swap_add;
	else if (*value == m->compare)
		*value = m->swap_add;
}

/* A READ shows its own slot, or that of an earlier WRITE of the same list. */
static void make_read(struct app *a, struct app_side *s, struct app_msg *m, struct sn_end *peer)
{
	struct app_msg *w = s->n ? &s->msg[vrb_prng_below(&a->rng, s->n)] : NULL;

	if (w && (w->op == VRB_WR_WRITE || w->op == VRB_WR_WRITE_IMM)) {
		w->kept = true;
		m->remote = w->remote;
		m->len = w->len;
		m->shown = w->id;
		return;
	}
	m->shown = m->id;
	m->remote = sn_slot(peer, SN_REM, m->len, 1);
	app_fill(m->remote, m->id, m->len);
}

static void make_msg(struct app *a, unsigned k, unsigned i, uint32_t *budget)
{
	struct sn_end *e = &a->sn.end[k], *peer = &a->sn.end[!k];
	struct app_side *s = &a->side[k][i];
	struct app_msg *m = &s->msg[s->n];
	const struct sn_qp_conf *c = &a->plan.qp[i];

	memset(m, 0, sizeof(*m));
	m->op = draw_op(a, c->type);
	m->id = (k << 16 | i << 12 | s->n) + 1;
	m->flags = (uint8_t)((chance(a, 50) ? VRB_WRF_SIGNALED : 0) |
			     (chance(a, 10) && !a->plan.len_fixed ? VRB_WRF_FENCE : 0) |
			     (chance(a, 20) ? VRB_WRF_SOLICITED : 0));
	m->len = draw_len(a, c, budget);
	if (m->op == VRB_WR_CMP_SWAP || m->op == VRB_WR_FETCH_ADD) {
		m->len = 8;
		m->remote = a->side[!k][i].counter;
		make_atomic(a, m, &a->side[!k][i].counter_end);
	} else if (m->op == VRB_WR_READ) {
		make_read(a, s, m, peer);
	} else if (m->op == VRB_WR_WRITE || m->op == VRB_WR_WRITE_IMM) {
		m->remote = sn_slot(peer, SN_REM, m->len, 1);
		memset(m->remote, 0, m->len);
	} else if (m->op == VRB_WR_SEND_INV) {
		m->inv_rkey = make_window(a, !k, i);
	}
	if (m->op == VRB_WR_READ || m->op == VRB_WR_CMP_SWAP || m->op == VRB_WR_FETCH_ADD) {
		m->local = sn_slot(e, SN_DST, m->len, 1);
	} else {
		m->local = sn_slot(e, SN_SRC, m->len, 1);
		app_fill(m->local, m->id, m->len);
		if (m->len <= SN_INLINE_MAX && chance(a, 30))
			m->flags |= VRB_WRF_INLINE;
	}
	s->n++;
}

static void add_recv(struct app *a, struct sn_end *e, struct app_rq *rq, uint32_t room)
{
	struct app_recv *r = &rq->recv[rq->n];

	if (rq->n == APP_RECVS_MAX) {
		sn_fail(&a->sn, "the test wants more receives than it has room for");
		return;
	}
	*r = (struct app_recv){.buf = sn_slot(e, SN_DST, room, 1), .room = room};
	rq->n++;
}

/* Receives for the messages of the peer. On RC the order is known, so each gets its own size. */
static void make_recvs(struct app *a, unsigned k, unsigned i)
{
	struct app_side *s = &a->side[k][i], *peer = &a->side[!k][i];
	enum vrb_qp_type type = a->plan.qp[i].type;
	bool exact = type == VRB_QPT_RC && !a->plan.srq[k];
	struct app_rq *rq = a->plan.srq[k] ? &a->srq[k] : &a->own_rq[k][i];

	s->rq = rq;
	rq->cap = a->plan.srq[k] ? SN_RQ_MAX : a->plan.qp[i].rq_cap;
	for (uint32_t m = 0; m < peer->n; m++) {
		uint32_t room = exact ? peer->msg[m].len : a->plan.len_max;

		if (!app_takes_receive(peer->msg[m].op))
			continue;
		if (exact && peer->msg[m].op == VRB_WR_WRITE_IMM)
			room = 0;
		add_recv(a, &a->sn.end[k], rq,
			 room + GRH(a->plan.srq[k] ? VRB_QPT_UD : type) +
				 vrb_prng_below(&a->rng, 5));
	}
	if (chance(a, 50))
		add_recv(a, &a->sn.end[k], rq, a->plan.len_max + VRB_GRH_LEN);
}

void app_make(struct app *a)
{
	for (uint32_t i = 0; i < a->plan.n_qp; i++) {
		for (unsigned k = 0; k < 2; k++) {
			struct app_side *s = &a->side[k][i];

			s->counter = sn_slot(&a->sn.end[k], SN_REM, 8, 8);
			s->counter_end = vrb_prng_next(&a->rng);
			memcpy(s->counter, &s->counter_end, 8);
		}
		for (unsigned k = 0; k < 2; k++) {
			uint32_t budget = PAYLOAD_BUDGET / a->plan.n_qp;

			for (uint32_t m = 0; m < a->plan.n_msgs[k] && !a->sn.failed; m++)
				make_msg(a, k, i, &budget);
		}
	}
	for (uint32_t i = 0; i < a->plan.n_qp; i++)
		for (unsigned k = 0; k < 2; k++)
			make_recvs(a, k, i);
}

/* Cuts len bytes at p into one to SN_SGE_MAX pieces, some of them empty. */
static uint32_t cut(struct app *a, struct vrb_sge *sge, uint8_t *p, uint32_t len, uint32_t lkey)
{
	uint32_t n = 1 + vrb_prng_below(&a->rng, chance(a, 50) ? 1 : SN_SGE_MAX), at = 0;

	if (len == 0 && chance(a, 50))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len - at : vrb_prng_below(&a->rng, len - at + 1);

		sge[i] = (struct vrb_sge){(uintptr_t)(p + at), part, lkey};
		at += part;
	}
	return n;
}

void app_post_send(struct app *a, unsigned k, unsigned i)
{
	struct sn_end *e = &a->sn.end[k], *peer = &a->sn.end[!k];
	struct app_side *s = &a->side[k][i];
	struct sn_qp *q = &e->qp[i];
	struct app_msg *m = &s->msg[s->posted];
	struct vrb_swqe *w = vrb_wq_entry(&q->core.sq, q->core.sq.tail);
	bool atomic = m->op == VRB_WR_CMP_SWAP || m->op == VRB_WR_FETCH_ADD;

	/* an application must signal often enough to get its queue entries back */
	if (s->unsignaled + 1 >= (a->plan.qp[i].sq_cap + 1) / 2 || s->posted + 1 == s->n)
		m->flags |= VRB_WRF_SIGNALED;
	s->unsignaled = m->flags & VRB_WRF_SIGNALED ? 0 : s->unsignaled + 1;
	memset(w, 0, VRB_SWQE_HEADER);
	w->wr_id = s->posted++;
	w->op = m->op;
	w->flags = m->flags;
	w->len = m->len;
	w->imm = m->op == VRB_WR_SEND_INV ? m->inv_rkey : m->id;
	w->va = (uintptr_t)m->remote;
	w->rkey = peer->region[SN_REM].rkey;
	if (atomic) {
		w->atomic.swap_add = m->swap_add;
		w->atomic.compare = m->compare;
	} else if (q->core.type == VRB_QPT_UD) {
		w->ud.av = &e->to_peer;
		w->ud.qpn = peer->qp[i].core.qpn;
		w->ud.qkey = q->core.attr.qkey;
	}
	if (m->flags & VRB_WRF_INLINE) {
		memcpy(w->data, m->local, m->len);
	} else if (atomic) {
		w->n_sge = 1;
		w->sge[0] = (struct vrb_sge){(uintptr_t)m->local, 8, e->region[SN_DST].lkey};
	} else {
		w->n_sge = (uint8_t)cut(a, w->sge, m->local, m->len,
					e->region[m->op == VRB_WR_READ ? SN_DST : SN_SRC].lkey);
	}
	sn_post(e, q);
}

void app_post_recv(struct app *a, unsigned k, struct app_rq *rq, struct sn_qp *q)
{
	struct sn_end *e = &a->sn.end[k];
	struct vrb_wq *wq = q->core.srq ? &q->core.srq->wq : &q->core.rq;
	struct vrb_rwqe *w = vrb_wq_entry(wq, wq->tail);
	struct app_recv *r = &rq->recv[rq->posted];

	w->wr_id = rq->posted++;
	w->len = r->room;
	w->n_sge = cut(a, w->sge, r->buf, r->room, e->region[SN_DST].lkey);
	sn_post_recv(e, q);
}
