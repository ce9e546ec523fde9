/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions: which work requests end with each, what it says of the queue pair. Of a failed one
 * only four fields are valid; the others are overwritten, so that a program that reads them
 * nevertheless does not go on by luck.
 */
#include "check/check.h"

#include <string.h>

#define POISON 0x5a5a5a5au

/* The first entry of r with the id; signaled: only those that complete. False: none. */
static bool find(const struct vrb_chk_ring *r, uint64_t wr_id, bool signaled, uint32_t *at)
{
	for (uint32_t i = r->head; i != r->tail; i++) {
		const struct vrb_chk_wr *w = vrb_chk_ring_at(r, i);

		if (w->wr_id != wr_id || w->flags & VRB_CHK_DONE)
			continue;
		if (signaled && !(w->flags & VRB_CHK_SIGNALED))
			continue;
		*at = i;
		return true;
	}
	return false;
}

static void compare(const struct vrb_chk_qp *q, uint32_t i)
{
	const struct vrb_chk_wr *w = vrb_chk_ring_at(&q->sq, i);
	struct vrb_chk_finding f = {.call = "ibv_poll_cq", .posted = w->pc};

	if (!(w->flags & VRB_CHK_SUMMED) ||
	    vrb_chk_sum(vrb_chk_ring_sges(&q->sq, i), w->n_sge) == w->sum)
		return;
	f.r = (struct vrb_report){
		.verdict = VRB_V_DATA_CHANGED, .qpn = q->qpn, .val = {w->wr_id, w->len}};
	vrb_chk_report(&f);
}

/* A completion ends its request and all before it (IBA 10.7.3.1). */
static void retire_send(struct vrb_chk_qp *q, const struct ibv_wc *wc)
{
	struct vrb_chk_ring *r = &q->sq;
	uint32_t at;

	if (!find(r, wc->wr_id, wc->status == IBV_WC_SUCCESS, &at))
		return;
	for (uint32_t i = r->head; vrb_unlikely(vrb_chk_options.data) && i != at + 1; i++)
		compare(q, i);
	r->head = at + 1;
	if (r->unsignaled > r->tail - r->head)
		r->unsignaled = r->tail - r->head;
}

static void retire_recv(struct vrb_chk_ring *r, const struct ibv_wc *wc)
{
	uint32_t at;

	if (!find(r, wc->wr_id, false, &at))
		return;
	vrb_chk_ring_at(r, at)->flags |= VRB_CHK_DONE;
	r->done++;
	while (r->head != r->tail && vrb_chk_ring_at(r, r->head)->flags & VRB_CHK_DONE) {
		r->head++;
		r->done--;
	}
}

/* The opcode of a failed completion need not be right. */
static bool is_receive(const struct vrb_chk_qp *q, const struct ibv_wc *wc)
{
	bool by_opcode = wc->opcode & IBV_WC_RECV;
	uint32_t at;

	if (vrb_likely(wc->status == IBV_WC_SUCCESS) || q->srq)
		return by_opcode;
	if (!find(&q->sq, wc->wr_id, false, &at))
		return true;
	return by_opcode && find(&q->rq, wc->wr_id, false, &at);
}

static void fail(struct vrb_chk_qp *q, bool receive)
{
	bool all = receive || q->type == VRB_QPT_RC;

	if (atomic_load(&q->state) > VRB_QPS_INIT)
		atomic_store(&q->state, all ? VRB_QPS_ERR : VRB_QPS_SQE);
}

void vrb_chk_completion(struct vrb_chk_cq *c, const struct ibv_wc *wc)
{
	struct vrb_chk_ref *ref = vrb_chk_find(&vrb_chk_qpns, vrb_chk_key(c->ctx->id, wc->qp_num));
	struct vrb_chk_qp *q = ref ? ref->to : NULL;
	bool receive;

	if (!q)
		return;
	vrb_chk_lock(&q->lock);
	receive = is_receive(q, wc);
	if (vrb_unlikely(wc->status != IBV_WC_SUCCESS))
		fail(q, receive);
	if (!receive)
		retire_send(q, wc);
	else if (!q->srq)
		retire_recv(&q->rq, wc);
	vrb_chk_unlock(&q->lock);
	if (receive && vrb_unlikely(q->srq != NULL)) {
		vrb_chk_lock(&q->srq->lock);
		retire_recv(&q->srq->rq, wc);
		vrb_chk_unlock(&q->srq->lock);
	}
}

static void poison(struct ibv_wc *wc)
{
	struct ibv_wc p;

	memset(&p, (int)(POISON & 0xff), sizeof(p));
	p.wr_id = wc->wr_id;
	p.status = wc->status;
	p.vendor_err = wc->vendor_err;
	p.qp_num = wc->qp_num;
	*wc = p;
}

/* What a look at a stuck CQ has taken out comes first. */
static int take_kept(struct vrb_chk_cq *c, int n, struct ibv_wc *wc)
{
	uint32_t k, left;

	vrb_chk_lock(&c->lock);
	k = atomic_load(&c->n_kept);
	if (n < 0)
		n = 0;
	if (k > (uint32_t)n)
		k = (uint32_t)n;
	left = atomic_load(&c->n_kept) - k;
	memcpy(wc, c->kept, k * sizeof(*wc));
	memmove(c->kept, c->kept + k, left * sizeof(*wc));
	atomic_store(&c->n_kept, left);
	vrb_chk_unlock(&c->lock);
	return (int)k;
}

static void note_poll(struct vrb_chk_cq *c)
{
	if (vrb_unlikely(atomic_load_explicit(&c->polls, memory_order_relaxed) < 2))
		atomic_fetch_add_explicit(&c->polls, 1, memory_order_relaxed);
	if (vrb_unlikely(atomic_load_explicit(&c->is_unpolled, memory_order_relaxed)))
		atomic_store_explicit(&c->is_unpolled, false, memory_order_relaxed);
}

void vrb_chk_cq_polled(struct vrb_chk_cq *c, bool gave)
{
	note_poll(c);
	if (gave && vrb_unlikely(!atomic_load_explicit(&c->has_given, memory_order_relaxed)))
		atomic_store_explicit(&c->has_given, true, memory_order_relaxed);
}

int vrb_chk_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct vrb_chk_cq *c = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_cqs, cq);
	int got = 0, more;

	if (vrb_unlikely(!c))
		return vrb_chk_ctx_of(cq->context)->ops.poll_cq(cq, n, wc);
	if (vrb_unlikely(atomic_load_explicit(&c->n_kept, memory_order_relaxed)))
		got = take_kept(c, n, wc);
	if (got < n) {
		vrb_chk_depth++;
		more = c->ctx->ops.poll_cq(cq, n - got, wc + got);
		vrb_chk_depth--;
		if (more < 0)
			return got ? got : more;
		got += more;
	}
	vrb_chk_cq_polled(c, got > 0);
	for (int i = 0; i < got; i++) {
		vrb_chk_completion(c, &wc[i]);
		if (vrb_unlikely(wc[i].status != IBV_WC_SUCCESS))
			poison(&wc[i]);
	}
	return got;
}

void vrb_chk_cq_judge(struct vrb_chk_cq *c)
{
	uint32_t posts = atomic_load(&c->n_posts);
	struct vrb_chk_finding f = {
		.r = {.verdict = VRB_V_CQ_POLLED_ONCE, .val = {posts}},
		.call = "ibv_destroy_cq, or at exit",
		.made = &c->obj.site,
		.made_what = VRB_TR("CQ made"),
	};

	if (atomic_load(&c->polls) == 1 && !atomic_load(&c->has_given) && posts)
		vrb_chk_report(&f);
}
