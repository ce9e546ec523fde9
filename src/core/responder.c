/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet arrives: which half of the QP it is for, and for RC requests the chain of checks of IBA
 * 9.7.4: PSN, opcode sequence, opcode, then what executing it needs (core/receive.c, rd_atomic.c).
 * The first check that fails decides. A lost packet is answered once (nak_sent) until the expected
 * one comes, or until the requester has visibly gone back and passed the gap once more (ahead());
 * a missing receive is answered RNR and holds everything behind it in the same way.
 *
 * Responses are owed, not made here: vrb_qp_poll_response makes them in PSN order, READs and
 * atomics first, then a NAK, then the plain ACK, which says epsn - 1.
 */
#include "core/internal.h"

static bool accepts(const struct vrb_qp *qp)
{
	return qp->state == VRB_QPS_RTR || qp->state == VRB_QPS_RTS || qp->state == VRB_QPS_SQD ||
	       qp->state == VRB_QPS_SQE;
}

static void owe_nak(struct vrb_qp *qp, uint8_t syndrome, struct vrb_psn psn)
{
	qp->nak_syndrome = syndrome;
	qp->nak_psn = psn;
}

static void rnr(struct vrb_qp *qp, const struct vrb_fault *f, struct vrb_fx *fx)
{
	vrb_fx_report(fx, &f->r);
	owe_nak(qp, (uint8_t)(VRB_AETH_RNR | (qp->attr.min_rnr_timer & 31)), qp->epsn);
	qp->nak_sent = true; /* what follows is dropped without a sequence NAK */
	qp->nak_round = qp->epsn;
}

/* Section 8 of the responder's faults: the NAK, the receive's completion, the event, ERR. */
void vrb_responder_fault(struct vrb_qp *qp, const struct vrb_pkt *pkt, const struct vrb_fault *f,
			 struct vrb_fx *fx)
{
	if (f->syndrome == VRB_AETH_RNR) {
		rnr(qp, f, fx);
		return;
	}
	vrb_fx_report(fx, &f->r);
	if (f->syndrome)
		owe_nak(qp, f->syndrome, pkt->psn);
	if (vrb_rx_is_bound(qp))
		vrb_rx_error(qp, f->status, fx);
	if (f->syndrome == VRB_NAK_ACCESS)
		vrb_fx_event(fx, VRB_ASYNC_QP_ACCESS_ERR, qp);
	else if (f->syndrome == VRB_NAK_INVALID && f->status == VRB_WC_REM_INV_REQ_ERR)
		vrb_fx_event(fx, VRB_ASYNC_QP_REQ_ERR, qp);
	vrb_qp_to_err(qp, fx);
}

static void comm_est(struct vrb_qp *qp, struct vrb_fx *fx)
{
	if (qp->state != VRB_QPS_RTR || qp->comm_est_done)
		return;
	qp->comm_est_done = true;
	vrb_fx_event(fx, VRB_ASYNC_COMM_EST, qp); /* IBA 11.6.3.1 */
}

static bool check_opcode(const struct vrb_qp *qp, struct vrb_opcode op, struct vrb_fault *f)
{
	static const uint8_t begun[] = {0, VRB_OP_SEND_FIRST, VRB_OP_WRITE_FIRST};

	if (!vrb_rx_seq_ok(qp, op))
		return vrb_rx_fault(f, VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR,
				    vrb_report1(qp, VRB_V_NAK_OPCODE_SEQ, op.v, begun[qp->rx_seq]));
	if (!vrb_op_has(op, VRB_OPF_KNOWN | VRB_OPF_REQUEST))
		return vrb_rx_fault(f, VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR,
				    vrb_report1(qp, VRB_V_NAK_OPCODE, op.v, 0));
	return true;
}

/* On purpose: a request that is in order is refused as if what it needs were not there. */
static void refuse(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	struct vrb_fault f = {
		.syndrome = qp->refuse_next,
		.r = vrb_report1(qp, VRB_V_FAULT_NAK, qp->refuse_next, pkt->psn.v),
	};

	switch (f.syndrome) {
	case VRB_NAK_PSN_SEQ: /* as if it had been lost and a later one had come */
		vrb_fx_report(fx, &f.r);
		owe_nak(qp, f.syndrome, qp->epsn);
		qp->nak_sent = true;
		return;
	case VRB_NAK_ACCESS:
		f.status = VRB_WC_REM_ACCESS_ERR;
		break;
	case VRB_NAK_OPERATIONAL:
		f.status = VRB_WC_LOC_QP_OP_ERR;
		break;
	default:
		f.status = VRB_WC_REM_INV_REQ_ERR;
		break;
	}
	vrb_responder_fault(qp, pkt, &f, fx);
}

static void in_order(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	bool rd = (vrb_op_flags(pkt->op) & (VRB_OPF_READ | VRB_OPF_ATOMIC)) != 0;
	struct vrb_fault f;
	uint32_t n = 1;
	bool ok;

	qp->nak_sent = false;
	qp->nak_syndrome = 0; /* a sequence or RNR NAK that has not left yet is void */
	if (!check_opcode(qp, pkt->op, &f)) {
		vrb_responder_fault(qp, pkt, &f, fx);
		return;
	}
	comm_est(qp, fx);
	if (qp->refuse_next) {
		refuse(qp, pkt, fx);
		return;
	}
	ok = rd ? vrb_rd_accept(qp, pkt, fx, &f) : vrb_rx_execute(qp, pkt, fx, &f);
	if (!ok) {
		vrb_responder_fault(qp, pkt, &f, fx);
		return;
	}
	if (vrb_op_has(pkt->op, VRB_OPF_READ))
		n = vrb_n_packets(pkt->dma_len, qp->mtu);
	qp->epsn = vrb_psn_add(qp->epsn, n);
	qp->ack_psn = vrb_psn_sub(qp->epsn, 1);
	if (!rd && (pkt->flags & VRB_PKT_ACKREQ))
		qp->ack_pending = true;
}

/*
 * IBA C9-57: one NAK for each gap. But when the very packet that brought it comes once more, the
 * requester has gone back and passed the gap again: what was awaited has been lost again, or the
 * NAK was. That is a new gap, and is said again. Packets that only overtake each other never look
 * like that.
 */
static void ahead(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	if (qp->nak_sent && !vrb_psn_eq(pkt->psn, qp->nak_round)) {
		vrb_qp_report(qp, fx, VRB_V_DROP_PSN_AHEAD, pkt->psn.v, qp->epsn.v);
		return;
	}
	vrb_qp_report(qp, fx, VRB_V_NAK_SEQUENCE, pkt->psn.v, qp->epsn.v);
	owe_nak(qp, VRB_NAK_PSN_SEQ, qp->epsn);
	qp->nak_sent = true;
	qp->nak_round = pkt->psn;
}

static void duplicate(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	if (vrb_op_flags(pkt->op) & (VRB_OPF_READ | VRB_OPF_ATOMIC)) {
		vrb_rd_duplicate(qp, pkt, fx);
		return;
	}
	vrb_qp_report(qp, fx, VRB_V_DROP_DUPLICATE, pkt->psn.v, 0);
	qp->ack_pending = true; /* IBA C9-105: acknowledged with the newest PSN */
}

void vrb_responder_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	int32_t d = vrb_psn_diff(pkt->psn, qp->epsn);

	if (d == 0)
		in_order(qp, pkt, fx);
	else if (d < 0 && d > -(int32_t)VRB_PSN_WINDOW_MAX - 1)
		duplicate(qp, pkt, fx);
	else
		ahead(qp, pkt, fx);
}

static const uint8_t transport_of[] = {
	[VRB_QPT_RC] = VRB_TP_RC,
	[VRB_QPT_UC] = VRB_TP_UC,
	[VRB_QPT_UD] = VRB_TP_UD,
};

/* IBA 9.6.1: what is dropped silently before the PSN is looked at. */
static bool is_for_us(const struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	if (!accepts(qp)) {
		vrb_qp_report(qp, fx, VRB_V_DROP_STATE, qp->state, 0);
		return false;
	}
	if (vrb_op_transport(pkt->op) != transport_of[qp->type]) {
		vrb_qp_report(qp, fx, VRB_V_DROP_TRANSPORT, pkt->op.v, qp->type);
		return false;
	}
	if ((pkt->pkey & 0x7fffu) != (VRB_PKEY_DEFAULT & 0x7fffu)) {
		vrb_qp_report(qp, fx, VRB_V_DROP_PKEY, pkt->pkey, VRB_PKEY_DEFAULT);
		return false;
	}
	return true;
}

void vrb_qp_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, vrb_ns now, struct vrb_fx *fx)
{
	if (!is_for_us(qp, pkt, fx))
		return;
	if (qp->type == VRB_QPT_UD) {
		vrb_ud_on_packet(qp, pkt, fx);
	} else if (qp->type == VRB_QPT_UC) {
		comm_est(qp, fx);
		vrb_uc_on_packet(qp, pkt, fx);
	} else if (vrb_op_has(pkt->op, VRB_OPF_RESPONSE)) {
		vrb_completer_on_packet(qp, pkt, now, fx);
	} else {
		vrb_responder_on_packet(qp, pkt, fx);
		qp->refuse_next = 0;
	}
	vrb_qp_settle(qp, fx);
}
