/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of moderated CQs: when the core holds one back (core/cq.c), somebody must look again when
 * its time is over. Whoever polls or drives does so by the engine's deadline, and a thread that
 * sleeps on the sockets in ibv_get_cq_event sleeps until then at the most. When none drives, a
 * timer in the helper's epoll does; a driver that leaves, or sleeps without a time-out, hands over
 * to it. So each event that is held back has somebody who wakes for it: the timer, or the driver in
 * whose turn it began.
 *
 * The timer is set only when it has to ring earlier than it is set to; one that rings for nothing,
 * since company came meanwhile, is set anew. It rings at most once in a period of moderation.
 */
#include "hca/peer.h"

#include <errno.h>
#include <sys/timerfd.h>

static void set_timer(struct vrb_engine *e, vrb_ns at)
{
	struct itimerspec t = {.it_value = {.tv_sec = (time_t)(at / VRB_NS_PER_S),
					    .tv_nsec = (long)(at % VRB_NS_PER_S)}};

	if (at >= e->held_fd_at)
		return;
	e->held_fd_at = at;
	timerfd_settime(e->held_fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void look_at(struct vrb_engine *e, vrb_ns at)
{
	if (at < e->held_first)
		vrb_poke(&e->held_first, at);
	if (at < e->next_deadline)
		vrb_poke(&e->next_deadline, at);
}

void vrb_moderate_begin(struct vrb_hcq *cq)
{
	struct vrb_engine *e = cq->ctx->e;

	if (!cq->chan)
		return;
	cq->held_until = vrb_clock_now() + cq->core.hold_ns;
	if (vrb_list_empty(&cq->held_node))
		vrb_list_add_tail(&e->held_cqs, &cq->held_node);
	look_at(e, cq->held_until);
	if (!e->is_driver_turn)
		set_timer(e, cq->held_until);
}

/* The time that was to be looked at stays: one look for nothing. */
void vrb_moderate_end(struct vrb_hcq *cq)
{
	vrb_list_del(&cq->held_node);
}

void vrb_moderate_run(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_list *n, *next;

	vrb_poke(&e->held_first, VRB_NS_NEVER);
	for (n = e->held_cqs.next; n != &e->held_cqs; n = next) {
		struct vrb_hcq *cq = vrb_list_entry(n, struct vrb_hcq, held_node);

		next = n->next;
		if (cq->held_until > now) {
			look_at(e, cq->held_until);
			continue;
		}
		vrb_cq_expire(&cq->core, &e->fx);
		vrb_list_del(n);
	}
	vrb_engine_apply(e);
	if (!e->is_driver_turn)
		vrb_moderate_watch(e);
}

void vrb_moderate_watch(struct vrb_engine *e)
{
	if (e->held_first != VRB_NS_NEVER)
		set_timer(e, e->held_first);
}

void vrb_moderate_on_event(struct vrb_engine *e)
{
	uint64_t n;

	(void)!syscall(SYS_read, e->held_fd, &n, sizeof(n));
	e->held_fd_at = VRB_NS_NEVER;
	vrb_moderate_run(e, vrb_clock_now());
}

/* Lock held. */
static int make_timer(struct vrb_engine *e)
{
	int err;

	if (e->held_fd >= 0)
		return 0;
	e->held_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = e->held_fd < 0 ? -errno : vrb_meet_watch(e, VRB_EV_HELD, e->held_fd);
	if (err)
		vrb_moderate_close(e, true);
	return err;
}

void vrb_moderate_close(struct vrb_engine *e, bool in_child)
{
	if (!in_child)
		vrb_meet_unwatch(e, &e->held_fd);
	else if (e->held_fd >= 0)
		close(e->held_fd);
	e->held_fd = -1;
	e->held_fd_at = VRB_NS_NEVER;
}

int vrb_hcq_moderate(struct vrb_hcq *cq, uint32_t max, vrb_ns ns)
{
	struct vrb_engine *e = cq->ctx->e;
	int err = 0, old;

	if (e->foreign)
		return -EIO;
	old = vrb_cancel_off();
	vrb_engine_lock(e);
	if (ns)
		err = make_timer(e);
	if (!err) {
		vrb_cq_moderate(&cq->core, max, ns, &e->fx);
		vrb_engine_apply(e);
	}
	vrb_engine_unlock(e);
	vrb_cancel_restore(old);
	return err;
}
