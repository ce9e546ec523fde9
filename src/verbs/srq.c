/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues of the basic type. The limit of the creation attributes is ignored, as
 * ibv_create_srq(3) says; ibv_modify_srq arms it once. Posting is in data.c.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <pthread.h>
#include <stdlib.h>

static struct ibv_srq *create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr)
{
	struct vv_srq *s;
	struct vrb_report r;
	int err;

	if (vrb_rules_create_srq(attr->max_wr, attr->max_sge, &vv_limits, &r) != VRB_OK)
		return vv_null(vv_reason(&r));
	s = calloc(1, sizeof(*s));
	if (!s)
		return vv_null(ENOMEM);
	err = vrb_hsrq_create(vv_pd(pd)->h, attr->max_wr, attr->max_sge, 0, s, &s->h);
	if (err) {
		free(s);
		return vv_null(err);
	}
	s->srq.context = pd->context;
	s->srq.srq_context = srq_context;
	s->srq.pd = pd;
	pthread_mutex_init(&s->srq.mutex, NULL);
	pthread_cond_init(&s->srq.cond, NULL);
	return &s->srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	return create(pd, attr->srq_context, &attr->attr);
}

/* Reached for what the header does not map to ibv_create_srq: other types, and no PD. */
struct ibv_srq *vv_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct vrb_report r;
	bool basic =
		!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type == IBV_SRQT_BASIC;

	if (!basic) {
		vrb_rules_unsupported(VRB_VERB_XRC, &r);
		return vv_null(vv_reason(&r));
	}
	if (vrb_rules_defined(VRB_OA_COMP_MASK, attr->comp_mask,
			      IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, &r) != VRB_OK)
		return vv_null(vv_reason(&r));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || attr->pd->context != ctx)
		return vv_null(EINVAL);
	return create(attr->pd, attr->srq_context, &attr->attr);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct vv_srq *s = vv_srq(srq);
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : s->h->core.wq.cap;
	struct vrb_report r;
	int err = 0;

	if (vrb_rules_defined(VRB_OA_ATTR_MASK, (uint32_t)mask, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT,
			      &r) != VRB_OK ||
	    vrb_rules_create_srq(max_wr, 0, &vv_limits, &r) != VRB_OK ||
	    (mask & IBV_SRQ_LIMIT && vrb_rules_srq_limit(attr->srq_limit, max_wr, &r) != VRB_OK))
		return vv_refuse(&r);
	if (mask & IBV_SRQ_MAX_WR)
		err = vrb_hsrq_resize(s->h, max_wr);
	if (!err && mask & IBV_SRQ_LIMIT)
		err = vrb_hsrq_arm(s->h, attr->srq_limit);
	return vv_ret(err);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	const struct vrb_srq *core = &vv_srq(srq)->h->core;

	*attr = (struct ibv_srq_attr){
		.max_wr = core->wq.cap,
		.max_sge = core->wq.max_sge,
		.srq_limit = core->limit,
	};
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct vv_srq *s = vv_srq(srq);
	bool foreign = vrb_hctx_is_foreign(vv_context(srq->context)->h);
	struct vrb_report r;
	int err;

	if (!foreign && vrb_rules_destroy(VRB_OBJ_SRQ, s->h->refs, &r) != VRB_OK)
		return vv_refuse(&r);
	err = vrb_hsrq_destroy(s->h);
	if (err && !foreign)
		return vv_ret(err);
	if (!foreign)
		vv_wait_acks(&(struct vv_ack_wait){&srq->mutex, &srq->cond, &s->async_events_given,
						   &srq->events_completed, VRB_OBJ_SRQ});
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	free(s);
	return 0;
}
