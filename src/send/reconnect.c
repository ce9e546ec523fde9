/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client whose channel broke connects again, when its options say so. What was under way has
 * ended with its own outcome by then; nothing is sent again. The next connection is made beside the
 * broken one, by steps that never wait, and its parts are moved over when it stands. The descriptor
 * of vrb_fd stays; a timer in it asks for a look now and then.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "send/async.h"
#include "send/channel.h"
#include "send/cq.h"
#include "send/fail.h"
#include "send/tcp.h"

#define LOOK_NS	  (5 * VRB_NS_PER_MS)
#define PROVEN_NS VRB_NS_PER_S /* a connection that held so long begins the count anew */

enum { TCP, HELLO, READY };

static void close_tcp(struct vrb_channel *ch)
{
	if (ch->tcp >= 0)
		close(ch->tcp);
	ch->tcp = -1;
}

static int start_timer(struct vrb_channel *ch)
{
	const struct itimerspec t = {.it_value.tv_nsec = LOOK_NS, .it_interval.tv_nsec = LOOK_NS};
	struct epoll_event e = {.events = EPOLLIN};

	if (ch->timer >= 0)
		return 0;
	ch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	e.data.fd = ch->timer;
	return ch->timer < 0 || timerfd_settime(ch->timer, 0, &t, NULL) ||
	       epoll_ctl(ch->epoll, EPOLL_CTL_ADD, ch->timer, &e);
}

static void stop_timer(struct vrb_channel *ch)
{
	if (ch->timer >= 0)
		close(ch->timer);
	ch->timer = -1;
}

static void wait_for_next(struct vrb_channel *ch, uint64_t now)
{
	struct vrb_again *a = &ch->again;

	a->at_ns = now + a->back_off_ns;
	a->back_off_ns =
		a->back_off_ns * 2 < VRB_NS_PER_S * 10 ? a->back_off_ns * 2 : VRB_NS_PER_S * 10;
}

/* The channel has broken and everything of it has ended. True: it is not over yet. */
bool vrb_away_begin(struct vrb_channel *ch)
{
	struct vrb_event e = {.kind = VRB_EV_AWAY, .text = ch->text};
	uint64_t now = vrb_now();

	if (!ch->is_client || !ch->opt.reconnect || ch->closed || !ch->again.to_len)
		return false;
	if (now - ch->again.up_ns >= PROVEN_NS || !ch->again.back_off_ns) {
		ch->again.attempts = 0;
		ch->again.back_off_ns = (uint64_t)ch->opt.reconnect_ms * VRB_NS_PER_MS;
	}
	if (ch->again.attempts >= ch->opt.reconnect || start_timer(ch)) {
		stop_timer(ch);
		return false;
	}
	close_tcp(ch);
	ch->state = VRB_AWAY;
	wait_for_next(ch, now);
	vrb_emit(ch, &e);
	return true;
}

void vrb_away_end(struct vrb_channel *ch)
{
	stop_timer(ch);
	if (ch->again.made)
		vrb_channel_free(ch->again.made);
	ch->again.made = NULL;
}

/* ---- one attempt */

static int begin(struct vrb_channel *ch, uint64_t now)
{
	struct vrb_again *a = &ch->again;
	int fd, r;

	a->attempts++;
	a->step = TCP;
	a->got = 0;
	a->at_ns = now + ch->opt.connect_ms * VRB_NS_PER_MS; /* its end */
	fd = vrb_tcp_start((const struct sockaddr *)&a->to, a->to_len);
	if (fd < 0)
		return fd;
	r = vrb_channel_make(ch->d, &ch->opt, &a->made);
	if (r) {
		close(fd);
		return r;
	}
	a->made->tcp = fd;
	a->made->is_client = true;
	return 0;
}

static void hand_over(struct vrb_channel *ch, struct vrb_channel *n)
{
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		vrb_lane_free(ch->lane[i]);
	vrb_shared_destroy(ch);
	vrb_cq_destroy(ch);
	vrb_async_leave(n);
	pthread_mutex_lock(&ch->d->lock);
	for (uint32_t i = 0; i < n->n_lanes; i++) {
		ch->lane[i] = n->lane[i];
		ch->lane[i]->ch = ch;
	}
	ch->n_lanes = n->n_lanes;
	ch->shared = n->shared;
	ch->lane_depth = n->lane_depth;
	ch->cq = n->cq;
	ch->comp = n->comp;
	ch->cq_ex = n->cq_ex;
	ch->ticks = n->ticks;
	ch->moderation = n->moderation;
	pthread_mutex_unlock(&ch->d->lock);
	atomic_store_explicit(&ch->news, 0, memory_order_relaxed);
	atomic_store_explicit(&ch->news_last, 0, memory_order_relaxed);
	ch->tcp = n->tcp;
	ch->gid = n->gid;
	ch->peer = n->peer;
	ch->mtu = n->mtu;
	ch->inline_max = n->inline_max;
	ch->sges = n->sges;
	ch->peer_recv_size = n->peer_recv_size;
	ch->peer_reads = n->peer_reads;
	ch->max_message = n->max_message;
	ch->failover = n->failover;
	n->n_lanes = 0;
	n->shared = NULL;
	n->cq = NULL;
	n->cq_ex = NULL;
	n->comp = NULL;
	n->tcp = -1;
	n->state = VRB_DOWN;
}

static void come_back(struct vrb_channel *ch, uint64_t now)
{
	const struct vrb_event e = {.kind = VRB_EV_BACK};
	struct vrb_channel *n = ch->again.made;

	hand_over(ch, n);
	vrb_away_end(ch);
	ch->peer_bye = ch->peer_broke = ch->heard = ch->armed = ch->cq_dead = ch->repairing = false;
	ch->unacked = ch->note_got = 0;
	ch->heard_ns = ch->asked_ns = ch->dark_ns = ch->broke_ns = 0;
	ch->again.up_ns = now;
	vrb_flows_spread(ch);
	ch->state = VRB_UP;
	ch->lane[0]->want.wrs = 1; /* who waits for room tries again */
	ch->want_room = ch->freed = true;
	ch->st.reconnects++;
	vrb_emit(ch, &e);
	if (vrb_channel_watch(ch))
		vrb_channel_break(ch, VRB_V_SEND_RECONNECT, ch->again.attempts, 0, 0);
}

/* 0: the connection stands; -EAGAIN: not yet. */
static int step(struct vrb_channel *ch)
{
	struct vrb_again *a = &ch->again;
	struct vrb_channel *n = a->made;
	int r;

	if (a->step == TCP) {
		r = vrb_tcp_started(n->tcp);
		r = r ? r : vrb_client_begin(n);
		if (r)
			return r;
		a->step = HELLO;
	}
	if (a->step == HELLO) {
		r = vrb_tcp_more(n->tcp, &n->peer, sizeof(n->peer), &a->got);
		r = r ? r : vrb_client_agree(n);
		if (r)
			return r;
		a->step = READY;
		a->got = 0;
	}
	r = vrb_tcp_more(n->tcp, &n->note_in, sizeof(n->note_in), &a->got);
	return r ? r : vrb_client_ready(&n->note_in);
}

static void give_up(struct vrb_channel *ch)
{
	struct vrb_event e = {.kind = VRB_EV_BROKEN, .text = ch->text};

	vrb_fail_text(ch->text, sizeof(ch->text), VRB_V_SEND_RECONNECT,
		      (const uint64_t[3]){ch->again.attempts});
	stop_timer(ch);
	ch->state = VRB_DOWN;
	vrb_emit(ch, &e);
}

void vrb_away_move(struct vrb_channel *ch, uint64_t now)
{
	struct vrb_again *a = &ch->again;
	uint64_t n;
	int r;

	(void)!read(ch->timer, &n, sizeof(n));
	if (!a->made && now < a->at_ns)
		return;
	r = a->made ? 0 : begin(ch, now);
	r = r ? r : step(ch);
	if (r == -EAGAIN && now < a->at_ns)
		return;
	if (!r) {
		come_back(ch, now);
		return;
	}
	if (a->made)
		vrb_channel_free(a->made);
	a->made = NULL;
	if (a->attempts >= ch->opt.reconnect)
		give_up(ch);
	else
		wait_for_next(ch, now);
}
