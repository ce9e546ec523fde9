/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two work queues of a QP: posting, completing and flushing entries, and what every step ends
 * with. Completions of one queue appear in posting order (IBA 10.8.6): the entry that failed first,
 * with its status, then the others with WR_FLUSH_ERR, signaled or not.
 */
#include "core/internal.h"

static uint32_t wc_opcode(const struct vrb_swqe *w)
{
	static const uint8_t table[] = {
		[VRB_WR_WRITE] = VRB_WCO_WRITE,		[VRB_WR_WRITE_IMM] = VRB_WCO_WRITE,
		[VRB_WR_SEND] = VRB_WCO_SEND,		[VRB_WR_SEND_IMM] = VRB_WCO_SEND,
		[VRB_WR_READ] = VRB_WCO_READ,		[VRB_WR_CMP_SWAP] = VRB_WCO_CMP_SWAP,
		[VRB_WR_FETCH_ADD] = VRB_WCO_FETCH_ADD, [VRB_WR_LOCAL_INV] = VRB_WCO_LOCAL_INV,
		[VRB_WR_BIND_MW] = VRB_WCO_BIND_MW,	[VRB_WR_SEND_INV] = VRB_WCO_SEND,
	};

	return w->op < sizeof(table) ? table[w->op] : VRB_WCO_SEND;
}

void vrb_qp_complete_send(struct vrb_qp *qp, uint32_t i, enum vrb_wc_status status,
			  struct vrb_fx *fx)
{
	const struct vrb_swqe *w = vrb_qp_swqe(qp, i);
	struct vrb_cqe cqe = {.qp = qp, .sq_free = i + 1, .is_send = 1};

	if (status == VRB_WC_SUCCESS && !(w->flags & VRB_WRF_SIGNALED))
		return;
	cqe.wc.wr_id = w->wr_id;
	cqe.wc.status = status;
	cqe.wc.opcode = wc_opcode(w);
	cqe.wc.byte_len = w->len;
	cqe.wc.qp_num = qp->qpn;
	vrb_cq_push(qp->scq, &cqe, false, fx);
}

void vrb_qp_flush_send(struct vrb_qp *qp, struct vrb_fx *fx)
{
	for (; qp->sq_una != qp->sq.tail; qp->sq_una++)
		vrb_qp_complete_send(qp, qp->sq_una, VRB_WC_WR_FLUSH_ERR, fx);
	qp->sq_send = qp->sq.tail;
	qp->send_off = 0;
	qp->rewound = qp->failing = qp->rnr_wait = qp->resend_guard = false;
	qp->n_rd_out = 0;
	qp->una_psn = qp->next_psn;
	qp->ack_deadline = qp->rnr_deadline = qp->probe_deadline = VRB_NS_NEVER;
	qp->probe = VRB_PROBE_NONE;
}

void vrb_qp_flush_recv(struct vrb_qp *qp, struct vrb_fx *fx)
{
	if (qp->have_rwqe)
		vrb_rx_error(qp, VRB_WC_WR_FLUSH_ERR, fx);
	qp->rx_seq = VRB_RX_IDLE;
	if (qp->srq)
		return;
	while (qp->rq.head != qp->rq.tail)
		vrb_rx_error(qp, VRB_WC_WR_FLUSH_ERR, fx);
}

/* Responses that are owed stay: a NAK for the packet that failed the QP must still leave, and the
 * ACK of messages that the user has seen complete. */
void vrb_qp_to_err(struct vrb_qp *qp, struct vrb_fx *fx)
{
	if (qp->state == VRB_QPS_ERR)
		return;
	qp->state = VRB_QPS_ERR;
	vrb_qp_flush_send(qp, fx);
	vrb_qp_flush_recv(qp, fx);
	if (qp->srq && !qp->last_wqe_done) {
		qp->last_wqe_done = true;
		vrb_fx_event(fx, VRB_ASYNC_LAST_WQE, qp); /* IBA 11.6.3.2 */
	}
}

void vrb_qp_send_error(struct vrb_qp *qp, enum vrb_wc_status status, struct vrb_fx *fx)
{
	VRB_ASSERT(qp->sq_una != qp->sq.tail);
	vrb_qp_complete_send(qp, qp->sq_una, status, fx);
	qp->sq_una++;
	if (qp->type == VRB_QPT_RC) {
		vrb_qp_to_err(qp, fx);
	} else {
		qp->state = VRB_QPS_SQE; /* IBA 10.3.1.6: only the send queue stops */
		vrb_qp_flush_send(qp, fx);
	}
}

void vrb_qp_fail(struct vrb_qp *qp, const struct vrb_report *why, struct vrb_fx *fx)
{
	if (qp->state == VRB_QPS_RESET || qp->state == VRB_QPS_ERR)
		return;
	vrb_fx_report(fx, why);
	vrb_fx_event(fx, VRB_ASYNC_QP_FATAL, qp);
	vrb_qp_to_err(qp, fx);
	vrb_qp_settle(qp, fx);
}

static void end_gone(struct vrb_qp *qp, struct vrb_fx *fx)
{
	bool posted = qp->peer_gone && qp->sq_una != qp->sq.tail;

	if (qp->state == VRB_QPS_SQD && posted)
		posted = qp->sq_una != vrb_qp_started_end(qp);
	else if (qp->state != VRB_QPS_RTS)
		posted = false;
	if (!posted)
		return;
	vrb_fx_report(fx, &qp->gone_why);
	vrb_qp_send_error(qp, VRB_WC_RETRY_EXC_ERR, fx);
}

void vrb_qp_on_peer_gone(struct vrb_qp *qp, const struct vrb_report *why, struct vrb_fx *fx)
{
	if (qp->type != VRB_QPT_RC)
		return;
	qp->peer_gone = true;
	qp->gone_why = *why;
	qp->gone_why.qpn = qp->qpn;
	vrb_qp_settle(qp, fx);
}

void vrb_qp_post(struct vrb_qp *qp, uint32_t n, struct vrb_fx *fx)
{
	qp->sq.tail += n;
	if (qp->state == VRB_QPS_ERR || qp->state == VRB_QPS_SQE)
		vrb_qp_flush_send(qp, fx);
	else if (!qp->peer_gone)
		return;
	vrb_qp_settle(qp, fx);
}

void vrb_qp_post_recv(struct vrb_qp *qp, uint32_t n, struct vrb_fx *fx)
{
	qp->rq.tail += n;
	if (qp->state != VRB_QPS_ERR)
		return;
	vrb_qp_flush_recv(qp, fx);
	vrb_qp_settle(qp, fx);
}

static void end_failing(struct vrb_qp *qp, struct vrb_fx *fx)
{
	if (qp->failing && qp->sq_una == qp->fail_at)
		vrb_qp_send_error(qp, qp->fail_status, fx);
}

static void fail_on_dead_cq(struct vrb_qp *qp, struct vrb_fx *fx)
{
	if (!(qp->scq && qp->scq->dead) && !(qp->rcq && qp->rcq->dead))
		return;
	if (qp->state == VRB_QPS_RESET || qp->state == VRB_QPS_ERR)
		return;
	vrb_fx_event(fx, VRB_ASYNC_QP_FATAL, qp);
	vrb_qp_to_err(qp, fx);
}

/* IBA 10.3.1.5: drained when every message that was started is complete. */
static void check_drained(struct vrb_qp *qp, struct vrb_fx *fx)
{
	if (qp->state != VRB_QPS_SQD || !qp->attr.sq_draining)
		return;
	if (qp->sq_una != vrb_qp_started_end(qp) || qp->failing)
		return;
	qp->attr.sq_draining = 0;
	if (qp->attr.en_sqd_async)
		vrb_fx_event(fx, VRB_ASYNC_SQ_DRAINED, qp);
}

static uint8_t tx_flags(const struct vrb_qp *qp)
{
	unsigned f = 0;

	if (qp->type != VRB_QPT_RC || qp->state != VRB_QPS_RTS)
		f |= VRB_SLOW_STATE;
	if (qp->send_off > 0)
		f |= VRB_SLOW_MIDDLE;
	if (qp->rewound)
		f |= VRB_SLOW_REWOUND;
	if (qp->rnr_wait)
		f |= VRB_SLOW_RNR;
	if (qp->failing)
		f |= VRB_SLOW_FAILING;
	if (qp->peer_gone)
		f |= VRB_SLOW_GONE;
	if (qp->tapped)
		f |= VRB_SLOW_TAPPED;
	if (qp->probe_ns != VRB_NS_NEVER)
		f |= VRB_SLOW_PROBED;
	return (uint8_t)f;
}

static uint8_t rx_flags(const struct vrb_qp *qp)
{
	bool open = qp->state == VRB_QPS_RTS || qp->state == VRB_QPS_SQD ||
		    (qp->state == VRB_QPS_RTR && qp->comm_est_done);
	unsigned f = 0;

	if (qp->type != VRB_QPT_RC || !open)
		f |= VRB_SLOW_STATE;
	if (qp->rx_seq != VRB_RX_IDLE)
		f |= VRB_SLOW_MIDDLE;
	if (qp->nak_sent || qp->nak_syndrome)
		f |= VRB_SLOW_NAK;
	if (qp->srq)
		f |= VRB_SLOW_SRQ;
	if (qp->tapped)
		f |= VRB_SLOW_TAPPED;
	return (uint8_t)f;
}

void vrb_qp_tap(struct vrb_qp *qp, bool on)
{
	qp->tapped = on;
	qp->slow_tx = tx_flags(qp);
	qp->slow_rx = rx_flags(qp);
}

void vrb_qp_settle(struct vrb_qp *qp, struct vrb_fx *fx)
{
	end_failing(qp, fx);
	end_gone(qp, fx);
	fail_on_dead_cq(qp, fx);
	check_drained(qp, fx);
	qp->resp_pending = qp->nak_syndrome != 0 || qp->n_rd_pending > 0;
	qp->slow_tx = tx_flags(qp);
	qp->slow_rx = rx_flags(qp);
}
