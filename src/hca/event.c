/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events. A channel's descriptor is a semaphore eventfd,
 * readable while events wait, for programs that poll() it. A thread that blocks in ibv_get_cq_event
 * needs no eventfd: it drives the engine itself, spins for a while, then sleeps on the doorbell's
 * futex, which peers and local producers ring alike.
 */
#include "hca/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS (20 * VRB_NS_PER_US)

struct vrb_hchan {
	struct vrb_hctx *ctx;
	int fd;
	uint32_t refs;
	uint32_t n_written; /* events whose arrival was written to fd */
	_Atomic uint32_t n_events;
	uint32_t n_waiters;  /* threads in vrb_hchan_get */
	struct vrb_list cqs; /* with events, oldest first */
};

int vrb_hchan_create(struct vrb_hctx *ctx, struct vrb_hchan **out)
{
	struct vrb_hchan *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (c->fd < 0) {
		int err = -errno;

		free(c);
		return err;
	}
	c->ctx = ctx;
	vrb_list_init(&c->cqs);
	*out = c;
	return 0;
}

int vrb_hchan_destroy(struct vrb_hchan *c)
{
	uint32_t refs;

	vrb_engine_lock(c->ctx->e);
	refs = c->refs;
	vrb_engine_unlock(c->ctx->e);
	if (refs)
		return -EBUSY;
	close(c->fd);
	free(c);
	return 0;
}

int vrb_hchan_fd(const struct vrb_hchan *c)
{
	return c->fd;
}

void vrb_hchan_ref(struct vrb_hchan *c, int n)
{
	if (c)
		c->refs += (uint32_t)n;
}

void vrb_event_wake_drivers(struct vrb_engine *e)
{
	if (!(atomic_load_explicit(&e->bell->sleepers, memory_order_seq_cst) & VRB_SLEEP_FUTEX))
		return;
	atomic_fetch_and_explicit(&e->bell->sleepers, ~(uint32_t)VRB_SLEEP_FUTEX,
				  memory_order_seq_cst);
	atomic_fetch_add_explicit(&e->bell->seq, 1, memory_order_seq_cst);
	syscall(SYS_futex, &e->bell->seq, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void vrb_event_completion(struct vrb_hcq *cq)
{
	struct vrb_hchan *c = cq->chan;
	if (!c)
		return;
	if (cq->n_events++ == 0)
		vrb_list_add_tail(&c->cqs, &cq->event_node);
	atomic_fetch_add_explicit(&c->n_events, 1, memory_order_seq_cst);
	if (c->n_waiters) {
		vrb_event_wake_drivers(c->ctx->e);
	} else if (vrb_event_fd_add(c->fd, 1)) {
		c->n_written++;
	}
}

/* Removes n events from a descriptor's count without ever blocking. */
static void unwrite(int fd, uint32_t n)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int old = vrb_cancel_off();
	uint64_t v;

	while (n-- && poll(&p, 1, 0) == 1)
		(void)!read(fd, &v, sizeof(v));
	vrb_cancel_restore(old);
}

static struct vrb_hcq *pop(struct vrb_hchan *c, bool *written)
{
	struct vrb_hcq *cq;

	if (vrb_list_empty(&c->cqs))
		return NULL;
	cq = vrb_list_entry(c->cqs.next, struct vrb_hcq, event_node);
	vrb_list_del(&cq->event_node);
	if (--cq->n_events)
		vrb_list_add_tail(&c->cqs, &cq->event_node);
	atomic_fetch_sub_explicit(&c->n_events, 1, memory_order_relaxed);
	*written = c->n_written > 0;
	if (*written)
		c->n_written--;
	return cq;
}

void vrb_event_purge_cq(struct vrb_hcq *cq)
{
	struct vrb_hchan *c = cq->chan;
	uint32_t n = cq->n_events, w;

	if (!c || !n)
		return;
	vrb_list_del(&cq->event_node);
	cq->n_events = 0;
	atomic_fetch_sub_explicit(&c->n_events, n, memory_order_relaxed);
	/* Whatever is queued beyond the remaining events was written. */
	w = atomic_load_explicit(&c->n_events, memory_order_relaxed);
	w = c->n_written > w ? c->n_written - w : 0;
	c->n_written -= w;
	unwrite(c->fd, w);
}

static bool spin_for_work(struct vrb_engine *e, struct vrb_hchan *c)
{
	vrb_ns end = vrb_clock_now() + SPIN_NS;

	do {
		for (int i = 0; i < 32; i++) {
			if (vrb_engine_has_work(e) ||
			    atomic_load_explicit(&c->n_events, memory_order_relaxed))
				return true;
			__builtin_ia32_pause();
		}
		if (atomic_load_explicit(&e->n_wire, memory_order_relaxed) && vrb_wire_poll(e))
			return true;
	} while (vrb_clock_now() < end);
	return false;
}

/* Events whose arrival nobody was told of, since somebody waited: the last to leave tells
 * poll()ers.
 */
static void tell_pollers(struct vrb_hchan *c)
{
	uint64_t n = atomic_load_explicit(&c->n_events, memory_order_relaxed) - c->n_written;

	if (!c->n_waiters && n && vrb_event_fd_add(c->fd, n))
		c->n_written += (uint32_t)n;
}

/* A thread stops driving. Lock held. */
static void leave(struct vrb_engine *e, struct vrb_hchan *c)
{
	c->n_waiters--;
	atomic_fetch_sub_explicit(&e->n_drivers, 1, memory_order_seq_cst);
	/* From here on the helper watches; while it ticks it needs no kick. Pairs with the store in
	 * go_deep (helper.c). */
	if (atomic_load_explicit(&e->helper_deep, memory_order_seq_cst))
		vrb_helper_kick(e);
}

struct sleep {
	struct vrb_hchan *chan;
	uint32_t seq;
	int err;
};

/* The thread was cancelled in its sleep (pthread_cancel). */
static void cancelled(void *arg)
{
	struct vrb_hchan *c = ((struct sleep *)arg)->chan;
	struct vrb_engine *e = c->ctx->e;

	vrb_engine_lock(e);
	leave(e, c);
	tell_pollers(c);
	vrb_engine_unlock(e);
}

/* Like read(), this is where a thread may be cancelled; syscall() alone is not. */
static void wait_for_bell(struct vrb_engine *e, struct sleep *s)
{
	int old;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	if (syscall(SYS_futex, &e->bell->seq, FUTEX_WAIT, s->seq, NULL, NULL, 0) && errno == EINTR)
		s->err = -EINTR;
	pthread_setcanceltype(old, NULL);
}

/*
 * 0: look again, -EINTR: a signal handler without SA_RESTART ran. The bit of the bell is left to
 * whoever rings: other threads may sleep on it.
 */
static int sleep_on_bell(struct vrb_engine *e, struct vrb_hchan *c)
{
	struct sleep s = {.chan = c,
			  .seq = atomic_load_explicit(&e->bell->seq, memory_order_seq_cst)};

	if (!vrb_engine_arm(e, VRB_SLEEP_FUTEX) ||
	    atomic_load_explicit(&c->n_events, memory_order_seq_cst))
		return 0;
	pthread_cleanup_push(cancelled, &s);
	wait_for_bell(e, &s);
	pthread_cleanup_pop(0);
	return s.err;
}

/* Drives the engine until c has an event. Called and returns with the lock held. */
static int wait_event(struct vrb_engine *e, struct vrb_hchan *c)
{
	int err = 0;

	c->n_waiters++;
	atomic_fetch_add_explicit(&e->n_drivers, 1, memory_order_seq_cst);
	/* We are awake and drive: nobody need wake the helper. */
	if (atomic_load_explicit(&e->bell->sleepers, memory_order_relaxed) & VRB_SLEEP_HELPER)
		atomic_fetch_and_explicit(&e->bell->sleepers, ~(uint32_t)VRB_SLEEP_HELPER,
					  memory_order_seq_cst);
	while (!err && vrb_list_empty(&c->cqs)) {
		if (vrb_engine_has_work(e) && vrb_engine_turn(e, vrb_clock_now()))
			continue;
		vrb_engine_unlock(e);
		if (!spin_for_work(e, c)) {
			vrb_engine_lock(e);
			vrb_engine_flush_acks(e, vrb_peek(&e->now), false);
			vrb_engine_ring_bells(e);
			vrb_engine_unlock(e);
			err = sleep_on_bell(e, c);
		}
		vrb_engine_lock(e);
	}
	leave(e, c);
	return err;
}

void (*vrb_hca_event_given)(int kind, void *user);

static void given(int kind, void *user)
{
	if (vrb_hca_event_given && user)
		vrb_hca_event_given(kind, user);
}

int vrb_hchan_get(struct vrb_hchan *c, void **user)
{
	struct vrb_engine *e = c->ctx->e;
	bool nonblocking = fcntl(c->fd, F_GETFL) & O_NONBLOCK, written = false;
	struct vrb_hcq *cq = NULL;
	uint64_t v;
	int err = 0;

	if (e->foreign)
		return -EIO;
	pthread_testcancel();
	vrb_engine_lock(e);
	atomic_fetch_add_explicit(&e->n_polls, 1, memory_order_relaxed);
	while (!err && !(cq = pop(c, &written))) {
		if (!nonblocking)
			err = wait_event(e, c);
		else if (!vrb_engine_has_work(e) || !vrb_engine_turn(e, vrb_clock_now()))
			err = -EAGAIN;
	}
	if (cq) {
		*user = cq->user;
		given(VRB_EVENT_COMPLETION, cq->user);
	}
	tell_pollers(c);
	vrb_engine_unlock(e);
	if (written)
		(void)!read(c->fd, &v, sizeof(v));
	return cq ? 0 : err;
}

/* ---- asynchronous events */

void vrb_event_async(struct vrb_hctx *ctx, const struct vrb_hasync *ev)
{
	uint32_t n = ctx->async_tail - ctx->async_head;

	if (n == ctx->async_cap) {
		uint32_t cap = ctx->async_cap ? ctx->async_cap * 2 : 16, i;
		struct vrb_hasync *q = malloc(cap * sizeof(*q));

		if (!q)
			return;
		for (i = 0; i < n; i++)
			q[i] = ctx->async[(ctx->async_head + i) & (ctx->async_cap - 1)];
		free(ctx->async);
		ctx->async = q;
		ctx->async_cap = cap;
		ctx->async_head = 0;
		ctx->async_tail = n;
	}
	ctx->async[ctx->async_tail++ & (ctx->async_cap - 1)] = *ev;
	(void)vrb_event_fd_add(ctx->async_fd, 1);
}

void vrb_event_purge_async(struct vrb_hctx *ctx, const void *user)
{
	uint32_t from, to = ctx->async_head, mask = ctx->async_cap - 1;

	for (from = ctx->async_head; from != ctx->async_tail; from++) {
		if (ctx->async[from & mask].user != user)
			ctx->async[to++ & mask] = ctx->async[from & mask];
		else
			unwrite(ctx->async_fd, 1);
	}
	ctx->async_tail = to;
}

void vrb_hctx_put_async(struct vrb_hctx *ctx, const struct vrb_hasync *ev)
{
	vrb_engine_lock(ctx->e);
	vrb_event_async(ctx, ev);
	vrb_engine_unlock(ctx->e);
}

int vrb_hctx_get_async(struct vrb_hctx *ctx, struct vrb_hasync *ev)
{
	bool got = false;
	uint64_t v;

	if (ctx->e->foreign)
		return -EIO;
	while (!got) {
		if (read(ctx->async_fd, &v, sizeof(v)) != sizeof(v))
			return -errno;
		vrb_engine_lock(ctx->e);
		got = ctx->async_head != ctx->async_tail;
		if (got) {
			*ev = ctx->async[ctx->async_head++ & (ctx->async_cap - 1)];
			given(ev->kind, ev->user);
		}
		vrb_engine_unlock(ctx->e);
	}
	return 0;
}
