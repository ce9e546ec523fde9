/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which cache of a pool is the calling thread's. The last one used stands in thread-local storage
 * with the pool's number, which is never used twice, so that a pool that is gone cannot be mistaken
 * for one that has come to lie at its address. What a thread leaves when it ends goes back, and its
 * cache to the next thread.
 */
#include "send/pool.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	uint64_t pool_id;
	struct vrb_cache *cache;
} mine;

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before a pool's */
static struct vrb_pool *all[64];
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void empty(struct vrb_pool *p, struct vrb_cache *c)
{
	for (uint32_t cls = 0; cls < VRB_SLAB_CLASSES; cls++) {
		vrb_pool_give(p, cls, c->free[cls], c->n[cls]);
		c->n[cls] = 0;
	}
}

static void thread_ends(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&all_lock);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct vrb_cache *c = all[i] ? all[i]->caches : NULL;

		for (; c; c = c->next) {
			if (c->idle || !pthread_equal(c->thread, pthread_self()))
				continue;
			empty(all[i], c);
			c->idle = true;
		}
	}
	pthread_mutex_unlock(&all_lock);
	mine.pool_id = 0;
}

static void make_key(void)
{
	pthread_key_create(&at_exit, thread_ends);
}

static bool enlist(struct vrb_pool *p)
{
	size_t free_at = sizeof(all) / sizeof(all[0]);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] == p)
			return true;
		if (!all[i])
			free_at = i;
	}
	if (free_at == sizeof(all) / sizeof(all[0]))
		return false;
	all[free_at] = p;
	return true;
}

static struct vrb_cache *find(struct vrb_pool *p)
{
	struct vrb_cache *c, *idle = NULL;

	for (c = p->caches; c; c = c->next) {
		if (!c->idle && pthread_equal(c->thread, pthread_self()))
			return c;
		if (c->idle)
			idle = c;
	}
	c = idle;
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		pthread_mutex_lock(&p->lock);
		c->next = p->caches;
		p->caches = c;
		pthread_mutex_unlock(&p->lock);
	}
	c->idle = false;
	c->thread = pthread_self();
	c->pool_id = p->id;
	return c;
}

static struct vrb_cache *find_slowly(struct vrb_pool *p)
{
	struct vrb_cache *c = NULL;

	pthread_once(&once, make_key);
	pthread_mutex_lock(&all_lock);
	if (enlist(p))
		c = find(p);
	pthread_mutex_unlock(&all_lock);
	if (!c)
		return NULL;
	pthread_setspecific(at_exit, c);
	mine.pool_id = p->id;
	mine.cache = c;
	return c;
}

struct vrb_cache *vrb_cache_mine(struct vrb_pool *p)
{
	if (vrb_likely(mine.pool_id == p->id))
		return mine.cache;
	return find_slowly(p);
}

void vrb_cache_drop_all(struct vrb_pool *p)
{
	pthread_mutex_lock(&all_lock);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] == p)
			all[i] = NULL;
	while (p->caches) {
		struct vrb_cache *c = p->caches;

		p->caches = c->next;
		free(c);
	}
	pthread_mutex_unlock(&all_lock);
}
