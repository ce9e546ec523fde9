/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events. A channel's descriptor is a semaphore eventfd,
 * readable while events wait, for programs that poll() it. A thread that blocks in ibv_get_cq_event
 * needs no eventfd (event_wait.c).
 */
#include "hca/event_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

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
	/* pairs with the store in begin_watch (event_wait.c): it sees what has come, or we see it
	 * asleep */
	if (atomic_load_explicit(&e->sockets_watched, memory_order_seq_cst))
		(void)vrb_event_fd_add(e->watch.wake_fd, 1);
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
	vrb_stats_sum_of(cq->ctx)->events++;
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

void vrb_event_tell_pollers(struct vrb_hchan *c)
{
	uint64_t n = atomic_load_explicit(&c->n_events, memory_order_relaxed) - c->n_written;

	if (!c->n_waiters && n && vrb_event_fd_add(c->fd, n))
		c->n_written += (uint32_t)n;
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
	struct vrb_hcq *cq = NULL;
	bool written = false;
	uint64_t v;
	int err = 0;

	if (e->foreign)
		return -EIO;
	pthread_testcancel();
	vrb_engine_lock(e);
	atomic_fetch_add_explicit(&e->n_polls, 1, memory_order_relaxed);
	while (!err && !(cq = pop(c, &written))) {
		if (!(fcntl(c->fd, F_GETFL) & O_NONBLOCK))
			err = vrb_event_wait(e, c);
		else if (!vrb_engine_has_work(e) || !vrb_engine_turn(e, vrb_clock_now()))
			err = -EAGAIN;
	}
	if (cq) {
		*user = cq->user;
		given(VRB_EVENT_COMPLETION, cq->user);
	}
	vrb_event_tell_pollers(c);
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
	vrb_stats_sum_of(ctx)->async_events++;
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
