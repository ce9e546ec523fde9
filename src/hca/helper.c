/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread: makes progress when the application does not. It watches the application's
 * activity once per tick; while somebody polls it leaves rings and lock alone, after a silent tick
 * it takes over, spins while there is work, then arms the bell and sleeps. It also accepts
 * connections and runs timers. All signals are blocked: they belong to the application's threads.
 */
#include "hca/tap.h"
#include "hca/totals.h"
#include "hca/trace.h"
#include "hca/wire.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SPIN_NS	     (50 * VRB_NS_PER_US) /* no sleep within this time of the last work */
#define ASSIST_TICKS 16
#define AWAKE_TICKS  100 /* ticks without work and without timers before a deep sleep */
#define EVENTS	     16

void vrb_helper_kick(struct vrb_engine *e)
{
	atomic_store_explicit(&e->helper_wakes_at, 0, memory_order_relaxed);
	(void)vrb_event_fd_add(e->bell_fd, 1);
}

bool vrb_engine_arm(struct vrb_engine *e, uint32_t bit)
{
	atomic_fetch_or_explicit(&e->bell->sleepers, bit, memory_order_seq_cst);
	/* pairs with the fence in vrb_engine_ring_bells: a frame is seen here or the bell is rung
	 */
	atomic_thread_fence(memory_order_seq_cst);
	/* When there is work the bit stays all the same: it may be another thread's too. It costs
	 * the next sender a wake-up in vain. */
	return !vrb_engine_has_work(e);
}

/* Rings, lists or sockets may have something. */
static bool worth_a_turn(struct vrb_engine *e)
{
	return vrb_engine_has_work(e) || atomic_load_explicit(&e->n_wire, memory_order_relaxed);
}

/* Works until nothing has come for SPIN_NS or the application polls again. */
static uint32_t take_over(struct vrb_engine *e)
{
	vrb_ns last = vrb_clock_now(), now = last;
	uint32_t polls = atomic_load_explicit(&e->n_polls, memory_order_relaxed), done = 0, n;

	vrb_engine_publish_cpu(e);
	do {
		n = 0;
		if (worth_a_turn(e) || vrb_moderate_is_due(e, now)) {
			vrb_engine_lock(e);
			n = vrb_engine_turn(e, now);
			vrb_engine_unlock(e);
		} else {
			__builtin_ia32_pause();
		}
		now = vrb_clock_now();
		if (n)
			last = now;
		done += n;
	} while (now - last < SPIN_NS &&
		 !atomic_load_explicit(&e->stopping, memory_order_relaxed) &&
		 atomic_load_explicit(&e->n_polls, memory_order_relaxed) == polls);
	return done;
}

static void run_timers(struct vrb_engine *e)
{
	vrb_ns now = vrb_clock_now();

	vrb_engine_lock(e);
	vrb_poke(&e->now, now);
	atomic_store_explicit(&e->helper_deep, false, memory_order_relaxed);
	vrb_meet_tick(e, now);
	vrb_stats_tick(e, now);
	vrb_engine_flush_acks(e, now, false);
	vrb_engine_ring_bells(e);
	/* A whole turn: the answer that a timer waits for may lie in a ring. */
	if (now >= e->next_deadline)
		vrb_engine_turn(e, now);
	e->wire_busy = vrb_wire_tick(e, now);
	if (atomic_load_explicit(&e->n_work, memory_order_relaxed) ||
	    atomic_load_explicit(&e->n_wire, memory_order_relaxed))
		vrb_engine_turn(e, now);
	if (e->totals)
		vrb_totals_tick(e, now);
	if (e->tap)
		vrb_tap_flush(e);
	if (e->trace)
		vrb_trace_flush(e);
	vrb_engine_unlock(e);
}

/* How long to sleep, in ms for epoll; publishes when we will look again. */
static int sleep_time(struct vrb_engine *e, bool deep)
{
	vrb_ns now = vrb_clock_now(), until = now + VRB_TICK_NS, d;

	if (deep) {
		vrb_engine_lock(e);
		d = e->next_deadline;
		/* pairs with the load in vrb_engine_timer: both under the lock */
		atomic_store_explicit(&e->helper_wakes_at, d, memory_order_relaxed);
		if (vrb_unlikely(e->totals && d > now + VRB_TOTALS_NS))
			d = now + VRB_TOTALS_NS;
		vrb_engine_unlock(e);
		if (d == VRB_NS_NEVER)
			return -1;
		return d <= now ? 0
				: (int)((d - now + VRB_NS_PER_MS - 1) / VRB_NS_PER_MS % INT32_MAX);
	}
	atomic_store_explicit(&e->helper_wakes_at, until, memory_order_relaxed);
	return 1;
}

/* Before a long sleep nothing may be owed. */
static void settle_acks(struct vrb_engine *e)
{
	vrb_engine_lock(e);
	vrb_engine_flush_acks(e, vrb_peek(&e->now), false);
	vrb_engine_ring_bells(e);
	if (e->tap)
		vrb_tap_flush(e);
	if (e->trace)
		vrb_trace_flush(e);
	vrb_engine_unlock(e);
}

/* Handles what epoll has found; true when the bell was among it. */
static bool handle(struct vrb_engine *e, struct epoll_event *ev, int n)
{
	bool rung = false, is_news = false;

	for (int i = 0; i < n; i++) {
		uint32_t what = (uint32_t)(ev[i].data.u64 >> 32);

		rung |= what == VRB_EV_BELL || what == VRB_EV_WIRE;
		is_news |= what != VRB_EV_WIRE ||
			   !atomic_load_explicit(&e->sockets_watched, memory_order_relaxed);
		vrb_engine_lock(e);
		vrb_peer_on_event(e, what, (int)(uint32_t)ev[i].data.u64);
		vrb_engine_unlock(e);
	}
	/* A ring that has just been attached may hold frames, and its bell was never rung. */
	if (is_news && atomic_load_explicit(&e->n_drivers, memory_order_seq_cst) && worth_a_turn(e))
		vrb_event_wake_drivers(e);
	return rung;
}

/* Somebody rang for us although the application was active a moment ago: it may sleep in poll(). */
static void one_turn(struct vrb_engine *e)
{
	if (!worth_a_turn(e))
		return;
	vrb_engine_lock(e);
	vrb_engine_turn(e, vrb_clock_now());
	vrb_engine_unlock(e);
}

/*
 * assist: the application has left traffic lying for a whole tick although it polls now and then
 * (it waits for bytes in memory, say). For a while the helper then answers at once, at the price of
 * a wake-up for each batch.
 */
struct watch {
	uint32_t seen, quiet, assist, n_watches;
	bool rung;
};

/* True: sleep until woken, false: until the next tick. */
static bool look(struct vrb_engine *e, struct watch *w)
{
	uint32_t polls = atomic_load_explicit(&e->n_polls, memory_order_relaxed);
	uint32_t n_watches = atomic_load_explicit(&e->n_watches, memory_order_relaxed);
	bool active = polls != w->seen;

	w->seen = polls;
	atomic_store_explicit(&e->watches_often, n_watches != w->n_watches, memory_order_relaxed);
	w->n_watches = n_watches;
	if (atomic_load_explicit(&e->n_drivers, memory_order_relaxed)) {
		w->quiet = active || w->rung ? 0 : w->quiet + 1;
		return w->quiet > AWAKE_TICKS;
	}
	if (active && !w->assist) {
		if (w->rung)
			one_turn(e);
		return false;
	}
	if (take_over(e) && !active)
		w->assist = ASSIST_TICKS;
	else if (w->assist)
		w->assist--;
	settle_acks(e);
	if (!vrb_engine_arm(e, VRB_SLEEP_HELPER))
		return false;
	vrb_wire_arm(e);
	return true;
}

/* Announces a deep sleep. False: whoever was to wake us has stopped to care meanwhile, or left
 * something to do. */
static bool go_deep(struct vrb_engine *e)
{
	bool left;

	/* pairs with the loads in leave (event_wait.c) and check_helper (wire_io.c): they see this
	 * and kick, or we see what they have left */
	vrb_engine_lock(e);
	atomic_store_explicit(&e->helper_deep, true, memory_order_seq_cst);
	if (atomic_load_explicit(&e->n_wire, memory_order_relaxed))
		vrb_wire_arm(e);
	/* by a poll since our last turn: no event tells of it */
	left = vrb_wire_has_left(e);
	vrb_engine_unlock(e);
	atomic_thread_fence(memory_order_seq_cst);
	if (left || atomic_load_explicit(&e->n_work, memory_order_relaxed)) {
		atomic_store_explicit(&e->helper_deep, false, memory_order_relaxed);
		return false;
	}
	if (atomic_load_explicit(&e->n_drivers, memory_order_seq_cst) ||
	    atomic_load_explicit(&e->bell->sleepers, memory_order_seq_cst) & VRB_SLEEP_HELPER)
		return true;
	atomic_store_explicit(&e->helper_deep, false, memory_order_relaxed);
	return false;
}

static void *helper_main(void *arg)
{
	struct vrb_engine *e = arg;
	struct epoll_event ev[EVENTS];
	struct watch w = {0};

	while (!atomic_load_explicit(&e->stopping, memory_order_relaxed)) {
		bool deep = look(e, &w);
		int n;

		deep = deep && !e->muted_until && !e->wire_busy && go_deep(e);
		n = epoll_wait(e->epoll_fd, ev, EVENTS, sleep_time(e, deep));
		w.rung = handle(e, ev, n);
		run_timers(e);
	}
	return NULL;
}

int vrb_helper_start(struct vrb_engine *e)
{
	sigset_t all, old;
	int err;

	/* What a fault raises is not blocked: that would kill, and a program whose registered
	 * memory is the mapping of a file that shrinks may have a handler that mends it. */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&e->helper, NULL, helper_main, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	e->helper_runs = true;
	pthread_setname_np(e->helper, "verbena-helper");
	return 0;
}

void vrb_helper_stop(struct vrb_engine *e)
{
	if (!e->helper_runs)
		return;
	atomic_store_explicit(&e->stopping, true, memory_order_relaxed);
	vrb_helper_kick(e);
	pthread_join(e->helper, NULL);
	e->helper_runs = false;
}
