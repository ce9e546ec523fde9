/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/regions.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_CAP 64u

#define get(p)	  atomic_load_explicit(p, memory_order_relaxed)
#define set(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

static struct vrb_table *make_table(uint32_t cap)
{
	struct vrb_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->cap = cap;
	t->base = calloc(cap, sizeof(*t->base));
	t->range = calloc(cap, sizeof(*t->range));
	if (t->base && t->range)
		return t;
	free((void *)t->base);
	free(t->range);
	free(t);
	return NULL;
}

static void free_table(struct vrb_table *t)
{
	free((void *)t->base);
	free(t->range);
	free(t);
}

int vrb_regions_init(struct vrb_regions *r)
{
	struct vrb_table *t = make_table(FIRST_CAP);

	if (!t)
		return -ENOMEM;
	atomic_init(&r->version, 0);
	atomic_init(&r->n, 0);
	atomic_init(&r->table, t);
	return 0;
}

void vrb_regions_fini(struct vrb_regions *r)
{
	struct vrb_table *t = get(&r->table);

	while (t) {
		struct vrb_table *older = t->older;

		free_table(t);
		t = older;
	}
}

/* How many regions begin at addr or below it. */
static uint32_t rank(const struct vrb_table *t, uint32_t n, uint64_t addr)
{
	const _Atomic uint64_t *at = t->base;
	uint32_t step;

	if (!n)
		return 0;
	while (n > 1) {
		step = n / 2;
		at = get(&at[step]) <= addr ? at + step : at;
		n -= step;
	}
	return (uint32_t)(at - t->base) + (get(at) <= addr);
}

static void copy_range(struct vrb_table *to, uint32_t i, const struct vrb_table *from, uint32_t j)
{
	set(&to->base[i], get(&from->base[j]));
	set(&to->range[i].base, get(&from->range[j].base));
	set(&to->range[i].len, get(&from->range[j].len));
	set(&to->range[i].lkey, get(&from->range[j].lkey));
	set(&to->range[i].rkey, get(&from->range[j].rkey));
	set(&to->range[i].access, get(&from->range[j].access));
	set(&to->range[i].id, get(&from->range[j].id));
}

/* Pairs with the acquire loads of vrb_regions_search: what stands between the two versions is seen
 * as a whole or not believed. */
static void begin(struct vrb_regions *r)
{
	set(&r->version, get(&r->version) + 1);
	atomic_thread_fence(memory_order_release);
}

static void end(struct vrb_regions *r)
{
	atomic_store_explicit(&r->version, get(&r->version) + 1, memory_order_release);
}

static int grow(struct vrb_regions *r)
{
	struct vrb_table *old = get(&r->table), *t = make_table(old->cap * 2);

	if (!t)
		return -ENOMEM;
	for (uint32_t i = 0; i < get(&r->n); i++)
		copy_range(t, i, old, i);
	t->older = old;
	atomic_store_explicit(&r->table, t, memory_order_release);
	return 0;
}

int vrb_regions_add(struct vrb_regions *r, const struct vrb_hit *what)
{
	struct vrb_table *t = get(&r->table);
	uint32_t n = get(&r->n), at = rank(t, n, what->base);

	if (at && what->base - get(&t->base[at - 1]) < get(&t->range[at - 1].len))
		return -EEXIST;
	if (at < n && get(&t->base[at]) - what->base < what->len)
		return -EEXIST;
	if (n == t->cap && grow(r))
		return -ENOMEM;
	t = get(&r->table);
	begin(r);
	for (uint32_t i = n; i > at; i--)
		copy_range(t, i, t, i - 1);
	set(&t->base[at], what->base);
	set(&t->range[at].base, what->base);
	set(&t->range[at].len, what->len);
	set(&t->range[at].lkey, what->lkey);
	set(&t->range[at].rkey, what->rkey);
	set(&t->range[at].access, what->access);
	set(&t->range[at].id, what->id);
	set(&r->n, n + 1);
	end(r);
	return 0;
}

void vrb_regions_replace(struct vrb_regions *r, const struct vrb_hit *what)
{
	struct vrb_table *t = get(&r->table);
	uint32_t at = rank(t, get(&r->n), what->base);

	if (!at || get(&t->base[at - 1]) != what->base)
		return;
	begin(r);
	set(&t->range[at - 1].lkey, what->lkey);
	set(&t->range[at - 1].rkey, what->rkey);
	set(&t->range[at - 1].access, what->access);
	end(r);
}

int vrb_regions_remove(struct vrb_regions *r, uint64_t base)
{
	struct vrb_table *t = get(&r->table);
	uint32_t n = get(&r->n), at = rank(t, n, base);

	if (!at || get(&t->base[at - 1]) != base)
		return -ENOENT;
	begin(r);
	for (uint32_t i = at; i < n; i++)
		copy_range(t, i - 1, t, i);
	set(&r->n, n - 1);
	end(r);
	return 0;
}

bool vrb_regions_search(const struct vrb_regions *r, uint64_t addr, struct vrb_hit *hit)
{
	for (;;) {
		uint64_t version = atomic_load_explicit(&r->version, memory_order_acquire);
		const struct vrb_table *t = atomic_load_explicit(&r->table, memory_order_acquire);
		uint32_t n = get(&r->n), at;
		bool found = false;

		if (n > t->cap)
			n = t->cap;
		at = rank(t, n, addr);
		if (at) {
			const struct vrb_range *g = &t->range[at - 1];

			*hit = (struct vrb_hit){get(&g->base), get(&g->len),  version,
						get(&g->lkey), get(&g->rkey), get(&g->access),
						get(&g->id)};
			found = addr - hit->base < hit->len;
		}
		atomic_thread_fence(memory_order_acquire);
		if (vrb_likely(!(version & 1) && get(&r->version) == version)) {
			if (!found)
				hit->len = 0;
			return found;
		}
	}
}
