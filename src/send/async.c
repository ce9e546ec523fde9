/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/async.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "send/channel.h"
#include "send/fail.h"
#include "send/node.h"

#define EVENTS_MAX 256 /* read by one call */

static void give(struct vrb_channel *ch, uint32_t news, uint8_t event)
{
	const uint64_t one = 1;

	if (news < VRB_NEWS_CQ)
		atomic_store_explicit(&ch->news_event, event, memory_order_relaxed);
	/* pairs with the exchange in vrb_async_look */
	atomic_fetch_or_explicit(&ch->news, news, memory_order_release);
	(void)!write(ch->wake, &one, sizeof(one));
}

static void give_all(struct vrb_domain *d, uint32_t news)
{
	for (struct vrb_channel *ch = d->async.channels; ch; ch = ch->next)
		give(ch, news, 0);
}

static void on_qp(struct vrb_domain *d, const struct ibv_qp *qp, uint8_t event)
{
	for (struct vrb_channel *ch = d->async.channels; ch; ch = ch->next)
		for (uint32_t i = 0; i < ch->n_lanes; i++)
			if (ch->lane[i]->qp == qp)
				give(ch, 1u << i, event);
}

static void on_last(struct vrb_domain *d, const struct ibv_qp *qp)
{
	for (struct vrb_channel *ch = d->async.channels; ch; ch = ch->next)
		for (uint32_t i = 0; i < ch->n_lanes; i++)
			if (ch->lane[i]->qp == qp) {
				atomic_fetch_or_explicit(&ch->news_last, 1u << i,
							 memory_order_relaxed);
				give(ch, VRB_NEWS_LAST, 0);
			}
}

static void on_srq(struct vrb_domain *d, const struct ibv_srq *srq, uint32_t news)
{
	for (struct vrb_channel *ch = d->async.channels; ch; ch = ch->next)
		if (ch->shared && ch->shared->srq == srq)
			give(ch, news, 0);
}

static void on_cq(struct vrb_domain *d, const struct ibv_cq *cq)
{
	for (struct vrb_channel *ch = d->async.channels; ch; ch = ch->next)
		if (ch->cq == cq)
			give(ch, VRB_NEWS_CQ, 0);
}

static void on_event(struct vrb_domain *d, const struct ibv_async_event *ev)
{
	bool ours = ev->element.port_num == d->port_num;

	switch ((int)ev->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
		on_qp(d, ev->element.qp, (uint8_t)ev->event_type);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		on_last(d, ev->element.qp);
		break;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		on_srq(d, ev->element.srq, VRB_NEWS_LIMIT);
		break;
	case IBV_EVENT_SRQ_ERR:
		on_srq(d, ev->element.srq, VRB_NEWS_SRQ);
		break;
	case IBV_EVENT_CQ_ERR:
		on_cq(d, ev->element.cq);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		give_all(d, VRB_NEWS_DEVICE);
		break;
	case IBV_EVENT_PORT_ERR:
		if (ours)
			give_all(d, VRB_NEWS_PORT_DOWN);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		if (ours)
			give_all(d, VRB_NEWS_PORT_UP);
		break;
	default:
		break; /* nothing a channel could act on */
	}
}

/* Under the lock from reading to acknowledging: who destroys a queue pair holds it, too, and would
 * wait for the acknowledgement. */
int vrb_async_poll(struct vrb_domain *d)
{
	struct ibv_async_event ev;
	int n = 0;

	pthread_mutex_lock(&d->lock);
	while (n < EVENTS_MAX && !ibv_get_async_event(d->ctx, &ev)) {
		on_event(d, &ev);
		ibv_ack_async_event(&ev);
		n++;
	}
	pthread_mutex_unlock(&d->lock);
	return n;
}

int vrb_async_fd(const struct vrb_domain *d)
{
	return d->ctx->async_fd;
}

static void *reads(void *arg)
{
	struct vrb_domain *d = arg;
	struct pollfd p[] = {{.fd = d->ctx->async_fd, .events = POLLIN},
			     {.fd = d->async.stop_fd, .events = POLLIN}};

	while (!p[1].revents) {
		/* An adapter that is gone may leave a descriptor that has nothing but an error. */
		if (poll(p, 2, -1) > 0 && p[0].revents && !vrb_async_poll(d) &&
		    p[0].revents & (POLLERR | POLLHUP))
			p[0].fd = -1;
	}
	return NULL;
}

static int start(struct vrb_domain *d, bool bind)
{
	pthread_attr_t a;
	int r;

	d->async.stop_fd = eventfd(0, EFD_CLOEXEC);
	if (d->async.stop_fd < 0)
		return errno;
	pthread_attr_init(&a);
	if (bind)
		vrb_node_attr(d, &a);
	r = pthread_create(&d->async.thread, &a, reads, d);
	pthread_attr_destroy(&a);
	if (!r)
		return 0;
	close(d->async.stop_fd);
	d->async.stop_fd = -1;
	return r;
}

int vrb_async_init(struct vrb_domain *d, const struct vrb_domain_options *o)
{
	int flags = fcntl(d->ctx->async_fd, F_GETFL), r = 0;

	d->async.stop_fd = -1;
	if (flags < 0 || fcntl(d->ctx->async_fd, F_SETFL, flags | O_NONBLOCK))
		r = errno;
	if (!r && o->async_thread)
		r = start(d, o->bind_thread);
	return r ? vrb_fail(r, VRB_V_SEND_CREATE, 9 /* thread */, (uint64_t)r, 0) : 0;
}

void vrb_async_fini(struct vrb_domain *d)
{
	const uint64_t one = 1;

	if (d->async.stop_fd < 0)
		return;
	(void)!write(d->async.stop_fd, &one, sizeof(one));
	pthread_join(d->async.thread, NULL);
	close(d->async.stop_fd);
}

int vrb_async_enter(struct vrb_channel *ch)
{
	ch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ch->wake < 0)
		return vrb_fail(errno, VRB_V_SEND_CREATE, 5 /* channel */, (uint64_t)errno, 0);
	pthread_mutex_lock(&ch->d->lock);
	ch->next = ch->d->async.channels;
	ch->d->async.channels = ch;
	pthread_mutex_unlock(&ch->d->lock);
	return 0;
}

void vrb_async_leave(struct vrb_channel *ch)
{
	struct vrb_channel **at = &ch->d->async.channels;

	if (ch->wake < 0)
		return;
	pthread_mutex_lock(&ch->d->lock);
	while (*at && *at != ch)
		at = &(*at)->next;
	if (*at)
		*at = ch->next;
	pthread_mutex_unlock(&ch->d->lock);
	close(ch->wake);
	ch->wake = -1;
}

static void on_port(struct vrb_channel *ch, bool up)
{
	struct vrb_event e = {.kind = VRB_EV_PORT, .outcome = up ? VRB_DONE : VRB_FAILED};

	ch->st.port_events++;
	if (!up) {
		vrb_fail_text(ch->port_text, sizeof(ch->port_text), VRB_V_SEND_PORT_DOWN,
			      (const uint64_t[3]){ch->d->port_num});
		e.text = ch->port_text;
	}
	vrb_emit(ch, &e);
}

static void on_lanes_last(struct vrb_channel *ch)
{
	uint32_t lanes = atomic_exchange_explicit(&ch->news_last, 0, memory_order_relaxed);

	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (lanes & 1u << i && !ch->lane[i]->last)
			ch->lane[i]->last = VRB_LAST_TAKEN;
}

void vrb_async_look(struct vrb_channel *ch)
{
	uint32_t news;
	uint64_t n;

	if (ch->d->async.stop_fd < 0)
		(void)vrb_async_poll(ch->d);
	/* pairs with the release in give */
	news = atomic_exchange_explicit(&ch->news, 0, memory_order_acquire);
	if (vrb_likely(!news))
		return;
	(void)!read(ch->wake, &n, sizeof(n));
	if (ch->state == VRB_DOWN)
		return;
	if (news & VRB_NEWS_LAST)
		on_lanes_last(ch);
	if (news & VRB_NEWS_LIMIT)
		vrb_shared_on_limit(ch);
	if (news & VRB_NEWS_SRQ)
		vrb_channel_break(ch, VRB_V_SEND_SRQ_ERROR, 0, 0, 0);
	if (news & (VRB_NEWS_CQ | VRB_NEWS_DEVICE)) {
		vrb_channel_break(ch,
				  news & VRB_NEWS_DEVICE ? VRB_V_SEND_DEVICE : VRB_V_SEND_CQ_ERROR,
				  0, 0, 0);
		ch->cq_dead = true;
	}
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (news & 1u << i && ch->lane[i]->qp)
			vrb_lane_break(ch->lane[i], VRB_V_SEND_QP_EVENT, ch->lane[i]->qp->qp_num,
				       atomic_load_explicit(&ch->news_event, memory_order_relaxed),
				       0);
	if (news & VRB_NEWS_PORT_DOWN)
		on_port(ch, false);
	if (news & VRB_NEWS_PORT_UP)
		on_port(ch, true);
}
