/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What responses mean for the send queue (IBA 9.7.5, 9.7.6). A response for PSN p acknowledges the
 * packets before p (an ACK: p too). On the way there a READ or atomic whose data has not come means
 * that its response was lost: an implied NAK, nothing behind it is acknowledged. Responses whose
 * PSN is not outstanding are ghosts and dropped.
 */
#include "core/internal.h"

static bool is_inside(const struct vrb_swqe *w, struct vrb_psn psn)
{
	return vrb_psn_dist(psn, w->first) <= vrb_psn_dist(w->last, w->first);
}

/* What was on its way when the repetition was asked for may follow for a while: an echo. */
static void implied_nak(struct vrb_qp *qp, vrb_ns now, struct vrb_fx *fx)
{
	if (vrb_retry_again(qp, now, qp->probe_ns))
		return;
	vrb_qp_report(qp, fx, VRB_V_IMPLIED_NAK, qp->una_psn.v, 0);
	if (vrb_retry_spend(qp, fx))
		vrb_retry_rewind(qp, qp->una_psn);
}

static void move_una(struct vrb_qp *qp, struct vrb_psn to, vrb_ns now)
{
	if (vrb_psn_eq(qp->una_psn, to))
		return;
	qp->una_psn = to;
	vrb_retry_progress(qp, now);
}

/*
 * Acknowledges the PSNs before `upto`, at most sent ones. False: a READ or atomic among them lacks
 * its data; then the response is not to be looked at any further.
 */
static bool ack_before(struct vrb_qp *qp, struct vrb_psn upto, vrb_ns now, struct vrb_fx *fx)
{
	struct vrb_psn from = qp->una_psn, missing;
	uint32_t n = vrb_psn_dist(upto, from);

	while (qp->sq_una != vrb_qp_started_end(qp)) {
		const struct vrb_swqe *w = vrb_qp_swqe(qp, qp->sq_una);
		struct vrb_psn end = vrb_swqe_is_local(w) ? w->first : vrb_psn_add(w->last, 1);

		if (vrb_swqe_is_rd(w)) {
			missing = is_inside(w, from) ? from : w->first;
			if (vrb_psn_dist(missing, from) >= n)
				break;
			move_una(qp, missing, now);
			implied_nak(qp, now, fx);
			return false;
		}
		if (vrb_psn_dist(end, from) > n)
			break;
		vrb_requester_retire(qp, fx);
	}
	move_una(qp, upto, now);
	return true;
}

/* The entry at sq_una ends badly by what the peer said; una_psn lies in it. */
static void refuse(struct vrb_qp *qp, enum vrb_wc_status status, enum vrb_verdict v,
		   struct vrb_fx *fx)
{
	const struct vrb_swqe *w = vrb_qp_swqe(qp, qp->sq_una);
	struct vrb_report r = vrb_report1(qp, v, qp->una_psn.v, w->rkey);

	r.val[2] = w->va;
	r.val[3] = w->len;
	vrb_fx_report(fx, &r);
	vrb_qp_send_error(qp, status, fx);
}

static void on_nak(struct vrb_qp *qp, const struct vrb_pkt *pkt, vrb_ns now, struct vrb_fx *fx)
{
	if (!ack_before(qp, pkt->psn, now, fx))
		return;
	switch (pkt->syndrome) {
	case VRB_NAK_PSN_SEQ:
		if (vrb_retry_again(qp, now, qp->rtt_min_ns))
			return;
		if (vrb_retry_spend(qp, fx))
			vrb_retry_rewind(qp, qp->una_psn);
		return;
	case VRB_NAK_INVALID:
		refuse(qp, VRB_WC_REM_INV_REQ_ERR, VRB_V_REM_INVALID, fx);
		return;
	case VRB_NAK_ACCESS:
		refuse(qp, VRB_WC_REM_ACCESS_ERR, VRB_V_REM_ACCESS, fx);
		return;
	default:
		refuse(qp, VRB_WC_REM_OP_ERR, VRB_V_REM_OP, fx);
		return;
	}
}

static void on_ack(struct vrb_qp *qp, const struct vrb_pkt *pkt, vrb_ns now, struct vrb_fx *fx)
{
	unsigned kind = pkt->syndrome & VRB_AETH_KIND_MASK;
	/* sooner than a round trip it is the late answer to what the probe repeats */
	bool probed = qp->probe == VRB_PROBE_DATA && vrb_psn_eq(pkt->psn, qp->probe_end) &&
		      now - qp->probe_at >= qp->rtt_min_ns;

	if (kind == VRB_AETH_ACK) {
		if (ack_before(qp, vrb_psn_add(pkt->psn, 1), now, fx) && probed)
			vrb_retry_rest_lost(qp);
	} else if (kind == VRB_AETH_RNR) {
		if (ack_before(qp, pkt->psn, now, fx))
			vrb_retry_rnr(qp, pkt->syndrome & VRB_AETH_VALUE_MASK, now, fx);
	} else if (kind == VRB_AETH_NAK && pkt->syndrome <= VRB_NAK_OPERATIONAL) {
		on_nak(qp, pkt, now, fx);
	} else {
		vrb_qp_report(qp, fx, VRB_V_DROP_SYNDROME, pkt->syndrome, 0);
	}
}

static void bad_response(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx)
{
	vrb_qp_report(qp, fx, VRB_V_BAD_RESPONSE, pkt->op.v, pkt->psn.v);
	vrb_qp_send_error(qp, VRB_WC_BAD_RESP_ERR, fx);
}

/* Places the answer in the entry's list; its keys are looked at only now. */
static bool scatter(struct vrb_qp *qp, const struct vrb_swqe *w, uint32_t off, struct vrb_seg src,
		    struct vrb_fx *fx)
{
	struct vrb_sgl l = {.keys = qp->keys, .sge = w->sge, .n = w->n_sge, .pd = qp->pd};
	struct vrb_report r;

	if (vrb_sgl_scatter(&l, off, src, fx, &r))
		return true;
	r.qpn = qp->qpn;
	vrb_fx_report(fx, &r);
	vrb_qp_send_error(qp, VRB_WC_LOC_PROT_ERR, fx);
	return false;
}

/* psn is the last that one request packet asked for. */
static bool ends_request(const struct vrb_qp *qp, const struct vrb_swqe *w, struct vrb_psn psn)
{
	return vrb_psn_eq(psn, w->last) || (vrb_psn_dist(psn, w->first) + 1) % qp->read_chunk == 0;
}

/* The data up to and with psn is here. */
static void took(struct vrb_qp *qp, const struct vrb_swqe *w, struct vrb_psn psn, vrb_ns now,
		 struct vrb_fx *fx)
{
	if (qp->n_rd_out > 0 && ends_request(qp, w, psn) && vrb_psn_diff(psn, qp->next_psn) < 0)
		qp->n_rd_out--;
	if (vrb_psn_eq(psn, w->last)) {
		vrb_requester_retire(qp, fx);
		/* local operations behind it waited for it only */
		(void)ack_before(qp, vrb_psn_add(psn, 1), now, fx);
		return;
	}
	move_una(qp, vrb_psn_add(psn, 1), now);
}

/*
 * IBA 9.7.5.1.6: READ responses come in PSN order with exact lengths. First, Middle and Last are
 * not told apart here: an answer to a READ repeated from its middle starts with Middle at some
 * peers (Linux rxe), and the length says where it ends.
 */
static void on_read_response(struct vrb_qp *qp, const struct vrb_pkt *pkt, vrb_ns now,
			     struct vrb_fx *fx)
{
	const struct vrb_swqe *w;
	uint32_t off, want;

	if (!ack_before(qp, pkt->psn, now, fx))
		return;
	w = vrb_qp_swqe(qp, qp->sq_una);
	if (w->op != VRB_WR_READ || !is_inside(w, pkt->psn)) {
		bad_response(qp, pkt, fx);
		return;
	}
	off = vrb_psn_dist(pkt->psn, w->first) * qp->mtu;
	want = w->len - off < qp->mtu ? w->len - off : qp->mtu;
	if (pkt->len != want) {
		bad_response(qp, pkt, fx);
		return;
	}
	if (!scatter(qp, w, off, (struct vrb_seg){pkt->payload, pkt->len}, fx))
		return;
	took(qp, w, pkt->psn, now, fx);
}

static void on_atomic_ack(struct vrb_qp *qp, const struct vrb_pkt *pkt, vrb_ns now,
			  struct vrb_fx *fx)
{
	const struct vrb_swqe *w;

	if (!ack_before(qp, pkt->psn, now, fx))
		return;
	w = vrb_qp_swqe(qp, qp->sq_una);
	if (!vrb_swqe_is_rd(w) || w->op == VRB_WR_READ || !vrb_psn_eq(pkt->psn, w->first)) {
		bad_response(qp, pkt, fx);
		return;
	}
	if (scatter(qp, w, 0, (struct vrb_seg){&pkt->atomic_orig, sizeof(pkt->atomic_orig)}, fx))
		took(qp, w, pkt->psn, now, fx);
}

void vrb_completer_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, vrb_ns now,
			     struct vrb_fx *fx)
{
	uint32_t outstanding = vrb_psn_dist(vrb_qp_sent(qp), qp->una_psn);

	if (qp->state != VRB_QPS_RTS && qp->state != VRB_QPS_SQD) {
		vrb_qp_report(qp, fx, VRB_V_DROP_STATE, qp->state, 0);
		return;
	}
	if (vrb_psn_dist(pkt->psn, qp->una_psn) >= outstanding) {
		vrb_qp_report(qp, fx, VRB_V_DROP_GHOST, pkt->psn.v, 0);
		return;
	}
	if (vrb_op_has(pkt->op, VRB_OPF_READ))
		on_read_response(qp, pkt, now, fx);
	else if (vrb_op_has(pkt->op, VRB_OPF_ATOMIC))
		on_atomic_ack(qp, pkt, now, fx);
	else
		on_ack(qp, pkt, now, fx);
}
