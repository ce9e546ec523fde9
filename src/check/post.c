/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts: every request of a chain is looked at, all its faults are told in the order in which a
 * device would meet them, and then the device is asked. Those it takes are under way.
 */
#include "check/check.h"

#include <errno.h>
#include <string.h>

static const struct vrb_post_states posting = {VRB_POST_NO_SEND, VRB_POST_NO_RECV};

/* Where a finding of one post belongs. */
struct where {
	const char *call;
	vrb_qpn qpn;
	uint32_t ctx, pd, need;
	uint64_t wr_id;
};

static __attribute__((cold, noinline)) void tell(const struct where *w, const struct vrb_report *r,
						 const struct vrb_chk_site *made, const char *what)
{
	struct vrb_chk_finding f = {.r = *r, .call = w->call, .made = made, .made_what = what};

	f.r.qpn = w->qpn;
	vrb_chk_report(&f);
}

/* ---- SGEs */

static __attribute__((cold, noinline)) void bad_key(const struct where *w,
						    const struct vrb_mem_use *u)
{
	void *key = vrb_chk_key(w->ctx, u->key);
	struct vrb_chk_ref *ref = vrb_chk_find(&vrb_chk_rkeys, key);
	struct vrb_chk_stale *old = vrb_chk_find(&vrb_chk_stales, key);
	struct vrb_chk_region *of = ref ? ref->to : NULL;
	struct vrb_report r;

	if (of) {
		vrb_mem_refuse(&r, VRB_V_LKEY_IS_RKEY, u);
		tell(w, &r, &of->obj.site, VRB_TR("region registered"));
	} else if (old) {
		vrb_mem_refuse(&r, VRB_V_LKEY_STALE, u);
		tell(w, &r, &old->gone, VRB_TR("deregistered"));
	} else {
		vrb_mem_refuse(&r, VRB_V_LKEY_UNKNOWN, u);
		tell(w, &r, NULL, NULL);
	}
}

/* False when a device will not take it. */
static bool check_sge(const struct where *w, const struct ibv_sge *sge, uint32_t index)
{
	struct vrb_mem_use u = {sge->addr, sge->length, sge->lkey, index, w->pd, w->need};
	struct vrb_chk_region *m;
	struct vrb_report r;

	if (vrb_unlikely(!sge->length || sge->addr + sge->length < sge->addr)) {
		if (vrb_mem_sge(&u, &r) != VRB_OK) {
			tell(w, &r, NULL, NULL);
			return r.verdict == VRB_V_SGE_EMPTY;
		}
	}
	m = vrb_chk_find(&vrb_chk_regions, vrb_chk_key(w->ctx, sge->lkey));
	if (vrb_likely(m && vrb_mem_is_good(&m->mem, &u)))
		return true;
	if (!m)
		bad_key(w, &u);
	else if (vrb_mem_local(&m->mem, &u, &r) != VRB_OK)
		tell(w, &r, &m->obj.site, VRB_TR("region registered"));
	return false;
}

static uint64_t total(const struct ibv_sge *sge, int n)
{
	uint64_t len = 0;

	for (int i = 0; i < n; i++)
		len += sge[i].length;
	return len;
}

/* Copies the list into the entry; num_sge may be anything. */
static void keep(struct vrb_chk_ring *ring, uint32_t n, struct vrb_chk_wr *w,
		 const struct ibv_sge *sge, int num_sge)
{
	struct ibv_sge *to = vrb_chk_ring_sges(ring, ring->tail + n);

	w->n_sge = (uint16_t)(num_sge < 0			  ? 0
			      : (uint32_t)num_sge > ring->max_sge ? ring->max_sge
								  : (uint32_t)num_sge);
	for (uint32_t i = 0; i < w->n_sge; i++)
		to[i] = sge[i];
}

/* ---- receiving */

uint32_t vrb_chk_recv_check(const struct vrb_chk_recv *c, const struct ibv_recv_wr *wr)
{
	struct where w = {.call = c->call,
			  .qpn = c->qpn,
			  .ctx = c->ctx,
			  .pd = c->pd,
			  .need = VRB_RULES_LOCAL_WRITE};
	struct vrb_chk_ring *ring = c->ring;
	struct vrb_report r;
	uint32_t n = 0;

	for (; wr; wr = wr->next, n++) {
		struct vrb_chk_wr *e = vrb_chk_ring_next(ring, n);

		if (!e)
			return n;
		*e = (struct vrb_chk_wr){.wr_id = wr->wr_id, .pc = c->pc};
		if (vrb_post_rq_room(ring->tail - ring->head - ring->done + n, ring->cap, &r) !=
		    VRB_OK)
			tell(&w, &r, c->made, VRB_TR("queue made"));
		if (vrb_post_num_sge(wr->num_sge, ring->max_sge, &r) != VRB_OK)
			tell(&w, &r, c->made, VRB_TR("queue made"));
		if (vrb_post_list(wr->num_sge, wr->sg_list != NULL, &r) != VRB_OK)
			tell(&w, &r, NULL, NULL);
		if (vrb_unlikely(c->is_ud) &&
		    vrb_post_grh_room(total(wr->sg_list, wr->num_sge), &r) != VRB_OK)
			tell(&w, &r, NULL, NULL);
		for (int i = 0; i < wr->num_sge; i++)
			check_sge(&w, &wr->sg_list[i], (uint32_t)i);
		keep(ring, n, e, wr->sg_list, wr->num_sge);
	}
	return n;
}

void vrb_chk_recv_commit(const struct vrb_chk_recv *c, const struct ibv_recv_wr *wr, uint32_t n,
			 int err, struct ibv_recv_wr *const *bad)
{
	uint32_t taken = 0;

	if (vrb_unlikely(err))
		for (; wr && wr != *bad && taken < n; wr = wr->next)
			taken++;
	c->ring->tail += err ? taken : n;
}

/* ---- sending */

static uint32_t remote_need(uint32_t op)
{
	return op == IBV_WR_RDMA_READ ? VRB_RULES_REMOTE_READ
	       : op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM
		       ? VRB_RULES_REMOTE_WRITE
	       : op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD
		       ? VRB_RULES_REMOTE_ATOMIC
		       : 0;
}

/* The other end is in this process: its keys are known. One that is not may be a window's. */
static void check_remote(const struct where *w, const struct vrb_chk_qp *other,
			 const struct vrb_chk_ask *a, uint64_t len)
{
	struct vrb_mem_remote u = {a->remote_addr, len, a->rkey, other->pd, remote_need(a->opcode)};
	void *key = vrb_chk_key(w->ctx, a->rkey);
	struct vrb_chk_ref *ref = vrb_chk_find(&vrb_chk_rkeys, key);
	struct vrb_chk_region *m = ref ? ref->to : vrb_chk_find(&vrb_chk_regions, key);
	struct vrb_report r = {.val = {a->rkey, a->remote_addr, len}};

	if (!m || !len)
		return;
	r.verdict = VRB_V_RKEY_IS_LKEY;
	if (!ref || vrb_mem_remote_pd(&m->mem, &u, &r) != VRB_OK ||
	    vrb_mem_remote(&m->mem, &u, &r) != VRB_OK)
		tell(w, &r, &m->obj.site, VRB_TR("region registered"));
}

static void check_ah(const struct where *w, const struct vrb_chk_qp *q, const struct ibv_ah *ah)
{
	struct vrb_chk_ah *a = vrb_chk_find(&vrb_chk_ahs, ah);
	struct vrb_report r;

	if (vrb_post_ah(ah && (!a || a->pd == q->pd), &r) != VRB_OK)
		tell(w, &r, a ? &a->obj.site : NULL, VRB_TR("address handle made"));
}

/* Count, list and length; false when the list is not to be looked at. */
static bool check_shape(struct vrb_chk_qp *q, const struct where *w, const struct vrb_chk_ask *a,
			uint64_t len)
{
	struct vrb_report r;

	if (vrb_post_num_sge(a->num_sge, q->sq.max_sge, &r) != VRB_OK)
		tell(w, &r, &q->obj.site, VRB_TR("QP made"));
	if (vrb_post_list(a->num_sge, a->sge != NULL, &r) != VRB_OK)
		tell(w, &r, NULL, NULL);
	if (a->is_inline) {
		if (vrb_post_inline(a->opcode, len, q->max_inline, &r) != VRB_OK)
			tell(w, &r, &q->obj.site, VRB_TR("QP made"));
		return false;
	}
	if (vrb_post_length(len, 1ull << 31, &r) != VRB_OK)
		tell(w, &r, NULL, NULL);
	return true;
}

static void check_send(struct vrb_chk_qp *q, const char *call, const struct vrb_chk_ask *a,
		       struct vrb_chk_wr *e)
{
	struct where w = {.call = call, .qpn = q->qpn, .ctx = q->ctx->id, .pd = q->pd};
	struct vrb_chk_qp *other = atomic_load_explicit(&q->other, memory_order_relaxed);
	uint64_t len = a->is_inline && !a->sge ? a->inline_len : total(a->sge, a->num_sge);
	bool good = true;
	struct vrb_report r;

	if (vrb_post_opcode(a->opcode, q->type, &r) != VRB_OK)
		tell(&w, &r, &q->obj.site, VRB_TR("QP made"));
	if (a->opcode == IBV_WR_LOCAL_INV || a->opcode == IBV_WR_BIND_MW)
		return;
	e->len = (uint32_t)len;
	if (a->opcode == IBV_WR_RDMA_READ || a->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    a->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		w.need = VRB_RULES_LOCAL_WRITE;
	if (check_shape(q, &w, a, len)) {
		for (int i = 0; i < a->num_sge; i++)
			good &= check_sge(&w, &a->sge[i], (uint32_t)i);
		if (vrb_unlikely(vrb_chk_options.data) && good && !w.need && len) {
			e->sum = vrb_chk_sum(a->sge, (uint32_t)a->num_sge);
			e->flags |= VRB_CHK_SUMMED;
		}
	} else {
		e->n_sge = 0;
	}
	if (q->type == VRB_QPT_UD)
		check_ah(&w, q, a->ah);
	if (vrb_unlikely(other != NULL) && remote_need(a->opcode))
		check_remote(&w, other, a, len);
}

void vrb_chk_send_check(struct vrb_chk_qp *q, const char *call, const struct vrb_chk_ask *a,
			uint32_t n)
{
	struct vrb_chk_wr *e = vrb_chk_ring_next(&q->sq, n);
	struct where w = {.call = call, .qpn = q->qpn};
	struct vrb_report r;

	if (!e)
		return;
	*e = (struct vrb_chk_wr){
		.wr_id = a->wr_id,
		.pc = a->pc,
		.op = (uint8_t)a->opcode,
		.flags = a->is_signaled || q->sig_all ? VRB_CHK_SIGNALED : 0,
	};
	if (vrb_post_sq_room(q->sq.tail - q->sq.head + n, q->sq.cap, q->sq.unsignaled + n, &r) !=
	    VRB_OK)
		tell(&w, &r, &q->obj.site, VRB_TR("QP made"));
	if (!a->is_inline)
		keep(&q->sq, n, e, a->sge, a->num_sge);
	check_send(q, call, a, e);
}

void vrb_chk_send_commit(struct vrb_chk_qp *q, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct vrb_chk_wr *e = vrb_chk_ring_at(&q->sq, q->sq.tail + i);

		q->sq.unsignaled = e->flags & VRB_CHK_SIGNALED ? 0 : q->sq.unsignaled + 1;
	}
	q->sq.tail += n;
}

/* A QP that is not watched, or a call that libibverbs makes itself. */
static int unseen_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(qp->context);

	if (atomic_load_explicit(&vrb_chk_in_child, memory_order_relaxed))
		VRB_CHK_NOTE("ibv_post_send", qp->qp_num, VRB_V_POST_DEVICE_GONE, 0, 0, 0);
	return c->ops.post_send(qp, wr, bad);
}

void vrb_chk_count_post(struct vrb_chk_qp *q, bool sending)
{
	_Atomic bool *used = sending ? &q->sends : &q->receives;
	struct vrb_chk_cq *c = sending ? q->scq : q->rcq;

	if (!c)
		return;
	if (vrb_unlikely(!atomic_load_explicit(&c->has_given, memory_order_relaxed)))
		atomic_fetch_add_explicit(&c->n_posts, 1, memory_order_relaxed);
	if (vrb_likely(atomic_load_explicit(used, memory_order_relaxed)))
		return;
	atomic_store(used, true);
	vrb_chk_worst(sending ? "ibv_post_send" : "ibv_post_recv", c);
}

void vrb_chk_count_srq(struct vrb_chk_srq *s)
{
	struct vrb_chk_each e = {0};
	struct vrb_chk_qp *q;

	if (vrb_likely(atomic_load_explicit(&s->is_used, memory_order_relaxed)))
		return;
	atomic_store(&s->is_used, true);
	while ((q = vrb_chk_next(&vrb_chk_qps, &e)) != NULL) {
		struct vrb_chk_cq *c = NULL;

		if (!vrb_chk_enter(&q->obj, &q->lock))
			continue;
		if (q->srq == s)
			c = q->rcq;
		vrb_chk_unlock(&q->lock);
		if (c)
			vrb_chk_worst("ibv_post_srq_recv", c);
	}
}

void vrb_chk_check_state(const char *call, struct vrb_chk_qp *q, bool sending)
{
	uint32_t state = atomic_load_explicit(&q->state, memory_order_relaxed);
	struct where w = {.call = call, .qpn = q->qpn};
	struct vrb_report r;

	if ((sending ? vrb_post_send_state(&posting, state, &r)
		     : vrb_post_recv_state(&posting, state, &r)) != VRB_OK)
		tell(&w, &r, &q->obj.site, VRB_TR("QP made"));
}

static struct vrb_chk_ask ask_of(const struct ibv_send_wr *wr, const struct vrb_chk_qp *q, void *pc)
{
	bool atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		      wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	return (struct vrb_chk_ask){
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.num_sge = wr->num_sge,
		.sge = wr->sg_list,
		.is_inline = wr->send_flags & IBV_SEND_INLINE,
		.is_signaled = wr->send_flags & IBV_SEND_SIGNALED,
		.ah = q->type == VRB_QPT_UD ? wr->wr.ud.ah : NULL,
		.remote_addr = atomic ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr,
		.rkey = atomic ? wr->wr.atomic.rkey : wr->wr.rdma.rkey,
		.pc = pc,
	};
}

int vrb_chk_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vrb_chk_qp *q = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_qps, qp);
	void *pc = (char *)__builtin_return_address(0) - 1;
	uint64_t before = vrb_chk_n_findings();
	uint32_t n = 0, taken = 0;
	int err;

	if (vrb_unlikely(!q))
		return unseen_send(qp, wr, bad);
	vrb_chk_count_post(q, true);
	vrb_chk_lock(&q->lock);
	vrb_chk_check_state("ibv_post_send", q, true);
	for (const struct ibv_send_wr *w = wr; w; w = w->next) {
		struct vrb_chk_ask a = ask_of(w, q, pc);

		vrb_chk_send_check(q, "ibv_post_send", &a, n++);
	}
	err = q->ctx->ops.post_send(qp, wr, bad);
	if (vrb_unlikely(err))
		for (const struct ibv_send_wr *w = wr; w && w != *bad; w = w->next)
			taken++;
	vrb_chk_send_commit(q, err ? taken : n);
	vrb_chk_unlock(&q->lock);
	if (vrb_unlikely(err) && before == vrb_chk_n_findings())
		vrb_chk_refused("ibv_post_send", q->qpn, err);
	return err;
}

int vrb_chk_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct vrb_chk_qp *q = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_qps, qp);
	struct vrb_chk_ask a = {.wr_id = bind->wr_id,
				.opcode = IBV_WR_BIND_MW,
				.is_signaled = bind->send_flags & IBV_SEND_SIGNALED,
				.pc = (char *)__builtin_return_address(0) - 1};
	int err;

	if (!q)
		return vrb_chk_ctx_of(qp->context)->ops.bind_mw(qp, mw, bind);
	vrb_chk_lock(&q->lock);
	vrb_chk_send_check(q, "ibv_bind_mw", &a, 0);
	err = q->ctx->ops.bind_mw(qp, mw, bind);
	vrb_chk_send_commit(q, err ? 0 : 1);
	vrb_chk_unlock(&q->lock);
	return err;
}
