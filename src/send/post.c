/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a prepared work request to the adapter: its number, whether it is signaled, and when the
 * doorbell rings. A refusal of the adapter ends the lane: everything that could be refused was
 * asked before, so nobody knows what state it is in. What it refused, and what was behind that,
 * ends flushed like all the rest: the call that sends has taken it.
 */
#include <errno.h>

#include "base/checks.h"
#include "send/channel.h"
#include "send/fail.h"
#include "send/probes.h"

VRB_STATIC_ASSERT(sizeof(struct vrb_frame) == sizeof(((struct vrb_buf *)0)->tail), "the frame");
VRB_STATIC_ASSERT(sizeof(struct vrb_buf) == VRB_FRONT, "data begins behind the front");
VRB_STATIC_ASSERT(!offsetof(struct vrb_buf, tail) && sizeof(struct vrb_frame) == VRB_TAIL,
		  "data and frame are one piece");

/* The place for the next work request; the caller fills sge, opcode and num_sge. */
struct vrb_slot *vrb_lane_slot(struct vrb_lane *l)
{
	struct vrb_slot *s = &l->slot[l->n_batch];
	struct ibv_send_wr *wr = &l->batch[l->n_batch];

	wr->next = NULL;
	wr->sg_list = s->sge;
	wr->num_sge = 1;
	wr->opcode = IBV_WR_SEND;
	wr->send_flags = 0;
	return s;
}

/* The frame of the next message, with the credits that go back. */
void vrb_lane_frame(struct vrb_lane *l, void *at, struct vrb_frame *f)
{
	uint8_t bare;

	f->credits = vrb_credit_take(&l->credit, f->kind == VRB_FRAME_CREDITS, &bare);
	f->flags |= (uint8_t)(bare << VRB_FRAME_BARE_SHIFT);
	l->sent_count++;
	vrb_frame_emit(at, f);
}

int vrb_lane_flush(struct vrb_lane *l)
{
	struct ibv_send_wr *bad, *last;
	uint32_t n = l->n_batch;
	int r;

	if (!n)
		return 0;
	last = &l->batch[n - 1];
	if (l->batch_wants && !(last->send_flags & IBV_SEND_SIGNALED)) {
		last->send_flags |= IBV_SEND_SIGNALED;
		l->sq.unsignaled = 0;
		l->ch->st.signaled++;
	}
	for (uint32_t i = 0; i + 1 < n; i++)
		l->batch[i].next = &l->batch[i + 1];
	l->batch_wants = false;
	l->n_batch = 0;
	VRB_PROBE(doorbell, l->ch, l->index, n);
	l->ch->st.posts++;
	r = ibv_post_send(l->qp, &l->batch[0], &bad);
	if (vrb_likely(!r))
		return 0;
	r = vrb_verbs_errno(r);
	l->n_batch = bad >= l->batch && bad <= last ? (uint32_t)(last - bad) + 1 : n;
	vrb_lane_drop(l);
	vrb_lane_break(l, VRB_V_SEND_POST, (uint64_t)r, 0, 0);
	return vrb_fail(r, VRB_V_SEND_POST, (uint64_t)r, 0, 0);
}

/* The work request in the next place is complete: numbers it and posts it, now or with the next
 * ones. */
int vrb_lane_commit(struct vrb_lane *l, struct ibv_send_wr *wr, const struct vrb_sent *what,
		    unsigned flags)
{
	bool more = flags & VRB_MORE && l->n_batch + 1 < VRB_BATCH && vrb_sq_room(&l->sq) > 1;
	bool wants = what->flags & VRB_SENT_REPORT;
	uint32_t number = l->sq.tail;

	l->sent[number & l->sent_mask] = *what;
	if (what->deadline_ns)
		l->ch->n_deadlines++;
	wr->wr_id = vrb_wr_id(l, number);
	if (flags & VRB_SOLICITED)
		wr->send_flags |= IBV_SEND_SOLICITED;
	if (flags & VRB_FENCE)
		wr->send_flags |= IBV_SEND_FENCE;
	if (vrb_sq_push(&l->sq, !more && (wants || l->batch_wants))) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		l->ch->st.signaled++;
	}
	l->ch->st.work_requests++;
	VRB_PROBE(post, l->ch, l->index, number);
	l->batch_wants |= wants;
	l->n_batch++;
	if (!more)
		(void)vrb_lane_flush(l);
	return 0;
}

/* The frame is behind the b->len bytes. */
int vrb_post_buf(struct vrb_lane *l, struct vrb_buf *b, const struct vrb_sent *what, unsigned flags)
{
	struct vrb_slot *s = vrb_lane_slot(l);

	s->sge[0] = (struct ibv_sge){.addr = (uintptr_t)b->data,
				     .length = (uint32_t)sizeof(struct vrb_frame) + b->len,
				     .lkey = b->lkey};
	return vrb_lane_commit(l, &l->batch[l->n_batch], what, flags);
}

/*
 * A message of the library's own; credit and room were there. It goes inline, or from the lane's
 * own buffer, of which there is one: -EAGAIN while that is under way.
 */
int vrb_post_control(struct vrb_lane *l, struct vrb_frame *f, const void *payload, uint32_t len)
{
	struct vrb_sent what = {.kind = VRB_SENT_CONTROL};
	uint32_t total = (uint32_t)sizeof(*f) + len;
	struct vrb_slot *s = vrb_lane_slot(l);
	uint8_t *at = s->scratch;
	uint32_t lkey = 0;

	if (total > l->ch->inline_max) {
		if (l->control_busy)
			return -EAGAIN;
		l->control_busy = true;
		what.buf = l->control;
		what.flags = VRB_SENT_REPORT; /* for the buffer's sake; control is not reported */
		at = l->control->data;
		lkey = l->control->lkey;
	} else {
		l->batch[l->n_batch].send_flags = IBV_SEND_INLINE;
	}
	if (len)
		memcpy(at, payload, len);
	vrb_lane_frame(l, at + len, f);
	s->sge[0] = (struct ibv_sge){.addr = (uintptr_t)at, .length = total, .lkey = lkey};
	return vrb_lane_commit(
		l, &l->batch[l->n_batch], &what,
		l->ch->opt.solicited_only || f->kind != VRB_FRAME_CREDITS ? VRB_SOLICITED : 0);
}
