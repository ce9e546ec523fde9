/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events. The count of events handed out for an object rises under the device's lock
 * as the event is taken, and destroying the object waits until as many have been acknowledged
 * (ibv_get_async_event(3)).
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <pthread.h>
#include <time.h>

enum element { ELEMENT_PORT, ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ };

static enum element element_of(int kind)
{
	switch (kind) {
	case IBV_EVENT_CQ_ERR:
		return ELEMENT_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ELEMENT_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ELEMENT_SRQ;
	default:
		return ELEMENT_PORT;
	}
}

static uint32_t *counter_of(int kind, void *user)
{
	if (kind == VRB_EVENT_COMPLETION)
		return &((struct vv_cq *)user)->comp_events_given;
	switch (element_of(kind)) {
	case ELEMENT_CQ:
		return &((struct vv_cq *)user)->async_events_given;
	case ELEMENT_QP:
		return &((struct vv_qp *)user)->async_events_given;
	case ELEMENT_SRQ:
		return &((struct vv_srq *)user)->async_events_given;
	case ELEMENT_PORT:
	default:
		return NULL;
	}
}

void vv_event_given(int kind, void *user)
{
	uint32_t *count = counter_of(kind, user);

	if (count)
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct vrb_hasync ev = {0};
	int err = vrb_hctx_get_async(vv_context(context)->h, &ev);

	if (err) {
		errno = -err;
		return -1;
	}
	event->event_type = (enum ibv_event_type)ev.kind;
	switch (element_of(ev.kind)) {
	case ELEMENT_CQ:
		event->element.cq = &((struct vv_cq *)ev.user)->cq;
		break;
	case ELEMENT_QP:
		event->element.qp = &((struct vv_qp *)ev.user)->qp;
		break;
	case ELEMENT_SRQ:
		event->element.srq = &((struct vv_srq *)ev.user)->srq;
		break;
	case ELEMENT_PORT:
		event->element.port_num = (int)ev.port;
		break;
	}
	return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *count)
{
	pthread_mutex_lock(mutex);
	(*count)++;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (element_of((int)event->event_type)) {
	case ELEMENT_CQ:
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case ELEMENT_QP:
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case ELEMENT_SRQ:
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case ELEMENT_PORT:
		break;
	}
}

/* Says why, once, when it takes long. */
static void wait_more(const struct vv_ack_wait *w, const struct timespec *until, bool *said)
{
	struct vrb_report r = {.verdict = VRB_V_EVENTS_UNACKED,
			       .val = {w->object, *w->given - *w->acked}};

	if (*said) {
		pthread_cond_wait(w->cond, w->mutex);
	} else if (pthread_cond_timedwait(w->cond, w->mutex, until)) {
		vrb_hca_refuse(&r);
		*said = true;
	}
}

void vv_wait_acks(const struct vv_ack_wait *w)
{
	struct timespec until;
	bool said = false;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(w->mutex);
	/* pairs with acknowledge and ibv_ack_cq_events; nothing is handed out any more */
	while (*w->acked != __atomic_load_n(w->given, __ATOMIC_RELAXED))
		wait_more(w, &until, &said);
	pthread_mutex_unlock(w->mutex);
}
