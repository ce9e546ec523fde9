/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executing what the core asks for: placements first, then notifications and events, then reports.
 * A CQ that overran takes the other queue pairs on it along.
 */
#include "hca/direct.h"

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

		ctx = q->ctx;
		ev.user = q->user;
	}
	vrb_event_async(ctx, &ev);
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
		cq->notifying = false;
		cq->notify_next = NULL;
		vrb_event_completion(vrb_container_of(cq, struct vrb_hcq, core));
	}
	for (i = 0; i < fx->n_event; i++)
		apply_async(&fx->event[i]);
	for (i = 0; i < fx->n_report; i++)
		vrb_hca_refuse(&fx->report[i]);
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
