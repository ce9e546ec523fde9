/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executing SEND and WRITE request packets, for RC and UC alike: what the packet needs (a receive
 * WQE, rights, a key, room), the placement of its bytes and the receive completion. PSN and order
 * are the caller's; so is what becomes of a fault. Nothing of a packet that fails is placed.
 *
 * The receive WQE of a QP's own queue stays at rq.head until its message is complete; that of an
 * SRQ is copied to cur_rwqe when the message begins (IBA 10.2.9.4).
 */
#include "core/internal.h"

const struct vrb_rwqe *vrb_rx_peek(const struct vrb_qp *qp)
{
	const struct vrb_wq *q = qp->srq ? &qp->srq->wq : &qp->rq;

	if (qp->have_rwqe)
		return qp->cur_rwqe;
	return q->head == q->tail ? NULL : vrb_wq_entry(q, q->head);
}

const struct vrb_rwqe *vrb_rx_take(struct vrb_qp *qp, struct vrb_fx *fx)
{
	if (!qp->srq || qp->have_rwqe)
		return vrb_rx_peek(qp);
	if (!vrb_srq_take(qp->srq, qp->cur_rwqe, fx))
		return NULL;
	qp->have_rwqe = true;
	return qp->cur_rwqe;
}

/* A receive WQE belongs to the message in progress. */
bool vrb_rx_is_bound(const struct vrb_qp *qp)
{
	return qp->srq ? qp->have_rwqe : qp->rx_seq == VRB_RX_SEND;
}

struct vrb_sgl vrb_rx_sgl(const struct vrb_qp *qp, const struct vrb_rwqe *w)
{
	return (struct vrb_sgl){.keys = qp->keys,
				.sge = w->sge,
				.n = w->n_sge,
				.pd = qp->srq ? qp->srq->pd : qp->pd};
}

/* Completes the oldest receive WQE (the one taken, with an SRQ). */
void vrb_rx_complete(struct vrb_qp *qp, struct vrb_cqe *cqe, bool solicited, struct vrb_fx *fx)
{
	cqe->qp = qp;
	cqe->is_send = 0;
	cqe->wc.wr_id = vrb_rx_peek(qp)->wr_id;
	cqe->wc.qp_num = qp->qpn;
	if (qp->srq)
		qp->have_rwqe = false;
	else
		qp->rq.head++;
	vrb_cq_push(qp->rcq, cqe, solicited, fx);
}

void vrb_rx_error(struct vrb_qp *qp, enum vrb_wc_status status, struct vrb_fx *fx)
{
	struct vrb_cqe cqe = {.wc = {.status = status, .opcode = VRB_WCO_RECV}};

	vrb_rx_complete(qp, &cqe, false, fx);
}

bool vrb_rx_fault(struct vrb_fault *f, uint8_t syndrome, enum vrb_wc_status status,
		  struct vrb_report r)
{
	f->syndrome = syndrome;
	f->status = status;
	f->r = r;
	return false;
}

/* IBA table 36: what may follow what inside a message. */
bool vrb_rx_seq_ok(const struct vrb_qp *qp, struct vrb_opcode op)
{
	uint32_t flags = vrb_op_flags(op);
	uint32_t kind = flags & VRB_OPF_SEND ? VRB_RX_SEND : VRB_RX_WRITE;

	if (!(flags & (VRB_OPF_SEND | VRB_OPF_WRITE)) || (flags & VRB_OPF_FIRST))
		return qp->rx_seq == VRB_RX_IDLE;
	return qp->rx_seq == kind;
}

/* IBA C9-44, C9-45: First and Middle are full, Last is not empty, nothing is longer than the path
 * MTU. A link without pad bytes leaves pad 0. */
static bool check_length(const struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fault *f)
{
	bool first = vrb_op_has(pkt->op, VRB_OPF_FIRST), last = vrb_op_has(pkt->op, VRB_OPF_LAST);

	if (pkt->len > qp->mtu || (!last && pkt->len != qp->mtu) ||
	    (last && !first && pkt->len == 0))
		return vrb_rx_fault(f, VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR,
				    vrb_report1(qp, VRB_V_NAK_LENGTH, pkt->len, qp->mtu));
	if (pkt->pad != 0 && pkt->pad != (-pkt->len & 3u))
		return vrb_rx_fault(f, VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR,
				    vrb_report1(qp, VRB_V_NAK_PAD, pkt->pad, pkt->len));
	return true;
}

static bool no_receive(const struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fault *f)
{
	if (qp->type == VRB_QPT_RC)
		return vrb_rx_fault(f, VRB_AETH_RNR, VRB_WC_SUCCESS,
				    vrb_report1(qp, VRB_V_NAK_RNR, qp->attr.min_rnr_timer, 0));
	return vrb_rx_fault(f, VRB_AETH_RNR, VRB_WC_SUCCESS,
			    vrb_report1(qp, VRB_V_DROP_NO_RECV, pkt->len, 0));
}

static void count_message(struct vrb_qp *qp)
{
	qp->rx_seq = VRB_RX_IDLE;
	qp->msn++;
}

static void complete(struct vrb_qp *qp, const struct vrb_pkt *pkt, enum vrb_wc_opcode opcode,
		     struct vrb_fx *fx)
{
	struct vrb_cqe cqe = {
		.wc = {.opcode = opcode, .byte_len = qp->rx_len},
	};

	if (vrb_op_has(pkt->op, VRB_OPF_IMM)) {
		cqe.wc.imm = pkt->imm;
		cqe.wc.wc_flags = VRB_WCF_IMM;
	} else if (vrb_op_has(pkt->op, VRB_OPF_INV)) {
		cqe.wc.imm = pkt->inv_rkey;
		cqe.wc.wc_flags = VRB_WCF_INV;
	}
	vrb_rx_complete(qp, &cqe, (pkt->flags & VRB_PKT_SE) != 0, fx);
}

static bool execute_send(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx,
			 struct vrb_fault *f)
{
	const struct vrb_rwqe *w = vrb_rx_take(qp, fx);
	uint32_t before = fx->n_place;
	struct vrb_report r;
	struct vrb_sgl l;

	if (!w)
		return no_receive(qp, pkt, f);
	if (vrb_op_has(pkt->op, VRB_OPF_FIRST)) {
		qp->rx_seq = VRB_RX_SEND;
		qp->rx_len = 0;
	}
	if (!check_length(qp, pkt, f))
		return false;
	if (pkt->len > w->len || qp->rx_len > w->len - pkt->len)
		return vrb_rx_fault(f, VRB_NAK_INVALID, VRB_WC_LOC_LEN_ERR,
				    vrb_report1(qp, VRB_V_RECV_TOO_SHORT,
						(uint64_t)qp->rx_len + pkt->len, w->len));
	l = vrb_rx_sgl(qp, w);
	if (!vrb_sgl_scatter(&l, qp->rx_len, (struct vrb_seg){pkt->payload, pkt->len}, fx, &r)) {
		r.qpn = qp->qpn;
		return vrb_rx_fault(f, VRB_NAK_OPERATIONAL, VRB_WC_LOC_PROT_ERR, r);
	}
	if (vrb_op_has(pkt->op, VRB_OPF_INV) &&
	    !vrb_mw_invalidate(qp->keys, pkt->inv_rkey, qp->pd, qp->qpn)) {
		fx->n_place = before; /* IBA 9.9.6.4 class J: no answer */
		return vrb_rx_fault(f, 0, VRB_WC_REM_INV_REQ_ERR,
				    vrb_report1(qp, VRB_V_RECV_INVALIDATE, pkt->inv_rkey, 0));
	}
	qp->rx_len += pkt->len;
	if (!vrb_op_has(pkt->op, VRB_OPF_LAST))
		return true;
	complete(qp, pkt, VRB_WCO_RECV, fx);
	count_message(qp);
	return true;
}

/* What only the first packet of a WRITE is asked: right, length, and the whole range's key. */
static bool check_write(const struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fault *f)
{
	struct vrb_report r;
	uint64_t host;

	if (pkt->dma_len > VRB_MAX_MSG)
		return vrb_rx_fault(f, VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR,
				    vrb_report1(qp, VRB_V_NAK_DMA_LENGTH, pkt->dma_len, pkt->len));
	if (vrb_key_check_remote(qp->keys, pkt->rkey, pkt->va, pkt->dma_len, qp->pd,
				 VRB_ACC_REMOTE_WRITE, qp->qpn, &host, &r) != VRB_OK)
		return vrb_rx_fault(f, VRB_NAK_ACCESS, VRB_WC_REM_ACCESS_ERR, r);
	return true;
}

/* The bytes of this packet: they must fit what is left, and the key must still be good. */
static bool place_write(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx,
			struct vrb_fault *f)
{
	bool last = vrb_op_has(pkt->op, VRB_OPF_LAST);
	struct vrb_report r;
	uint64_t host;

	if (last ? pkt->len != qp->rx_left : pkt->len >= qp->rx_left)
		return vrb_rx_fault(f, VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR,
				    vrb_report1(qp, VRB_V_NAK_DMA_LENGTH,
						(uint64_t)qp->rx_len + qp->rx_left,
						(uint64_t)qp->rx_len + pkt->len));
	if (vrb_key_check_remote(qp->keys, qp->rx_rkey, qp->rx_va, pkt->len, qp->pd,
				 VRB_ACC_REMOTE_WRITE, qp->qpn, &host, &r) != VRB_OK)
		return vrb_rx_fault(f, VRB_NAK_ACCESS, VRB_WC_REM_ACCESS_ERR, r);
	if (pkt->len > 0)
		(void)vrb_fx_copy(fx, host, pkt->payload, pkt->len);
	qp->rx_va += pkt->len;
	qp->rx_left -= pkt->len;
	qp->rx_len += pkt->len;
	return true;
}

static bool execute_write(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx,
			  struct vrb_fault *f)
{
	bool imm = vrb_op_has(pkt->op, VRB_OPF_IMM);

	if (!(qp->access & VRB_ACC_REMOTE_WRITE))
		return vrb_rx_fault(f, VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR,
				    vrb_report1(qp, VRB_V_NAK_QP_ACCESS, pkt->op.v, qp->access));
	if (imm && !vrb_rx_peek(qp))
		return no_receive(qp, pkt, f);
	if (!check_length(qp, pkt, f))
		return false;
	if (vrb_op_has(pkt->op, VRB_OPF_FIRST)) {
		if (!check_write(qp, pkt, f))
			return false;
		qp->rx_seq = VRB_RX_WRITE;
		qp->rx_va = pkt->va;
		qp->rx_rkey = pkt->rkey;
		qp->rx_left = pkt->dma_len;
		qp->rx_len = 0;
	}
	if (!place_write(qp, pkt, fx, f))
		return false;
	if (!vrb_op_has(pkt->op, VRB_OPF_LAST))
		return true;
	if (imm) {
		(void)vrb_rx_take(qp, fx);
		complete(qp, pkt, VRB_WCO_RECV_WRITE_IMM, fx);
	}
	count_message(qp);
	return true;
}

bool vrb_rx_execute(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx,
		    struct vrb_fault *f)
{
	if (vrb_op_has(pkt->op, VRB_OPF_SEND))
		return execute_send(qp, pkt, fx, f);
	return execute_write(qp, pkt, fx, f);
}
