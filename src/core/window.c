/* SPDX-License-Identifier: BSD-2-Clause */
/* The laws of core/window.h. */
#include "core/window.h"

#include "core/internal.h"

#define PROBE_FIRST_NS (10 * VRB_NS_PER_MS)  /* before a round trip has been measured */
#define PROBE_GRACE_NS (100 * VRB_NS_PER_US) /* an acknowledgement may wait for a turn */
#define PROBE_MAX_NS   VRB_NS_PER_S
#define ROUNDS_BACK    5u
#define ALPHA_GAIN     16u
#define ALPHA_MIN      (VRB_WINDOW_ALPHA_ONE / 8)

void vrb_window_init(struct vrb_window *w, struct vrb_qp *qp, uint32_t max)
{
	*w = (struct vrb_window){
		.size_256 = (max < VRB_WINDOW_FIRST ? max : VRB_WINDOW_FIRST) * 256,
		.threshold = max / 2,
		.max = max,
		.una = qp->una_psn,
		.recover = qp->una_psn,
		.round = qp->una_psn,
		.alpha = VRB_WINDOW_ALPHA_ONE,
		.n_timeouts = qp->n_timeouts,
	};
	qp->window_max = w->size_256 / 256;
	qp->probe_ns = PROBE_FIRST_NS;
	qp->rtt_min_ns = 0;
	qp->n_probes = 0;
}

static void cut_to(struct vrb_window *w, uint32_t size_256)
{
	uint32_t min = VRB_WINDOW_MIN < w->max ? VRB_WINDOW_MIN : w->max;

	w->size_256 = size_256 < min * 256 ? min * 256 : size_256;
	w->threshold = w->size_256 / 256;
}

static void on_loss(struct vrb_window *w, const struct vrb_qp *qp)
{
	if (vrb_psn_diff(qp->una_psn, w->recover) < 0)
		return; /* the same window's loss */
	w->recover = qp->high_psn;
	w->n_recovery = 0;
	cut_to(w, w->size_256 / 2);
}

static void grow(struct vrb_window *w, uint32_t acked, uint32_t in_flight)
{
	if (in_flight * 512 < w->size_256)
		return; /* the sender has no use for more */
	if (w->size_256 < w->threshold * 256)
		w->size_256 += acked * 256;
	else
		w->size_256 += acked * 65536 / w->size_256;
	if (w->size_256 > w->max * 256)
		w->size_256 = w->max * 256;
}

/* RFC 6298, with four mean deviations for the silence after which to ask again. */
static void sample(struct vrb_window *w, struct vrb_qp *qp, vrb_ns rtt)
{
	vrb_ns off = rtt > w->rtt ? rtt - w->rtt : w->rtt - rtt, silence;

	if (!w->rtt) {
		w->rtt = w->rtt_min = rtt;
		w->rtt_var = rtt / 2;
	} else {
		w->rtt_var = (3 * w->rtt_var + off) / 4;
		w->rtt = (7 * w->rtt + rtt) / 8;
	}
	if (rtt < w->rtt_min)
		w->rtt_min = rtt;
	silence = w->rtt + 4 * w->rtt_var + PROBE_GRACE_NS;
	qp->probe_ns = silence < PROBE_MAX_NS ? silence : PROBE_MAX_NS;
	qp->rtt_min_ns = w->rtt_min;
}

void vrb_window_on_sent(struct vrb_window *w, const struct vrb_qp *qp, const struct vrb_pkt *pkt,
			vrb_ns now)
{
	if (qp->rewound || qp->probe != VRB_PROBE_NONE || qp->rnr_wait)
		return; /* whose answer comes would not be known (Karn) */
	w->timing = true;
	w->timed = pkt->psn;
	w->timed_at = now;
}

static void measure(struct vrb_window *w, struct vrb_qp *qp, vrb_ns now)
{
	if (qp->rewound || qp->probe != VRB_PROBE_NONE) {
		w->timing = false;
	} else if (w->timing && vrb_psn_diff(qp->una_psn, w->timed) > 0) {
		w->timing = false;
		if (now > w->timed_at)
			sample(w, qp, now - w->timed_at);
	}
}

/* A round trip ends when what was under way at its beginning is acknowledged. */
static void end_round(struct vrb_window *w, const struct vrb_qp *qp)
{
	if (vrb_psn_diff(qp->una_psn, w->round) <= 0)
		return;
	w->round = vrb_qp_sent(qp);
	w->alpha -= w->alpha / ALPHA_GAIN;
	if (w->marked)
		w->alpha += VRB_WINDOW_ALPHA_ONE / ALPHA_GAIN;
	if (w->alpha < ALPHA_MIN)
		w->alpha = ALPHA_MIN;
	if (!w->marked && w->n_recovery) {
		w->n_recovery--;
		w->size_256 += (w->target_256 - w->size_256) / 2;
	}
	w->marked = false;
}

bool vrb_window_on_step(struct vrb_window *w, struct vrb_qp *qp, vrb_ns now)
{
	int32_t acked = vrb_psn_diff(qp->una_psn, w->una);
	uint32_t in_flight = vrb_psn_dist(vrb_qp_sent(qp), w->una);
	bool rewound = qp->rewound && !qp->rnr_wait, lost = rewound && !w->was_rewound;

	measure(w, qp, now);
	w->una = qp->una_psn;
	w->was_rewound = rewound;
	if (qp->n_timeouts != w->n_timeouts) {
		w->n_timeouts = qp->n_timeouts;
		w->n_recovery = 0;
		cut_to(w, 0);
	} else if (lost) {
		on_loss(w, qp);
	} else if (acked > 0 && !qp->rewound) {
		/* keeps pace: PSNs compare over half their range only */
		if (vrb_psn_diff(qp->una_psn, w->recover) > 0)
			w->recover = qp->una_psn;
		end_round(w, qp);
		if (!w->n_recovery)
			grow(w, (uint32_t)acked, in_flight);
	}
	qp->window_max = w->size_256 / 256;
	return lost;
}

void vrb_window_on_mark(struct vrb_window *w, struct vrb_qp *qp)
{
	if (!w->marked) {
		w->target_256 = w->size_256;
		w->n_recovery = ROUNDS_BACK;
		cut_to(w, w->size_256 - w->size_256 * w->alpha / (2 * VRB_WINDOW_ALPHA_ONE));
	}
	w->marked = true;
	qp->window_max = w->size_256 / 256;
}
