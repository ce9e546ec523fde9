/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Losses and patience: going back, the ACK and RNR timers, the retry counts. Retransmission is
 * go-back-N from one PSN; one cause brings one retransmission, so further NAKs for the PSN that was
 * just gone back to are echoes until something is acknowledged or the timer expires.
 */
#include "core/internal.h"

#define RNR_FOR_EVER	 7
#define RNR_TIME_UNIT_NS 10000ull

/* IBA table 45, in units of 10 us. */
static const uint32_t rnr_time[32] = {
	/* clang-format off */
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	/* clang-format on */
};

/* Everything before psn is acknowledged; psn lies in the entry at sq_una. */
void vrb_retry_rewind(struct vrb_qp *qp, struct vrb_psn psn)
{
	const struct vrb_swqe *w = vrb_qp_swqe(qp, qp->sq_una);

	if (!qp->rewound) {
		qp->high_psn = qp->next_psn;
		qp->sq_started = vrb_qp_started_end(qp);
		qp->rewound = true;
	}
	qp->next_psn = psn;
	qp->sq_send = qp->sq_una;
	qp->send_off = vrb_psn_dist(psn, w->first) * qp->mtu;
	qp->n_rd_out = 0;
	qp->ack_run = 0;
	qp->ack_deadline = VRB_NS_NEVER;
	qp->resend_guard = true;
	qp->resend_psn = psn;
}

/* Costs one retry; false when none was left and the oldest entry has ended (IBA C9-141). */
bool vrb_retry_spend(struct vrb_qp *qp, struct vrb_fx *fx)
{
	struct vrb_report r;

	if (qp->retry_left > 0) {
		qp->retry_left--;
		return true;
	}
	r = vrb_report1(qp, VRB_V_RETRY_EXC, qp->una_psn.v, qp->attr.retry_cnt + 1u);
	r.val[2] = qp->timeout_ns == VRB_NS_NEVER ? 0 : qp->timeout_ns / VRB_NS_PER_MS;
	vrb_fx_report(fx, &r);
	vrb_qp_send_error(qp, VRB_WC_RETRY_EXC_ERR, fx);
	return false;
}

/* RNR NAK for una_psn (IBA 9.7.5.2.8). */
void vrb_retry_rnr(struct vrb_qp *qp, uint8_t code, vrb_ns now, struct vrb_fx *fx)
{
	bool unsent = qp->rewound && vrb_psn_eq(qp->next_psn, qp->una_psn);

	if (qp->rnr_wait || unsent)
		return; /* an echo */
	if (qp->attr.rnr_retry != RNR_FOR_EVER) {
		if (qp->rnr_left == 0) {
			vrb_qp_report(qp, fx, VRB_V_RNR_RETRY_EXC, qp->attr.rnr_retry + 1u,
				      qp->attr.rnr_retry);
			vrb_qp_send_error(qp, VRB_WC_RNR_RETRY_EXC_ERR, fx);
			return;
		}
		qp->rnr_left--;
	}
	/* An answer, so the tries without one start anew: rnr_retry alone bounds this. */
	qp->retry_left = qp->attr.retry_cnt;
	vrb_retry_rewind(qp, qp->una_psn);
	qp->rnr_wait = true;
	qp->rnr_deadline = vrb_ns_add(now, rnr_time[code & 31] * RNR_TIME_UNIT_NS);
}

/* Something outstanding has asked for an acknowledgement. */
static bool awaits_ack(const struct vrb_qp *qp)
{
	const struct vrb_swqe *w;

	if (vrb_psn_eq(qp->una_psn, qp->next_psn))
		return false;
	if (qp->send_off == 0)
		return true; /* the last packet of every message does */
	w = vrb_qp_swqe(qp, qp->sq_send);
	if (vrb_psn_diff(qp->una_psn, w->first) < 0 || qp->n_rd_out > 0)
		return true;
	return vrb_psn_diff(qp->ackreq_psn, qp->una_psn) >= 0 &&
	       vrb_psn_diff(qp->ackreq_psn, qp->next_psn) < 0;
}

/* una_psn has passed next_psn: what was to be repeated has arrived after all. */
static void skip_repetition(struct vrb_qp *qp)
{
	qp->next_psn = qp->una_psn;
	qp->sq_send = qp->sq_una;
	qp->send_off = 0;
	qp->n_rd_out = 0;
	if (qp->sq_una != qp->sq_started)
		qp->send_off =
			vrb_psn_dist(qp->una_psn, vrb_qp_swqe(qp, qp->sq_una)->first) * qp->mtu;
	if (vrb_psn_eq(qp->next_psn, qp->high_psn))
		qp->rewound = false;
}

/* una_psn has moved: counts and timers start anew (IBA 9.7.6.1.3). */
void vrb_retry_progress(struct vrb_qp *qp, vrb_ns now)
{
	qp->retry_left = qp->attr.retry_cnt;
	qp->rnr_left = qp->attr.rnr_retry;
	qp->resend_guard = false;
	qp->rnr_wait = false;
	qp->rnr_deadline = VRB_NS_NEVER;
	if (qp->rewound && vrb_psn_diff(qp->una_psn, qp->next_psn) > 0)
		skip_repetition(qp);
	qp->ack_deadline = awaits_ack(qp) ? vrb_ns_add(now, qp->timeout_ns) : VRB_NS_NEVER;
}

static void on_ack_timeout(struct vrb_qp *qp, vrb_ns now, struct vrb_fx *fx)
{
	if (!vrb_psn_eq(qp->una_psn, qp->next_psn)) {
		if (vrb_retry_spend(qp, fx))
			vrb_retry_rewind(qp, qp->una_psn);
	} else if (qp->sq_una != qp->sq.tail && vrb_retry_spend(qp, fx)) {
		/* nothing could be sent all the time: the link is still full */
		qp->ack_deadline = vrb_ns_add(now, qp->timeout_ns);
	}
}

void vrb_qp_on_deadline(struct vrb_qp *qp, vrb_ns now, struct vrb_fx *fx)
{
	if (qp->rnr_wait && now >= qp->rnr_deadline) {
		qp->rnr_wait = false;
		qp->rnr_deadline = VRB_NS_NEVER;
	}
	if (qp->ack_deadline != VRB_NS_NEVER && now >= qp->ack_deadline) {
		qp->ack_deadline = VRB_NS_NEVER;
		on_ack_timeout(qp, now, fx);
	}
	vrb_qp_settle(qp, fx);
}

void vrb_qp_on_stall(struct vrb_qp *qp, vrb_ns now)
{
	if (qp->type == VRB_QPT_RC && qp->ack_deadline == VRB_NS_NEVER && qp->sq_una != qp->sq.tail)
		qp->ack_deadline = vrb_ns_add(now, qp->timeout_ns);
}

void vrb_qp_on_unstall(struct vrb_qp *qp)
{
	if (vrb_psn_eq(qp->una_psn, qp->next_psn))
		qp->ack_deadline = VRB_NS_NEVER;
}

vrb_ns vrb_qp_next_deadline(const struct vrb_qp *qp)
{
	return qp->rnr_deadline < qp->ack_deadline ? qp->rnr_deadline : qp->ack_deadline;
}
