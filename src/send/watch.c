/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

#define PAGE	    4096ull
#define MSGS	    16
#define WATCHES_MAX 64

static struct vrb_watched *item(const struct vrb_watch *w, uint32_t i)
{
	return (void *)((char *)w->at + i * w->stride);
}

static void mark(struct vrb_watch *w, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct vrb_watched *a = item(w, i);
		uint64_t base = atomic_load(&a->base);

		if (base && base < to && from < base + atomic_load(&a->len))
			atomic_store(&a->gone, true);
	}
}

static void on_event(struct vrb_watch *w, const struct uffd_msg *m)
{
	if (m->event == UFFD_EVENT_REMAP) {
		/* It would be watched on at its new place, by nobody. */
		struct uffdio_range to = {.start = m->arg.remap.to, .len = m->arg.remap.len};

		(void)ioctl(w->fd, UFFDIO_UNREGISTER, &to);
		mark(w, m->arg.remap.from, m->arg.remap.from + m->arg.remap.len);
		mark(w, m->arg.remap.to, m->arg.remap.to + m->arg.remap.len);
	} else if (m->event == UFFD_EVENT_REMOVE || m->event == UFFD_EVENT_UNMAP) {
		mark(w, m->arg.remove.start, m->arg.remove.end);
	}
	atomic_fetch_add_explicit(&w->events, 1, memory_order_relaxed);
}

/* One event a read: the kernel lets its cause go on as soon as it is read. */
static void *reader(void *arg)
{
	struct vrb_watch *w = arg;
	struct pollfd p[2] = {{.fd = w->fd, .events = POLLIN}, {.fd = w->stop, .events = POLLIN}};
	struct uffd_msg m[MSGS];

	while (poll(p, 2, -1) >= 0 || errno == EINTR) {
		ssize_t n;

		if (p[1].revents)
			break;
		/* Pairs with vrb_watch_wait: odd is seen by whoever the read lets go. */
		atomic_fetch_add(&w->turn, 1);
		n = read(w->fd, m, sizeof(m));
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(m[0]); i++)
			on_event(w, &m[i]);
		atomic_fetch_add(&w->turn, 1);
	}
	return NULL;
}

static int start(struct vrb_watch *w)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, NULL, reader, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!r)
		(void)pthread_setname_np(w->thread, "verbena-watch");
	return -r;
}

/* A child that goes on without exec must not keep the descriptor open: who unmaps in the parent
 * would wait for a reader when ours has long ended. */
static _Atomic int all[WATCHES_MAX]; /* descriptor + 1, 0: free */

static void close_in_child(void)
{
	for (int i = 0; i < WATCHES_MAX; i++)
		if (atomic_load(&all[i]))
			close(atomic_load(&all[i]) - 1);
}

static void at_fork(void)
{
	pthread_atfork(NULL, NULL, close_in_child);
}

static bool enlist(int from, int to)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, at_fork);
	for (int i = 0; i < WATCHES_MAX; i++) {
		int is = from;

		if (atomic_compare_exchange_strong(&all[i], &is, to))
			return true;
	}
	return false;
}

int vrb_watch_init(struct vrb_watch *w, struct vrb_watched *at, size_t stride, uint32_t n)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |
					     UFFD_FEATURE_EVENT_UNMAP};
	int r;

	*w = (struct vrb_watch){.fd = -1, .stop = -1, .at = at, .stride = stride, .n = n};
	w->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (w->fd < 0)
		return -errno;
	w->stop = eventfd(0, EFD_CLOEXEC);
	if (w->stop >= 0 && !ioctl(w->fd, UFFDIO_API, &api) && enlist(0, w->fd + 1) && !start(w))
		return 0;
	r = -errno;
	(void)enlist(w->fd + 1, 0);
	close(w->fd);
	if (w->stop >= 0)
		close(w->stop);
	w->fd = -1;
	return r;
}

void vrb_watch_fini(struct vrb_watch *w)
{
	if (w->fd < 0)
		return;
	(void)eventfd_write(w->stop, 1);
	pthread_join(w->thread, NULL);
	(void)enlist(w->fd + 1, 0);
	close(w->fd); /* lets go whoever waits for an event to be read */
	close(w->stop);
	w->fd = -1;
}

static struct uffdio_range pages_of(const struct vrb_watched *at)
{
	uint64_t base = atomic_load(&at->base), end = base + atomic_load(&at->len);
	struct uffdio_range r = {.start = base & ~(PAGE - 1)};

	r.len = ((end + PAGE - 1) & ~(PAGE - 1)) - r.start;
	return r;
}

/* Memory that can change without an event (shared, of a file) is not of our kind. */
static bool is_private(uint64_t from, uint64_t to)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512], perms[8], name[64];
	bool good = f != NULL;

	while (good && fgets(line, sizeof(line), f)) {
		unsigned long long a, b, inode;

		name[0] = '\0';
		if (sscanf(line, "%llx-%llx %7s %*s %*s %llu %63s", &a, &b, perms, &inode, name) <
			    4 ||
		    b <= from)
			continue;
		if (a >= to)
			break;
		good = perms[3] == 'p' && (!inode || !strcmp(name, "/anon_hugepage"));
	}
	if (f)
		(void)fclose(f);
	return good;
}

bool vrb_watch_add(struct vrb_watch *w, const struct vrb_watched *at)
{
	/* Write protection is the mode that does nothing by itself. */
	struct uffdio_register r = {.range = pages_of(at), .mode = UFFDIO_REGISTER_MODE_WP};

	/* In this order: what changes after the look is an event. */
	return w->fd >= 0 && !ioctl(w->fd, UFFDIO_REGISTER, &r) &&
	       is_private(r.range.start, r.range.start + r.range.len);
}

void vrb_watch_remove(struct vrb_watch *w, const struct vrb_watched *at)
{
	struct uffdio_range r = pages_of(at);

	for (uint32_t i = 0; i < w->n && r.len; i++) {
		const struct vrb_watched *o = item(w, i);
		struct uffdio_range other;

		if (o == at || !atomic_load(&o->base))
			continue;
		other = pages_of(o);
		if (other.start >= r.start + r.len || other.start + other.len <= r.start)
			continue;
		/* Neighbours share a page at most; who covers more keeps all of it. */
		if (other.start > r.start)
			r.len = other.start - r.start;
		else if (other.start + other.len < r.start + r.len) {
			r.len -= other.start + other.len - r.start;
			r.start = other.start + other.len;
		} else {
			r.len = 0;
		}
	}
	if (r.len && w->fd >= 0)
		(void)ioctl(w->fd, UFFDIO_UNREGISTER, &r);
}

void vrb_watch_wait(const struct vrb_watch *w)
{
	uint64_t turn = atomic_load(&w->turn);

	while (turn & 1 && atomic_load(&w->turn) == turn)
		sched_yield();
}
