/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as events for two connected QPs, each requester and responder: posts, receives, packets
 * lost, repeated, changed or made up, time, changes of state. What a peer sends is anything; still
 * nothing is written outside registered memory, the PSN window holds, work at one instant ends,
 * and at the end each posted work request has had its one completion.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "sim/simnet.h"
#include "wire/icrc.h"

#define EVENTS_MAX 400u
#define RING	   64u
#define MTU	   256u
#define CAP	   16u
#define PROBE_NS   (20 * VRB_NS_PER_US)

/* One end of a link whose frames the input moves by hand. */
struct fz_link {
	struct vrb_link link;
	uint32_t n_sent, n_in, n_read;
	struct {
		uint32_t len;
		uint8_t bytes[VRB_FRAME_MAX];
	} sent[RING], in[RING];
};

static struct sn sn;
static struct fz_link fl[2];
static uint32_t posted_send[2], completed_send[2], posted_recv[2], completed_recv[2];
static uint32_t window[2]; /* rkey of a type 2 window as last asked for */
static bool srq;

static uint32_t fl_send(struct vrb_link *l, const struct vrb_link_tx *tx, uint32_t n, vrb_ns now)
{
	struct fz_link *f = vrb_container_of(l, struct fz_link, link);

	(void)now;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = f->n_sent++ % RING;

		FZ_CHECK(tx[i].n_seg == 1 && tx[i].seg[0].len <= VRB_FRAME_MAX);
		memcpy(f->sent[at].bytes, tx[i].seg[0].base, tx[i].seg[0].len);
		f->sent[at].len = tx[i].seg[0].len;
	}
	return n;
}

static uint32_t fl_recv(struct vrb_link *l, struct vrb_link_rx *rx, uint32_t n, vrb_ns now)
{
	struct fz_link *f = vrb_container_of(l, struct fz_link, link);
	uint32_t i;

	(void)now;
	for (i = 0; i < n && f->n_read != f->n_in; i++, f->n_read++) {
		rx[i].bytes = f->in[f->n_read % RING].bytes;
		rx[i].len = f->in[f->n_read % RING].len;
	}
	return i;
}

static vrb_ns fl_next_deadline(const struct vrb_link *l)
{
	(void)l;
	return VRB_NS_NEVER;
}

static int fl_fd(const struct vrb_link *l)
{
	(void)l;
	return -1;
}

static void fl_close(struct vrb_link *l)
{
	(void)l;
}

static const struct vrb_link_ops fl_ops = {"fuzz",	     fl_send, fl_recv,
					   fl_next_deadline, fl_fd,   fl_close};

static uint8_t *put(unsigned k, uint32_t len)
{
	uint32_t at = fl[k].n_in++ % RING;

	fl[k].in[at].len = len;
	return fl[k].in[at].bytes;
}

/* Gives end k a frame that its peer has sent lately, good or with a byte changed. */
static void deliver(struct fz *f, unsigned k)
{
	struct fz_link *from = &fl[!k];
	uint32_t back = fz_u8(f), n = from->n_sent < RING ? from->n_sent : RING, at;
	uint8_t *out;

	if (!n)
		return;
	at = (from->n_sent - 1 - (back & 63) % n) % RING;
	out = put(k, from->sent[at].len);
	memcpy(out, from->sent[at].bytes, from->sent[at].len);
	if (back & 128)
		out[fz_u32(f) % from->sent[at].len] ^= (uint8_t)(1 + fz_u8(f));
}

/* All that the peer has sent since the last time, in order. */
static void deliver_all(unsigned k, uint32_t *seen)
{
	struct fz_link *from = &fl[!k];

	if (from->n_sent - *seen > RING)
		*seen = from->n_sent - RING;
	for (uint32_t room = RING / 2; *seen != from->n_sent && room; (*seen)++, room--) {
		uint32_t at = *seen % RING;

		memcpy(put(k, from->sent[at].len), from->sent[at].bytes, from->sent[at].len);
	}
}

static uint64_t draw_va(struct fz *f, const struct sn_end *e)
{
	uint64_t base = (uintptr_t)e->region[SN_REM].mem;

	switch (fz_u8(f) & 7) {
	case 0:
		return base - fz_u8(f);
	case 1:
		return base + SN_REGION_LEN - fz_u8(f);
	case 2:
		return UINT64_MAX - fz_u8(f);
	default:
		return base + 8ull * fz_u8(f);
	}
}

static uint32_t draw_len(struct fz *f)
{
	static const uint32_t edges[] = {0,	     MTU,	 MTU + 1,    SN_REGION_LEN,
					 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff};
	uint8_t v = fz_u8(f);

	return v < 8 ? edges[v] : (v & 1) ? v * 8u : v / 2u;
}

static uint32_t draw_rkey(struct fz *f, const struct sn_end *e)
{
	uint8_t v = fz_u8(f);

	if (v < 180)
		return e->region[SN_REM].rkey;
	if (v < 200)
		return window[e - sn.end];
	return v < 220 ? e->region[SN_REM].lkey : v < 240 ? e->region[SN_SRC].rkey : fz_u32(f);
}

/* A made-up packet for end k, with a right ICRC and numbers near those that the QP expects. */
static void invent(struct fz *f, unsigned k)
{
	struct sn_end *e = &sn.end[k];
	const struct vrb_qp *qp = &e->qp[0].core;
	const struct vrb_psn near[] = {qp->epsn, qp->una_psn, qp->next_psn, qp->ack_psn};
	struct vrb_net net = {.src = e->to_peer.dgid,
			      .dst = e->gid,
			      .ttl = 64,
			      .df = true,
			      .sport = 0xc000,
			      .dport = VRB_ROCE_PORT};
	uint8_t b = fz_u8(f), *out;
	struct vrb_pkt p = {.op = {b}, .pkey = 0xffff, .dqpn = qp->qpn};
	size_t n_net, n;

	if (!(b & 0x80)) /* mostly the QP's own transport */
		p.op.v = (uint8_t)((b & VRB_OP_MASK) | (qp->type == VRB_QPT_RC	 ? VRB_TP_RC
							: qp->type == VRB_QPT_UC ? VRB_TP_UC
										 : VRB_TP_UD));
	b = fz_u8(f);
	p.flags = b & 31;
	p.psn = vrb_psn_add(near[b >> 6], (uint32_t)(int32_t)(int8_t)fz_u8(f));
	b = fz_u8(f);
	p.len = vrb_op_has(p.op, VRB_OPF_PAYLOAD) ? (b < 128 ? MTU : b % 32) : 0;
	p.syndrome = fz_u8(f);
	p.rkey = draw_rkey(f, e);
	p.va = draw_va(f, e);
	p.dma_len = draw_len(f);
	p.inv_rkey = draw_rkey(f, e);
	p.qkey = fz_u8(f) < 200 ? qp->attr.qkey : 0;
	p.sqpn = sn.end[!k].qp[0].core.qpn;
	out = put(k, 0);
	n = VRB_BTH_LEN + vrb_opcode_table[p.op.v].header_len + p.len + vrb_pkt_pad(p.len);
	n_net = vrb_net_emit(&net, n + VRB_ICRC_LEN, out);
	memset(out + n_net + vrb_pkt_emit_headers(&p, out + n_net), 0x77, p.len + 4);
	vrb_icrc_store(vrb_icrc_start(out, n_net, out + n_net, n), out + n_net + n);
	fl[k].in[(fl[k].n_in - 1) % RING].len = (uint32_t)(n_net + n + VRB_ICRC_LEN);
}

static struct vrb_sge draw_sge(struct fz *f, const struct sn_end *e, enum sn_region_kind kind,
			       uint32_t len)
{
	uint8_t v = fz_u8(f);
	struct vrb_sge s = {(uintptr_t)e->region[kind].mem + v * 16u, len, e->region[kind].lkey};

	if (v >= 250)
		s.lkey = e->region[v == 250 ? SN_SRC : SN_REM].rkey;
	else if (v >= 246)
		s.addr = (uintptr_t)e->region[kind].mem + SN_REGION_LEN - v / 2;
	return s;
}

static bool can_post(const struct vrb_qp *qp)
{
	return qp->state >= VRB_QPS_RTS && vrb_qp_sq_used(qp) < CAP;
}

static uint8_t draw_op(struct fz *f, const struct vrb_qp *qp)
{
	static const uint8_t unreliable[] = {VRB_WR_SEND, VRB_WR_SEND_IMM, VRB_WR_WRITE,
					     VRB_WR_WRITE_IMM};
	uint8_t v = fz_u8(f);

	if (qp->type == VRB_QPT_RC)
		return v % 10;
	return unreliable[qp->type == VRB_QPT_UC ? v & 3 : v & 1];
}

static void post_send(struct fz *f, unsigned k)
{
	struct sn_end *e = &sn.end[k], *peer = &sn.end[!k];
	struct vrb_qp *qp = &e->qp[0].core;
	struct vrb_swqe *w = vrb_wq_entry(&qp->sq, qp->sq.tail);
	bool result;

	if (!can_post(qp))
		return;
	memset(w, 0, VRB_SWQE_HEADER);
	w->op = draw_op(f, qp);
	w->flags = VRB_WRF_SIGNALED | (fz_u8(f) & (VRB_WRF_FENCE | VRB_WRF_SOLICITED));
	w->imm = 1;
	if (w->op == VRB_WR_SEND_INV || w->op == VRB_WR_LOCAL_INV)
		w->imm = draw_rkey(f, w->op == VRB_WR_SEND_INV ? peer : e);
	if (w->op == VRB_WR_BIND_MW) {
		window[k] = (window[k] & ~0xffu) | fz_u8(f);
		w->rkey = window[k];
		w->bind.mr_lkey = e->region[SN_REM].lkey;
		w->bind.len = draw_len(f);
		w->bind.access = VRB_ACC_REMOTE_WRITE | (fz_u8(f) & VRB_ACC_REMOTE_READ);
		w->va = draw_va(f, e);
	} else if (w->op != VRB_WR_LOCAL_INV) {
		w->rkey = draw_rkey(f, peer);
		w->va = draw_va(f, peer);
		w->n_sge = 1;
		w->len = fz_u8(f) * 6u;
		if (w->op == VRB_WR_CMP_SWAP || w->op == VRB_WR_FETCH_ADD)
			w->len = 8;
		result = w->op >= VRB_WR_READ && w->op <= VRB_WR_FETCH_ADD;
		w->sge[0] = draw_sge(f, e, result ? SN_DST : SN_SRC, w->len);
	}
	if (qp->type == VRB_QPT_UD) {
		w->ud.av = &e->to_peer;
		w->ud.qpn = peer->qp[0].core.qpn;
		w->ud.qkey = qp->attr.qkey;
	}
	w->wr_id = posted_send[k]++;
	sn_post(e, &e->qp[0]);
}

static void post_recv(struct fz *f, unsigned k)
{
	struct sn_end *e = &sn.end[k];
	struct vrb_qp *qp = &e->qp[0].core;
	struct vrb_wq *wq = qp->srq ? &qp->srq->wq : &qp->rq;
	struct vrb_rwqe *w = vrb_wq_entry(wq, wq->tail);

	if (wq->tail - wq->head >= CAP)
		return;
	w->wr_id = posted_recv[k]++;
	w->n_sge = 1;
	w->len = fz_u8(f) * 8u;
	w->sge[0] = draw_sge(f, e, SN_DST, w->len);
	sn_post_recv(e, &e->qp[0]);
}

static void poll(unsigned k)
{
	struct vrb_wc wc;

	while (vrb_cq_poll(&sn.end[k].scq, 1, &wc))
		FZ_CHECK(wc.wr_id == completed_send[k]++);
	while (vrb_cq_poll(&sn.end[k].rcq, 1, &wc)) {
		FZ_CHECK(wc.wr_id < posted_recv[k]);
		FZ_CHECK(srq || wc.wr_id == completed_recv[k]);
		completed_recv[k]++;
	}
}

static void modify(struct fz *f, unsigned k)
{
	struct sn_end *e = &sn.end[k];
	struct vrb_qp *qp = &e->qp[0].core;
	struct vrb_qp_attr a = {.state = VRB_QPS_RTS};
	uint8_t v = fz_u8(f);

	if (v < 10)
		sn_to_err(e, &e->qp[0]);
	else if (qp->state == VRB_QPS_RTS)
		a.state = VRB_QPS_SQD;
	if (qp->state != VRB_QPS_RTS && qp->state != VRB_QPS_SQD && qp->state != VRB_QPS_SQE)
		return;
	vrb_qp_modify(qp, &a, VRB_QPA_STATE, 0, 0, &sn.fx);
	sn_turn(&sn); /* runs the effects */
}

static void advance(struct fz *f)
{
	uint8_t v = fz_u8(f);
	vrb_ns next = sn_next_time(&sn);

	if (v & 1 && next != VRB_NS_NEVER)
		sn.now = next;
	else
		sn.now += 1ull << (v / 8);
}

static void start(struct fz *f)
{
	struct vrb_link *link[2] = {&fl[0].link, &fl[1].link};
	uint8_t v = fz_u8(f);
	struct sn_qp_conf c = {.type = v < 180	 ? VRB_QPT_RC
				       : v < 220 ? VRB_QPT_UC
						 : VRB_QPT_UD,
			       .mtu_code = 1,
			       .window_max = 1u << (v & 7),
			       .sq_cap = CAP,
			       .rq_cap = CAP,
			       .timeout = 8,
			       .min_rnr_timer = 1,
			       .retry_cnt = v & 7,
			       .rnr_retry = v >> 3 & 7,
			       .rd_atomic = 1 + (v & 15)};

	v = fz_u8(f);
	srq = v & 1;
	c.srq[0] = c.srq[1] = srq;
	c.psn[0] = v & 2 ? 0xfffffe : 0x7fffff;
	c.psn[1] = v & 4 ? 0xffffff : 5;
	for (unsigned k = 0; k < 2; k++) {
		fl[k].link =
			(struct vrb_link){.ops = &fl_ops, .caps = {.frame_max = VRB_FRAME_MAX}};
		fl[k].n_sent = fl[k].n_in = fl[k].n_read = 0;
		posted_send[k] = completed_send[k] = posted_recv[k] = completed_recv[k] = 0;
	}
	sn_start(&sn, link, false);
	for (unsigned k = 0; k < 2; k++) {
		struct sn_end *e = &sn.end[k];

		/* the whole of each region may be written */
		for (unsigned i = 0; i < SN_N_REGIONS; i++) {
			e->region[i].slot[0] = (struct sn_slot){0, SN_REGION_LEN};
			e->region[i].n_slots = 1;
		}
		window[k] = vrb_mw_add(&e->keys, SN_PD, VRB_KEY_MW2);
		e->fast = v & (8 << k);
		e->ack_delay = v & 32 ? 1000 : 0;
		sn_srq(e, CAP);
	}
	sn_connect(&sn, &c);
	for (unsigned k = 0; k < 2; k++)
		if (c.type == VRB_QPT_RC && v & (64 << k))
			sn.end[k].qp[0].core.probe_ns = PROBE_NS; /* as on a link that loses */
}

static void event(struct fz *f, uint32_t *seen)
{
	uint8_t v = fz_u8(f);
	unsigned k = v & 1;

	switch (v >> 1 & 7) {
	case 0:
		post_send(f, k);
		break;
	case 1:
		post_recv(f, k);
		break;
	case 2:
		deliver(f, k);
		break;
	case 3:
		deliver_all(k, &seen[k]);
		break;
	case 4:
		invent(f, k);
		break;
	case 5:
		advance(f);
		break;
	case 6:
		poll(k);
		break;
	default:
		modify(f, k);
		break;
	}
	sn_turn(&sn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz f = {data, size};
	uint32_t seen[2] = {0, 0};

	if (!sn.end[0].scq.ring && !sn_init(&sn))
		return 0;
	start(&f);
	for (uint32_t i = 0; i < EVENTS_MAX && f.n; i++)
		event(&f, seen);
	for (unsigned k = 0; k < 2; k++) {
		struct sn_end *e = &sn.end[k];

		sn_to_err(e, &e->qp[0]);
		poll(k);
		FZ_CHECK(completed_send[k] == posted_send[k]);
		FZ_CHECK(srq || completed_recv[k] == posted_recv[k]);
	}
	if (sn.failed)
		fprintf(stderr, "%s\n", sn.why);
	FZ_CHECK(!sn.failed);
	return 0;
}
