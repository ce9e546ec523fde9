/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shadows by a word that is never 0: a pointer of the program, or numbers put together. Looking up
 * takes no lock; an entry that is taken out stays in its chain with key 0, to be used again, so a
 * reader never meets freed memory.
 */
#ifndef VRB_CHECK_TABLE_H
#define VRB_CHECK_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/types.h"
#include "check/site.h"

#define VRB_CHK_BUCKETS 4096u

struct vrb_chk_obj {
	_Atomic(void *) key; /* NULL: free */
	struct vrb_chk_obj *next;
	struct vrb_chk_site site; /* where the program made it */
};

struct vrb_chk_table {
	size_t entry; /* bytes of a shadow, the object first */
	pthread_mutex_t lock;
	_Atomic(struct vrb_chk_obj *) bucket[VRB_CHK_BUCKETS];
};
#define VRB_CHK_TABLE(type)                                                                        \
	{                                                                                          \
		.entry = sizeof(type), .lock = PTHREAD_MUTEX_INITIALIZER                           \
	}

static inline uint32_t vrb_chk_hash(const void *key)
{
	uint64_t k = (uint64_t)(uintptr_t)key;

	return (uint32_t)((k ^ k >> 29) * 0x9e3779b97f4a7c15ull >> 52);
}

static inline void *vrb_chk_find(struct vrb_chk_table *t, const void *key)
{
	struct vrb_chk_obj *o;

	if (!key)
		return NULL;
	o = atomic_load_explicit(&t->bucket[vrb_chk_hash(key)], memory_order_acquire);
	while (o && atomic_load_explicit(&o->key, memory_order_acquire) != key)
		o = o->next;
	return o;
}

/* A shadow without its key: all else is 0 but a mutex that an earlier use may have left in it. NULL
 * without memory. It is found from vrb_chk_publish on. */
void *vrb_chk_take(struct vrb_chk_table *t, const void *key);
void vrb_chk_publish(void *shadow, void *key);
/* Takes it out; who found it before may still look at it. */
void vrb_chk_remove(void *shadow);

/* All shadows, one after the other; NULL begins. The place is *at, 0 to begin with. */
struct vrb_chk_each {
	uint32_t bucket;
	struct vrb_chk_obj *o;
};
void *vrb_chk_next(struct vrb_chk_table *t, struct vrb_chk_each *e);
uint32_t vrb_chk_count(struct vrb_chk_table *t);

#endif
