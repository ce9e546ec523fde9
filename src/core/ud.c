/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable datagrams (IBA 9.8.3): one packet per message, addressed by each work request. What
 * does not fit the receiver is dropped without a trace for the sender; the receive WQE is consumed
 * only by a message that is placed. The 40 bytes of GRH space come before the payload.
 */
#include "core/internal.h"

#define QKEY_PRIVILEGED 0x80000000u

static bool fail(struct vrb_qp *qp, enum vrb_wc_status status, struct vrb_report r,
		 struct vrb_fx *fx)
{
	vrb_requester_fail(qp, status, &r, fx);
	return false;
}

static bool fill(struct vrb_qp *qp, const struct vrb_swqe *w, struct vrb_tx *tx, struct vrb_fx *fx)
{
	struct vrb_sgl l = {.keys = qp->keys, .sge = w->sge, .n = w->n_sge, .pd = qp->pd};
	struct vrb_report r;

	if (w->op != VRB_WR_SEND && w->op != VRB_WR_SEND_IMM)
		return fail(qp, VRB_WC_LOC_QP_OP_ERR,
			    vrb_report1(qp, VRB_V_POST_OPCODE, w->op, qp->type), fx);
	if (!w->ud.av || w->ud.av->pd != qp->pd)
		return fail(qp, VRB_WC_LOC_QP_OP_ERR, vrb_report1(qp, VRB_V_AV_OTHER_PD, 0, 0), fx);
	if (w->len > qp->mtu)
		return fail(qp, VRB_WC_LOC_LEN_ERR,
			    vrb_report1(qp, VRB_V_UD_TOO_LONG, w->len, qp->mtu), fx);
	if (w->flags & VRB_WRF_INLINE) {
		tx->n_seg = w->len > 0;
		tx->seg[0] = (struct vrb_seg){.base = w->data, .len = w->len};
	} else if (!vrb_sgl_gather(&l, 0, w->len, tx, &r)) {
		return fail(qp, VRB_WC_LOC_PROT_ERR, r, fx);
	}
	return true;
}

bool vrb_ud_poll_request(struct vrb_qp *qp, struct vrb_tx *tx, struct vrb_fx *fx)
{
	struct vrb_swqe *w;

	if (qp->state != VRB_QPS_RTS || qp->sq_send == qp->sq.tail)
		return false;
	w = vrb_qp_swqe(qp, qp->sq_send);
	if (!fill(qp, w, tx, fx))
		return false;
	tx->av = w->ud.av;
	tx->pkt = (struct vrb_pkt){
		.op = vrb_opcode(VRB_TP_UD,
				 w->op == VRB_WR_SEND ? VRB_OP_SEND_ONLY : VRB_OP_SEND_ONLY_IMM),
		.flags = w->flags & VRB_WRF_SOLICITED ? VRB_PKT_SE : 0,
		.pkey = VRB_PKEY_DEFAULT,
		.dqpn = w->ud.qpn,
		.psn = qp->next_psn,
		.len = w->len,
		.imm = w->imm,
		/* IBA 3.5.3: a Q_Key with the top bit set stands for the QP's own */
		.qkey = w->ud.qkey & QKEY_PRIVILEGED ? qp->attr.qkey : w->ud.qkey,
		.sqpn = qp->qpn,
	};
	w->first = w->last = qp->next_psn;
	qp->next_psn = qp->una_psn = vrb_psn_add(qp->next_psn, 1);
	qp->sq_send++;
	vrb_requester_retire(qp, fx);
	return true;
}

/* What is dropped silently (IBA 9.8.3.2.2), with nothing consumed. */
static const struct vrb_rwqe *acceptable(const struct vrb_qp *qp, const struct vrb_pkt *pkt,
					 struct vrb_fx *fx)
{
	const struct vrb_rwqe *w = vrb_rx_peek(qp);

	if (!vrb_op_has(pkt->op, VRB_OPF_KNOWN | VRB_OPF_REQUEST | VRB_OPF_SEND)) {
		vrb_qp_report(qp, fx, VRB_V_DROP_OPCODE, pkt->op.v, 0);
		return NULL;
	}
	if (pkt->qkey != qp->attr.qkey) {
		vrb_qp_report(qp, fx, VRB_V_DROP_QKEY, pkt->qkey, qp->attr.qkey);
		return NULL;
	}
	if (!w) {
		vrb_qp_report(qp, fx, VRB_V_DROP_NO_RECV, pkt->len, 0);
		return NULL;
	}
	if (w->len < VRB_GRH_LEN || pkt->len > w->len - VRB_GRH_LEN) {
		vrb_qp_report(qp, fx, VRB_V_DROP_UD_SHORT, (uint64_t)pkt->len + VRB_GRH_LEN,
			      w->len);
		return NULL;
	}
	return w;
}

static bool place(struct vrb_qp *qp, const struct vrb_pkt *pkt, const struct vrb_rwqe *w,
		  struct vrb_fx *fx)
{
	static const uint8_t no_grh[VRB_GRH_LEN];
	struct vrb_seg grh = {pkt->grh ? pkt->grh : no_grh, VRB_GRH_LEN};
	struct vrb_seg payload = {pkt->payload, pkt->len};
	struct vrb_sgl l = vrb_rx_sgl(qp, w);
	uint32_t before = fx->n_place;
	struct vrb_report r;

	if (vrb_sgl_scatter(&l, 0, grh, fx, &r)) {
		if (vrb_sgl_scatter(&l, VRB_GRH_LEN, payload, fx, &r))
			return true;
		fx->n_place = before;
	}
	r.qpn = qp->qpn;
	vrb_fx_report(fx, &r);
	vrb_rx_error(qp, VRB_WC_LOC_PROT_ERR, fx);
	vrb_qp_to_err(qp, fx);
	return false;
}

/* What NICs report in the SL of a UD completion, and UCX needs to find the destination in the GRH:
 * bit 3 a UDP header, below it IPv6 (1) or IPv4 (2). RoCEv2 A17.4.5.1 asks for such a flag. */
static uint8_t packet_type(const struct vrb_pkt *pkt)
{
	if (!pkt->grh)
		return 0;
	return (uint8_t)(8 | (pkt->grh[0] >> 4 == 6 ? 1 : 2));
}

void vrb_ud_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	const struct vrb_rwqe *w = acceptable(qp, pkt, fx);
	struct vrb_cqe cqe = {
		.wc = {.opcode = VRB_WCO_RECV,
		       .byte_len = pkt->len + VRB_GRH_LEN,
		       .src_qp = pkt->sqpn,
		       .sl = packet_type(pkt),
		       .wc_flags = VRB_WCF_GRH},
	};

	if (!w)
		return;
	w = vrb_rx_take(qp, fx);
	if (!place(qp, pkt, w, fx))
		return;
	if (vrb_op_has(pkt->op, VRB_OPF_IMM)) {
		cqe.wc.imm = pkt->imm;
		cqe.wc.wc_flags |= VRB_WCF_IMM;
	}
	vrb_rx_complete(qp, &cqe, (pkt->flags & VRB_PKT_SE) != 0, fx);
}
