/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as events at a process that is served by the wire (wire_kit.h has the picture): packets
 * that the peer, a liar, makes near the numbers that count, with the ICRC repaired or spoiled;
 * any bytes at all; merged runs cut at any size; posts, polls, time, changes of state.
 */
#include <string.h>

#include "base/bytes.h"
#include "fuzz/wire_kit.h"
#include "wire/pkt.h"

#define EVENTS_MAX 300u
#define RUN_MAX	   16u

static uint8_t run[WK_BURST_MAX];
static uint32_t run_len, run_n, run_seg;

static struct wk_from draw_from(struct fz *f)
{
	uint8_t b = fz_u8(f);
	struct wk_from w = {.src = wk.peer,
			    .sport = (uint16_t)(0xc000 + (b & 3)),
			    .ttl = 64,
			    .tclass = b & 252};

	if (b >= 250) /* a stranger */
		w.src.raw[15] ^= 0x40;
	return w;
}

static struct vrb_hqp *draw_qp(struct fz *f)
{
	enum wk_which which = fz_u8(f) % WK_N_QPS;

	return wk.qp[which] ? wk.qp[which] : wk_make_qp(which);
}

/* Which fields of a made-up packet are not as they should be. */
enum { LIE_PSN = 1, LIE_LEN = 2, LIE_VA = 4, LIE_DMA_LEN = 8, LIE_SYNDROME = 16, LIE_QKEY = 32 };

static struct vrb_opcode draw_op(struct fz *f, const struct vrb_qp *c)
{
	static const uint8_t uc[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, ud[] = {4, 5};
	uint8_t b = fz_u8(f);

	if (b >= 0xf0)
		return (struct vrb_opcode){fz_u8(f)};
	if (c->type == VRB_QPT_UD)
		return vrb_opcode(VRB_TP_UD, ud[b % sizeof(ud)]);
	if (c->type == VRB_QPT_UC)
		return vrb_opcode(VRB_TP_UC, uc[b % sizeof(uc)]);
	return vrb_opcode(VRB_TP_RC, b % (VRB_OP_SEND_ONLY_INV + 1));
}

static struct vrb_psn draw_psn(struct fz *f, const struct vrb_qp *c, struct vrb_opcode op,
			       uint8_t lie)
{
	const struct vrb_psn near[] = {c->epsn, c->una_psn, c->next_psn, c->ack_psn};
	uint8_t b;

	if (!(lie & LIE_PSN))
		return vrb_op_has(op, VRB_OPF_RESPONSE) ? c->una_psn : c->epsn;
	b = fz_u8(f);
	return vrb_psn_add(near[b & 3], (uint32_t)(int32_t)(int8_t)fz_u8(f));
}

static uint32_t draw_payload(struct fz *f, struct vrb_opcode op, uint8_t lie)
{
	uint8_t b;

	if (!vrb_op_has(op, VRB_OPF_PAYLOAD))
		return lie & LIE_LEN ? fz_u8(f) : 0;
	if (!(lie & LIE_LEN) && !vrb_op_has(op, VRB_OPF_LAST))
		return wk.mtu;
	b = fz_u8(f);
	if (lie & LIE_LEN)
		return b < 128 ? wk.mtu + b : b;
	return b < 64 ? wk.mtu - b : 1u + b;
}

static uint64_t draw_va(struct fz *f, uint8_t lie, uint32_t *rkey)
{
	const struct wk_mem *m = &wk.mem;
	uint8_t b;

	*rkey = m->open_mr->rkey;
	if (!(lie & LIE_VA))
		return (uintptr_t)m->open + 8ull * fz_u8(f);
	b = fz_u8(f);
	if (b & 1)
		*rkey = m->fixed_mr->rkey;
	if (b & 2)
		*rkey = b & 4 ? m->landing_mr->rkey : b & 8 ? m->open_mr->lkey : fz_u32(f);
	switch (b >> 5) {
	case 0:
		return (uintptr_t)m->open - fz_u8(f);
	case 1:
		return (uintptr_t)m->open + WK_AREA - fz_u8(f);
	case 2:
		return UINT64_MAX - fz_u8(f);
	default:
		return (uintptr_t)(b & 1 ? m->fixed : m->open) + fz_u8(f);
	}
}

static uint32_t draw_dma_len(struct fz *f, const struct vrb_pkt *p, uint8_t lie)
{
	static const uint32_t edges[] = {0x7fffffff, 0x80000000, 0x80000001,
					 0xffffffff, WK_AREA,	 WK_AREA + 1};
	uint8_t b;

	if (!(lie & LIE_DMA_LEN) && vrb_op_has(p->op, VRB_OPF_LAST | VRB_OPF_WRITE))
		return p->len;
	b = fz_u8(f);
	if (!(lie & LIE_DMA_LEN))
		return vrb_op_has(p->op, VRB_OPF_READ) ? b * 12u : wk.mtu + 1 + b;
	return b < 6 ? edges[b] : b;
}

static uint8_t draw_syndrome(struct fz *f, uint8_t lie)
{
	static const uint8_t legal[] = {0x1f, 0x00, 0x20, 0x21, 0x60, 0x61, 0x62, 0x63};

	if (!(lie & LIE_SYNDROME))
		return 0x1f;
	return fz_u8(f) & 1 ? fz_u8(f) : legal[fz_u8(f) % sizeof(legal)];
}

/* A packet that the queue pair waits for, but for the lies. Zeros of the input tell none. */
static void invent(struct fz *f, const struct vrb_hqp *q, struct vrb_pkt *p)
{
	const struct vrb_qp *c = &q->core;
	uint8_t lie;

	*p = (struct vrb_pkt){.op = draw_op(f, c),
			      .pkey = 0xffff,
			      .dqpn = c->qpn,
			      .qkey = 7,
			      .sqpn = WK_PEER_QPN + WK_UD};
	lie = fz_u8(f);
	p->flags = fz_u8(f) & 31;
	p->psn = draw_psn(f, c, p->op, lie);
	p->len = draw_payload(f, p->op, lie);
	if (vrb_op_has(p->op, VRB_OPF_AETH))
		p->syndrome = draw_syndrome(f, lie);
	if (vrb_op_flags(p->op) & (VRB_OPF_RETH | VRB_OPF_ATOMICETH)) {
		p->va = draw_va(f, lie, &p->rkey);
		p->dma_len = draw_dma_len(f, p, lie);
	}
	if (vrb_op_has(p->op, VRB_OPF_INV))
		p->inv_rkey = wk.mem.open_mr->rkey;
	if (lie & LIE_QKEY)
		p->qkey = 8;
}

/* The ICRC fits. Over IPv4 that is: it fits with one of the identifications that nobody sees. */
static bool fits(const uint8_t *at, uint32_t len, const struct wk_from *from)
{
	struct vrb_net net = {
		.src = from->src, .dst = wk.self, .sport = from->sport, .dport = VRB_ROCE_PORT};
	uint8_t headers[VRB_NET_MAX];
	uint16_t id;

	for (int df = 0; df < 2 && len >= VRB_BTH_LEN + VRB_ICRC_LEN; df++) {
		size_t n;

		net.df = df;
		n = vrb_net_emit(&net, len, headers);
		if (wk.v6 ? vrb_icrc_check(headers, n, at, len, NULL) == VRB_OK
			  : vrb_icrc_solve_ip_id(headers, at, len, &id, NULL) == VRB_OK)
			return true;
	}
	return false;
}

/* The run arrives, in pieces of run_seg bytes. */
static void flush_run(const struct wk_from *from)
{
	uint32_t n_good = 0, named = 0, n;

	for (uint32_t off = 0; off < run_len; off += n) {
		const uint8_t *at = run + off;

		n = run_len - off < run_seg ? run_len - off : run_seg;
		if (!fits(at, n, from))
			continue;
		n_good++;
		for (uint32_t i = 0; i < WK_N_QPS; i++)
			if (wk.qp[i] && wk.qp[i]->core.qpn == vrb_get_be24(at + 5))
				named |= 1u << i;
	}
	if (run_len)
		wk_arrive(run, run_len, run_seg, from);
	wk_look(named, n_good);
	run_len = run_n = run_seg = 0;
}

/*
 * A packet of len bytes (BTH to pad) that lies at the end of the run. shape: 1 its ICRC is spoiled,
 * 2 it stays in the run for more to come, 4 the kernel says another size.
 */
static void finish(struct fz *f, uint32_t len, uint8_t shape, uint16_t ip_id)
{
	struct wk_from from = draw_from(f);
	uint8_t *at = run + run_len;

	if (!run_seg)
		run_seg = len + VRB_ICRC_LEN;
	wk_seal(at, len, ip_id, &from);
	if (shape & 1)
		at[fz_u32(f) % (len + VRB_ICRC_LEN)] ^= (uint8_t)(1 + fz_u8(f) % 255);
	run_n++;
	run_len += len + VRB_ICRC_LEN;
	if (shape & 4)
		run_seg = 1 + (fz_u32(f) % 5000u);
	if (!(shape & 2) || run_n == RUN_MAX || run_len > WK_BURST_MAX - 6000)
		flush_run(&from);
}

static void packet(struct fz *f)
{
	uint8_t shape = fz_u8(f), *at = run + run_len;
	struct vrb_hqp *q = draw_qp(f);
	struct vrb_pkt p;
	uint32_t n;

	invent(f, q, &p);
	n = (uint32_t)vrb_pkt_emit_headers(&p, at);
	memset(at + n, shape, p.len + 4);
	n += p.len + vrb_pkt_pad(p.len);
	if (shape & 8) /* reserved bits, partition, pad, version */
		at[fz_u8(f) % 12] ^= (uint8_t)(1 << (shape >> 5));
	if (shape & 16)
		n -= fz_u8(f) % (n - 12 + 1);
	finish(f, n, shape, shape & 4 ? (uint16_t)fz_u32(f) : (uint16_t)run_n);
}

/* Bytes as they come, with the ICRC that would belong to them. */
static void raw(struct fz *f)
{
	uint8_t shape = fz_u8(f), *at = run + run_len;
	uint32_t len = fz_u8(f);

	for (uint32_t i = 0; i < len; i++)
		at[i] = fz_u8(f);
	if (len >= VRB_BTH_LEN && shape & 8)
		at[5] = (uint8_t)wk_engine()->slot;
	if (len >= VRB_BTH_LEN) {
		finish(f, len, shape, (uint16_t)run_n);
		return;
	}
	run_len += len; /* too short for an ICRC */
	run_seg = run_seg ? run_seg : len + !len;
	if (!(shape & 2)) {
		struct wk_from from = draw_from(f);

		flush_run(&from);
	}
}

/* The honest answer to the last request that was sent, but for the lies. */
static void answer(struct fz *f)
{
	uint8_t *at = run + run_len, shape = fz_u8(f), lie = fz_u8(f);
	struct vrb_hqp *q = wk.qp[wk.last_which];
	struct vrb_pkt got, p;
	uint32_t n, off;

	if (!q || !wk.last_len || vrb_pkt_parse(wk.last, wk.last_len, &got, NULL) != VRB_OK)
		return;
	p = (struct vrb_pkt){.op = vrb_opcode(VRB_TP_RC, VRB_OP_ACK), .pkey = 0xffff};
	p.psn = lie & LIE_PSN ? vrb_psn_add(got.psn, fz_u8(f) % 8u) : got.psn;
	p.syndrome = draw_syndrome(f, lie);
	p.dqpn = q->core.qpn;
	if (vrb_op_has(got.op, VRB_OPF_READ)) {
		p.op = vrb_opcode(VRB_TP_RC, VRB_OP_READ_RESP_FIRST + (shape >> 5) % 4u);
		p.psn = lie & LIE_PSN ? p.psn : q->core.una_psn;
		off = ((p.psn.v - got.psn.v) & VRB_PSN_MASK) * wk.mtu;
		p.len = off > got.dma_len ? 0 : got.dma_len - off;
		p.len = lie & LIE_LEN || p.len > wk.mtu ? wk.mtu : p.len;
	} else if (vrb_op_has(got.op, VRB_OPF_ATOMIC)) {
		p.op = vrb_opcode(VRB_TP_RC, VRB_OP_ATOMIC_ACK);
	}
	n = (uint32_t)vrb_pkt_emit_headers(&p, at);
	memset(at + n, 0x55, p.len + 4);
	finish(f, n + p.len + vrb_pkt_pad(p.len), shape & 2, (uint16_t)run_n);
}

/* A message to QP 1. */
static void message(struct fz *f)
{
	uint8_t shape = fz_u8(f);

	finish(f, wk_gsi_invent(f, run + run_len), shape, (uint16_t)run_n);
}

/* ---- what the application does */

static void post_recv(struct fz *f)
{
	struct vrb_hqp *q = draw_qp(f);
	struct vrb_wq *wq = q->core.srq ? &wk.srq->core.wq : &q->core.rq;
	struct vrb_rwqe *w = vrb_wq_entry(wq, wq->tail);
	uint32_t len = 4u * fz_u8(f), first = fz_u8(f) * 4u;
	uint64_t addr;

	if (wq->tail - wq->head >= wq->cap || !wk_slot_take(len, &w->wr_id, &addr))
		return;
	first = first < len ? first : len;
	vrb_engine_lock(wk_engine());
	w->len = len;
	w->n_sge = 2;
	w->sge[0] = (struct vrb_sge){addr, first, wk.mem.landing_mr->lkey};
	w->sge[1] = (struct vrb_sge){addr + first, len - first, wk.mem.landing_mr->lkey};
	if (fz_u8(f) >= 250)
		w->sge[0].lkey ^= 0x100;
	if (q->core.srq)
		wq->tail++;
	else
		vrb_hqp_commit_recv(q, 1);
	vrb_engine_unlock(wk_engine());
}

static void fill_send(struct fz *f, const struct vrb_qp *c, struct vrb_swqe *w)
{
	uint8_t b = fz_u8(f);
	uint64_t addr;

	w->flags = VRB_WRF_SIGNALED | (b & (VRB_WRF_FENCE | VRB_WRF_SOLICITED));
	w->n_sge = 1;
	w->len = c->type == VRB_QPT_UD ? fz_u8(f) : fz_u8(f) * 24u;
	if (w->op >= VRB_WR_CMP_SWAP)
		w->len = 8;
	if (w->op >= VRB_WR_READ) {
		w->len %= WK_SLOT + 1;
		if (!wk_slot_take(w->len, &w->wr_id, &addr))
			w->n_sge = 0;
		w->sge[0] = (struct vrb_sge){addr, w->len, wk.mem.landing_mr->lkey};
	} else {
		if (!wk_slot_take(0, &w->wr_id, &addr))
			w->n_sge = 0;
		w->sge[0] = (struct vrb_sge){(uintptr_t)wk.mem.fixed + b * 8u, w->len,
					     wk.mem.fixed_mr->lkey};
	}
	w->va = 0x10000 + b;
	w->rkey = 0x77;
	if (c->type == VRB_QPT_UD) {
		w->ud.av = &wk.av;
		w->ud.qpn = WK_PEER_QPN + WK_UD;
		w->ud.qkey = 7;
	}
}

static void post_send(struct fz *f)
{
	struct vrb_hqp *q = draw_qp(f);
	struct vrb_qp *c = &q->core;
	struct vrb_swqe *w;

	if (vrb_qp_sq_used(c) >= c->sq.cap || c->state < VRB_QPS_RTS)
		return;
	vrb_engine_lock(wk_engine());
	w = vrb_hqp_swqe(q, 0);
	memset(w, 0, VRB_SWQE_HEADER);
	w->op = fz_u8(f) % (VRB_WR_FETCH_ADD + 1);
	if (c->type == VRB_QPT_UC)
		w->op %= VRB_WR_READ;
	else if (c->type == VRB_QPT_UD)
		w->op = VRB_WR_SEND;
	fill_send(f, c, w);
	if (w->n_sge)
		vrb_hqp_commit(q, 1);
	vrb_engine_unlock(wk_engine());
}

static void change(struct fz *f)
{
	uint8_t b = fz_u8(f);
	enum wk_which which = b % WK_N_QPS;
	struct vrb_hqp *q = wk.qp[which];

	if (!q)
		wk_make_qp(which);
	else if (b >= 200)
		wk_end_qp(which);
	else if (b >= 160 && q->core.state != VRB_QPS_RESET)
		FZ_CHECK(!node_to(q, VRB_QPS_ERR));
	else if (q->core.state == VRB_QPS_RTS)
		FZ_CHECK(!node_to(q, VRB_QPS_SQD));
	else if (q->core.state == VRB_QPS_SQD)
		FZ_CHECK(!node_to(q, VRB_QPS_RTS));
}

static void step(struct fz *f)
{
	uint8_t b = fz_u8(f);

	switch (b >> 4) {
	case 9:
		raw(f);
		break;
	case 10:
		post_recv(f);
		break;
	case 11:
		post_send(f);
		break;
	case 12:
		if (b & 8)
			message(f);
		else
			wk_poll();
		break;
	case 13:
		wk.now += 1ull << (10 + (b & 15));
		wk_turn();
		break;
	case 14:
		change(f);
		break;
	case 15:
	case 8:
		answer(f);
		break;
	default:
		packet(f);
		if (b & 1)
			wk_turn();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz f = {data, size};
	uint8_t b = fz_u8(&f);

	run_len = run_n = run_seg = 0;
	wk_start(b & 1, b & 2 ? 1 : 3);
	for (uint32_t i = 0; i < EVENTS_MAX && f.n; i++)
		step(&f);
	wk_turn();
	wk_poll();
	wk_end();
	return 0;
}
