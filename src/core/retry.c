/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Losses and patience: going back, the ACK and RNR timers, the retry counts. Retransmission is
 * go-back-N from one PSN; one cause brings one retransmission, so further NAKs for the PSN that was
 * just gone back to are echoes until something is acknowledged, the timer expires, or so much time
 * has passed that the NAK must answer the repetition (vrb_retry_again).
 *
 * The last packets under way, their acknowledgement or a NAK may be lost, and nothing tells of it.
 * So on a link that loses packets the one at una_psn is sent once more, with AckReq, after a few
 * round trips of silence (probe_ns), long before the ACK timer: a duplicate is answered by what the
 * peer has (IBA C9-105), and only the oldest packet is never dropped as one ahead. The time to the
 * next probe doubles with every second one until something is acknowledged or the ACK timer
 * expires, which bounds their number.
 * A probe that is acknowledged alone was what the peer had waited for: the rest is sent again.
 *
 * Probes and answers to a repetition cost no retry and do not move the ACK timer: without progress
 * retry_cnt + 1 timeouts end the oldest entry. RNR NAKs alone start their count anew: rnr_retry
 * bounds those.
 */
#include "core/internal.h"

#define RNR_FOR_EVER	 7
#define RNR_TIME_UNIT_NS 10000ull
#define PROBES_MAX	 32u /* so many lengthen the time between them: up to an hour */

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
	qp->ack_deadline = qp->probe_deadline = VRB_NS_NEVER;
	qp->probe = VRB_PROBE_NONE;
	qp->resend_guard = true;
	qp->resend_made = false;
	qp->resend_psn = psn;
}

/*
 * The peer says that una_psn was lost. False: for the first time. When it is being repeated: go
 * back once more if this can be the answer to the repetition, which takes answer_ns at least.
 */
bool vrb_retry_again(struct vrb_qp *qp, vrb_ns now, vrb_ns answer_ns)
{
	vrb_ns deadline = qp->ack_deadline;

	if (qp->rnr_wait)
		return true;
	if (!qp->resend_guard || !vrb_psn_eq(qp->resend_psn, qp->una_psn))
		return false;
	if (!qp->rtt_min_ns || !qp->resend_made || now - qp->resend_at < answer_ns)
		return true;
	vrb_retry_rewind(qp, qp->una_psn);
	qp->ack_deadline = deadline;
	return true;
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

/* Something outstanding has asked for an acknowledgement, or will by a probe. */
static bool awaits_ack(const struct vrb_qp *qp)
{
	const struct vrb_swqe *w;

	if (vrb_psn_eq(qp->una_psn, qp->next_psn))
		return false;
	if (qp->send_off == 0)
		return true; /* whole messages: the last asks, or is probed for */
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
	qp->n_probes = 0;
	qp->probe = VRB_PROBE_NONE;
	qp->ack_deadline = qp->probe_deadline = VRB_NS_NEVER;
	if (awaits_ack(qp))
		vrb_retry_arm(qp, now);
}

void vrb_retry_arm(struct vrb_qp *qp, vrb_ns now)
{
	if (qp->ack_deadline == VRB_NS_NEVER)
		qp->ack_deadline = vrb_ns_add(now, qp->timeout_ns);
	if (qp->probe_deadline == VRB_NS_NEVER && qp->timeout_ns != VRB_NS_NEVER)
		qp->probe_deadline = vrb_ns_add(now, qp->probe_ns << qp->n_probes / 2);
}

/* The probe has been acknowledged, and nothing behind it that was sent before. */
void vrb_retry_rest_lost(struct vrb_qp *qp)
{
	if (!vrb_psn_eq(qp->una_psn, qp->next_psn) && qp->sq_una != vrb_qp_started_end(qp))
		vrb_retry_rewind(qp, qp->una_psn);
}

static void on_ack_timeout(struct vrb_qp *qp, vrb_ns now, struct vrb_fx *fx)
{
	qp->n_probes = 0;
	qp->n_timeouts++;
	if (!vrb_psn_eq(qp->una_psn, qp->next_psn)) {
		if (vrb_retry_spend(qp, fx))
			vrb_retry_rewind(qp, qp->una_psn);
	} else if (qp->sq_una != qp->sq.tail && vrb_retry_spend(qp, fx)) {
		/* nothing could be sent all the time: the link is still full */
		qp->ack_deadline = vrb_ns_add(now, qp->timeout_ns);
	}
}

static void on_silence(struct vrb_qp *qp, vrb_ns now)
{
	qp->probe_deadline = VRB_NS_NEVER;
	if (qp->rnr_wait || vrb_psn_eq(qp->una_psn, qp->next_psn))
		return; /* sent again by other rules; sending arms it anew */
	qp->probe = VRB_PROBE_DUE;
	if (qp->n_probes < PROBES_MAX)
		qp->n_probes++;
	qp->probe_deadline = vrb_ns_add(now, qp->probe_ns << qp->n_probes / 2);
}

void vrb_qp_on_deadline(struct vrb_qp *qp, vrb_ns now, struct vrb_fx *fx)
{
	if (qp->rnr_wait && now >= qp->rnr_deadline) {
		qp->rnr_wait = false;
		qp->rnr_deadline = VRB_NS_NEVER;
	}
	if (qp->ack_deadline != VRB_NS_NEVER && now >= qp->ack_deadline) {
		qp->ack_deadline = qp->probe_deadline = VRB_NS_NEVER;
		on_ack_timeout(qp, now, fx);
	} else if (qp->probe_deadline != VRB_NS_NEVER && now >= qp->probe_deadline) {
		on_silence(qp, now);
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
	vrb_ns d = qp->rnr_deadline < qp->ack_deadline ? qp->rnr_deadline : qp->ack_deadline;

	return d < qp->probe_deadline ? d : qp->probe_deadline;
}
