/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, address handles, channels, CQs and SRQs: made, noted, destroyed. A call that
 * the device refuses is explained by the rules, with the limits that the device reports.
 */
#include "check/check.h"

#include <errno.h>
#include <string.h>
#include <time.h>

struct vrb_chk_table vrb_chk_pds = VRB_CHK_TABLE(struct vrb_chk_pd);
struct vrb_chk_table vrb_chk_ahs = VRB_CHK_TABLE(struct vrb_chk_ah);
struct vrb_chk_table vrb_chk_channels = VRB_CHK_TABLE(struct vrb_chk_channel);
struct vrb_chk_table vrb_chk_cqs = VRB_CHK_TABLE(struct vrb_chk_cq);
struct vrb_chk_table vrb_chk_srqs = VRB_CHK_TABLE(struct vrb_chk_srq);

/* ---- protection domains */

static void pd_add(struct ibv_pd *pd, uint32_t base)
{
	static _Atomic uint32_t next = 1;
	struct vrb_chk_pd *p = vrb_chk_take(&vrb_chk_pds, pd);

	if (!p)
		return;
	p->id = base ? base : atomic_fetch_add(&next, 1);
	vrb_chk_site_take(&p->obj.site);
	vrb_chk_publish(p, pd);
}

uint32_t vrb_chk_pd_id(struct ibv_pd *pd)
{
	struct vrb_chk_pd *p = vrb_chk_find(&vrb_chk_pds, pd);

	return p ? p->id : 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = VRB_REAL(ibv_alloc_pd)(context);

	if (pd && !vrb_chk_off())
		pd_add(pd, 0);
	return pd;
}

struct ibv_pd *vrb_chk_alloc_parent_domain(struct ibv_context *ctx,
					   struct ibv_parent_domain_init_attr *a)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(ctx);
	struct ibv_pd *pd = c->ext.alloc_parent_domain(ctx, a);

	if (pd && !vrb_chk_off())
		pd_add(pd, vrb_chk_pd_id(a->pd));
	return pd;
}

/* What stands in the way of giving up a protection domain. */
static void pd_busy(uint32_t id)
{
	const struct vrb_chk_site *site = NULL;
	struct vrb_chk_each e = {0};
	struct vrb_chk_region *m;
	struct vrb_chk_qp *q;
	uint32_t n = 0;

	while ((m = vrb_chk_next(&vrb_chk_regions, &e)) != NULL)
		if (m->mem.pd == id && !n++)
			site = &m->obj.site;
	e = (struct vrb_chk_each){0};
	while ((q = vrb_chk_next(&vrb_chk_qps, &e)) != NULL)
		if (q->pd == id && !n++)
			site = &q->obj.site;
	vrb_chk_busy("ibv_dealloc_pd", VRB_OBJ_PD, n, site);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct vrb_chk_pd *p = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_pds, pd);
	int err;

	if (p)
		vrb_chk_remove(p);
	err = VRB_REAL(ibv_dealloc_pd)(pd);
	if (err && p) {
		vrb_chk_publish(p, pd);
		pd_busy(p->id);
	}
	return err;
}

/* ---- address handles */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = VRB_REAL(ibv_create_ah)(pd, attr);
	struct vrb_chk_ah *a;

	if (vrb_chk_off())
		return ah;
	vrb_chk_av("ibv_create_ah", pd->context, attr, !ah);
	a = ah ? vrb_chk_take(&vrb_chk_ahs, ah) : NULL;
	if (a) {
		a->pd = vrb_chk_pd_id(pd);
		vrb_chk_site_take(&a->obj.site);
		vrb_chk_publish(a, ah);
	}
	return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	struct vrb_chk_ah *a = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_ahs, ah);

	if (a)
		vrb_chk_remove(a);
	return VRB_REAL(ibv_destroy_ah)(ah);
}

/* ---- completion channels */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *ch = VRB_REAL(ibv_create_comp_channel)(context);
	struct vrb_chk_channel *c;

	if (!ch || vrb_chk_off())
		return ch;
	c = vrb_chk_take(&vrb_chk_channels, ch);
	if (c) {
		c->ibv = ch;
		vrb_chk_site_take(&c->obj.site);
		vrb_chk_publish(c, ch);
	}
	return ch;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct vrb_chk_channel *c = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_channels, channel);
	const struct vrb_chk_site *site = NULL;
	struct vrb_chk_each e = {0};
	struct vrb_chk_cq *cq;
	uint32_t n = 0;
	int err;

	if (c)
		vrb_chk_remove(c);
	err = VRB_REAL(ibv_destroy_comp_channel)(channel);
	if (!err || !c)
		return err;
	vrb_chk_publish(c, channel);
	while ((cq = vrb_chk_next(&vrb_chk_cqs, &e)) != NULL)
		if (cq->channel == c && !n++)
			site = &cq->obj.site;
	vrb_chk_busy("ibv_destroy_comp_channel", VRB_OBJ_CHANNEL, n, site);
	return err;
}

/* ---- CQs */

struct vrb_chk_cq *vrb_chk_cq_add(struct ibv_cq *cq)
{
	struct vrb_chk_cq *c = vrb_chk_take(&vrb_chk_cqs, cq);

	if (!c)
		return NULL;
	c->ctx = vrb_chk_ctx_of(cq->context);
	c->channel = vrb_chk_find(&vrb_chk_channels, cq->channel);
	c->ibv = cq;
	c->is_ex = false;
	c->polls = c->n_posts = c->n_kept = 0;
	c->has_given = c->is_warned = c->is_armed = c->is_solicited = c->is_unpolled = false;
	c->n_events = c->n_acked = c->n_async = c->n_async_acked = 0;
	vrb_chk_site_take(&c->obj.site);
	vrb_chk_publish(c, cq);
	vrb_chk_hook(c->ctx);
	return c;
}

static void cq_refused(const char *call, struct ibv_context *context, int64_t cqe, int64_t vector)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(context);
	struct vrb_chk_finding f = {.call = call};
	struct vrb_rules_limits l = {0};
	int err = errno;

	if (!c)
		return;
	l.max_cqe = (uint32_t)c->attr.max_cqe;
	l.n_comp_vectors = (uint32_t)context->num_comp_vectors;
	if (vrb_rules_create_cq(cqe, vector, &l, &f.r) != VRB_OK)
		vrb_chk_report(&f);
	else
		vrb_chk_refused(call, 0, err);
	errno = err;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq;

	vrb_chk_depth++;
	cq = VRB_REAL(ibv_create_cq)(context, cqe, cq_context, channel, comp_vector);
	vrb_chk_depth--;
	if (vrb_chk_off() || !vrb_chk_ctx_of(context))
		return cq;
	if (cq)
		vrb_chk_cq_add(cq);
	else
		cq_refused("ibv_create_cq", context, cqe, comp_vector);
	return cq;
}

struct ibv_cq_ex *vrb_chk_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *a)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(ctx);
	struct ibv_cq_init_attr_ex more = *a;
	struct vrb_chk_cq *cq;
	struct ibv_cq_ex *ex;

	if (vrb_chk_off())
		return c->ext.create_cq_ex(ctx, a);
	vrb_chk_depth++;
	more.wc_flags |= IBV_WC_EX_WITH_QP_NUM; /* by which we know whose it is */
	ex = c->ext.create_cq_ex(ctx, &more);
	if (!ex)
		ex = c->ext.create_cq_ex(ctx, a);
	vrb_chk_depth--;
	if (!ex) {
		cq_refused("ibv_create_cq_ex", ctx, a->cqe, a->comp_vector);
		return NULL;
	}
	cq = vrb_chk_cq_add(ibv_cq_ex_to_cq(ex));
	if (cq)
		vrb_chk_cq_ex_hook(cq);
	return ex;
}

/* n events were fetched and not acknowledged; another thread may be about to. */
void vrb_chk_wait_acks(const char *call, enum vrb_object object, const _Atomic uint32_t *given,
		       const _Atomic uint32_t *acked)
{
	for (unsigned int ms = 0; ms < vrb_chk_options.wait_ms; ms += 10) {
		if (atomic_load(given) == atomic_load(acked))
			return;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	VRB_CHK_NOTE(call, 0, VRB_V_EVENTS_UNACKED, object,
		     atomic_load(given) - atomic_load(acked));
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct vrb_chk_cq *c = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_cqs, cq);
	const struct vrb_chk_site *site = NULL;
	struct vrb_chk_each e = {0};
	struct vrb_chk_qp *q;
	uint32_t n = 0;
	int err;

	if (!c)
		return VRB_REAL(ibv_destroy_cq)(cq);
	vrb_chk_cq_judge(c);
	vrb_chk_wait_acks("ibv_destroy_cq", VRB_OBJ_CQ, &c->n_events, &c->n_acked);
	vrb_chk_wait_acks("ibv_destroy_cq", VRB_OBJ_CQ, &c->n_async, &c->n_async_acked);
	vrb_chk_remove(c);
	err = VRB_REAL(ibv_destroy_cq)(cq);
	if (!err)
		return 0;
	vrb_chk_publish(c, cq);
	while ((q = vrb_chk_next(&vrb_chk_qps, &e)) != NULL)
		if ((q->scq == c || q->rcq == c) && !n++)
			site = &q->obj.site;
	vrb_chk_busy("ibv_destroy_cq", VRB_OBJ_CQ, n, site);
	return err;
}

/* ---- SRQs */

struct vrb_chk_srq *vrb_chk_srq_add(struct ibv_srq *srq, const struct ibv_srq_attr *granted,
				    uint32_t asked)
{
	struct vrb_chk_srq *s = vrb_chk_take(&vrb_chk_srqs, srq);

	if (!s)
		return NULL;
	vrb_chk_lock(&s->lock);
	s->ctx = vrb_chk_ctx_of(srq->context);
	s->pd = vrb_chk_pd_id(srq->pd);
	s->asked = asked < granted->max_wr ? asked : granted->max_wr;
	s->has_ud = false;
	s->is_used = false;
	s->n_qps = s->n_async = s->n_async_acked = 0;
	vrb_chk_ring_init(&s->rq, granted->max_wr, granted->max_sge);
	vrb_chk_unlock(&s->lock);
	vrb_chk_site_take(&s->obj.site);
	vrb_chk_publish(s, srq);
	vrb_chk_hook(s->ctx);
	return s;
}

static void srq_refused(const char *call, struct ibv_context *ctx, const struct ibv_srq_attr *asked)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(ctx);
	struct vrb_chk_finding f = {.call = call};
	struct vrb_rules_limits l = {.max_srq_wr = (uint32_t)c->attr.max_srq_wr,
				     .max_srq_sge = (uint32_t)c->attr.max_srq_sge};
	int err = errno;

	if (vrb_rules_create_srq(asked->max_wr, asked->max_sge, &l, &f.r) != VRB_OK)
		vrb_chk_report(&f);
	else
		vrb_chk_refused(call, 0, err);
	errno = err;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_attr asked = attr->attr;
	struct ibv_srq *srq;

	vrb_chk_depth++;
	srq = VRB_REAL(ibv_create_srq)(pd, attr);
	vrb_chk_depth--;
	if (vrb_chk_off() || !vrb_chk_ctx_of(pd->context))
		return srq;
	if (srq)
		vrb_chk_srq_add(srq, &attr->attr, asked.max_wr);
	else
		srq_refused("ibv_create_srq", pd->context, &asked);
	return srq;
}

struct ibv_srq *vrb_chk_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *a)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(ctx);
	struct ibv_srq_attr asked = a->attr;
	struct ibv_srq *srq;

	if (vrb_chk_off())
		return c->ext.create_srq_ex(ctx, a);
	vrb_chk_depth++;
	srq = c->ext.create_srq_ex(ctx, a);
	vrb_chk_depth--;
	if (srq)
		vrb_chk_srq_add(srq, &a->attr, asked.max_wr);
	else
		srq_refused("ibv_create_srq_ex", ctx, &asked);
	return srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct vrb_chk_srq *s = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_srqs, srq);
	int err;

	if (!s)
		return VRB_REAL(ibv_destroy_srq)(srq);
	vrb_chk_wait_acks("ibv_destroy_srq", VRB_OBJ_SRQ, &s->n_async, &s->n_async_acked);
	vrb_chk_remove(s);
	err = VRB_REAL(ibv_destroy_srq)(srq);
	if (err) {
		vrb_chk_publish(s, srq);
		vrb_chk_busy("ibv_destroy_srq", VRB_OBJ_SRQ, atomic_load(&s->n_qps), NULL);
	}
	return err;
}
