/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executing what the core asks for: placements first, then what is due for CQs (times, events),
 * then asynchronous events, then reports. A CQ that overran takes the other queue pairs on it
 * along.
 */
#include "hca/ask.h"
#include "hca/direct.h"
#include "hca/story.h"
#include "hca/tap.h"
#include "hca/trace.h"

static void apply_place(struct vrb_place *p)
{
	uint64_t *word = p->dst;
	uint64_t old;

	switch (p->kind) {
	case VRB_PLACE_COPY:
		vrb_place_copy(p->dst, p->src, p->len);
		break;
	case VRB_PLACE_CMP_SWAP:
		old = p->compare;
		__atomic_compare_exchange_n(word, &old, p->swap_add, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		*p->result = old;
		break;
	case VRB_PLACE_FETCH_ADD:
		*p->result = __atomic_fetch_add(word, p->swap_add, __ATOMIC_SEQ_CST);
		break;
	}
}

static void apply_async(const struct vrb_async *a)
{
	struct vrb_hasync ev = {.kind = (int)a->kind, .port = 1};
	struct vrb_hctx *ctx = NULL;

	if (a->kind == VRB_ASYNC_CQ_ERR) {
		struct vrb_hcq *cq = vrb_container_of(a->object, struct vrb_hcq, core);

		ctx = cq->ctx;
		ev.user = cq->user;
	} else if (a->kind == VRB_ASYNC_SRQ_LIMIT || a->kind == VRB_ASYNC_SRQ_ERR) {
		struct vrb_hsrq *srq = vrb_container_of(a->object, struct vrb_hsrq, core);

		ctx = srq->pd->ctx;
		ev.user = srq->user;
	} else {
		struct vrb_hqp *q = vrb_container_of(a->object, struct vrb_hqp, core);

		if (a->kind == VRB_ASYNC_LAST_WQE && !vrb_hca_profile()->last_wqe_event)
			return;
		ctx = q->ctx;
		ev.user = q->user;
	}
	vrb_event_async(ctx, &ev);
}

static void apply_cq(struct vrb_hcq *cq)
{
	uint8_t due = cq->core.due;

	cq->core.due = 0;
	if (due & VRB_CQ_DUE_STAMP)
		vrb_cq_stamp(&cq->core, vrb_clock_stamp(cq));
	if (vrb_unlikely(due & VRB_CQ_DUE_TRACE))
		vrb_trace_cq(cq->ctx->e, cq);
	if (due & VRB_CQ_DUE_TIMER)
		vrb_moderate_begin(cq);
	if (due & VRB_CQ_DUE_EVENT) {
		vrb_moderate_end(cq);
		vrb_event_completion(cq);
	}
}

/* Of reliable queue pairs: what was lost stands in the report. */
static void ask_why(struct vrb_engine *e, const struct vrb_report *r)
{
	struct vrb_hqp *q = e->qp[r->qpn & VRB_QPN_INDEX_MASK];

	if (q)
		vrb_ask_on_end(e, q, vrb_psn((uint32_t)r->val[0]));
}

static void apply_once(struct vrb_engine *e)
{
	struct vrb_fx *fx = &e->fx;
	struct vrb_cq *cq = fx->notify, *next;
	uint32_t i;

	for (i = 0; i < fx->n_place; i++)
		apply_place(&fx->place[i]);
	for (; cq; cq = next) {
		next = cq->notify_next;
		cq->notify_next = NULL;
		apply_cq(vrb_container_of(cq, struct vrb_hcq, core));
	}
	for (i = 0; i < fx->n_event; i++)
		apply_async(&fx->event[i]);
	for (i = 0; i < fx->n_report; i++) {
		vrb_hca_refuse(&fx->report[i]);
		if (vrb_unlikely(fx->report[i].verdict == VRB_V_RETRY_EXC))
			ask_why(e, &fx->report[i]);
		if (vrb_unlikely(e->tap))
			vrb_tap_note(e, &fx->report[i]);
		if (vrb_unlikely(e->trace))
			vrb_trace_verdict(e, &fx->report[i]);
	}
	if (vrb_unlikely(e->story_due))
		vrb_story_flush(e, false);
	vrb_fx_reset(fx);
}

/* IBA C10-100: a CQ that overran takes the queue pairs on it along. One of them, or NULL. */
static struct vrb_hqp *qp_on_dead_cq(struct vrb_engine *e)
{
	for (struct vrb_list *c = e->contexts.next; c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);

		for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next) {
			struct vrb_hqp *q = vrb_list_entry(n, struct vrb_hqp, ctx_node);

			if (q->core.state != VRB_QPS_ERR && q->core.state != VRB_QPS_RESET &&
			    (q->core.scq->dead || q->core.rcq->dead))
				return q;
		}
	}
	return NULL;
}

void vrb_engine_apply(struct vrb_engine *e)
{
	bool overrun = false;
	struct vrb_hqp *q;

	for (uint32_t i = 0; i < e->fx.n_event; i++)
		overrun |= e->fx.event[i].kind == VRB_ASYNC_CQ_ERR;
	apply_once(e);
	while (vrb_unlikely(overrun) && (q = qp_on_dead_cq(e))) {
		struct vrb_report r = {.verdict = VRB_V_CQ_OVERRUN, .qpn = q->core.qpn};

		r.val[0] = q->core.scq->dead ? q->core.scq->cap : q->core.rcq->cap;
		vrb_qp_fail(&q->core, &r, &e->fx);
		apply_once(e);
		vrb_direct_update(e, q);
	}
}
