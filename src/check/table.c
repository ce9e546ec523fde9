/* SPDX-License-Identifier: BSD-2-Clause */
/* See table.h. A shadow that is used again keeps its chain, so only those of its own bucket are. */
#include "check/table.h"

#include <stdlib.h>
#include <string.h>

void *vrb_chk_take(struct vrb_chk_table *t, const void *key)
{
	_Atomic(struct vrb_chk_obj *) *bucket = &t->bucket[vrb_chk_hash(key)];
	struct vrb_chk_obj *o;

	pthread_mutex_lock(&t->lock);
	o = atomic_load_explicit(bucket, memory_order_relaxed);
	while (o && atomic_load_explicit(&o->key, memory_order_relaxed))
		o = o->next;
	if (!o) {
		o = calloc(1, t->entry);
		if (o) {
			o->next = atomic_load_explicit(bucket, memory_order_relaxed);
			atomic_store_explicit(&o->key, o, memory_order_relaxed); /* taken */
			atomic_store_explicit(bucket, o, memory_order_release);
		}
	} else {
		atomic_store_explicit(&o->key, o, memory_order_relaxed);
	}
	pthread_mutex_unlock(&t->lock);
	return o;
}

void vrb_chk_publish(void *shadow, void *key)
{
	atomic_store_explicit(&((struct vrb_chk_obj *)shadow)->key, key, memory_order_release);
}

void vrb_chk_remove(void *shadow)
{
	vrb_chk_publish(shadow, NULL);
}

void *vrb_chk_next(struct vrb_chk_table *t, struct vrb_chk_each *e)
{
	struct vrb_chk_obj *o = e->o ? e->o->next : NULL;

	for (;;) {
		void *key;

		while (!o && e->bucket < VRB_CHK_BUCKETS)
			o = atomic_load_explicit(&t->bucket[e->bucket++], memory_order_acquire);
		if (!o)
			return NULL;
		key = atomic_load_explicit(&o->key, memory_order_acquire);
		if (key && key != o)
			return e->o = o;
		o = o->next;
	}
}

uint32_t vrb_chk_count(struct vrb_chk_table *t)
{
	struct vrb_chk_each e = {0};
	uint32_t n = 0;

	while (vrb_chk_next(t, &e))
		n++;
	return n;
}
