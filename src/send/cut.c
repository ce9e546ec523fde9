/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs of pages that are cut into objects of a class, and become pages again. Objects are taken
 * from runs that have some, so that others can become whole. Everything is under the pool's lock.
 */
#include "send/pool.h"

static void link_cut(struct vrb_pool *p, uint32_t cls, uint32_t first)
{
	struct vrb_cut *c = &p->cuts[first];

	c->prev = VRB_PAGES_NONE;
	c->next = p->some[cls];
	if (c->next != VRB_PAGES_NONE)
		p->cuts[c->next].prev = first;
	p->some[cls] = first;
}

static void unlink_cut(struct vrb_pool *p, uint32_t cls, uint32_t first)
{
	const struct vrb_cut *c = &p->cuts[first];

	if (c->next != VRB_PAGES_NONE)
		p->cuts[c->next].prev = c->prev;
	if (c->prev != VRB_PAGES_NONE)
		p->cuts[c->prev].next = c->next;
	else
		p->some[cls] = c->next;
}

/* All of its objects are free, and it is in no list. */
static void uncut(struct vrb_pool *p, uint32_t first)
{
	struct vrb_segment *g = &p->seg[0];

	g->cut[first] = 0;
	vrb_pages_put(&g->pages, first, g->run[first]);
}

bool vrb_pool_rejoin(struct vrb_pool *p)
{
	bool some = false;

	for (uint32_t cls = 0; cls < VRB_SLAB_CLASSES; cls++) {
		if (p->whole[cls] == VRB_PAGES_NONE)
			continue;
		uncut(p, p->whole[cls]);
		p->whole[cls] = VRB_PAGES_NONE;
		some = true;
	}
	return some;
}

/* A shorter one where the pool is nearly used up. */
static uint32_t find_run(struct vrb_pool *p, uint32_t stride, uint32_t *pages)
{
	do {
		for (*pages = VRB_SLAB_PAGES; *pages * VRB_PAGE >= stride + VRB_TAIL; *pages /= 2) {
			uint32_t first = vrb_pages_get(&p->seg[0].pages, *pages);

			if (first != VRB_PAGES_NONE)
				return first;
		}
	} while (vrb_pool_rejoin(p));
	return VRB_PAGES_NONE;
}

static void cut_run(struct vrb_pool *p, uint32_t cls, uint32_t first, uint32_t pages)
{
	uint32_t stride = VRB_FRONT + vrb_slab_size[cls];
	struct vrb_segment *g = &p->seg[0];
	struct vrb_cut *c = &p->cuts[first];

	g->cut[first] = (uint16_t)(cls + 1);
	g->run[first] = (uint16_t)pages;
	*c = (struct vrb_cut){.n = (pages * VRB_PAGE - VRB_TAIL) / stride};
	for (uint32_t i = c->n; i-- > 0;) {
		struct vrb_buf *b = vrb_pool_form(p, g, (uint64_t)first * VRB_PAGE + i * stride,
						  vrb_slab_size[cls], (uint16_t)cls);

		b->pages = first;
		b->link = c->free;
		c->free = b;
	}
	c->n_free = c->n;
}

/* A run of the class with free objects, in the list; the whole one, or a new one, when there is no
 * other. */
static bool get_cut(struct vrb_pool *p, uint32_t cls)
{
	uint32_t first = p->whole[cls], pages;

	if (p->some[cls] != VRB_PAGES_NONE)
		return true;
	p->whole[cls] = VRB_PAGES_NONE;
	if (first == VRB_PAGES_NONE) {
		first = find_run(p, VRB_FRONT + vrb_slab_size[cls], &pages);
		if (first == VRB_PAGES_NONE)
			return false;
		cut_run(p, cls, first, pages);
	}
	link_cut(p, cls, first);
	return true;
}

static struct vrb_buf *take_object(struct vrb_pool *p, uint32_t cls)
{
	uint32_t first = p->some[cls];
	struct vrb_cut *c = &p->cuts[first];
	struct vrb_buf *b = c->free;

	c->free = b->link;
	if (!--c->n_free)
		unlink_cut(p, cls, first);
	return b;
}

static void give_object(struct vrb_pool *p, uint32_t cls, struct vrb_buf *b)
{
	uint32_t first = b->pages;
	struct vrb_cut *c = &p->cuts[first];

	b->link = c->free;
	c->free = b;
	if (!c->n_free++)
		link_cut(p, cls, first);
	if (c->n_free < c->n)
		return;
	unlink_cut(p, cls, first);
	if (p->whole[cls] == VRB_PAGES_NONE)
		p->whole[cls] = first;
	else
		uncut(p, first);
}

uint32_t vrb_pool_take(struct vrb_pool *p, uint32_t cls, struct vrb_buf **out, uint32_t n)
{
	uint32_t got = 0;

	pthread_mutex_lock(&p->lock);
	while (got < n && (p->some[cls] != VRB_PAGES_NONE || (!got && get_cut(p, cls))))
		out[got++] = take_object(p, cls);
	pthread_mutex_unlock(&p->lock);
	return got;
}

void vrb_pool_give(struct vrb_pool *p, uint32_t cls, struct vrb_buf **in, uint32_t n)
{
	pthread_mutex_lock(&p->lock);
	while (n-- > 0)
		give_object(p, cls, in[n]);
	vrb_pool_came_back(p);
	pthread_mutex_unlock(&p->lock);
}
