/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers from registered memory: objects of the size classes up to 4 KiB, runs of pages above.
 * Each thread keeps a few free objects of each class to itself (cache.c), so that getting and
 * putting a small buffer takes no lock. A run that was cut for a class knows its free objects; when
 * it has all of them its pages are pages again, but for one such run a class, which goes only when
 * somebody finds no run. Who wants a long one then may have the pool grow by a segment, within a
 * bound; only long runs come from those.
 */
#ifndef VRB_SEND_POOL_H
#define VRB_SEND_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <verbena/verbena.h>

#include "send/pages.h"
#include "send/slab.h"

#define VRB_CACHE_DEPTH 64u /* free objects of a class that a thread keeps at most */
#define VRB_CACHE_BATCH 32u /* moved at once between a thread and the pool */
#define VRB_LARGE	UINT16_MAX
#define VRB_SEGMENTS	8u /* the pool as it was made, and what it has grown by */

/* POSTED: a receive, which comes back with a message only. */
enum { VRB_BUF_FREE = 0xf5, VRB_BUF_USED = 0x5a, VRB_BUF_TAKEN = 0xa5, VRB_BUF_POSTED = 0xaf };

struct vrb_cache {
	struct vrb_cache *next; /* of the pool */
	uint64_t pool_id;
	pthread_t thread;
	bool idle; /* its thread has ended */
	_Atomic uint64_t gets, puts;
	uint32_t n[VRB_SLAB_CLASSES];
	struct vrb_buf *free[VRB_SLAB_CLASSES][VRB_CACHE_DEPTH];
};

/* A run that was cut into objects, by its first page. */
struct vrb_cut {
	struct vrb_buf *free;
	uint32_t n_free, n;
	uint32_t next, prev; /* of those of its class with some, but not all, of them free */
};

struct vrb_segment {
	uint8_t *base;
	uint32_t lkey;
	struct vrb_pages pages;
	struct vrb_page *page;
	uint16_t *cut; /* of each page that begins a run: 0, 1 + class, or VRB_LARGE */
	uint16_t *run; /* its pages */
};

/* More registered memory for the pool, or -errno. */
typedef int vrb_pool_grow(void *arg, uint64_t bytes, void **base, uint32_t *lkey);

struct vrb_pool {
	uint64_t id; /* never used again */
	vrb_pool_grow *grow;
	void *grow_arg;
	pthread_mutex_t grow_lock; /* taken before lock; the field below */
	_Atomic uint64_t grow_left;
	pthread_mutex_t lock; /* the fields below */
	uint32_t n_seg;
	struct vrb_segment seg[VRB_SEGMENTS];
	struct vrb_cut *cuts;		  /* of seg[0] */
	uint32_t some[VRB_SLAB_CLASSES];  /* the list of a class, or VRB_PAGES_NONE */
	uint32_t whole[VRB_SLAB_CLASSES]; /* a run of it all of which is free, or VRB_PAGES_NONE */
	struct vrb_cache *caches;
	uint64_t large_gets, large_puts, large_posted;
	_Atomic uint64_t refused;
	_Atomic uint64_t freed; /* moves when pages or objects come back */
};

/* base is page-aligned memory that outlives the pool. -ENOMEM. */
int vrb_pool_init(struct vrb_pool *p, void *base, uint64_t bytes, uint32_t lkey);
void vrb_pool_fini(struct vrb_pool *p);

/* Before the pool is used: it may grow by so many bytes. */
void vrb_pool_may_grow(struct vrb_pool *p, vrb_pool_grow *grow, void *arg, uint64_t bytes);

/* NULL: used up. where is remembered for the leak report. */
struct vrb_buf *vrb_pool_get(struct vrb_pool *p, uint64_t cap, void *where);
/* The same; grows the pool for a large buffer. */
struct vrb_buf *vrb_pool_get_grow(struct vrb_pool *p, uint64_t cap, void *where);
/* For a receive: POSTED until vrb_pool_deliver. */
struct vrb_buf *vrb_pool_get_receive(struct vrb_pool *p, uint64_t cap);
void vrb_pool_put(struct vrb_buf *b);

/* Milliseconds of a coarse clock; aux of a buffer that was got with a where. */
static inline uint32_t vrb_pool_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint32_t)t.tv_sec * 1000 + (uint32_t)(t.tv_nsec / 1000000);
}

void vrb_pool_unpost(struct vrb_buf *b);

/* The caller's from here on. */
static inline void vrb_pool_deliver(struct vrb_buf *b)
{
	if (vrb_unlikely(b->size_class == VRB_LARGE && b->state == VRB_BUF_POSTED))
		vrb_pool_unpost(b);
	b->link = NULL;
	b->state = VRB_BUF_USED;
}

/* Whether vrb_pool_get would find something now. */
bool vrb_pool_has(struct vrb_pool *p, uint64_t cap);

/* Whether waiting is in vain: no large buffer is outside but receives, and growing does not help.
 */
bool vrb_pool_is_hopeless(struct vrb_pool *p, uint64_t cap);

static inline uint64_t vrb_pool_freed(const struct vrb_pool *p)
{
	return atomic_load_explicit(&p->freed, memory_order_acquire);
}

/* What follows is for pool.c and cut.c. */

/* The front of a buffer that begins there. */
static inline struct vrb_buf *vrb_pool_form(struct vrb_pool *p, const struct vrb_segment *g,
					    uint64_t at, uint32_t cap, uint16_t cls)
{
	struct vrb_buf *b = (struct vrb_buf *)(void *)(g->base + at);

	*b = (struct vrb_buf){.data = (uint8_t *)b + VRB_FRONT,
			      .cap = cap,
			      .lkey = g->lkey,
			      .pool = p,
			      .size_class = cls,
			      .state = VRB_BUF_FREE};
	return b;
}

/* Pairs with vrb_pool_freed: who saw nothing free before looks again. */
static inline void vrb_pool_came_back(struct vrb_pool *p)
{
	atomic_fetch_add_explicit(&p->freed, 1, memory_order_release);
}

/* The runs that are whole become pages, under the lock. Whether there were some. */
bool vrb_pool_rejoin(struct vrb_pool *p);

void vrb_pool_count(struct vrb_pool *p, struct vrb_pool_stats *s);

/* Calls fn for each buffer that is outside; returns how many. Not exact while others get and put.
 */
uint32_t vrb_pool_each(struct vrb_pool *p, void (*fn)(void *, const struct vrb_buf *), void *arg);

/* Between the caches and the pool, n objects of a class. */
uint32_t vrb_pool_take(struct vrb_pool *p, uint32_t cls, struct vrb_buf **out, uint32_t n);
void vrb_pool_give(struct vrb_pool *p, uint32_t cls, struct vrb_buf **in, uint32_t n);

/* The calling thread's cache of p, made when it has none; NULL: no memory. */
struct vrb_cache *vrb_cache_mine(struct vrb_pool *p);
void vrb_cache_drop_all(struct vrb_pool *p);

#endif
