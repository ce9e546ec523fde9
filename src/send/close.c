/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaving in order: all that was sent has arrived before the peer is told good-bye. */
#include <errno.h>

#include "send/channel.h"
#include "send/fail.h"

/* Everything that was posted has been acknowledged, and large messages have been fetched. */
static bool is_drained(const struct vrb_channel *ch)
{
	if (ch->file || ch->state == VRB_AWAY)
		return false;
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i]->sq.head != ch->lane[i]->sq.tail || ch->lane[i]->n_offered ||
		    ch->lane[i]->rdma)
			return false;
	return true;
}

/* The same of what was posted before vrb_drain was called; the library's own goes on and on. */
static bool has_ended(const struct vrb_channel *ch)
{
	if (ch->file || ch->state == VRB_ENDING)
		return false;
	for (uint32_t i = 0; i < ch->n_lanes; i++) {
		const struct vrb_lane *l = ch->lane[i];

		if (l->n_offered || l->rdma ||
		    (l->sq.head != l->sq.tail && (int32_t)(l->sq.head - l->mark) < 0))
			return false;
	}
	return true;
}

static bool ring_has_room(const struct vrb_channel *ch)
{
	return ch->ring_tail - ch->ring_head <= ch->ring_mask / 2;
}

int vrb_drain(struct vrb_channel *ch, int64_t timeout_ns)
{
	uint64_t start = vrb_now(), now = start,
		 ns = timeout_ns < 0 ? VRB_NS_NEVER - start : (uint64_t)timeout_ns;
	bool done;

	for (uint32_t i = 0; i < ch->n_lanes; i++)
		ch->lane[i]->mark = ch->lane[i]->sq.tail;
	ch->out_n = ch->out_max = 0;
	ch->draining = true;
	for (;;) {
		bool moved = ch->state != VRB_DOWN && vrb_progress(ch);

		done = has_ended(ch);
		if (done || !ring_has_room(ch) || now - start >= ns)
			break;
		for (uint32_t i = 0; i < ch->n_lanes; i++)
			vrb_lane_prompt(ch->lane[i]);
		if (!moved)
			vrb_wait_once(ch, ns - (now - start));
		now = vrb_now();
	}
	ch->draining = false;
	if (ch->state == VRB_DOWN)
		return vrb_fail(ENOTCONN, VRB_V_SEND_ENDED, 0, 0, 0);
	return done ? 0 : -EAGAIN;
}

static void discard(const struct vrb_event *e, int n)
{
	for (int i = 0; i < n; i++)
		if (e[i].buf)
			vrb_buf_put(e[i].buf);
}

int vrb_disconnect(struct vrb_channel *ch, int64_t timeout_ns)
{
	uint64_t deadline = timeout_ns < 0 ? VRB_NS_NEVER : vrb_now() + (uint64_t)timeout_ns;
	struct vrb_event e[16];
	int r = 0;

	while (timeout_ns && ch->state == VRB_UP && !is_drained(ch) && vrb_now() < deadline) {
		for (uint32_t i = 0; i < ch->n_lanes; i++)
			vrb_lane_prompt(ch->lane[i]);
		discard(e, vrb_poll(ch, e, 16, VRB_NS_PER_MS));
	}
	if (ch->state != VRB_UP && !ch->closed)
		r = vrb_fail(ENOTCONN, VRB_V_SEND_ENDED, 0, 0, 0);
	else if (!is_drained(ch))
		r = -ETIMEDOUT;
	if (timeout_ns && ch->state == VRB_UP && !r)
		(void)vrb_note_send(ch, VRB_NOTE_BYE);
	vrb_channel_free(ch);
	return r;
}
