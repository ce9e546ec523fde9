/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How messages end, one by one, and how a channel does. A completion with an error means: what was
 * posted before it is done; of the others each gets its own completion in the error state, signaled
 * or not, and only then its buffer is free.
 */
#include "send/channel.h"
#include "send/fail.h"
#include "send/file.h"
#include "send/lease.h"
#include "send/probes.h"

static void report(struct vrb_channel *ch, void *cookie, uint8_t flags, enum vrb_outcome outcome)
{
	struct vrb_event e = {.kind = VRB_EV_SENT, .outcome = outcome, .cookie = cookie};

	if (!(flags & VRB_SENT_REPORT))
		return;
	if (flags & VRB_SENT_LATE) {
		if (!(flags & VRB_SENT_USERS))
			return;
		e.kind = VRB_EV_RELEASED;
	}
	VRB_PROBE(outcome, ch, cookie, outcome);
	vrb_emit(ch, &e);
}

void vrb_sent_over(struct vrb_lane *l, struct vrb_sent *s, enum vrb_outcome outcome)
{
	struct vrb_channel *ch = l->ch;

	if (s->deadline_ns)
		ch->n_deadlines--;
	if (vrb_unlikely(outcome != VRB_DONE) && s->kind != VRB_SENT_CONTROL &&
	    s->kind != VRB_SENT_FETCH && s->kind != VRB_SENT_PART)
		l->lost++;
	switch ((enum vrb_sent_kind)s->kind) {
	case VRB_SENT_MESSAGE:
	case VRB_SENT_RDMA:
		if (s->buf)
			vrb_sent_buf_put(ch, s->buf);
		report(ch, s->cookie, s->flags, outcome);
		break;
	case VRB_SENT_CONTROL:
		if (s->buf)
			l->control_busy = false;
		break;
	case VRB_SENT_FETCH:
		if (outcome == VRB_DONE)
			vrb_on_fetched(l, s->arg);
		break;
	case VRB_SENT_OFFER:
	case VRB_SENT_PART:
		break;
	}
	s->deadline_ns = 0;
}

void vrb_offer_over(struct vrb_channel *ch, struct vrb_offered *o, enum vrb_outcome outcome)
{
	struct vrb_offered was = *o;

	*o = (struct vrb_offered){0};
	if (was.deadline_ns)
		ch->n_deadlines--;
	if (was.buf)
		vrb_sent_buf_put(ch, was.buf);
	ch->freed = true;
	if (was.flags & VRB_SENT_FILE)
		vrb_file_window_over(ch, (uint32_t)(uintptr_t)was.cookie, outcome);
	else
		report(ch, was.cookie, was.flags, outcome);
}

/* Number has ended so; those in front of it are done. */
void vrb_lane_retire(struct vrb_lane *l, uint32_t number, enum vrb_outcome outcome)
{
	uint32_t at = l->sq.head;

	if (!vrb_sq_retire(&l->sq, number))
		return;
	l->ch->freed = true;
	if (vrb_unlikely(l->ch->dark_ns) && outcome == VRB_DONE && l->state == VRB_LANE_UP)
		l->ch->dark_ns = 0;
	if (vrb_unlikely(l->sent[number & l->sent_mask].posted_ns && outcome == VRB_DONE))
		vrb_histogram_add(l->ch->latency,
				  vrb_now() - l->sent[number & l->sent_mask].posted_ns);
	for (; at != number; at++)
		vrb_sent_over(l, &l->sent[at & l->sent_mask], VRB_DONE);
	vrb_sent_over(l, &l->sent[number & l->sent_mask], outcome);
}

/* The adapter has let go of the lane, or its queue pair is gone. */
void vrb_lane_settle(struct vrb_lane *l)
{
	while (l->sq.head != l->sq.tail) {
		uint32_t at = l->sq.head++;

		vrb_sent_over(l, &l->sent[at & l->sent_mask], VRB_FLUSHED);
	}
	vrb_rdma_settle(l);
	while (l->rq_head != l->rq_tail)
		vrb_pool_put(l->rq[l->rq_head++ & l->rq_mask]);
	vrb_large_settle(l);
}

/* What still waits for its doorbell was never posted: nothing will come back for it. */
void vrb_lane_drop(struct vrb_lane *l)
{
	for (; l->n_batch; l->n_batch--)
		vrb_sent_over(l, &l->sent[--l->sq.tail & l->sent_mask], VRB_FLUSHED);
	l->batch_wants = false;
}

static void begin_ending(struct vrb_channel *ch)
{
	ch->state = VRB_ENDING;
	ch->ending_ns = vrb_now();
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		vrb_lane_drop(ch->lane[i]);
	vrb_lanes_error(ch);
}

void vrb_channel_break(struct vrb_channel *ch, enum vrb_verdict v, uint64_t a, uint64_t b,
		       uint64_t c)
{
	uint64_t val[3] = {a, b, c};

	if (ch->state != VRB_UP)
		return;
	vrb_fail_text(ch->text, sizeof(ch->text), v, val);
	VRB_PROBE(broken, ch, v, ch->text);
	begin_ending(ch);
	if (v != VRB_V_SEND_PEER_GONE && v != VRB_V_SEND_PEER_BROKE)
		(void)vrb_note_send(ch, VRB_NOTE_BROKEN);
}

void vrb_channel_closed(struct vrb_channel *ch)
{
	ch->closed = true;
	begin_ending(ch);
}

/* Whether the adapter still has work requests that were posted to it. */
static bool has_work(const struct vrb_channel *ch)
{
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i]->qp && (ch->lane[i]->sq.head != ch->lane[i]->sq.tail ||
					ch->lane[i]->rq_head != ch->lane[i]->rq_tail ||
					!vrb_shared_let_go(ch->lane[i])))
			return true;
	return false;
}

void vrb_channel_ending(struct vrb_channel *ch)
{
	struct vrb_event e = {.kind = ch->closed ? VRB_EV_CLOSED : VRB_EV_BROKEN, .text = ch->text};

	if (has_work(ch) && !ch->cq_dead && vrb_now() - ch->ending_ns < VRB_ENDING_NS)
		return;
	for (uint32_t i = 0; i < ch->n_lanes; i++) {
		vrb_lane_drop_qp(ch->lane[i]);
		vrb_lane_settle(ch->lane[i]);
	}
	vrb_file_settle(ch);
	if (vrb_away_begin(ch))
		return;
	ch->state = VRB_DOWN;
	vrb_emit(ch, &e);
}

static bool is_late(uint64_t deadline, uint8_t flags, uint64_t now)
{
	return deadline && now >= deadline && !(flags & VRB_SENT_LATE);
}

static void time_out(struct vrb_channel *ch, void *cookie, uint8_t *flags)
{
	ch->st.timed_out++;
	report(ch, cookie, *flags, VRB_TIMED_OUT);
	*flags |= VRB_SENT_LATE;
}

/* The message stays where it is: nothing can take it back from the adapter. */
void vrb_deadlines(struct vrb_channel *ch, uint64_t now)
{
	for (uint32_t i = 0; i < ch->n_lanes && ch->n_deadlines; i++) {
		struct vrb_lane *l = ch->lane[i];

		for (uint32_t at = l->sq.head; at != l->sq.tail; at++) {
			struct vrb_sent *s = &l->sent[at & l->sent_mask];

			if (is_late(s->deadline_ns, s->flags, now))
				time_out(ch, s->cookie, &s->flags);
		}
		for (uint32_t k = 0; k < VRB_OFFERS_MAX; k++) {
			struct vrb_offered *o = &l->offered[k];

			if (o->id && is_late(o->deadline_ns, o->flags, now))
				time_out(ch, o->cookie, &o->flags);
		}
	}
}
