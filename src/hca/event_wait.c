/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a thread waits in ibv_get_cq_event. It drives the engine itself, spins for a while, then
 * sleeps on the doorbell's futex, which peers and local producers ring alike. While queue pairs are
 * connected by the wire it sleeps in poll() on the sockets instead, so that a packet wakes one
 * thread and not the helper before it. One thread does that at a time; the others sleep on the
 * futex, and what it finds for them wakes them. A bell that rings meanwhile takes the way by the
 * helper.
 *
 * Signals: a program expects of this call what read() on the channel does, which goes on after a
 * handler that was installed with SA_RESTART. poll() never does, so signals are held back while it
 * sleeps, a signalfd tells of them, and which handlers will run is looked up before they do. The
 * futex does unless it has a time-out: so a sleep on it has none, and an event that is held back
 * meanwhile has the helper's timer (moderate.c).
 */
#include "hca/event_parts.h"
#include "hca/tap.h"
#include "hca/trace.h"
#include "hca/wire.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS (20 * VRB_NS_PER_US)
enum { WAKE, SIGNAL, SOCKETS }; /* descriptors in a sleep */

static bool spin_for_work(struct vrb_engine *e, struct vrb_hchan *c)
{
	vrb_ns now = vrb_clock_now(), end = now + SPIN_NS;

	do {
		for (int i = 0; i < 32; i++) {
			if (vrb_engine_has_work(e) ||
			    atomic_load_explicit(&c->n_events, memory_order_relaxed))
				return true;
			__builtin_ia32_pause();
		}
		if (atomic_load_explicit(&e->n_wire, memory_order_relaxed) && vrb_wire_poll(e))
			return true;
		now = vrb_clock_now();
		if (vrb_moderate_is_due(e, now))
			return true;
	} while (now < end);
	return false;
}

struct sleep {
	struct vrb_hchan *chan;
	sigset_t mask; /* the thread's own */
	uint32_t seq;
	uint32_t n; /* descriptors; 0: on the futex */
	struct pollfd fd[SOCKETS + VRB_WIRE_ADDRESSES];
	int err;
};

/* A thread stops driving. Lock held. */
static void leave(struct vrb_engine *e, struct vrb_hchan *c, bool has_watched)
{
	c->n_waiters--;
	atomic_fetch_sub_explicit(&e->n_drivers, 1, memory_order_seq_cst);
	vrb_moderate_watch(e);
	/* another one watches the sockets */
	if (has_watched && atomic_load_explicit(&e->n_drivers, memory_order_relaxed))
		vrb_event_wake_drivers(e);
	/* From here on the helper watches; while it ticks it needs no kick. Pairs with the store in
	 * go_deep (helper.c). */
	if (atomic_load_explicit(&e->helper_deep, memory_order_seq_cst))
		vrb_helper_kick(e);
}

/* ---- on the sockets */

static bool open_watch(struct vrb_engine *e, const sigset_t *mask)
{
	struct vrb_watch *w = &e->watch;
	sigset_t others;

	if (w->wake_fd < 0)
		w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->signal_fd >= 0 && !memcmp(&w->mask, mask, sizeof(w->mask)))
		return w->wake_fd >= 0;
	/* what the thread blocks anyway may be pending for ever */
	sigfillset(&others);
	for (int n = 1; n < _NSIG; n++)
		if (sigismember(mask, n) == 1)
			sigdelset(&others, n);
	w->signal_fd = signalfd(w->signal_fd, &others, SFD_CLOEXEC | SFD_NONBLOCK);
	w->mask = *mask;
	return w->wake_fd >= 0 && w->signal_fd >= 0;
}

void vrb_event_close_watch(struct vrb_engine *e)
{
	if (e->watch.wake_fd >= 0)
		close(e->watch.wake_fd);
	if (e->watch.signal_fd >= 0)
		close(e->watch.signal_fd);
	e->watch.wake_fd = e->watch.signal_fd = -1;
}

/* Lock held. False: there are no sockets, somebody watches them, or it cannot be. */
static bool begin_watch(struct vrb_engine *e, struct sleep *s)
{
	s->n = 0;
	if (!atomic_load_explicit(&e->n_wire, memory_order_relaxed) ||
	    atomic_load_explicit(&e->sockets_watched, memory_order_relaxed))
		return false;
	sigemptyset(&s->mask);
	pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
	if (!open_watch(e, &s->mask))
		return false;
	s->fd[WAKE].fd = e->watch.wake_fd;
	s->fd[SIGNAL].fd = e->watch.signal_fd;
	s->n = SOCKETS + vrb_wire_sockets(e, s->fd + SOCKETS);
	for (uint32_t i = 0; i < s->n; i++)
		s->fd[i].events = POLLIN;
	/* pairs with the load in vrb_event_wake_drivers */
	atomic_store_explicit(&e->sockets_watched, true, memory_order_seq_cst);
	atomic_fetch_add_explicit(&e->n_watches, 1, memory_order_relaxed);
	return true;
}

/* What read() would return when the signals that wait get through. */
static int interruption(const sigset_t *mask)
{
	struct sigaction a;
	sigset_t waiting;

	if (sigpending(&waiting))
		return 0;
	for (int n = 1; n < _NSIG; n++)
		if (sigismember(&waiting, n) == 1 && sigismember(mask, n) == 0 &&
		    !sigaction(n, NULL, &a) && a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN &&
		    !(a.sa_flags & SA_RESTART))
			return -EINTR;
	return 0;
}

/* Until the first event that is held back is due; NULL: there is none. */
static const struct timespec *time_left(struct vrb_engine *e, struct timespec *t)
{
	vrb_ns until = vrb_peek(&e->held_first), now, left;

	if (vrb_likely(until == VRB_NS_NEVER))
		return NULL;
	now = vrb_clock_now();
	left = until > now ? until - now : 1;
	*t = (struct timespec){.tv_sec = (time_t)(left / VRB_NS_PER_S),
			       .tv_nsec = (long)(left % VRB_NS_PER_S)};
	return t;
}

static void sleep_on_sockets(struct vrb_engine *e, struct sleep *s)
{
	struct timespec t;
	const struct timespec *left = time_left(e, &t);
	sigset_t all;
	uint64_t v;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	(void)ppoll(s->fd, s->n, left, NULL);
	if (s->fd[SIGNAL].revents)
		s->err = interruption(&s->mask);
	pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
	if (s->fd[WAKE].revents)
		(void)!syscall(SYS_read, s->fd[WAKE].fd, &v, sizeof(v));
}

/* ---- on the futex */

/* Like read(), this is where a thread may be cancelled; syscall() alone is not. */
static void sleep_on_bell(struct vrb_engine *e, struct sleep *s)
{
	int old;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	if (syscall(SYS_futex, &e->bell->seq, FUTEX_WAIT, s->seq, NULL, NULL, 0) && errno == EINTR)
		s->err = -EINTR;
	pthread_setcanceltype(old, NULL);
}

/* The thread was cancelled in its sleep (pthread_cancel). */
static void cancelled(void *arg)
{
	struct sleep *s = arg;
	struct vrb_engine *e = s->chan->ctx->e;

	if (s->n)
		pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
	vrb_engine_lock(e);
	if (s->n)
		atomic_store_explicit(&e->sockets_watched, false, memory_order_seq_cst);
	leave(e, s->chan, s->n);
	vrb_event_tell_pollers(s->chan);
	vrb_engine_unlock(e);
}

/*
 * Sleeps; on the sockets when s says which. The bit of the bell is left to whoever rings: other
 * threads may sleep on it.
 */
static void fall_asleep(struct vrb_engine *e, struct sleep *s)
{
	s->seq = atomic_load_explicit(&e->bell->seq, memory_order_seq_cst);
	if (!vrb_engine_arm(e, s->n ? VRB_SLEEP_HELPER : VRB_SLEEP_FUTEX) ||
	    atomic_load_explicit(&s->chan->n_events, memory_order_seq_cst))
		return;
	if (!s->n)
		vrb_wire_arm(e);
	pthread_cleanup_push(cancelled, s);
	if (s->n)
		sleep_on_sockets(e, s);
	else
		sleep_on_bell(e, s);
	pthread_cleanup_pop(0);
}

/* True when there was something to be done. Lock held. */
static bool drive(struct vrb_engine *e)
{
	vrb_ns now = 0;
	bool done;

	if (vrb_unlikely(e->held_first != VRB_NS_NEVER))
		now = vrb_clock_now();
	if (!vrb_engine_has_work(e) && !vrb_moderate_is_due(e, now))
		return false;
	e->is_driver_turn = true;
	done = vrb_engine_turn(e, vrb_clock_now());
	e->is_driver_turn = false;
	return done;
}

int vrb_event_wait(struct vrb_engine *e, struct vrb_hchan *c)
{
	struct sleep s = {.chan = c};
	bool has_watched = false;

	c->n_waiters++;
	atomic_fetch_add_explicit(&e->n_drivers, 1, memory_order_seq_cst);
	/* We are awake and drive: nobody need wake the helper. */
	if (atomic_load_explicit(&e->bell->sleepers, memory_order_relaxed) & VRB_SLEEP_HELPER)
		atomic_fetch_and_explicit(&e->bell->sleepers, ~(uint32_t)VRB_SLEEP_HELPER,
					  memory_order_seq_cst);
	while (!s.err && vrb_list_empty(&c->cqs)) {
		if (drive(e))
			continue;
		vrb_engine_unlock(e);
		if (spin_for_work(e, c)) {
			vrb_engine_lock(e);
			continue;
		}
		vrb_engine_lock(e);
		vrb_engine_flush_acks(e, vrb_peek(&e->now), false);
		vrb_engine_ring_bells(e);
		if (e->tap)
			vrb_tap_flush(e);
		if (e->trace)
			vrb_trace_flush(e);
		if (begin_watch(e, &s))
			has_watched = true;
		else
			vrb_moderate_watch(e);
		vrb_engine_unlock(e);
		fall_asleep(e, &s);
		vrb_engine_lock(e);
		if (s.n)
			atomic_store_explicit(&e->sockets_watched, false, memory_order_relaxed);
	}
	leave(e, c, has_watched);
	return s.err;
}
