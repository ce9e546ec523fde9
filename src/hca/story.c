/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeping stories; see story.h. What ended a queue pair is the first refusal that is said after it
 * has left its working states: the core reports in the order of causes, and executes first. An
 * event of the same kind as one of the last few counts it up, so that a storm does not wash away
 * what came before; after the end few are kept, for the same reason.
 */
#include "hca/story.h"

#include <stdlib.h>

#define REPEATS 4u /* a round of so many events that comes again and again is counted up */

struct vrb_story *vrb_story_create(vrb_qpn qpn, uint8_t type)
{
	struct vrb_story *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->qpn = qpn;
	s->type = type;
	s->made = vrb_clock_now();
	return s;
}

static struct vrb_story *find(struct vrb_engine *e, vrb_qpn qpn, struct vrb_hqp **q)
{
	*q = e->qp[qpn & VRB_QPN_INDEX_MASK];
	if (*q && (*q)->core.qpn == qpn)
		return (*q)->story;
	*q = NULL;
	for (uint32_t i = 0; i < VRB_BURIED; i++)
		if (e->buried[i] && e->buried[i]->qpn == qpn)
			return e->buried[i];
	return NULL;
}

static void append(struct vrb_story *s, const struct vrb_report *r, vrb_ns now)
{
	/* each change of state counts */
	for (uint32_t i = 1; i <= REPEATS && i <= s->n && r->verdict != VRB_V_QP_MOVED; i++) {
		struct vrb_event *ev = &s->event[(s->n - i) % VRB_STORY_EVENTS];

		if (ev->report.verdict != r->verdict)
			continue;
		ev->n++;
		ev->last = now;
		ev->report = *r;
		return;
	}
	if (s->ended && s->n_after++ >= VRB_STORY_AFTER)
		return;
	s->event[s->n++ % VRB_STORY_EVENTS] =
		(struct vrb_event){.first = now, .last = now, .n = 1, .report = *r};
}

/* Only verdicts that come with the engine's lock are asked. */
static bool is_end(const struct vrb_hqp *q, const struct vrb_report *r)
{
	enum vrb_verdict_kind kind = vrb_verdict_info(r->verdict)->kind;

	if (kind != VRB_KIND_WORK && kind != VRB_KIND_NAK && kind != VRB_KIND_REMOTE &&
	    r->verdict != VRB_V_QP_MOVED)
		return false;
	return q->core.state == VRB_QPS_ERR || q->core.state == VRB_QPS_SQE;
}

void vrb_story_add(struct vrb_engine *e, const struct vrb_report *r)
{
	struct vrb_hqp *q;
	struct vrb_story *s = find(e, r->qpn, &q);
	vrb_ns now = vrb_clock_now();

	if (!s)
		return;
	vrb_story_lock(s);
	append(s, r, now);
	if (q && !s->ended && is_end(q, r)) {
		s->ended = true;
		s->end = (struct vrb_event){.first = now, .last = now, .n = 1, .report = *r};
		e->story_due = true;
	}
	if (vrb_verdict_info(r->verdict)->kind < VRB_KIND_DROP)
		s->to_write = s->refused = true;
	vrb_story_unlock(s);
}

void vrb_story_forget(struct vrb_story *s)
{
	vrb_story_lock(s);
	s->ended = false;
	s->n_after = 0;
	vrb_story_unlock(s);
}

void vrb_story_bury(struct vrb_engine *e, struct vrb_hqp *q)
{
	struct vrb_story *s = q->story;

	s->dqpn = q->core.dqpn;
	s->state = q->core.state;
	if (s->to_write && vrb_story_is_kept(e))
		vrb_story_flush(e, true);
	q->story = NULL;
	if (!s->refused) {
		free(s);
		return;
	}
	free(e->buried[e->n_buried % VRB_BURIED]);
	e->buried[e->n_buried++ % VRB_BURIED] = s;
}
