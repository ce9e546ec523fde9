/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events. A wait that lasts is looked at when it has a reason to last for ever: none of the
 * channel's CQs is armed, or one was armed and not polled since, so that completions that were
 * there already raise no event. The second is proved before it is said: the CQ is polled here, and
 * what comes out is kept for the program's next poll.
 */
#include "check/check.h"

#include <fcntl.h>
#include <poll.h>

/* ---- arming */

int vrb_chk_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct vrb_chk_cq *c = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_cqs, cq);

	if (!c)
		return vrb_chk_ctx_of(cq->context)->ops.req_notify_cq(cq, solicited_only);
	atomic_store(&c->is_solicited, solicited_only != 0);
	atomic_store(&c->is_unpolled, true);
	atomic_store(&c->is_armed, true);
	return c->ctx->ops.req_notify_cq(cq, solicited_only);
}

/* ---- waiting */

static bool is_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) != 0; /* an error, a signal: the real call shall have it */
}

/* True when none of the channel's CQs is armed; stuck: one that was armed and not polled. */
static bool is_suspicious(struct ibv_comp_channel *channel, struct vrb_chk_cq **stuck)
{
	struct vrb_chk_channel *ch = vrb_chk_find(&vrb_chk_channels, channel);
	struct vrb_chk_each e = {0};
	struct vrb_chk_cq *c;
	uint32_t n = 0, armed = 0;

	*stuck = NULL;
	while (ch && (c = vrb_chk_next(&vrb_chk_cqs, &e)) != NULL) {
		if (c->channel != ch)
			continue;
		n++;
		if (!atomic_load(&c->is_armed))
			continue;
		armed++;
		if (atomic_load(&c->is_unpolled) && !atomic_load(&c->is_solicited) && !c->is_ex)
			*stuck = c;
	}
	return n && !armed;
}

/* Takes out what the CQ holds. Only a CQ that nothing was kept of is looked at. */
static int take_out(struct vrb_chk_cq *c)
{
	int n;

	vrb_chk_lock(&c->lock);
	n = atomic_load(&c->n_kept) ? 0 : c->ctx->ops.poll_cq(c->ibv, 16, c->kept);
	if (n > 0)
		atomic_store(&c->n_kept, (uint32_t)n);
	vrb_chk_unlock(&c->lock);
	return n;
}

static void watch(struct ibv_comp_channel *channel)
{
	struct vrb_chk_cq *stuck;
	bool unarmed = is_suspicious(channel, &stuck);
	int n;

	if (!unarmed && !stuck)
		return;
	if (fcntl(channel->fd, F_GETFL) & O_NONBLOCK ||
	    is_readable(channel->fd, (int)vrb_chk_options.wait_ms))
		return;
	unarmed = is_suspicious(channel, &stuck);
	vrb_chk_depth++;
	if (unarmed)
		VRB_CHK_NOTE("ibv_get_cq_event", 0, VRB_V_CQ_NOT_ARMED, 0, 0, 0);
	n = stuck ? take_out(stuck) : 0;
	if (n > 0 && !is_readable(channel->fd, 100)) {
		struct vrb_chk_finding f = {
			.r = {.verdict = VRB_V_CQ_LOST_WAKEUP, .val = {(uint64_t)n}},
			.call = "ibv_get_cq_event",
			.made = &stuck->obj.site,
			.made_what = VRB_TR("CQ made"),
		};

		vrb_chk_report(&f);
	}
	vrb_chk_depth--;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct vrb_chk_cq *c;
	int err;

	if (!vrb_chk_off())
		watch(channel);
	err = VRB_REAL(ibv_get_cq_event)(channel, cq, cq_context);
	c = err || vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_cqs, *cq);
	if (c) {
		atomic_store(&c->is_armed, false);
		atomic_fetch_add(&c->n_events, 1);
	}
	return err;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	struct vrb_chk_cq *c = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_cqs, cq);

	if (c)
		atomic_fetch_add(&c->n_acked, nevents);
	VRB_REAL(ibv_ack_cq_events)(cq, nevents);
}

/* ---- asynchronous events */

static void count_async(const struct ibv_async_event *ev, bool acked)
{
	struct vrb_chk_srq *s;
	struct vrb_chk_cq *c;
	struct vrb_chk_qp *q;

	switch ((int)ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		c = vrb_chk_find(&vrb_chk_cqs, ev->element.cq);
		if (c)
			atomic_fetch_add(acked ? &c->n_async_acked : &c->n_async, 1);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		q = vrb_chk_find(&vrb_chk_qps, ev->element.qp);
		if (q)
			atomic_fetch_add(acked ? &q->n_async_acked : &q->n_async, 1);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		s = vrb_chk_find(&vrb_chk_srqs, ev->element.srq);
		if (s)
			atomic_fetch_add(acked ? &s->n_async_acked : &s->n_async, 1);
		break;
	default:
		break;
	}
}

/* These end the queue pair before a completion tells. */
static void note_end(const struct ibv_async_event *ev)
{
	struct vrb_chk_qp *q;

	if (ev->event_type != IBV_EVENT_QP_FATAL && ev->event_type != IBV_EVENT_QP_REQ_ERR &&
	    ev->event_type != IBV_EVENT_QP_ACCESS_ERR)
		return;
	q = vrb_chk_find(&vrb_chk_qps, ev->element.qp);
	if (q)
		atomic_store(&q->state, VRB_QPS_ERR);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int err = VRB_REAL(ibv_get_async_event)(context, event);

	if (!err && !vrb_chk_off()) {
		count_async(event, false);
		note_end(event);
	}
	return err;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (!vrb_chk_off())
		count_async(event, true);
	VRB_REAL(ibv_ack_async_event)(event);
}
