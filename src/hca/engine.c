/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Life of the engine: made with the first context, ended with the last, disowned in a forked child.
 * The child keeps the memory of the parent's objects so that it can free them, but every call on
 * them sees `foreign` and does nothing; its descriptors are closed so that peers notice when the
 * parent ends.
 */
#include "hca/ask.h"
#include "hca/direct.h"
#include "hca/faults.h"
#include "hca/gsi_parts.h"
#include "hca/story.h"
#include "hca/tap.h"
#include "hca/totals.h"
#include "hca/trace.h"
#include "hca/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct vrb_engine *_Atomic vrb_engine_current;
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static bool atfork_done;

void vrb_assert_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "verbena: internal error: %s does not hold (%s:%d); please report it\n",
		expr, file, line);
	abort();
}

#define PAUSES	   128u
#define YIELDS	   64u
#define EXIT_TRIES 200u /* a millisecond each */

/* Spins, yields, in the end sleeps: the holder may have a lower real-time priority than we and the
 * same CPU. */
void vrb_engine_lock_slow(struct vrb_engine *e)
{
	uint32_t spins = 0;

	do {
		while (atomic_load_explicit(&e->lock, memory_order_relaxed)) {
			__builtin_ia32_pause();
			if (++spins % PAUSES)
				continue;
			if (spins / PAUSES < YIELDS)
				sched_yield();
			else
				usleep(50);
		}
		/* pairs with the release in vrb_engine_unlock */
	} while (atomic_exchange_explicit(&e->lock, 1, memory_order_acquire));
}

static void before_fork(void)
{
	struct vrb_engine *e;

	pthread_mutex_lock(&life);
	e = vrb_engine_current;
	if (e)
		vrb_engine_lock(e);
	vrb_devices_lock(true);
}

static void after_fork_parent(void)
{
	struct vrb_engine *e = vrb_engine_current;

	vrb_devices_lock(false);
	if (e)
		vrb_engine_unlock(e);
	pthread_mutex_unlock(&life);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void after_fork_child(void)
{
	struct vrb_engine *e = vrb_engine_current;

	vrb_devices_lock(false);
	vrb_totals_disown();
	vrb_engine_current = NULL;
	if (e) {
		e->foreign = e->detour = true;
		vrb_meet_close(e, true);
		close_fd(&e->stats_fd);
		close_fd(&e->export_fd);
		vrb_moderate_close(e, true);
		vrb_wire_disown(e);
		vrb_tap_disown(e);
		vrb_trace_disown(e);
		e->totals = NULL;
		close_fd(&e->story_fd);
		vrb_asks_close(e, true);
		vrb_gsi_end(e, true);
		for (uint32_t i = 1; i <= VRB_SLOTS; i++)
			if (e->peer[i])
				vrb_peer_disown(e->peer[i]);
		vrb_engine_unlock(e);
	}
	pthread_mutex_unlock(&life);
}

static bool runs_on_one_cpu(void)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1;
}

static uint64_t random_seed(void)
{
	uint64_t seed;

	if (getentropy(&seed, sizeof(seed)))
		seed = vrb_clock_now() ^ (uint64_t)getpid() << 32;
	return seed;
}

static void destroy(struct vrb_engine *e)
{
	if (!e->foreign) {
		vrb_ask_linger(e);
		vrb_engine_lock(e);
		vrb_gsi_end(e, false); /* others are asked from now on */
		vrb_engine_unlock(e);
		vrb_wire_leave(e);
		vrb_peer_linger(e);
	}
	vrb_helper_stop(e);
	vrb_faults_close(e);
	vrb_wire_close(e);
	vrb_peer_close_all(e);
	vrb_tap_close(e);
	vrb_trace_close(e);
	vrb_totals_close(e);
	vrb_asks_close(e, false);
	vrb_gsi_end(e, e->foreign); /* what came since has made it anew */
	vrb_story_close(e);
	vrb_moderate_close(e, false);
	vrb_meet_close(e, false);
	vrb_stats_close(e);
	vrb_keys_close(e);
	vrb_export_close(e);
	free(e->qp);
	free(e);
}

/* Whoever holds the lock lets go of it soon, unless it is the thread that exits, from a handler. */
static bool lock_soon(struct vrb_engine *e)
{
	for (uint32_t i = 0; i < EXIT_TRIES; i++) {
		if (vrb_engine_trylock(e))
			return true;
		usleep(1000);
	}
	return false;
}

/* A program that ends without destroying its queue pairs still owes answers for what it has taken.
 */
__attribute__((destructor)) static void at_exit(void)
{
	struct vrb_engine *e = vrb_engine_current;
	vrb_ns now = vrb_clock_now();

	if (!e && !pthread_mutex_trylock(&life)) {
		vrb_totals_exit();
		pthread_mutex_unlock(&life);
	}
	if (!e)
		return;
	vrb_ask_linger(e);
	if (!lock_soon(e))
		return;
	vrb_engine_flush_acks(e, now, false);
	for (struct vrb_list *c = e->contexts.next; c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);

		for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next)
			vrb_engine_last_ack(e, vrb_list_entry(n, struct vrb_hqp, ctx_node), now);
	}
	vrb_engine_ring_bells(e);
	vrb_faults_close(e);
	if (e->tap)
		vrb_tap_flush(e);
	if (e->trace)
		vrb_trace_flush(e);
	if (e->totals)
		vrb_totals_write(e);
	vrb_story_flush(e, true);
	vrb_engine_unlock(e);
	vrb_wire_leave(e);
	vrb_peer_linger(e);
}

static int create(struct vrb_engine **out)
{
	struct vrb_engine *e = aligned_alloc(64, (sizeof(*e) + 63) & ~(size_t)63);
	const char *prefetch = getenv("VERBENA_WQE_PREFETCH");
	uint64_t seed = random_seed();
	int err;

	if (!e)
		return -ENOMEM;
	memset(e, 0, sizeof(*e));
	err = vrb_faults_open(&e->faults);
	if (err) {
		free(e);
		return err;
	}
	e->listen_fd = e->epoll_fd = e->bell_fd = e->bell_mem_fd = e->spare_fd = -1;
	e->watch.wake_fd = e->watch.signal_fd = -1;
	e->stats_fd = e->export_fd = e->held_fd = e->story_fd = -1;
	vrb_list_init(&e->active);
	vrb_list_init(&e->acks);
	vrb_list_init(&e->timers);
	vrb_list_init(&e->contexts);
	vrb_list_init(&e->held_cqs);
	e->next_deadline = e->held_first = e->held_fd_at = VRB_NS_NEVER;
	e->now = vrb_clock_now();
	e->one_cpu = runs_on_one_cpu();
	e->prefetch = prefetch ? (uint32_t)strtoul(prefetch, NULL, 0) % 64 : 1;
	e->qp = calloc(VRB_QPN_INDEX_MASK + 1, sizeof(*e->qp));
	/* Indices start anywhere: a number used by a former owner of the slot is not met again
	 * soon. */
	e->qp_cursor = (uint32_t)(seed >> 32) & VRB_QPN_INDEX_MASK;
	vrb_keytab_init(&e->keys, seed);
	e->asks = vrb_asks_create();
	err = e->qp && e->asks ? vrb_export_open(e) : -ENOMEM;
	if (!err)
		err = vrb_meet_open(e);
	if (!err)
		err = vrb_stats_open(e);
	if (!err)
		err = vrb_helper_start(e);
	if (err) {
		struct vrb_report r = {.verdict = VRB_V_LINK_SYSTEM, .val = {(uint64_t)-err}};

		vrb_hca_refuse(&r);
		destroy(e);
		return err;
	}
	*out = e;
	return 0;
}

int vrb_engine_get(struct vrb_engine **out)
{
	int err = 0, old = vrb_cancel_off();
	struct vrb_engine *e;

	pthread_mutex_lock(&life);
	if (!atfork_done) {
		pthread_atfork(before_fork, after_fork_parent, after_fork_child);
		atfork_done = true;
	}
	e = vrb_engine_current;
	if (!e) {
		err = create(&e);
		if (!err) {
			vrb_engine_current = e;
			vrb_tap_open(e);
			vrb_trace_open(e);
			vrb_totals_open(e);
			vrb_story_open(e);
		}
	}
	if (!err) {
		e->n_ctx++;
		*out = e;
	}
	pthread_mutex_unlock(&life);
	vrb_cancel_restore(old);
	return err;
}

void vrb_engine_put(struct vrb_engine *e)
{
	int old = vrb_cancel_off();

	pthread_mutex_lock(&life);
	if (--e->n_ctx == 0 && !e->foreign) {
		vrb_engine_current = NULL;
		destroy(e);
	}
	pthread_mutex_unlock(&life);
	vrb_cancel_restore(old);
}
