/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of a queue pair may be under way on a link that loses packets, and how long it waits
 * before it asks again. Pure: told of what was sent and of each step, it sets window_max, probe_ns
 * and rtt_min_ns of the queue pair. A lossless link has none of this.
 *
 *   growth   by the packets acknowledged up to `threshold`, beyond it by one packet a round trip;
 *            only while the sender uses at least half of it
 *   loss     halves it, once for all that was under way; an ACK timeout leaves VRB_WINDOW_MIN
 *   mark     (a congestion notification, RoCEv2 A17.9.3) takes away the share alpha/2, once a
 *            round trip; alpha is the smoothed part of round trips with marks. Then each round
 *            without a mark goes half the way back, five times; then growth as above (the form of
 *            DCQCN, with a window in place of a rate)
 *   silence  after a smoothed round trip and four deviations the oldest packet is sent once more
 *            (core/retry.c); the time is remeasured with packets that were sent once only
 */
#ifndef VRB_CORE_WINDOW_H
#define VRB_CORE_WINDOW_H

#include "core/qp.h"

#define VRB_WINDOW_MIN	 4u
#define VRB_WINDOW_FIRST 16u

struct vrb_window {
	uint32_t size_256;  /* packets * 256 */
	uint32_t threshold; /* packets */
	uint32_t max;	    /* packets: what the receiver's buffer may be trusted to hold */
	struct vrb_psn una;
	struct vrb_psn recover; /* losses before it have been answered */
	bool was_rewound;
	uint32_t n_timeouts; /* of qp, as seen last */

	/* the time from a packet with AckReq to its acknowledgement */
	bool timing;
	struct vrb_psn timed;
	vrb_ns timed_at;
	vrb_ns rtt, rtt_var, rtt_min; /* smoothed; 0: none measured yet */

	/* marks */
	uint32_t alpha;	     /* of VRB_WINDOW_ALPHA_ONE */
	uint32_t target_256; /* the window before the last mark */
	struct vrb_psn round;
	uint8_t n_recovery; /* rounds still to go half the way back to target */
	bool marked;	    /* in this round */
};
#define VRB_WINDOW_ALPHA_ONE 1024u

/* A connection begins at qp's una_psn, with at most max packets under way. */
void vrb_window_init(struct vrb_window *w, struct vrb_qp *qp, uint32_t max);

/* A request packet is about to leave. True: call on_sent with the exact time. */
static inline bool vrb_window_wants_time(const struct vrb_window *w, const struct vrb_pkt *pkt)
{
	return !w->timing && (pkt->flags & VRB_PKT_ACKREQ);
}
void vrb_window_on_sent(struct vrb_window *w, const struct vrb_qp *qp, const struct vrb_pkt *pkt,
			vrb_ns now);

/* After each packet or deadline that qp has handled. True: something was lost. */
bool vrb_window_on_step(struct vrb_window *w, struct vrb_qp *qp, vrb_ns now);
void vrb_window_on_mark(struct vrb_window *w, struct vrb_qp *qp);

#endif
