/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From work requests to packets (IBA 9.7.2, 9.7.3), for RC and UC. Entries are started in the order
 * posted and their packets are never mixed. Keys of the whole message are checked when an entry is
 * started, and again for each packet, so a region that goes in mid-message stops it. After a loss
 * the same code runs again from an earlier PSN: the offset into a message is (psn - first) * mtu.
 *
 * An entry that cannot be sent does not fail at once: those before it may still be outstanding. It
 * is marked (failing, fail_at), nothing is sent from it on, and it ends when it is the oldest
 * (vrb_qp_settle).
 *
 * A READ longer than read_chunk packets goes out as several requests, so that its answer fits the
 * window; chunks begin at fixed offsets of the message, whatever is repeated.
 */
#include "core/internal.h"

static bool is_started(const struct vrb_qp *qp)
{
	return qp->rewound ? qp->sq_send != qp->sq_started : qp->send_off > 0;
}

/* There is an entry at sq_send whose turn it is in this state. */
static bool has_turn(const struct vrb_qp *qp)
{
	if (qp->sq_send == qp->sq.tail || qp->rnr_wait)
		return false;
	if (qp->failing && qp->sq_send == qp->fail_at)
		return false;
	if (qp->state == VRB_QPS_RTS)
		return true;
	return qp->state == VRB_QPS_SQD && is_started(qp);
}

static uint32_t chunk_len(const struct vrb_qp *qp, const struct vrb_swqe *w)
{
	uint64_t chunk = (uint64_t)qp->read_chunk * qp->mtu;
	uint64_t room = chunk - qp->send_off % chunk;
	uint32_t left = w->len - qp->send_off;

	return left < room ? left : (uint32_t)room;
}

/* IBA 10.8.3.3, C9-85 and the window: what an entry may have to wait for. */
static bool must_wait(const struct vrb_qp *qp, const struct vrb_swqe *w)
{
	uint32_t in_flight = vrb_psn_dist(qp->next_psn, qp->una_psn), n = 1;

	if ((w->flags & VRB_WRF_FENCE) && qp->send_off == 0 && qp->n_rd_out > 0)
		return true;
	if (vrb_swqe_is_local(w) || qp->type != VRB_QPT_RC)
		return false;
	if (vrb_swqe_is_rd(w) && qp->attr.max_rd_atomic > 0 &&
	    qp->n_rd_out >= qp->attr.max_rd_atomic)
		return true;
	/* the nearer of too much and too little: chunks do not divide a window evenly */
	if (w->op == VRB_WR_READ)
		n = (vrb_n_packets(chunk_len(qp, w), qp->mtu) + 1) / 2;
	return in_flight > 0 && in_flight + n > qp->window_max;
}

bool vrb_qp_can_send(const struct vrb_qp *qp, vrb_ns now)
{
	(void)now;
	if (qp->type == VRB_QPT_UD)
		return qp->state == VRB_QPS_RTS && qp->sq_send != qp->sq.tail;
	if (qp->probe == VRB_PROBE_DUE)
		return true;
	return has_turn(qp) && !must_wait(qp, vrb_qp_swqe(qp, qp->sq_send));
}

void vrb_requester_fail(struct vrb_qp *qp, enum vrb_wc_status status, struct vrb_report *r,
			struct vrb_fx *fx)
{
	r->qpn = qp->qpn;
	vrb_fx_report(fx, r);
	qp->failing = true;
	qp->fail_at = qp->sq_send;
	qp->fail_status = (uint8_t)status;
}

void vrb_requester_retire(struct vrb_qp *qp, struct vrb_fx *fx)
{
	vrb_qp_complete_send(qp, qp->sq_una, VRB_WC_SUCCESS, fx);
	if (qp->failing && qp->sq_una == qp->fail_at)
		qp->failing = false; /* only its repetition had failed */
	qp->sq_una++;
}

/* Binding and invalidating take effect here, in the order of the queue, once (IBA 10.6.7.2.2). */
static void do_local(struct vrb_qp *qp, struct vrb_swqe *w, struct vrb_fx *fx)
{
	uint64_t why;
	struct vrb_report r;

	if (is_started(qp)) {
		qp->sq_send++;
		return;
	}
	if (w->op == VRB_WR_BIND_MW && !vrb_mw_bind(qp->keys, w, qp->pd, qp->qpn, &why)) {
		r = vrb_report1(qp, VRB_V_MW_BIND_FAILED, why, 0);
		vrb_requester_fail(qp, VRB_WC_MW_BIND_ERR, &r, fx);
		return;
	}
	if (w->op == VRB_WR_LOCAL_INV && !vrb_mw_invalidate(qp->keys, w->imm, qp->pd, qp->qpn)) {
		r = vrb_report1(qp, VRB_V_LOCAL_INV_FAILED, w->imm, 0);
		vrb_requester_fail(qp, VRB_WC_LOC_QP_OP_ERR, &r, fx);
		return;
	}
	w->first = w->last = qp->next_psn;
	if (qp->sq_una == qp->sq_send++)
		vrb_requester_retire(qp, fx);
}

static struct vrb_sgl sgl_of(const struct vrb_qp *qp, const struct vrb_swqe *w)
{
	return (struct vrb_sgl){.keys = qp->keys, .sge = w->sge, .n = w->n_sge, .pd = qp->pd};
}

static bool op_fits_type(const struct vrb_qp *qp, const struct vrb_swqe *w)
{
	if (w->op > VRB_WR_SEND_INV)
		return false;
	return qp->type == VRB_QPT_RC || w->op <= VRB_WR_SEND_IMM || vrb_swqe_is_local(w);
}

/* What can be wrong with an entry before its first packet. */
static bool check_entry(struct vrb_qp *qp, const struct vrb_swqe *w, struct vrb_fx *fx)
{
	struct vrb_sgl l = sgl_of(qp, w);
	struct vrb_report r;

	if (!op_fits_type(qp, w)) {
		r = vrb_report1(qp, VRB_V_POST_OPCODE, w->op, qp->type);
		vrb_requester_fail(qp, VRB_WC_LOC_QP_OP_ERR, &r, fx);
		return false;
	}
	if (w->len > VRB_MAX_MSG) {
		r = vrb_report1(qp, VRB_V_POST_LENGTH, w->len, VRB_MAX_MSG);
		vrb_requester_fail(qp, VRB_WC_LOC_LEN_ERR, &r, fx);
		return false;
	}
	if (vrb_swqe_is_rd(w)) {
		if (qp->attr.max_rd_atomic == 0) {
			r = vrb_report1(qp, VRB_V_RD_ATOMIC_ZERO, 0, 0);
			vrb_requester_fail(qp, VRB_WC_LOC_QP_OP_ERR, &r, fx);
			return false;
		}
		if (w->op != VRB_WR_READ && w->len != 8) {
			r = vrb_report1(qp, VRB_V_SGE_LENGTH, w->len, 0);
			vrb_requester_fail(qp, VRB_WC_LOC_LEN_ERR, &r, fx);
			return false;
		}
		return true; /* where the answer goes is checked when it arrives */
	}
	if ((w->flags & VRB_WRF_INLINE) || vrb_sgl_check(&l, 0, &r))
		return true;
	vrb_requester_fail(qp, VRB_WC_LOC_PROT_ERR, &r, fx);
	return false;
}

static bool start(struct vrb_qp *qp, struct vrb_swqe *w, struct vrb_fx *fx)
{
	if (is_started(qp))
		return true;
	if (!check_entry(qp, w, fx))
		return false;
	w->first = qp->next_psn;
	w->last = vrb_psn_add(qp->next_psn, vrb_n_packets(w->len, qp->mtu) - 1);
	if (qp->prefetch)
		__builtin_prefetch(vrb_qp_swqe(qp, qp->sq_send + qp->prefetch));
	return true;
}

static bool gather(const struct vrb_qp *qp, const struct vrb_swqe *w, uint32_t len,
		   struct vrb_tx *tx, struct vrb_report *r)
{
	struct vrb_sgl l = sgl_of(qp, w);

	if (w->flags & VRB_WRF_INLINE) {
		tx->n_seg = len > 0;
		tx->seg[0] = (struct vrb_seg){.base = w->data + qp->send_off, .len = len};
		return true;
	}
	return vrb_sgl_gather(&l, qp->send_off, len, tx, r);
}

/* Operation of the packet at the place first/last of a message (IBA table 35). */
static unsigned operation(const struct vrb_swqe *w, bool first, bool last)
{
	bool write = w->op == VRB_WR_WRITE || w->op == VRB_WR_WRITE_IMM;
	bool imm = w->op == VRB_WR_WRITE_IMM || w->op == VRB_WR_SEND_IMM;

	if (!last) {
		if (write)
			return first ? VRB_OP_WRITE_FIRST : VRB_OP_WRITE_MIDDLE;
		return first ? VRB_OP_SEND_FIRST : VRB_OP_SEND_MIDDLE;
	}
	if (w->op == VRB_WR_SEND_INV)
		return first ? VRB_OP_SEND_ONLY_INV : VRB_OP_SEND_LAST_INV;
	if (write && imm)
		return first ? VRB_OP_WRITE_ONLY_IMM : VRB_OP_WRITE_LAST_IMM;
	if (write)
		return first ? VRB_OP_WRITE_ONLY : VRB_OP_WRITE_LAST;
	if (imm)
		return first ? VRB_OP_SEND_ONLY_IMM : VRB_OP_SEND_LAST_IMM;
	return first ? VRB_OP_SEND_ONLY : VRB_OP_SEND_LAST;
}

static void head(const struct vrb_qp *qp, struct vrb_tx *tx, unsigned op)
{
	tx->pkt = (struct vrb_pkt){
		.op = vrb_opcode(qp->type == VRB_QPT_UC ? VRB_TP_UC : VRB_TP_RC, op),
		.pkey = VRB_PKEY_DEFAULT,
		.dqpn = qp->dqpn,
		.psn = qp->next_psn,
	};
	tx->av = NULL;
}

/*
 * Nobody waits for the acknowledgement of a short unsignaled message, and on the wire it is a
 * packet of its own: while such messages follow each other closely not each of them asks (IBA
 * 9.7.5.1.2 leaves it to the requester). If nothing follows, the silence brings a probe, where that
 * comes long before the ACK timer, which costs a retry.
 */
static bool need_not_ask(const struct vrb_qp *qp, const struct vrb_swqe *w, vrb_ns now)
{
	return qp->timeout_ns != VRB_NS_NEVER && qp->probe_ns < qp->timeout_ns / 4 &&
	       !(w->flags & VRB_WRF_SIGNALED) && w->len <= qp->mtu && !qp->rewound &&
	       now - qp->asked_at < VRB_ACK_LAZY_NS;
}

static void note_ask(struct vrb_qp *qp)
{
	qp->ack_run = 0;
	qp->ackreq_before = qp->ackreq_psn;
	qp->ackreq_psn = qp->next_psn;
}

/* Between two packets with AckReq there are so few that the window never fills without one. */
static bool wants_ack(struct vrb_qp *qp, const struct vrb_swqe *w, bool last, vrb_ns now)
{
	bool must = last && !need_not_ask(qp, w, now);
	uint32_t most = last ? VRB_ACK_RUN_SHORT : VRB_ACK_RUN_MAX;
	uint32_t run = qp->window_max / 4 < most ? qp->window_max / 4 : most;

	if (!must && ++qp->ack_run < run)
		return false;
	note_ask(qp);
	qp->asked_at = now;
	return true;
}

/* The packet at next_psn has been made and stands for n PSNs and len bytes of the message. */
static void advance(struct vrb_qp *qp, const struct vrb_swqe *w, uint32_t n, uint32_t len,
		    vrb_ns now)
{
	if (qp->rewound && vrb_psn_eq(qp->next_psn, qp->resend_psn)) {
		qp->resend_made = true;
		qp->resend_at = now;
	}
	qp->next_psn = vrb_psn_add(qp->next_psn, n);
	qp->send_off += len;
	if (qp->send_off == w->len) {
		qp->send_off = 0;
		qp->sq_send++;
	}
	if (!qp->rewound || !vrb_psn_eq(qp->next_psn, qp->high_psn))
		return;
	qp->rewound = false;
	if (qp->send_off == 0)
		qp->sq_send = qp->sq_started; /* over local operations that are done already */
}

/* Header values of the request for a READ or atomic at send_off; the PSNs it stands for. */
static uint32_t head_rd(const struct vrb_qp *qp, const struct vrb_swqe *w, uint32_t len,
			struct vrb_tx *tx)
{
	if (w->op == VRB_WR_READ)
		head(qp, tx, VRB_OP_READ_REQ);
	else
		head(qp, tx, w->op == VRB_WR_CMP_SWAP ? VRB_OP_CMP_SWAP : VRB_OP_FETCH_ADD);
	tx->pkt.flags = VRB_PKT_ACKREQ;
	tx->pkt.rkey = w->rkey;
	tx->pkt.va = w->va + qp->send_off;
	tx->n_seg = 0;
	if (w->op == VRB_WR_READ) {
		tx->pkt.dma_len = len;
		return vrb_n_packets(len, qp->mtu);
	}
	tx->pkt.swap_add = w->atomic.swap_add;
	tx->pkt.compare = w->atomic.compare;
	return 1;
}

static bool make_rd(struct vrb_qp *qp, struct vrb_swqe *w, vrb_ns now, struct vrb_tx *tx)
{
	uint32_t len = w->op == VRB_WR_READ ? chunk_len(qp, w) : w->len;
	uint32_t n = head_rd(qp, w, len, tx);

	note_ask(qp);
	qp->n_rd_out++;
	vrb_retry_arm(qp, now);
	advance(qp, w, n, len, now);
	return true;
}

/* IBA C9-177: unreliable messages are complete when they have been handed over. */
static void complete_unreliable(struct vrb_qp *qp, struct vrb_fx *fx)
{
	qp->una_psn = qp->next_psn;
	while (qp->sq_una != qp->sq_send)
		vrb_requester_retire(qp, fx);
}

/* The same for a packet of len bytes of a SEND or WRITE. */
static void head_data(const struct vrb_qp *qp, const struct vrb_swqe *w, uint32_t len,
		      struct vrb_tx *tx)
{
	bool first = qp->send_off == 0, last = len == w->len - qp->send_off;

	head(qp, tx, operation(w, first, last));
	tx->pkt.len = len;
	if (first && vrb_op_has(tx->pkt.op, VRB_OPF_RETH)) {
		tx->pkt.rkey = w->rkey;
		tx->pkt.va = w->va;
		tx->pkt.dma_len = w->len;
	}
	if (last && w->op == VRB_WR_SEND_INV)
		tx->pkt.inv_rkey = w->imm;
	else if (last)
		tx->pkt.imm = w->imm;
	if (last && (w->flags & VRB_WRF_SOLICITED) && w->op != VRB_WR_WRITE)
		tx->pkt.flags |= VRB_PKT_SE;
}

static uint32_t packet_len(const struct vrb_qp *qp, const struct vrb_swqe *w)
{
	uint32_t left = w->len - qp->send_off;

	return left < qp->mtu ? left : qp->mtu;
}

static bool make_data(struct vrb_qp *qp, struct vrb_swqe *w, vrb_ns now, struct vrb_tx *tx,
		      struct vrb_fx *fx)
{
	uint32_t len = packet_len(qp, w);
	bool last = len == w->len - qp->send_off;
	struct vrb_report r;

	if (!gather(qp, w, len, tx, &r)) {
		vrb_requester_fail(qp, VRB_WC_LOC_PROT_ERR, &r, fx);
		return false;
	}
	head_data(qp, w, len, tx);
	if (qp->type == VRB_QPT_RC) {
		bool asks = wants_ack(qp, w, last, now);

		if (asks)
			tx->pkt.flags |= VRB_PKT_ACKREQ;
		if (asks || last)
			vrb_retry_arm(qp, now);
	}
	advance(qp, w, 1, len, now);
	if (qp->type == VRB_QPT_UC)
		complete_unreliable(qp, fx);
	return true;
}

/*
 * The packet at una_psn once more; the stream stays where it is. Whatever stands in the way
 * (the entry's memory has gone) is no error: the packet had been sent.
 */
static bool make_probe(struct vrb_qp *qp, struct vrb_tx *tx)
{
	const struct vrb_swqe *w = vrb_qp_swqe(qp, qp->sq_una);
	struct vrb_psn next = qp->next_psn;
	uint32_t off = qp->send_off, n = 1;
	struct vrb_report r;
	bool rd = vrb_swqe_is_rd(w), made = true;

	qp->probe = VRB_PROBE_NONE;
	if ((qp->state != VRB_QPS_RTS && qp->state != VRB_QPS_SQD) || vrb_swqe_is_local(w))
		return false;
	qp->next_psn = qp->una_psn;
	qp->send_off = vrb_psn_dist(qp->una_psn, w->first) * qp->mtu;
	if (rd)
		n = head_rd(qp, w, w->op == VRB_WR_READ ? chunk_len(qp, w) : w->len, tx);
	else if ((made = gather(qp, w, packet_len(qp, w), tx, &r)))
		head_data(qp, w, packet_len(qp, w), tx);
	qp->next_psn = next;
	qp->send_off = off;
	if (!made)
		return false;
	tx->pkt.flags |= VRB_PKT_ACKREQ;
	qp->probe = rd ? VRB_PROBE_RD : VRB_PROBE_DATA;
	qp->probe_end = vrb_psn_add(qp->una_psn, n - 1);
	qp->n_probes_sent++;
	return true;
}

/* Bounded by the queue: each turn that makes no packet passes a local operation. */
static bool poll_connected(struct vrb_qp *qp, vrb_ns now, struct vrb_tx *tx, struct vrb_fx *fx)
{
	if (qp->probe == VRB_PROBE_DUE && make_probe(qp, tx)) {
		qp->probe_at = now;
		return true;
	}
	while (has_turn(qp)) {
		struct vrb_swqe *w = vrb_qp_swqe(qp, qp->sq_send);

		if (must_wait(qp, w))
			return false;
		if (vrb_swqe_is_local(w)) {
			do_local(qp, w, fx);
			continue;
		}
		if (!start(qp, w, fx))
			return false;
		if (vrb_swqe_is_rd(w))
			return make_rd(qp, w, now, tx);
		return make_data(qp, w, now, tx, fx);
	}
	return false;
}

bool vrb_qp_poll_request(struct vrb_qp *qp, vrb_ns now, struct vrb_tx *tx, struct vrb_fx *fx)
{
	bool made;

	if (qp->type == VRB_QPT_UD)
		made = vrb_ud_poll_request(qp, tx, fx);
	else
		made = poll_connected(qp, now, tx, fx);
	vrb_qp_settle(qp, fx);
	return made;
}
