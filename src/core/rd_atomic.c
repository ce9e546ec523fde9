/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ and atomic requests at the responder, and the making of all responses (IBA 9.7.5.1). The
 * newest requests (vrb_qp_rd_max of them) are kept in PSN order: first as the responses still owed,
 * then for replay. A repeated READ is read from memory anew, from where the repetition begins; an
 * atomic answers with the value stored when it was executed and is never executed again.
 *
 * The oldest entry that owes a response is served first, so responses leave in PSN order, and a
 * requester that has gone back gets them in the order it asks again. A READ is read when its
 * response packet is made; there is no snapshot.
 */
#include "core/internal.h"

static uint32_t oldest(const struct vrb_qp *qp)
{
	return qp->rd_tail - qp->rd_n;
}

void vrb_qp_give_rd(struct vrb_qp *qp, struct vrb_rd_res *mem)
{
	for (uint32_t i = oldest(qp); i != qp->rd_tail; i++)
		mem[i % VRB_RD_ATOMIC_MAX] = *vrb_qp_rd(qp, i);
	qp->rd_more = mem;
}

/* To ERR by the user: answers that are owed are not given, so the ACK that still leaves must not
 * imply them. */
void vrb_rd_abandon(struct vrb_qp *qp)
{
	for (uint32_t i = oldest(qp); i != qp->rd_tail; i++) {
		if (vrb_qp_rd(qp, i)->done)
			continue;
		qp->ack_psn = vrb_psn_sub(vrb_qp_rd(qp, i)->first, 1);
		break;
	}
	vrb_qp_forget_responses(qp);
}

static void owe(struct vrb_qp *qp, uint32_t i)
{
	struct vrb_rd_res *s = vrb_qp_rd(qp, i);

	if (!s->pending)
		qp->n_rd_pending++;
	s->pending = true;
	if (qp->rd_tail - i > qp->rd_tail - qp->rd_next)
		qp->rd_next = i;
}

static void settle_debt(struct vrb_qp *qp, struct vrb_rd_res *s)
{
	if (s->pending)
		qp->n_rd_pending--;
	s->pending = false;
}

static void answered(struct vrb_qp *qp, struct vrb_rd_res *s)
{
	if (!s->done)
		qp->n_rd_unanswered--;
	s->done = true;
	settle_debt(qp, s);
	if (vrb_psn_eq(s->last, qp->ack_psn))
		qp->ack_pending = false; /* it acknowledges everything before */
}

/*
 * What a plain ACK says. A READ or atomic is acknowledged by its response only: to take an ACK with
 * its PSN for an implied NAK is the requester's duty (IBA 9.7.5), but Linux rxe completes it as if
 * the data had come.
 */
static struct vrb_psn plain_ack_psn(struct vrb_qp *qp)
{
	struct vrb_psn psn = qp->ack_psn;

	for (uint32_t i = qp->rd_tail; i != oldest(qp); i--) {
		const struct vrb_rd_res *s = vrb_qp_rd(qp, i - 1);

		if (!vrb_psn_eq(s->last, psn))
			break;
		psn = vrb_psn_sub(s->first, 1);
	}
	return psn;
}

static uint32_t right_of(struct vrb_opcode op)
{
	return vrb_op_has(op, VRB_OPF_READ) ? VRB_ACC_REMOTE_READ : VRB_ACC_REMOTE_ATOMIC;
}

static bool refuse(struct vrb_fault *f, uint8_t syndrome, struct vrb_report r)
{
	return vrb_rx_fault(
		f, syndrome,
		syndrome == VRB_NAK_ACCESS ? VRB_WC_REM_ACCESS_ERR : VRB_WC_REM_INV_REQ_ERR, r);
}

/* In the order of IBA table 56: right of the QP, resources, length or alignment, key. */
static bool check(struct vrb_qp *qp, const struct vrb_pkt *pkt, uint64_t *host, struct vrb_fault *f)
{
	bool read = vrb_op_has(pkt->op, VRB_OPF_READ);
	uint32_t need = right_of(pkt->op);
	struct vrb_report r;

	if (!(qp->access & need))
		return refuse(f, VRB_NAK_INVALID,
			      vrb_report1(qp, VRB_V_NAK_QP_ACCESS, pkt->op.v, qp->access));
	if (qp->n_rd_unanswered >= qp->attr.max_dest_rd_atomic)
		return refuse(f, VRB_NAK_INVALID,
			      vrb_report1(qp, VRB_V_NAK_RD_ATOMIC, qp->attr.max_dest_rd_atomic, 0));
	if (read && pkt->dma_len > VRB_MAX_MSG)
		return refuse(f, VRB_NAK_INVALID,
			      vrb_report1(qp, VRB_V_NAK_DMA_LENGTH, pkt->dma_len, 0));
	if (!read && pkt->va % 8 != 0)
		return refuse(f, VRB_NAK_INVALID,
			      vrb_report1(qp, VRB_V_NAK_ATOMIC_ALIGN, pkt->va, 0));
	if (vrb_key_check_remote(qp->keys, pkt->rkey, pkt->va, read ? pkt->dma_len : 8, qp->pd,
				 need, qp->qpn, host, &r) != VRB_OK)
		return refuse(f, VRB_NAK_ACCESS, r);
	return true;
}

static void execute_atomic(const struct vrb_pkt *pkt, uint64_t host, struct vrb_rd_res *s,
			   struct vrb_fx *fx)
{
	struct vrb_place *p = &fx->place[fx->n_place++];

	p->kind = vrb_op_operation(pkt->op) == VRB_OP_CMP_SWAP ? VRB_PLACE_CMP_SWAP
							       : VRB_PLACE_FETCH_ADD;
	p->len = 8;
	p->src = NULL;
	p->dst = (void *)(uintptr_t)host;
	p->swap_add = pkt->swap_add;
	p->compare = pkt->compare;
	p->result = &s->orig;
}

bool vrb_rd_accept(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx,
		   struct vrb_fault *f)
{
	bool read = vrb_op_has(pkt->op, VRB_OPF_READ);
	struct vrb_rd_res *s;
	uint64_t host;
	uint32_t n = 1;

	if (!check(qp, pkt, &host, f))
		return false;
	if (read)
		n = vrb_n_packets(pkt->dma_len, qp->mtu);
	s = vrb_qp_rd(qp, qp->rd_tail++);
	if (qp->rd_n < vrb_qp_rd_max(qp))
		qp->rd_n++;
	settle_debt(qp, s); /* a repetition that nobody waits for any more */
	*s = (struct vrb_rd_res){
		.first = pkt->psn,
		.last = vrb_psn_add(pkt->psn, n - 1),
		.op = pkt->op,
		.rkey = pkt->rkey,
		.va = pkt->va,
		.len = read ? pkt->dma_len : 8,
		.end = read ? pkt->dma_len : 0,
	};
	qp->n_rd_unanswered++;
	owe(qp, qp->rd_tail - 1);
	if (!read)
		execute_atomic(pkt, host, s, fx);
	qp->msn++;
	return true;
}

/* The index of the request that pkt repeats, or rd_tail. */
static uint32_t find(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	for (uint32_t i = qp->rd_tail; i != oldest(qp); i--) {
		struct vrb_rd_res *s = vrb_qp_rd(qp, i - 1);

		if (s->op.v == pkt->op.v &&
		    vrb_psn_dist(pkt->psn, s->first) <= vrb_psn_dist(s->last, s->first))
			return i - 1;
	}
	return qp->rd_tail;
}

/* IBA C9-107: a repeated READ may begin in the middle, but must lie inside the original. */
static bool repeat_read(struct vrb_qp *qp, const struct vrb_pkt *pkt, uint32_t i, struct vrb_fx *fx)
{
	struct vrb_rd_res *s = vrb_qp_rd(qp, i);
	uint32_t off = vrb_psn_dist(pkt->psn, s->first) * qp->mtu;
	struct vrb_fault f;
	uint64_t host;

	if (pkt->rkey != s->rkey || pkt->va != s->va + off || pkt->dma_len > s->len - off)
		return false;
	if (vrb_key_check_remote(qp->keys, pkt->rkey, pkt->va, pkt->dma_len, qp->pd,
				 VRB_ACC_REMOTE_READ, qp->qpn, &host, &f.r) != VRB_OK) {
		settle_debt(qp, s);
		f.syndrome = VRB_NAK_ACCESS;
		f.status = VRB_WC_WR_FLUSH_ERR;
		vrb_responder_fault(qp, pkt, &f, fx);
		return true;
	}
	s->beg = s->off = off;
	s->end = off + pkt->dma_len;
	owe(qp, i);
	return true;
}

void vrb_rd_duplicate(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	uint32_t i = find(qp, pkt);
	bool known = i != qp->rd_tail;

	if (known && vrb_op_has(pkt->op, VRB_OPF_READ))
		known = repeat_read(qp, pkt, i, fx);
	else if (known)
		owe(qp, i);
	if (!known)
		vrb_qp_report(qp, fx, VRB_V_DROP_READ_DUP, pkt->psn.v, 0);
}

static void head(const struct vrb_qp *qp, struct vrb_tx *tx, unsigned op, struct vrb_psn psn,
		 uint8_t syndrome)
{
	tx->pkt = (struct vrb_pkt){
		.op = vrb_opcode(VRB_TP_RC, op),
		.syndrome = syndrome,
		.pkey = VRB_PKEY_DEFAULT,
		.dqpn = qp->dqpn,
		.psn = psn,
		.msn = qp->msn & VRB_PSN_MASK,
	};
	tx->av = NULL;
	tx->n_seg = 0;
}

static void make_nak(struct vrb_qp *qp, struct vrb_tx *tx)
{
	head(qp, tx, VRB_OP_ACK, qp->nak_psn, qp->nak_syndrome);
	qp->nak_syndrome = 0;
	qp->ack_pending = false; /* it acknowledges everything before */
	if (qp->state == VRB_QPS_ERR)
		vrb_qp_forget_responses(qp);
}

/* The region went while it was being read (IBA 9.7.5.1.5): NAK in place of this packet. */
static void break_off(struct vrb_qp *qp, struct vrb_psn psn, const struct vrb_report *r,
		      struct vrb_tx *tx, struct vrb_fx *fx)
{
	vrb_fx_report(fx, r);
	if (qp->state != VRB_QPS_ERR)
		vrb_fx_event(fx, VRB_ASYNC_QP_ACCESS_ERR, qp);
	vrb_qp_to_err(qp, fx);
	vrb_qp_forget_responses(qp);
	qp->nak_syndrome = VRB_NAK_ACCESS;
	qp->nak_psn = psn;
	make_nak(qp, tx);
}

static unsigned read_operation(const struct vrb_rd_res *s, uint32_t len)
{
	bool last = s->off + len == s->end;

	if (s->off == s->beg)
		return last ? VRB_OP_READ_RESP_ONLY : VRB_OP_READ_RESP_FIRST;
	return last ? VRB_OP_READ_RESP_LAST : VRB_OP_READ_RESP_MIDDLE;
}

static void make_read(struct vrb_qp *qp, struct vrb_rd_res *s, struct vrb_tx *tx, struct vrb_fx *fx)
{
	uint32_t left = s->end - s->off, len = left < qp->mtu ? left : qp->mtu;
	struct vrb_psn psn = vrb_psn_add(s->first, s->off / qp->mtu);
	struct vrb_report r;
	uint64_t host;

	if (vrb_key_check_remote(qp->keys, s->rkey, s->va + s->off, len, qp->pd,
				 VRB_ACC_REMOTE_READ, qp->qpn, &host, &r) != VRB_OK) {
		break_off(qp, psn, &r, tx, fx);
		return;
	}
	head(qp, tx, read_operation(s, len), psn, VRB_AETH_ACK | VRB_AETH_CREDITS_UNLIMITED);
	tx->pkt.len = len;
	tx->n_seg = len > 0;
	tx->seg[0] = (struct vrb_seg){.base = (const void *)(uintptr_t)host, .len = len};
	s->off += len;
	if (s->off == s->end)
		answered(qp, s);
}

static void make_rd(struct vrb_qp *qp, struct vrb_tx *tx, struct vrb_fx *fx)
{
	struct vrb_rd_res *s;

	if (qp->rd_tail - qp->rd_next > qp->rd_n)
		qp->rd_next = oldest(qp);
	while (qp->rd_next != qp->rd_tail && !vrb_qp_rd(qp, qp->rd_next)->pending)
		qp->rd_next++;
	s = vrb_qp_rd(qp, qp->rd_next);
	VRB_ASSERT(s->pending);
	if (vrb_op_has(s->op, VRB_OPF_READ)) {
		make_read(qp, s, tx, fx);
		return;
	}
	head(qp, tx, VRB_OP_ATOMIC_ACK, s->first, VRB_AETH_ACK | VRB_AETH_CREDITS_UNLIMITED);
	tx->pkt.atomic_orig = s->orig;
	answered(qp, s);
}

bool vrb_qp_poll_response(struct vrb_qp *qp, vrb_ns now, struct vrb_tx *tx, struct vrb_fx *fx)
{
	(void)now;
	if (qp->n_rd_pending > 0) {
		make_rd(qp, tx, fx);
	} else if (qp->nak_syndrome) {
		make_nak(qp, tx);
	} else if (qp->ack_pending) {
		head(qp, tx, VRB_OP_ACK, plain_ack_psn(qp),
		     VRB_AETH_ACK | VRB_AETH_CREDITS_UNLIMITED);
		qp->ack_pending = false;
	} else {
		return false;
	}
	vrb_qp_settle(qp, fx);
	return true;
}
