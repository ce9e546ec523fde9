/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "send/fail.h"

static _Atomic uint64_t next_id = 1;

static void segment_fini(struct vrb_segment *g)
{
	free(g->page);
	free(g->cut);
	free(g->run);
}

static int segment_init(struct vrb_segment *g, void *base, uint64_t bytes, uint32_t lkey)
{
	uint64_t n = bytes / VRB_PAGE;

	if (n > VRB_PAGES_MAX)
		return -ENOMEM;
	g->page = malloc(n * sizeof(*g->page));
	g->cut = calloc(n, sizeof(*g->cut));
	g->run = calloc(n, sizeof(*g->run));
	if (!g->page || !g->cut || !g->run) {
		segment_fini(g);
		return -ENOMEM;
	}
	g->base = base;
	g->lkey = lkey;
	vrb_pages_init(&g->pages, g->page, (uint32_t)n);
	return 0;
}

int vrb_pool_init(struct vrb_pool *p, void *base, uint64_t bytes, uint32_t lkey)
{
	memset(p, 0, sizeof(*p));
	if (segment_init(&p->seg[0], base, bytes, lkey))
		return -ENOMEM;
	p->cuts = calloc(p->seg[0].pages.n, sizeof(*p->cuts));
	if (!p->cuts) {
		segment_fini(&p->seg[0]);
		return -ENOMEM;
	}
	for (uint32_t cls = 0; cls < VRB_SLAB_CLASSES; cls++)
		p->some[cls] = p->whole[cls] = VRB_PAGES_NONE;
	p->n_seg = 1;
	p->id = atomic_fetch_add(&next_id, 1);
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->grow_lock, NULL);
	return 0;
}

void vrb_pool_fini(struct vrb_pool *p)
{
	vrb_cache_drop_all(p);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->grow_lock);
	for (uint32_t i = 0; i < p->n_seg; i++)
		segment_fini(&p->seg[i]);
	free(p->cuts);
}

void vrb_pool_may_grow(struct vrb_pool *p, vrb_pool_grow *grow, void *arg, uint64_t bytes)
{
	p->grow = grow;
	p->grow_arg = arg;
	atomic_store(&p->grow_left, bytes);
}

/* What the calling thread keeps to itself may hold runs together. */
static bool empty_cache(struct vrb_pool *p)
{
	struct vrb_cache *c = vrb_cache_mine(p);
	bool some = false;

	for (uint32_t cls = 0; c && cls < VRB_SLAB_CLASSES; cls++) {
		if (!c->n[cls])
			continue;
		vrb_pool_give(p, cls, c->free[cls], c->n[cls]);
		c->n[cls] = 0;
		some = true;
	}
	return some;
}

static struct vrb_segment *find_long(struct vrb_pool *p, uint32_t pages, uint32_t *first)
{
	do {
		for (uint32_t i = 0; i < p->n_seg; i++) {
			*first = vrb_pages_get(&p->seg[i].pages, pages);
			if (*first != VRB_PAGES_NONE)
				return &p->seg[i];
		}
	} while (vrb_pool_rejoin(p));
	return NULL;
}

static struct vrb_buf *get_run(struct vrb_pool *p, uint64_t cap, bool receive)
{
	uint64_t pages = vrb_slab_pages(cap), data = pages * VRB_PAGE - VRB_FRONT - VRB_TAIL;
	struct vrb_segment *g;
	struct vrb_buf *b;
	uint32_t first;

	pthread_mutex_lock(&p->lock);
	g = find_long(p, (uint32_t)pages, &first);
	if (!g) {
		pthread_mutex_unlock(&p->lock);
		return NULL;
	}
	g->cut[first] = VRB_LARGE;
	p->large_gets++;
	p->large_posted += receive;
	b = vrb_pool_form(p, g, (uint64_t)first * VRB_PAGE,
			  data > UINT32_MAX ? UINT32_MAX : (uint32_t)data, VRB_LARGE);
	pthread_mutex_unlock(&p->lock);
	b->pages = (uint32_t)pages;
	return b;
}

static struct vrb_buf *get_large(struct vrb_pool *p, uint64_t cap, bool receive)
{
	struct vrb_buf *b = get_run(p, cap, receive);

	return b || !empty_cache(p) ? b : get_run(p, cap, receive);
}

static void put_large(struct vrb_pool *p, struct vrb_buf *b, bool posted)
{
	uint32_t pages = b->pages, first;
	struct vrb_segment *g = p->seg;

	pthread_mutex_lock(&p->lock);
	while ((uint64_t)((uint8_t *)b - g->base) >= (uint64_t)g->pages.n * VRB_PAGE)
		g++;
	first = (uint32_t)(((uint8_t *)b - g->base) / VRB_PAGE);
	g->cut[first] = 0;
	p->large_puts++;
	p->large_posted -= posted;
	vrb_pages_put(&g->pages, first, pages);
	pthread_mutex_unlock(&p->lock);
	vrb_pool_came_back(p);
}

/* By a quarter of what it may, or by what is wanted. Refused once, it is not asked again. */
static bool add_segment(struct vrb_pool *p, uint64_t cap)
{
	uint64_t left = atomic_load(&p->grow_left), bytes = vrb_slab_pages(cap) * VRB_PAGE;
	struct vrb_segment g;
	uint32_t lkey;
	void *base;

	if (bytes > left || p->n_seg == VRB_SEGMENTS)
		return false;
	bytes = bytes > left / 4 ? bytes : left / 4 / VRB_PAGE * VRB_PAGE;
	if (p->grow(p->grow_arg, bytes, &base, &lkey) || segment_init(&g, base, bytes, lkey)) {
		atomic_store(&p->grow_left, 0);
		return false;
	}
	pthread_mutex_lock(&p->lock);
	p->seg[p->n_seg++] = g;
	pthread_mutex_unlock(&p->lock);
	atomic_store(&p->grow_left, left - bytes);
	return true;
}

static struct vrb_buf *grow_large(struct vrb_pool *p, uint64_t cap)
{
	struct vrb_buf *b;

	if (vrb_slab_pages(cap) * VRB_PAGE > atomic_load(&p->grow_left))
		return NULL;
	pthread_mutex_lock(&p->grow_lock);
	b = get_large(p, cap, false); /* another thread may have been here */
	if (!b && add_segment(p, cap))
		b = get_large(p, cap, false);
	pthread_mutex_unlock(&p->grow_lock);
	return b;
}

static void bump(_Atomic uint64_t *counter)
{
	/* One writer, the cache's thread; readers only look. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static struct vrb_buf *get_small(struct vrb_pool *p, uint32_t cls)
{
	struct vrb_cache *c = vrb_cache_mine(p);

	if (vrb_unlikely(!c))
		return NULL;
	if (vrb_unlikely(!c->n[cls])) {
		c->n[cls] = vrb_pool_take(p, cls, c->free[cls], VRB_CACHE_BATCH);
		if (!c->n[cls])
			return NULL;
	}
	bump(&c->gets);
	return c->free[cls][--c->n[cls]];
}

static struct vrb_buf *use(struct vrb_pool *p, struct vrb_buf *b, uint8_t state, void *where)
{
	if (vrb_unlikely(!b)) {
		atomic_fetch_add_explicit(&p->refused, 1, memory_order_relaxed);
		return NULL;
	}
	b->state = state;
	b->len = 0;
	b->link = where;
	if (where)
		b->aux = vrb_pool_clock();
	return b;
}

struct vrb_buf *vrb_pool_get(struct vrb_pool *p, uint64_t cap, void *where)
{
	if (vrb_likely(cap <= VRB_SLAB_MAX))
		return use(p, get_small(p, vrb_slab_class((uint32_t)cap)), VRB_BUF_USED, where);
	return use(p, cap <= UINT32_MAX ? get_large(p, cap, false) : NULL, VRB_BUF_USED, where);
}

struct vrb_buf *vrb_pool_get_grow(struct vrb_pool *p, uint64_t cap, void *where)
{
	struct vrb_buf *b = NULL;

	if (cap <= VRB_SLAB_MAX || cap > UINT32_MAX)
		return vrb_pool_get(p, cap, where);
	b = get_large(p, cap, false);
	return use(p, b ? b : grow_large(p, cap), VRB_BUF_USED, where);
}

struct vrb_buf *vrb_pool_get_receive(struct vrb_pool *p, uint64_t cap)
{
	if (vrb_likely(cap <= VRB_SLAB_MAX))
		return use(p, get_small(p, vrb_slab_class((uint32_t)cap)), VRB_BUF_POSTED, NULL);
	return use(p, get_large(p, cap, true), VRB_BUF_POSTED, NULL);
}

void vrb_pool_unpost(struct vrb_buf *b)
{
	pthread_mutex_lock(&b->pool->lock);
	b->pool->large_posted--;
	pthread_mutex_unlock(&b->pool->lock);
}

static bool has_long(struct vrb_pool *p, uint64_t cap)
{
	bool has = false;

	if (cap > UINT32_MAX)
		return false;
	pthread_mutex_lock(&p->lock);
	do
		for (uint32_t i = 0; i < p->n_seg; i++)
			has |= vrb_pages_has(&p->seg[i].pages, (uint32_t)vrb_slab_pages(cap));
	while (!has && vrb_pool_rejoin(p));
	pthread_mutex_unlock(&p->lock);
	return has;
}

bool vrb_pool_has(struct vrb_pool *p, uint64_t cap)
{
	const struct vrb_cache *c;
	uint32_t cls;
	bool has;

	if (cap > VRB_SLAB_MAX)
		return vrb_slab_pages(cap) * VRB_PAGE <= atomic_load(&p->grow_left) ||
		       has_long(p, cap) || (empty_cache(p) && has_long(p, cap));
	cls = vrb_slab_class((uint32_t)cap);
	c = vrb_cache_mine(p);
	if (c && c->n[cls])
		return true;
	pthread_mutex_lock(&p->lock);
	/* As cut.c does: a short run will do. */
	has = p->some[cls] != VRB_PAGES_NONE || p->whole[cls] != VRB_PAGES_NONE ||
	      vrb_pages_has(&p->seg[0].pages, (uint32_t)vrb_slab_pages(vrb_slab_size[cls]));
	pthread_mutex_unlock(&p->lock);
	return has;
}

bool vrb_pool_is_hopeless(struct vrb_pool *p, uint64_t cap)
{
	bool none_returns;

	if (cap <= VRB_SLAB_MAX)
		return false;
	pthread_mutex_lock(&p->lock);
	none_returns = p->large_gets - p->large_puts == p->large_posted;
	pthread_mutex_unlock(&p->lock);
	/* In this order: what came back in between is found. */
	return none_returns && !vrb_pool_has(p, cap);
}

void vrb_pool_put(struct vrb_buf *b)
{
	struct vrb_pool *p = b->pool;
	struct vrb_cache *c;
	bool posted = b->state == VRB_BUF_POSTED;

	if (vrb_unlikely(b->state == VRB_BUF_FREE)) {
		(void)vrb_fail(EINVAL, VRB_V_SEND_BUF, b->len, b->cap, 0);
		return;
	}
	b->state = VRB_BUF_FREE;
	if (b->size_class == VRB_LARGE) {
		put_large(p, b, posted);
		return;
	}
	c = vrb_cache_mine(p);
	if (vrb_unlikely(!c)) {
		vrb_pool_give(p, b->size_class, &b, 1);
		return;
	}
	if (vrb_unlikely(c->n[b->size_class] == VRB_CACHE_DEPTH)) {
		c->n[b->size_class] -= VRB_CACHE_BATCH;
		vrb_pool_give(p, b->size_class, &c->free[b->size_class][c->n[b->size_class]],
			      VRB_CACHE_BATCH);
	}
	bump(&c->puts);
	c->free[b->size_class][c->n[b->size_class]++] = b;
}

void vrb_pool_count(struct vrb_pool *p, struct vrb_pool_stats *s)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < p->n_seg; i++) {
		s->bytes += (uint64_t)p->seg[i].pages.n * VRB_PAGE;
		s->bytes_free += (uint64_t)p->seg[i].pages.n_free * VRB_PAGE;
	}
	s->bytes_grown = s->bytes - (uint64_t)p->seg[0].pages.n * VRB_PAGE;
	s->gets = p->large_gets;
	s->puts = p->large_puts;
	for (struct vrb_cache *c = p->caches; c; c = c->next) {
		s->puts += atomic_load_explicit(&c->puts, memory_order_relaxed);
		s->gets += atomic_load_explicit(&c->gets, memory_order_relaxed);
	}
	pthread_mutex_unlock(&p->lock);
	s->refused = atomic_load_explicit(&p->refused, memory_order_relaxed);
	s->outside = s->gets - s->puts;
}

static uint32_t each_of_run(const struct vrb_segment *g, uint32_t i,
			    void (*fn)(void *, const struct vrb_buf *), void *arg)
{
	uint32_t stride = VRB_PAGE, objects = 1, n = 0;

	if (g->cut[i] != VRB_LARGE) {
		stride = VRB_FRONT + vrb_slab_size[g->cut[i] - 1];
		objects = (g->run[i] * VRB_PAGE - VRB_TAIL) / stride;
	}
	for (uint32_t k = 0; k < objects; k++) {
		const struct vrb_buf *b = (void *)(g->base + (uint64_t)i * VRB_PAGE + k * stride);

		if (b->state == VRB_BUF_FREE)
			continue;
		fn(arg, b);
		n++;
	}
	return n;
}

uint32_t vrb_pool_each(struct vrb_pool *p, void (*fn)(void *, const struct vrb_buf *), void *arg)
{
	uint32_t n = 0;

	pthread_mutex_lock(&p->lock);
	for (uint32_t s = 0; s < p->n_seg; s++)
		for (uint32_t i = 0; i < p->seg[s].pages.n; i++)
			if (p->seg[s].cut[i])
				n += each_of_run(&p->seg[s], i, fn, arg);
	pthread_mutex_unlock(&p->lock);
	return n;
}
