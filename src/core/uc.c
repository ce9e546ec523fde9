/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unreliable connected responder (IBA 9.8.2). A lost packet or a packet that cannot be executed
 * costs its message, never the connection: the receive WQE is kept for the next message, and
 * everything up to the next First or Only is dropped. Faults of the local receive are the user's
 * and do fail the QP. (Sending is core/requester.c.)
 */
#include "core/internal.h"

static void give_up(struct vrb_qp *qp)
{
	qp->rx_seq = VRB_RX_IDLE;
	qp->rx_len = 0;
}

static void fault(struct vrb_qp *qp, const struct vrb_fault *f, struct vrb_fx *fx)
{
	bool local = f->status == VRB_WC_LOC_LEN_ERR || f->status == VRB_WC_LOC_PROT_ERR;

	vrb_fx_report(fx, &f->r);
	if (local && vrb_rx_is_bound(qp)) {
		vrb_rx_error(qp, f->status, fx);
		vrb_qp_to_err(qp, fx);
		return;
	}
	if (qp->srq && qp->have_rwqe)
		vrb_rx_error(qp, f->status, fx);
	give_up(qp);
}

void vrb_uc_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	bool begins = vrb_op_has(pkt->op, VRB_OPF_FIRST);
	bool in_seq = vrb_psn_eq(pkt->psn, qp->epsn) && vrb_rx_seq_ok(qp, pkt->op);
	struct vrb_fault f;

	if (!vrb_op_has(pkt->op, VRB_OPF_KNOWN | VRB_OPF_REQUEST)) {
		vrb_qp_report(qp, fx, VRB_V_DROP_OPCODE, pkt->op.v, 0);
		return;
	}
	if (!in_seq && (qp->rx_seq != VRB_RX_IDLE || !begins))
		vrb_qp_report(qp, fx, VRB_V_DROP_UC_BROKEN, pkt->psn.v, qp->epsn.v);
	if (!in_seq)
		give_up(qp);
	if (!in_seq && !begins)
		return;
	qp->epsn = vrb_psn_add(pkt->psn, 1);
	qp->ack_psn = pkt->psn;
	if (!vrb_rx_execute(qp, pkt, fx, &f))
		fault(qp, &f, fx);
}
