/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: what was granted, the CQs they fill, the end. Which completions a CQ must hold in
 * the worst case is known when the last queue is put on it; it is said once for each CQ. What
 * counts is what the program asked for: a device may round up, a program does not use that.
 */
#include "check/check.h"

#include <errno.h>
#include <string.h>

struct vrb_chk_table vrb_chk_qps = VRB_CHK_TABLE(struct vrb_chk_qp);
struct vrb_chk_table vrb_chk_qpns = VRB_CHK_TABLE(struct vrb_chk_ref);

/* What ibv_create_qp and ibv_create_qp_ex have in common. */
struct make {
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	enum ibv_qp_type type;
	int sig_all;
	struct ibv_qp_cap asked, granted;
};

/* SRQs that were counted: each once, however many queue pairs take from it. */
struct counted {
	struct vrb_chk_srq *srq[64];
	uint32_t n;
};

static uint64_t from_srq(struct counted *k, struct vrb_chk_srq *s)
{
	uint32_t i = 0;

	while (i < k->n && k->srq[i] != s)
		i++;
	if (i < k->n || k->n == 64 || !atomic_load(&s->is_used))
		return 0;
	k->srq[k->n++] = s;
	return s->asked;
}

static uint64_t worst_of(const struct vrb_chk_cq *c)
{
	struct counted k = {.n = 0};
	struct vrb_chk_each e = {0};
	struct vrb_chk_qp *q;
	uint64_t sum = 0;

	while ((q = vrb_chk_next(&vrb_chk_qps, &e)) != NULL) {
		if (!vrb_chk_enter(&q->obj, &q->lock))
			continue;
		if (q->scq == c && atomic_load(&q->sends))
			sum += q->asked_send;
		if (q->rcq == c && q->srq)
			sum += from_srq(&k, q->srq);
		else if (q->rcq == c && atomic_load(&q->receives))
			sum += q->asked_recv;
		vrb_chk_unlock(&q->lock);
	}
	return sum;
}

void vrb_chk_worst(const char *call, struct vrb_chk_cq *c)
{
	struct vrb_chk_finding f = {.call = call, .made_what = VRB_TR("CQ made")};

	if (!c || atomic_load(&c->is_warned))
		return;
	if (vrb_rules_cq_worst(worst_of(c), (uint32_t)c->ibv->cqe, &f.r) == VRB_OK)
		return;
	atomic_store(&c->is_warned, true);
	f.made = &c->obj.site;
	vrb_chk_report(&f);
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void fill(struct vrb_chk_qp *q, const struct ibv_qp *qp, const struct make *m)
{
	q->ctx = vrb_chk_ctx_of(qp->context);
	q->scq = vrb_chk_find(&vrb_chk_cqs, m->scq);
	q->rcq = vrb_chk_find(&vrb_chk_cqs, m->rcq);
	q->srq = vrb_chk_find(&vrb_chk_srqs, m->srq);
	q->qpn = qp->qp_num;
	q->type = m->type;
	q->pd = vrb_chk_pd_id(qp->pd);
	atomic_store(&q->state, VRB_QPS_RESET);
	q->max_inline = m->granted.max_inline_data;
	q->asked_send = lesser(m->asked.max_send_wr, m->granted.max_send_wr);
	q->asked_recv = lesser(m->asked.max_recv_wr, m->granted.max_recv_wr);
	q->sig_all = m->sig_all;
	q->sends = q->receives = false;
	q->dest_qpn = q->mtu = 0;
	atomic_store(&q->other, NULL);
	q->n_async = q->n_async_acked = 0;
	memset(&q->ex, 0, sizeof(q->ex));
	vrb_chk_ring_init(&q->sq, m->granted.max_send_wr, m->granted.max_send_sge);
	vrb_chk_ring_init(&q->rq, m->srq ? 0 : m->granted.max_recv_wr,
			  m->srq ? 0 : m->granted.max_recv_sge);
}

static struct vrb_chk_qp *qp_add(struct ibv_qp *qp, const struct make *m)
{
	void *key = vrb_chk_key(vrb_chk_ctx_of(qp->context)->id, qp->qp_num);
	struct vrb_chk_qp *q = vrb_chk_take(&vrb_chk_qps, qp);
	struct vrb_chk_ref *ref = vrb_chk_take(&vrb_chk_qpns, key);

	if (!q || !ref)
		return NULL;
	vrb_chk_lock(&q->lock);
	fill(q, qp, m);
	vrb_chk_unlock(&q->lock);
	vrb_chk_site_take(&q->obj.site);
	if (q->srq) {
		atomic_fetch_add(&q->srq->n_qps, 1);
		q->srq->has_ud |= m->type == IBV_QPT_UD;
	}
	ref->to = q;
	vrb_chk_publish(q, qp);
	vrb_chk_publish(ref, key);
	vrb_chk_hook(q->ctx);
	return q;
}

/* Types whose rules are known here; others pass unseen. */
static bool is_known(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD;
}

static void refused(const char *call, struct ibv_context *context, const struct make *m)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(context);
	struct vrb_rules_limits l = {.max_qp_wr = (uint32_t)c->attr.max_qp_wr,
				     .max_send_sge = (uint32_t)c->attr.max_sge,
				     .max_recv_sge = (uint32_t)c->attr.max_sge,
				     .max_inline = UINT32_MAX};
	struct vrb_rules_qp q = {.type = m->type,
				 .has_send_cq = vrb_chk_find(&vrb_chk_cqs, m->scq) != NULL,
				 .has_recv_cq = vrb_chk_find(&vrb_chk_cqs, m->rcq) != NULL,
				 .has_srq = m->srq,
				 .max_send_wr = m->asked.max_send_wr,
				 .max_recv_wr = m->asked.max_recv_wr,
				 .max_send_sge = m->asked.max_send_sge,
				 .max_recv_sge = m->asked.max_recv_sge};
	struct vrb_chk_finding f = {.call = call};
	int err = errno;

	if (vrb_rules_create_qp(&q, &l, &f.r) != VRB_OK)
		vrb_chk_report(&f);
	else
		vrb_chk_refused(call, 0, err);
	errno = err;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct make m = {.scq = a->send_cq,
			 .rcq = a->recv_cq,
			 .srq = a->srq,
			 .type = a->qp_type,
			 .sig_all = a->sq_sig_all,
			 .asked = a->cap};
	struct ibv_qp *qp;

	vrb_chk_depth++;
	qp = VRB_REAL(ibv_create_qp)(pd, a);
	vrb_chk_depth--;
	if (vrb_chk_off() || !vrb_chk_ctx_of(pd->context) || !is_known(a->qp_type))
		return qp;
	m.granted = a->cap;
	if (qp)
		qp_add(qp, &m);
	else
		refused("ibv_create_qp", pd->context, &m);
	return qp;
}

struct ibv_qp *vrb_chk_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *a)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(ctx);
	struct make m = {.scq = a->send_cq,
			 .rcq = a->recv_cq,
			 .srq = a->srq,
			 .type = a->qp_type,
			 .sig_all = a->sq_sig_all,
			 .asked = a->cap};
	struct ibv_qp_ex *ex = NULL;
	struct vrb_chk_qp *q;
	struct ibv_qp *qp;

	if (vrb_chk_off())
		return c->ext.create_qp_ex(ctx, a);
	vrb_chk_depth++;
	qp = c->ext.create_qp_ex(ctx, a);
	if (qp && a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		ex = VRB_REAL(ibv_qp_to_qp_ex)(qp);
	vrb_chk_depth--;
	if (!is_known(a->qp_type))
		return qp;
	m.granted = a->cap;
	if (!qp) {
		refused("ibv_create_qp_ex", ctx, &m);
		return NULL;
	}
	q = qp_add(qp, &m);
	if (q && ex)
		vrb_chk_qp_ex_hook(q, ex);
	return qp;
}

/* Its completions may be polled yet; then they are nobody's. */
static void qp_remove(struct vrb_chk_qp *q)
{
	struct vrb_chk_ref *ref = vrb_chk_find(&vrb_chk_qpns, vrb_chk_key(q->ctx->id, q->qpn));
	struct vrb_chk_qp *other = atomic_load(&q->other);

	if (other)
		atomic_store(&other->other, NULL);
	vrb_chk_lock(&q->lock);
	vrb_chk_remove(q);
	if (ref)
		vrb_chk_remove(ref);
	vrb_chk_ring_clear(&q->sq);
	vrb_chk_ring_clear(&q->rq);
	if (q->srq)
		atomic_fetch_sub(&q->srq->n_qps, 1);
	vrb_chk_unlock(&q->lock);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct vrb_chk_qp *q = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_qps, qp);
	int err;

	if (!q)
		return VRB_REAL(ibv_destroy_qp)(qp);
	vrb_chk_wait_acks("ibv_destroy_qp", VRB_OBJ_QP, &q->n_async, &q->n_async_acked);
	/* Before the call: number and pointer may be another thread's right after it. */
	qp_remove(q);
	vrb_chk_depth++;
	err = VRB_REAL(ibv_destroy_qp)(qp);
	vrb_chk_depth--;
	if (err)
		vrb_chk_refused("ibv_destroy_qp", qp->qp_num, err);
	return err;
}
