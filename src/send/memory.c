/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool's memory, the caller's regions, and who has them. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "send/domain.h"
#include "send/fail.h"
#include "send/numa.h"

#define POOL_DEFAULT ((size_t)64 << 20)
#define POOL_LEAST   ((size_t)2 << 20)
#define POOL_MIN     ((size_t)1 << 20)
#define HUGE_PAGE    ((size_t)2 << 20)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * VRB_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Mapped as the options want it, as far as that can be had: huge pages, the device's node. */
static void *map(struct vrb_domain *d, size_t len)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS;
	void *p = MAP_FAILED;

	if (d->want_huge)
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, how | MAP_HUGETLB, -1, 0);
	if (p != MAP_FAILED) {
		d->huge_pages = true;
	} else {
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, how, -1, 0);
		if (p != MAP_FAILED && d->want_huge) {
			d->huge_refused += len;
			(void)madvise(p, len, MADV_HUGEPAGE); /* the next best */
		}
	}
	if (p != MAP_FAILED && d->numa_node >= 0 && vrb_numa_prefer(p, len, d->numa_node))
		d->numa_node = -1;
	return p;
}

/* Registers, and enters into the table; the pool as well as the caller's memory. */
static int enter(struct vrb_domain *d, void *addr, size_t len, int access, struct ibv_mr **out)
{
	struct ibv_mr *mr = ibv_reg_mr(d->pd, addr, len, access);
	struct vrb_hit h;
	int r;

	if (!mr)
		return vrb_fail(errno, VRB_V_SEND_REGISTER, len, (uintptr_t)addr, (uint64_t)errno);
	h = (struct vrb_hit){.base = (uintptr_t)addr,
			     .len = len,
			     .lkey = mr->lkey,
			     .rkey = mr->rkey,
			     .access = (uint32_t)access};
	r = vrb_regions_add(&d->regions, &h);
	if (r) {
		ibv_dereg_mr(mr);
		return r == -EEXIST ? vrb_fail(EEXIST, VRB_V_SEND_OVERLAP, len, (uintptr_t)addr, 0)
				    : vrb_fail(ENOMEM, VRB_V_SEND_POOL, len, ENOMEM, 0);
	}
	*out = mr;
	return 0;
}

/* What the pool has grown by; for vrb_pool_grow. */
static int grow_pool(void *arg, uint64_t bytes, void **base, uint32_t *lkey)
{
	struct vrb_domain *d = arg;
	struct vrb_grown *g = &d->grown[d->n_grown];
	int r;

	g->len = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	g->mem = map(d, g->len);
	if (g->mem == MAP_FAILED)
		return -errno;
	if (d->locked && mlock(g->mem, g->len)) {
		r = -errno;
		munmap(g->mem, g->len);
		return r;
	}
	pthread_mutex_lock(&d->lock);
	r = enter(d, g->mem, g->len, d->pool_access, &g->mr);
	pthread_mutex_unlock(&d->lock);
	if (r) {
		munmap(g->mem, g->len);
		return r;
	}
	d->n_grown++;
	*base = g->mem;
	*lkey = g->mr->lkey;
	return 0;
}

static int init_pool(struct vrb_domain *d, const struct vrb_domain_options *o, size_t len)
{
	int r;

	if (len < POOL_MIN)
		len = POOL_MIN;
	len = (len + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	d->pool_len = len;
	d->want_huge = o->huge_pages;
	d->huge_refused = 0;
	d->numa_node = o->any_node ? -1 : vrb_numa_node(d->ctx->device);
	d->pool_mem = map(d, len);
	if (d->pool_mem == MAP_FAILED)
		return vrb_fail(errno, VRB_V_SEND_POOL, len, (uint64_t)errno, 0);
	d->locked = o->lock_pool;
	if (o->lock_pool && mlock(d->pool_mem, len)) {
		r = vrb_fail(errno, VRB_V_SEND_POOL, len, (uint64_t)errno, 0);
		goto err_unmap;
	}
	d->remote_read = !o->no_remote_read;
	d->pool_access = IBV_ACCESS_LOCAL_WRITE | (d->remote_read ? IBV_ACCESS_REMOTE_READ : 0);
	r = vrb_regions_init(&d->regions);
	if (r)
		goto err_unmap;
	r = enter(d, d->pool_mem, len, d->pool_access, &d->pool_mr);
	if (r)
		goto err_regions;
	r = vrb_pool_init(&d->pool, d->pool_mem, len, d->pool_mr->lkey);
	if (!r) {
		if (o->grow_bytes != SIZE_MAX)
			vrb_pool_may_grow(&d->pool, grow_pool, d,
					  o->grow_bytes ? o->grow_bytes : len);
		return 0;
	}
	(void)vrb_fail(ENOMEM, VRB_V_SEND_POOL, len, ENOMEM, 0);
	ibv_dereg_mr(d->pool_mr);
err_regions:
	vrb_regions_fini(&d->regions);
err_unmap:
	munmap(d->pool_mem, len);
	return r;
}

void vrb_memory_fini(struct vrb_domain *d)
{
	vrb_pool_fini(&d->pool);
	ibv_dereg_mr(d->pool_mr);
	while (d->n_grown) {
		struct vrb_grown *g = &d->grown[--d->n_grown];

		ibv_dereg_mr(g->mr);
		munmap(g->mem, g->len);
	}
	vrb_regions_fini(&d->regions);
	munmap(d->pool_mem, d->pool_len);
}

/* The limit of locked memory is low in many containers: a pool nobody asked a size for gives way.
 */
int vrb_memory_init(struct vrb_domain *d, const struct vrb_domain_options *o)
{
	size_t len = o->pool_bytes ? o->pool_bytes : POOL_DEFAULT;
	int r = init_pool(d, o, len);

	while (r == -ENOMEM && !o->pool_bytes && len > POOL_LEAST) {
		len /= 2;
		r = init_pool(d, o, len);
		if (!r && len > POOL_LEAST) {
			/* Half of what there is, for the caller may have memory of his own. */
			vrb_memory_fini(d);
			len /= 2;
			return init_pool(d, o, len);
		}
	}
	return r;
}

int vrb_buf_get(struct vrb_domain *d, size_t cap, struct vrb_buf **buf)
{
	struct vrb_buf *b = vrb_pool_get_grow(&d->pool, cap, __builtin_return_address(0));

	if (!b)
		return -ENOMEM;
	*buf = b;
	return 0;
}

void vrb_buf_put(struct vrb_buf *buf)
{
	vrb_pool_put(buf);
}

void vrb_pool_stats(struct vrb_domain *d, struct vrb_pool_stats *s)
{
	vrb_pool_count(&d->pool, s);
	s->huge_pages = d->huge_pages;
	s->huge_refused = d->huge_refused;
	s->locked = d->locked;
	s->numa_node = d->numa_node;
}

static int flags_of(unsigned access)
{
	return (access & VRB_READ_ONLY ? 0 : IBV_ACCESS_LOCAL_WRITE) |
	       (access & VRB_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0) |
	       (access & VRB_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static int check_access(unsigned access)
{
	if (access <= (VRB_REMOTE_READ | VRB_REMOTE_WRITE | VRB_READ_ONLY) &&
	    !(access & VRB_READ_ONLY && access & VRB_REMOTE_WRITE))
		return 0;
	(void)vrb_fail(EINVAL, VRB_V_SEND_OPTION, access, 0, 5);
	return vrb_about("access");
}

int vrb_register(struct vrb_domain *d, void *addr, size_t len, unsigned access,
		 struct vrb_region **region)
{
	struct vrb_region *g;
	int r = check_access(access);

	if (r)
		return r;
	if (!len) {
		(void)vrb_fail(EINVAL, VRB_V_SEND_OPTION, 0, 1, SIZE_MAX);
		return vrb_about("len");
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*g), ENOMEM, 0);
	*g = (struct vrb_region){.domain = d,
				 .addr = (uintptr_t)addr,
				 .len = len,
				 .since_ns = now_ns(),
				 .access = access,
				 .where = __builtin_return_address(0)};
	pthread_mutex_lock(&d->lock);
	r = enter(d, addr, len, flags_of(access), &g->mr);
	if (!r) {
		g->next = d->list;
		d->list = g;
		d->n_regions++;
	}
	pthread_mutex_unlock(&d->lock);
	if (r)
		free(g);
	else
		*region = g;
	return r;
}

int vrb_unregister(struct vrb_region *g)
{
	struct vrb_domain *d = g->domain;
	struct vrb_region **at;

	pthread_mutex_lock(&d->lock);
	for (at = &d->list; *at != g; at = &(*at)->next)
		;
	*at = g->next;
	d->n_regions--;
	(void)vrb_regions_remove(&d->regions, g->addr);
	pthread_mutex_unlock(&d->lock);
	ibv_dereg_mr(g->mr);
	free(g);
	return 0;
}

/* By a new registration, where the adapter cannot change one or has lost it in trying. */
static int register_anew(struct vrb_region *g, int flags)
{
	struct ibv_mr *mr =
		ibv_reg_mr(g->domain->pd, (void *)(uintptr_t)g->addr, (size_t)g->len, flags);

	if (!mr)
		return vrb_fail(errno, VRB_V_SEND_REGISTER, g->len, g->addr, (uint64_t)errno);
	ibv_dereg_mr(g->mr);
	g->mr = mr;
	return 0;
}

int vrb_reregister(struct vrb_region *g, unsigned access)
{
	struct vrb_domain *d = g->domain;
	int flags = flags_of(access), r = check_access(access);
	struct vrb_hit h;

	if (r)
		return r;
	pthread_mutex_lock(&d->lock);
	if (ibv_rereg_mr(g->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, flags))
		r = register_anew(g, flags);
	if (!r) {
		g->access = access;
		h = (struct vrb_hit){.base = g->addr,
				     .len = g->len,
				     .lkey = g->mr->lkey,
				     .rkey = g->mr->rkey,
				     .access = (uint32_t)flags};
		vrb_regions_replace(&d->regions, &h);
	}
	pthread_mutex_unlock(&d->lock);
	return r;
}

int vrb_forget(struct vrb_domain *d, const void *addr, size_t len)
{
	uint32_t n, busy = vrb_keep_forget(&d->keep, (uintptr_t)addr, len, &n);

	return busy ? vrb_fail(EBUSY, VRB_V_SEND_KEPT_BUSY, n, (uintptr_t)addr, busy) : 0;
}

void vrb_keep_stats(struct vrb_domain *d, struct vrb_keep_stats *s)
{
	pthread_mutex_lock(&d->keep.lock);
	*s = d->keep.st;
	pthread_mutex_unlock(&d->keep.lock);
	s->events = atomic_load_explicit(&d->keep.watch.events, memory_order_relaxed);
}

int vrb_export(const struct vrb_region *g, struct vrb_remote *remote)
{
	if (!(g->access & (VRB_REMOTE_READ | VRB_REMOTE_WRITE)))
		return vrb_fail(EACCES, VRB_V_SEND_RIGHTS, 0, g->addr,
				VRB_REMOTE_READ | VRB_REMOTE_WRITE);
	*remote = (struct vrb_remote){.addr = g->addr, .len = g->len, .rkey = g->mr->rkey};
	return 0;
}

int vrb_lkey(const struct vrb_domain *d, const void *addr, size_t len, uint32_t *lkey)
{
	static _Thread_local struct vrb_hit hit;
	static _Thread_local uint64_t of; /* the pool's number, never used twice */
	uint64_t a = (uintptr_t)addr;

	if (of != d->pool.id) {
		hit.len = 0;
		of = d->pool.id;
	}
	if (!vrb_regions_find(&d->regions, a, &hit))
		return vrb_fail(EFAULT, VRB_V_SEND_NOT_REGISTERED, 0, a, len);
	if (len > hit.len - (a - hit.base)) {
		struct vrb_report r = {.verdict = VRB_V_SEND_RANGE,
				       .val = {0, a, len, len - (hit.len - (a - hit.base))}};

		return vrb_fail_report(EFAULT, &r);
	}
	*lkey = hit.lkey;
	return 0;
}

/* ---- leaks */

/* "program+0x1234", for addr2line. */
static void name_code(char *out, size_t size, const void *where)
{
	const char *file;
	Dl_info info;

	if (!dladdr(where, &info) || !info.dli_fname) {
		snprintf(out, size, "%p", where);
		return;
	}
	file = strrchr(info.dli_fname, '/');
	snprintf(out, size, "%.60s+%#tx", file ? file + 1 : info.dli_fname,
		 (const char *)where - (const char *)info.dli_fbase);
}

struct leaks {
	int fd; /* -1: only the first line is wanted */
	char *line;
	size_t size;
	int n;
};

static void put_leak(struct leaks *k, const char *line)
{
	if (k->fd >= 0)
		dprintf(k->fd, "%s\n", line);
	if (!k->n++ && k->line)
		snprintf(k->line, k->size, "%s", line);
}

static void report_buffer(void *arg, const struct vrb_buf *b)
{
	char line[200], who[100];

	if (b->state != VRB_BUF_USED || !b->link) {
		snprintf(line, sizeof(line), "buffer %p: %u bytes, %s", b->data, b->cap,
			 b->state == VRB_BUF_USED ? "a message that came" : "in a channel");
	} else {
		name_code(who, sizeof(who), b->link);
		snprintf(line, sizeof(line), "buffer %p: %u bytes, %s, %u ms ago", b->data, b->cap,
			 who, vrb_pool_clock() - b->aux);
	}
	put_leak(arg, line);
}

static void report_all(struct vrb_domain *d, struct leaks *k)
{
	char line[200], who[100];

	pthread_mutex_lock(&d->lock);
	for (struct vrb_region *g = d->list; g; g = g->next) {
		name_code(who, sizeof(who), g->where);
		snprintf(line, sizeof(line), "region %#llx: %llu bytes, %s, %llu ms ago",
			 (unsigned long long)g->addr, (unsigned long long)g->len, who,
			 (unsigned long long)((now_ns() - g->since_ns) / VRB_NS_PER_MS));
		put_leak(k, line);
	}
	pthread_mutex_unlock(&d->lock);
	vrb_pool_each(&d->pool, report_buffer, k);
}

int vrb_leak_report(struct vrb_domain *d, int fd)
{
	struct leaks k = {.fd = fd};

	report_all(d, &k);
	return k.n;
}

void vrb_memory_first_leak(struct vrb_domain *d, char *line, size_t size)
{
	struct leaks k = {.fd = -1, .line = line, .size = size};

	line[0] = '\0';
	report_all(d, &k);
}
