/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One queue pair of several fails, or stands still: it is taken out, its flows go on by the others,
 * and it is built anew. For each lane, told by notes:
 *
 *   UP -- ours or the peer's fails: FAILED --> FAILING -- both have let go: OVER, OVER --> OUT
 *    ^------- BUILDING <-- after a back-off the client: NEW; the server: NEW; the client: READY --/
 *
 * Messages under way on it end with their own outcomes, and nothing is sent twice: who fails has
 * "may have arrived" for an answer. A flow keeps its order: it changes lanes only when the peer has
 * handed out all that came by the old one. When the last lane fails, the channel is dark: it waits
 * for one that is built anew and completes something, for connect_ms, and then fails.
 */
#include "send/channel.h"
#include "send/fail.h"
#include "send/probes.h"

#define BACK_OFF_MIN (10 * VRB_NS_PER_MS)
#define BACK_OFF_MAX VRB_NS_PER_S
#define PROVEN_NS    VRB_NS_PER_S /* who fails within that waits longer before it is built again */

static uint32_t n_up(const struct vrb_channel *ch)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ch->n_lanes; i++)
		n += ch->lane[i]->state == VRB_LANE_UP;
	return n;
}

bool vrb_lanes_any_up(const struct vrb_channel *ch)
{
	return n_up(ch) > 0;
}

static uint64_t patience(const struct vrb_channel *ch)
{
	return ch->opt.connect_ms * VRB_NS_PER_MS;
}

/* Whether the channel goes on when this one fails. */
static bool can_do_without(const struct vrb_lane *l)
{
	const struct vrb_channel *ch = l->ch;

	if (n_up(ch) - (l->state == VRB_LANE_UP))
		return true;
	return ch->n_lanes > 1 && (!ch->dark_ns || vrb_now() - ch->dark_ns < patience(ch));
}

static void fail_lane(struct vrb_lane *l)
{
	l->told = l->state == VRB_LANE_UP; /* the user knows it */
	l->state = VRB_LANE_FAILING;
	l->resting = l->over = false;
	l->since_ns = vrb_now();
	l->ch->repairing = true;
	if (!l->ch->dark_ns && !n_up(l->ch))
		l->ch->dark_ns = l->since_ns;
	vrb_lane_drop(l);
	vrb_lane_error(l);
	(void)vrb_lane_note(l, VRB_NOTE_LANE_FAILED);
}

void vrb_lane_break(struct vrb_lane *l, enum vrb_verdict v, uint64_t a, uint64_t b, uint64_t c)
{
	struct vrb_channel *ch = l->ch;

	if (l->state == VRB_LANE_FAILING || l->state == VRB_LANE_OUT)
		return;
	if (ch->state != VRB_UP || !ch->failover || !can_do_without(l)) {
		vrb_channel_break(ch, v, a, b, c);
		return;
	}
	vrb_fail_text(l->text, sizeof(l->text), v, (const uint64_t[3]){a, b, c});
	VRB_PROBE(broken, ch, v, l->text);
	fail_lane(l);
}

/* ---- out */

static void move_flows(struct vrb_channel *ch, uint32_t from)
{
	uint32_t to = from;

	/* In the dark they stay, and move when a lane is up again. */
	for (uint32_t i = 0; i < VRB_FLOWS && n_up(ch); i++) {
		if (ch->flow_lane[i] != from)
			continue;
		do
			to = (to + 1) % ch->n_lanes;
		while (ch->lane[to]->state != VRB_LANE_UP);
		ch->flow_lane[i] = (uint8_t)to;
	}
}

static void take_out(struct vrb_lane *l)
{
	struct vrb_event e = {.kind = VRB_EV_LANE,
			      .outcome = VRB_FAILED,
			      .flow = l->index,
			      .total = l->lost,
			      .text = l->text};
	bool quick = l->since_ns - l->retry_ns < PROVEN_NS;

	l->state = VRB_LANE_OUT;
	l->over = l->peer_over = false;
	l->lost = 0;
	l->back_off_ns = quick && l->back_off_ns ? 2 * l->back_off_ns : BACK_OFF_MIN;
	if (l->back_off_ns > BACK_OFF_MAX)
		l->back_off_ns = BACK_OFF_MAX;
	l->retry_ns = vrb_now() + l->back_off_ns;
	move_flows(l->ch, l->index);
	l->ch->freed = true;
	if (!l->told)
		return;
	l->ch->st.lanes_failed++;
	vrb_emit(l->ch, &e);
}

/* True when nothing of it is with the adapter. */
static bool is_given_back(const struct vrb_lane *l)
{
	return !l->qp ||
	       (l->sq.head == l->sq.tail && l->rq_head == l->rq_tail && vrb_shared_let_go(l));
}

static void let_go(struct vrb_lane *l, uint64_t now)
{
	if (!l->over && (is_given_back(l) || now >= l->since_ns + VRB_ENDING_NS)) {
		vrb_lane_drop_qp(l);
		vrb_lane_settle(l);
		l->n_answers = 0;
		l->over = true;
		(void)vrb_lane_note(l, VRB_NOTE_LANE_OVER);
	}
	if (l->over && l->peer_over)
		take_out(l);
}

/* ---- in again */

static void build(struct vrb_lane *l, uint64_t now)
{
	l->state = VRB_LANE_BUILDING;
	l->since_ns = now;
	if (vrb_lane_renew(l))
		fail_lane(l);
	else
		(void)vrb_lane_note(l, VRB_NOTE_LANE_NEW);
}

static void lane_up(struct vrb_lane *l)
{
	struct vrb_event e = {.kind = VRB_EV_LANE, .outcome = VRB_DONE, .flow = l->index};

	l->state = VRB_LANE_UP;
	l->retry_ns = vrb_now();
	l->stall_head = l->sq.tail + 1; /* begins anew with the next look */
	l->ch->st.lanes_rebuilt++;
	vrb_emit(l->ch, &e);
	if (!l->ch->dark_ns)
		return;
	for (uint32_t i = 0; i < l->ch->n_lanes; i++)
		if (l->ch->lane[i]->state == VRB_LANE_OUT ||
		    l->ch->lane[i]->state == VRB_LANE_BUILDING)
			move_flows(l->ch, i);
	l->ch->freed = true;
	vrb_lane_probe(l); /* its completion ends the dark */
}

static void on_new(struct vrb_lane *l, const struct vrb_note *n)
{
	struct vrb_channel *ch = l->ch;
	bool is_client = ch->is_client;

	if (is_client ? l->state != VRB_LANE_BUILDING : l->state != VRB_LANE_OUT) {
		if (l->state != VRB_LANE_FAILING) /* ours has failed meanwhile */
			vrb_channel_break(ch, VRB_V_SEND_PROTOCOL, VRB_NOTE_LANE_NEW, sizeof(*n),
					  0);
		return;
	}
	if (!is_client) {
		l->state = VRB_LANE_BUILDING;
		l->since_ns = vrb_now();
	}
	if ((!is_client && vrb_lane_renew(l)) ||
	    vrb_lane_connect(l, le32toh(n->count[0]) & 0xffffff, le32toh(n->count[1]) & 0xffffff))
		fail_lane(l);
	else if (is_client)
		lane_up(l);
	if (l->state != VRB_LANE_FAILING)
		(void)vrb_lane_note(l, is_client ? VRB_NOTE_LANE_READY : VRB_NOTE_LANE_NEW);
}

void vrb_repair_note(struct vrb_channel *ch, enum vrb_note_kind kind, const struct vrb_note *n)
{
	uint32_t i = le32toh(n->lane);
	struct vrb_lane *l;

	if (i >= ch->n_lanes || !ch->failover) {
		vrb_channel_break(ch, VRB_V_SEND_PROTOCOL, kind, sizeof(*n), 0);
		return;
	}
	l = ch->lane[i];
	if (kind == VRB_NOTE_LANE_FAILED) {
		if (l->state == VRB_LANE_UP)
			vrb_lane_break(l, VRB_V_SEND_PEER_LANE, l->qp ? l->qp->qp_num : 0, 0, 0);
		else if (l->state != VRB_LANE_FAILING)
			fail_lane(l);
	} else if (kind == VRB_NOTE_LANE_OVER) {
		if (l->state != VRB_LANE_FAILING)
			vrb_channel_break(ch, VRB_V_SEND_PROTOCOL, kind, sizeof(*n), 0);
		else
			l->peer_over = true;
		if (l->over)
			let_go(l, vrb_now());
	} else if (kind == VRB_NOTE_LANE_NEW) {
		on_new(l, n);
	} else if (l->state == VRB_LANE_BUILDING && !ch->is_client) {
		lane_up(l);
	}
}

/* ---- flows return to where they were, one stop of the lane that they leave */

static bool is_idle(const struct vrb_lane *l)
{
	return l->sq.head == l->sq.tail && !l->n_batch && !l->n_offered;
}

/* True while flows are away from home. */
static bool come_home(struct vrb_channel *ch)
{
	bool rests[VRB_LANES_MAX] = {false}, away = false;

	for (uint32_t i = 0; i < VRB_FLOWS; i++) {
		struct vrb_lane *at = ch->lane[ch->flow_lane[i]];
		const struct vrb_lane *home = ch->lane[i % ch->n_lanes];

		if (at == home || home->state != VRB_LANE_UP)
			continue;
		if (is_idle(at))
			ch->flow_lane[i] = (uint8_t)home->index;
		else
			rests[at->index] = away = true;
	}
	for (uint32_t i = 0; i < ch->n_lanes; i++) {
		ch->lane[i]->resting = rests[i];
		if (rests[i])
			vrb_lane_prompt(ch->lane[i]);
	}
	return away;
}

/* ---- stalls */

/* When another lane last completed something. */
static uint64_t others_moved(const struct vrb_channel *ch, const struct vrb_lane *but)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i] != but && ch->lane[i]->moved_ns > last)
			last = ch->lane[i]->moved_ns;
	return last;
}

static bool has_nothing(const struct vrb_lane *l)
{
	return l->sq.head == l->sq.tail;
}

static void probe_others(struct vrb_channel *ch, const struct vrb_lane *but)
{
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i] != but && has_nothing(ch->lane[i]))
			vrb_lane_probe(ch->lane[i]);
}

/* A lane that waits for completions while others get theirs; those that have nothing to do are
 * given something, so that a peer that is gone is not taken for that. */
static void look_for_stall(struct vrb_channel *ch, uint64_t now)
{
	uint64_t most = (uint64_t)ch->opt.stall_ms * VRB_NS_PER_MS;

	for (uint32_t i = 0; i < ch->n_lanes; i++) {
		struct vrb_lane *l = ch->lane[i];

		if (l->sq.head != l->stall_head || has_nothing(l) || l->state != VRB_LANE_UP) {
			if (l->sq.head != l->stall_head)
				l->moved_ns = now;
			l->stall_head = l->sq.head;
			l->stall_ns = now;
		} else if (now >= l->stall_ns + most / 2) {
			vrb_lane_prompt(l);
			if (others_moved(ch, l) <= l->stall_ns + most / 2)
				probe_others(ch, l);
			else if (now >= l->stall_ns + most && n_up(ch) > 1)
				vrb_lane_break(l, VRB_V_SEND_LANE_STALLED, l->qp->qp_num,
					       (now - l->stall_ns) / VRB_NS_PER_MS, 0);
		}
	}
}

/* Every tick, and after completions while something is under repair. */
void vrb_repair_move(struct vrb_channel *ch, uint64_t now)
{
	bool busy = false;

	if (!ch->failover || ch->state != VRB_UP)
		return;
	look_for_stall(ch, now);
	if (!ch->repairing)
		return;
	for (uint32_t i = 0; i < ch->n_lanes; i++) {
		struct vrb_lane *l = ch->lane[i];

		if (l->state == VRB_LANE_FAILING)
			let_go(l, now);
		else if (l->state == VRB_LANE_OUT && ch->is_client && now >= l->retry_ns &&
			 !ch->peer_bye)
			build(l, now);
		else if (l->state == VRB_LANE_BUILDING &&
			 now > l->since_ns + ch->opt.connect_ms * VRB_NS_PER_MS)
			fail_lane(l);
		busy |= l->state != VRB_LANE_UP;
	}
	if (ch->dark_ns && now >= ch->dark_ns + patience(ch)) {
		vrb_channel_break(ch, VRB_V_SEND_NO_LANE, (now - ch->dark_ns) / VRB_NS_PER_MS, 0,
				  0);
		return;
	}
	busy |= come_home(ch);
	ch->repairing = busy;
}
