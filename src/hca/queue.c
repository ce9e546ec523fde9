/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, shared receive queues and the memory of work queues. */
#include "hca/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t round_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

size_t vrb_wq_shape(struct vrb_wq *q, uint32_t cap, uint32_t max_sge, uint32_t entry_bytes)
{
	q->cap = cap;
	q->max_sge = max_sge;
	q->stride = (entry_bytes + 15) & ~15u;
	q->mask = cap ? round_pow2(cap) - 1 : 0;
	return cap ? (size_t)(q->mask + 1) * q->stride : 0;
}

uint32_t vrb_rwqe_bytes(uint32_t max_sge)
{
	return (uint32_t)(VRB_RWQE_HEADER + (max_sge ? max_sge : 1) * sizeof(struct vrb_sge));
}

/* ---- completion queues */

static struct vrb_cqe *cq_ring(uint32_t cqe, uint32_t *mask)
{
	uint32_t n = round_pow2(cqe);
	void *ring = aligned_alloc(64, n * sizeof(struct vrb_cqe));

	VRB_STATIC_ASSERT(sizeof(struct vrb_cqe) == 64, "a completion is a cache line");
	if (ring)
		memset(ring, 0, n * sizeof(struct vrb_cqe));
	*mask = n - 1;
	return ring;
}

int vrb_hcq_create(struct vrb_hctx *ctx, uint32_t cqe, struct vrb_hchan *chan, void *user,
		   struct vrb_hcq **out)
{
	struct vrb_hcq *cq;

	if (ctx->e->foreign)
		return -EIO;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->core.cap = cqe;
	cq->core.ring = cq_ring(cqe, &cq->core.mask);
	if (!cq->core.ring) {
		free(cq);
		return -ENOMEM;
	}
	cq->ctx = ctx;
	cq->chan = chan;
	cq->user = user;
	vrb_list_init(&cq->event_node);
	vrb_engine_lock(ctx->e);
	vrb_hchan_ref(chan, 1);
	vrb_list_add_tail(&ctx->cqs, &cq->node);
	ctx->stats->cqs++;
	vrb_engine_unlock(ctx->e);
	*out = cq;
	return 0;
}

int vrb_hcq_destroy(struct vrb_hcq *cq)
{
	struct vrb_hctx *ctx = cq->ctx;

	if (!ctx->e->foreign) {
		vrb_engine_lock(ctx->e);
		if (cq->refs) {
			vrb_engine_unlock(ctx->e);
			return -EBUSY;
		}
		vrb_event_purge_cq(cq);
		vrb_event_purge_async(ctx, cq->user);
		vrb_hchan_ref(cq->chan, -1);
		vrb_list_del(&cq->node);
		ctx->stats->cqs--;
		vrb_engine_unlock(ctx->e);
	}
	free(cq->core.ring);
	free(cq);
	return 0;
}

int vrb_hcq_resize(struct vrb_hcq *cq, uint32_t cqe)
{
	struct vrb_cq *c = &cq->core;
	struct vrb_engine *e = cq->ctx->e;
	uint32_t mask, n, i;
	struct vrb_cqe *ring, *old;

	if (e->foreign)
		return -EIO;
	ring = cq_ring(cqe, &mask);
	if (!ring)
		return -ENOMEM;
	vrb_engine_lock(e);
	n = c->tail - c->head;
	if (n > cqe) {
		vrb_engine_unlock(e);
		free(ring);
		return -EINVAL;
	}
	for (i = 0; i < n; i++)
		ring[i] = c->ring[(c->head + i) & c->mask];
	old = c->ring;
	c->ring = ring;
	c->mask = mask;
	c->cap = cqe;
	c->arm_tail -= c->head;
	c->fire_tail -= c->head;
	vrb_poke(&c->head, 0);
	vrb_poke(&c->tail, n);
	vrb_engine_unlock(e);
	free(old);
	return 0;
}

int vrb_hcq_arm(struct vrb_hcq *cq, bool solicited_only)
{
	struct vrb_engine *e = cq->ctx->e;
	bool behind;

	if (e->foreign)
		return -EIO;
	vrb_engine_lock(e);
	behind = !solicited_only && vrb_cq_is_behind(&cq->core);
	vrb_cq_arm(&cq->core, solicited_only);
	if (vrb_unlikely(behind)) {
		cq->core.armed = VRB_CQ_UNARMED;
		cq->core.fire_tail = cq->core.tail;
		vrb_event_completion(cq);
	}
	/* Whoever arms is about to sleep, perhaps in poll(): nothing may be owed, and the helper
	 * answers the bell. */
	vrb_engine_flush_acks(e, vrb_peek(&e->now), false);
	vrb_engine_ring_bells(e);
	vrb_engine_unlock(e);
	if (cq->chan && !vrb_engine_arm(e, VRB_SLEEP_HELPER) &&
	    atomic_load_explicit(&e->helper_deep, memory_order_relaxed))
		vrb_helper_kick(e);
	return 0;
}

/* ---- shared receive queues */

int vrb_hsrq_create(struct vrb_hpd *pd, uint32_t max_wr, uint32_t max_sge, uint32_t limit,
		    void *user, struct vrb_hsrq **out)
{
	struct vrb_engine *e = pd->ctx->e;
	struct vrb_hsrq *s;
	size_t bytes;

	if (e->foreign)
		return -EIO;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	bytes = vrb_wq_shape(&s->core.wq, max_wr, max_sge, vrb_rwqe_bytes(max_sge));
	s->core.wq.ring = calloc(1, bytes ? bytes : 1);
	if (!s->core.wq.ring) {
		free(s);
		return -ENOMEM;
	}
	s->core.pd = pd->id;
	s->core.limit = limit;
	s->pd = pd;
	s->user = user;
	vrb_engine_lock(e);
	vrb_list_add_tail(&pd->ctx->srqs, &s->node);
	pd->refs++;
	pd->ctx->stats->srqs++;
	vrb_engine_unlock(e);
	*out = s;
	return 0;
}

int vrb_hsrq_destroy(struct vrb_hsrq *s)
{
	struct vrb_engine *e = s->pd->ctx->e;

	if (!e->foreign) {
		vrb_engine_lock(e);
		if (s->refs) {
			vrb_engine_unlock(e);
			return -EBUSY;
		}
		vrb_event_purge_async(s->pd->ctx, s->user);
		vrb_list_del(&s->node);
		s->pd->refs--;
		s->pd->ctx->stats->srqs--;
		vrb_engine_unlock(e);
	}
	free(s->core.wq.ring);
	free(s);
	return 0;
}

int vrb_hsrq_arm(struct vrb_hsrq *s, uint32_t limit)
{
	struct vrb_engine *e = s->pd->ctx->e;

	if (e->foreign)
		return -EIO;
	vrb_engine_lock(e);
	vrb_srq_arm(&s->core, limit, &e->fx);
	vrb_engine_apply(e);
	vrb_engine_unlock(e);
	return 0;
}

int vrb_hsrq_resize(struct vrb_hsrq *s, uint32_t max_wr)
{
	struct vrb_engine *e = s->pd->ctx->e;
	struct vrb_wq *q = &s->core.wq, n = *q;
	uint8_t *old;
	size_t bytes;

	if (e->foreign)
		return -EIO;
	bytes = vrb_wq_shape(&n, max_wr, q->max_sge, q->stride);
	n.ring = calloc(1, bytes ? bytes : 1);
	if (!n.ring)
		return -ENOMEM;
	vrb_engine_lock(e);
	if (q->tail - q->head > max_wr) {
		vrb_engine_unlock(e);
		free(n.ring);
		return -EINVAL;
	}
	for (uint32_t i = q->head; i != q->tail; i++)
		memcpy(vrb_wq_entry(&n, i), vrb_wq_entry(q, i), q->stride);
	n.head = q->head;
	n.tail = q->tail;
	old = q->ring;
	*q = n;
	vrb_engine_unlock(e);
	free(old);
	return 0;
}
