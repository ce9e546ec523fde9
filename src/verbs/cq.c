/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and completion queues. A channel cannot go while CQs refer to it, a CQ not
 * while QPs or SRQs do (EBUSY), and a CQ not before the events handed out for it are acknowledged.
 * Polling and arming are in data.c, the extended CQ's readers in ex.c.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <pthread.h>
#include <stdlib.h>

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct vv_channel *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return vv_null(ENOMEM);
	err = vrb_hchan_create(vv_context(context)->h, &c->h);
	if (err) {
		free(c);
		return vv_null(err);
	}
	c->ch.context = context;
	c->ch.fd = vrb_hchan_fd(c->h);
	return &c->ch;
}

static void channel_ref(struct ibv_comp_channel *ch, int delta)
{
	if (!ch)
		return;
	pthread_mutex_lock(&ch->context->mutex);
	ch->refcnt += delta;
	pthread_mutex_unlock(&ch->context->mutex);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct vv_channel *c = vv_channel(channel);
	struct ibv_context *context = channel->context;
	bool foreign = vrb_hctx_is_foreign(vv_context(context)->h);
	struct vrb_report r;
	enum vrb_verdict v;
	int err;

	pthread_mutex_lock(&context->mutex);
	v = vrb_rules_destroy(VRB_OBJ_CHANNEL, (uint32_t)channel->refcnt, &r);
	pthread_mutex_unlock(&context->mutex);
	if (v != VRB_OK)
		return vv_refuse(&r);
	err = vrb_hchan_destroy(c->h);
	if (err && !foreign)
		return vv_ret(err);
	free(c);
	return 0;
}

struct vv_cq *vv_cq_make(struct ibv_context *ctx, const struct vv_cq_ask *ask)
{
	int err = vv_count_in(ctx, VRB_OBJ_CQ);
	struct vv_cq *c = err ? NULL : calloc(1, sizeof(*c));
	struct vrb_hcq_init init = {
		.cqe = ask->cqe,
		.chan = ask->channel ? vv_channel(ask->channel)->h : NULL,
		.user = c,
		.stamp_ns = ask->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		.stamp_wall = ask->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		.overwrites = ask->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};

	if (err)
		return vv_null(err);
	err = c ? vrb_hcq_create(vv_context(ctx)->h, &init, &c->h) : ENOMEM;
	if (err) {
		vv_count_out(ctx, VRB_OBJ_CQ);
		free(c);
		return vv_null(err);
	}
	c->cq.context = ctx;
	c->cq.channel = ask->channel;
	c->cq.cq_context = ask->cq_context;
	c->cq.cqe = (int)ask->cqe;
	c->single_threaded = ask->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	pthread_mutex_init(&c->poll_lock, NULL);
	pthread_mutex_init(&c->cq.mutex, NULL);
	pthread_cond_init(&c->cq.cond, NULL);
	channel_ref(ask->channel, 1);
	return c;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct vv_cq_ask ask = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
	};
	struct vrb_report r;
	struct vv_cq *c;

	if (vrb_rules_create_cq(cqe, comp_vector, &vv_limits, &r) != VRB_OK)
		return vv_null(vv_reason(&r));
	c = vv_cq_make(context, &ask);
	return c ? &c->cq : NULL;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct vv_cq *c = vv_cq(cq);
	struct vrb_report r;
	uint32_t held;
	int err;

	if (vrb_rules_resize_cq(cqe, 0, &vv_limits, &r) != VRB_OK)
		return vv_refuse(&r);
	err = vrb_hcq_resize(c->h, (uint32_t)cqe);
	if (err == -EINVAL) { /* it holds more: the figures are those of a moment later */
		held = c->h->core.tail - c->h->core.head;
		r = (struct vrb_report){.verdict = VRB_V_CQ_TOO_SMALL,
					.val = {(uint32_t)cqe, held}};
		return vv_refuse(&r);
	}
	if (err)
		return vv_ret(err);
	cq->cqe = cqe;
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct vv_cq *c = vv_cq(cq);
	bool foreign = vrb_hctx_is_foreign(vv_context(cq->context)->h);
	struct vrb_report r;
	int err;

	if (!foreign && vrb_rules_destroy(VRB_OBJ_CQ, c->h->refs, &r) != VRB_OK)
		return vv_refuse(&r);
	err = vrb_hcq_destroy(c->h);
	if (err && !foreign)
		return vv_ret(err);
	channel_ref(cq->channel, -1);
	if (!foreign) {
		vv_wait_acks(&(struct vv_ack_wait){&cq->mutex, &cq->cond, &c->comp_events_given,
						   &cq->comp_events_completed, VRB_OBJ_CQ});
		vv_wait_acks(&(struct vv_ack_wait){&cq->mutex, &cq->cond, &c->async_events_given,
						   &cq->async_events_completed, VRB_OBJ_CQ});
	}
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	pthread_mutex_destroy(&c->poll_lock);
	vv_count_out(cq->context, VRB_OBJ_CQ);
	free(c);
	return 0;
}

/*
 * Moderation. A count of 1, or a period of 0, is none: without a period nothing would bound the
 * wait for the last few completions. A count of 0 leaves the period alone.
 */
int vv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	const struct ibv_moderate_cq *m = &attr->moderate;
	struct vrb_report r;

	if (vrb_rules_modify_cq(attr->attr_mask,
				vrb_hca_profile()->cq_moderation ? IBV_CQ_ATTR_MODERATE : 0,
				&r) != VRB_OK)
		return vv_refuse(&r);
	return vv_ret(vrb_hcq_moderate(vv_cq(cq)->h, m->cq_count,
				       m->cq_count == 1 ? 0 : m->cq_period * VRB_NS_PER_US));
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	void *user;
	int err = vrb_hchan_get(vv_channel(channel)->h, &user);

	if (err) {
		errno = -err;
		return -1;
	}
	*cq = &((struct vv_cq *)user)->cq;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (!nevents)
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
