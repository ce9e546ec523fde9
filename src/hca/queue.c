/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, shared receive queues and the memory of work queues. */
#include "hca/wire.h"
#include "hca/work.h"
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

VRB_STATIC_ASSERT(offsetof(struct vrb_hcq, core.stamp) == 64, "what a poll reads is one line");

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

/* Beside a ring of n places; false: no memory. */
static bool cq_stamps(bool wanted, uint32_t n, struct vrb_stamp **out)
{
	*out = wanted ? calloc(n, sizeof(**out)) : NULL;
	return *out || !wanted;
}

int vrb_hcq_create(struct vrb_hctx *ctx, const struct vrb_hcq_init *init, struct vrb_hcq **out)
{
	struct vrb_hcq *cq;

	if (ctx->e->foreign)
		return -EIO;
	cq = aligned_alloc(64, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->core.cap = init->cqe;
	cq->core.overwrites = init->overwrites;
	cq->core.stamped = init->stamp_ns || init->stamp_wall;
	cq->core.traced = ctx->e->trace;
	cq->core.closed = cq->core.stamped || cq->core.traced;
	cq->core.ring = cq_ring(init->cqe, &cq->core.mask);
	if (!cq->core.ring || !cq_stamps(cq->core.stamped, cq->core.mask + 1, &cq->core.stamp)) {
		free(cq->core.ring);
		free(cq);
		return -ENOMEM;
	}
	cq->stamp_ns = init->stamp_ns;
	cq->stamp_wall = init->stamp_wall;
	cq->ctx = ctx;
	cq->chan = init->chan;
	cq->user = init->user;
	vrb_list_init(&cq->event_node);
	vrb_list_init(&cq->held_node);
	vrb_engine_lock(ctx->e);
	vrb_hchan_ref(cq->chan, 1);
	cq->number = ++ctx->e->next_cq;
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
		vrb_moderate_end(cq);
		vrb_event_purge_cq(cq);
		vrb_event_purge_async(ctx, cq->user);
		vrb_hchan_ref(cq->chan, -1);
		vrb_list_del(&cq->node);
		vrb_stats_bury_cq(cq);
		ctx->stats->cqs--;
		vrb_engine_unlock(ctx->e);
	}
	free(cq->core.ring);
	free(cq->core.stamp);
	free(cq);
	return 0;
}

/* The completions that wait move to the beginning of new memory. Lock held. */
static void cq_move(struct vrb_cq *c, struct vrb_cqe *ring, struct vrb_stamp *stamp, uint32_t mask)
{
	uint32_t n = c->tail - c->head;

	for (uint32_t i = 0; i < n; i++) {
		ring[i] = c->ring[(c->head + i) & c->mask];
		if (stamp)
			stamp[i] = c->stamp[(c->head + i) & c->mask];
	}
	c->ring = ring;
	c->stamp = stamp;
	c->mask = mask;
	c->arm_tail -= c->head;
	c->fire_tail -= c->head;
	c->stamp_tail = c->told_tail = n;
	vrb_poke(&c->head, 0);
	vrb_poke(&c->tail, n);
}

int vrb_hcq_resize(struct vrb_hcq *cq, uint32_t cqe)
{
	struct vrb_cq *c = &cq->core;
	struct vrb_engine *e = cq->ctx->e;
	struct vrb_stamp *stamp, *old_stamp;
	struct vrb_cqe *ring, *old;
	uint32_t mask;
	int err = 0;

	if (e->foreign)
		return -EIO;
	ring = cq_ring(cqe, &mask);
	if (!ring || !cq_stamps(c->stamped, mask + 1, &stamp)) {
		free(ring);
		return -ENOMEM;
	}
	vrb_engine_lock(e);
	old = c->ring;
	old_stamp = c->stamp;
	if (c->tail - c->head > cqe) {
		old = ring;
		old_stamp = stamp;
		err = -EINVAL;
	} else {
		cq_move(c, ring, stamp, mask);
		c->cap = cqe;
	}
	vrb_engine_unlock(e);
	free(old);
	free(old_stamp);
	return err;
}

/* An event is waited for, perhaps in poll(): the helper answers bells and packets. Where threads
 * watch the sockets themselves it learns of packets by its next tick only. */
static void watch_for(struct vrb_engine *e)
{
	if (!vrb_engine_arm(e, VRB_SLEEP_HELPER)) {
		if (atomic_load_explicit(&e->helper_deep, memory_order_relaxed))
			vrb_helper_kick(e);
	} else if (!atomic_load_explicit(&e->watches_often, memory_order_relaxed)) {
		vrb_wire_arm(e);
	}
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
		vrb_cq_catch_up(&cq->core, &e->fx);
		vrb_engine_apply(e);
	}
	/* Whoever arms is about to sleep, perhaps in poll(): nothing may be owed, and the helper
	 * answers the bell. By the wire an acknowledgement is a send of its own and wakes the peer,
	 * so it waits a little: before it sleeps the program polls once more, and what it posts in
	 * answer to a completion takes it along; else a poll that finds nothing sends it,
	 * ibv_get_cq_event, or the helper's next tick. */
	vrb_wire_flush(e);
	if (atomic_load_explicit(&e->n_wire, memory_order_relaxed))
		vrb_work_hurry_acks(e);
	else
		vrb_engine_flush_acks(e, vrb_peek(&e->now), false);
	vrb_engine_ring_bells(e);
	vrb_engine_unlock(e);
	if (cq->chan)
		watch_for(e);
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
