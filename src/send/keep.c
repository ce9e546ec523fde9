/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/keep.h"

#include <errno.h>
#include <stdlib.h>

#include "send/fail.h"

#define REGIONS_DEFAULT 1024u
#define REGIONS_MAX	65536u
#define BYTES_DEFAULT	(256ull << 20)

int vrb_keep_init(struct vrb_keep *k, struct ibv_pd *pd, const struct vrb_domain_options *o)
{
	*k = (struct vrb_keep){.mode = o->keep, .pd = pd, .watch.fd = -1};
	if ((unsigned)o->keep > VRB_KEEP_PROMISED || o->keep_regions > REGIONS_MAX) {
		(void)vrb_fail(EINVAL, VRB_V_SEND_OPTION, o->keep_regions, 0, REGIONS_MAX);
		return vrb_about("keep %u, keep_regions", o->keep);
	}
	pthread_mutex_init(&k->lock, NULL);
	if (k->mode == VRB_KEEP_NOTHING)
		return 0;
	k->max_regions = o->keep_regions ? o->keep_regions : REGIONS_DEFAULT;
	k->max_bytes = o->keep_bytes ? o->keep_bytes : BYTES_DEFAULT;
	k->n_slots = k->max_regions + VRB_KEEP_ONCE;
	k->slot = calloc(k->n_slots, sizeof(*k->slot));
	if (!k->slot || vrb_regions_init(&k->table)) {
		free(k->slot);
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, k->n_slots * sizeof(*k->slot), ENOMEM, 0);
	}
	if (k->mode == VRB_KEEP_WATCHED)
		k->st.watching =
			!vrb_watch_init(&k->watch, &k->slot->at, sizeof(*k->slot), k->n_slots);
	return 0;
}

static void end_locked(struct vrb_keep *k, struct vrb_kept *g)
{
	vrb_watch_remove(&k->watch, &g->at);
	atomic_store(&g->at.base, 0);
	ibv_dereg_mr(g->mr);
	g->mr = NULL;
}

/* Out of the table; it ends now or with its last message. */
static void drop_locked(struct vrb_keep *k, struct vrb_kept *g)
{
	if (g->in_table) {
		(void)vrb_regions_remove(&k->table, atomic_load(&g->at.base));
		g->in_table = false;
		k->st.regions--;
		k->st.bytes -= atomic_load(&g->at.len);
	}
	if (!g->refs)
		end_locked(k, g);
}

void vrb_keep_fini(struct vrb_keep *k)
{
	for (uint32_t i = 0; i < k->n_slots; i++)
		if (k->slot[i].mr) {
			k->slot[i].refs = 0;
			drop_locked(k, &k->slot[i]);
		}
	vrb_watch_fini(&k->watch);
	if (k->slot)
		vrb_regions_fini(&k->table);
	free(k->slot);
	pthread_mutex_destroy(&k->lock);
}

/* The slots that share bytes with [from, to), one a call; NULL: no more. */
static struct vrb_kept *overlapping(struct vrb_keep *k, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < k->n_slots; i++) {
		struct vrb_kept *g = &k->slot[i];
		uint64_t base = atomic_load(&g->at.base);

		if (g->in_table && base < to && from < base + atomic_load(&g->at.len))
			return g;
	}
	return NULL;
}

/* The least lately used that no message uses. */
static bool evict(struct vrb_keep *k)
{
	struct vrb_kept *least = NULL;

	for (uint32_t i = 0; i < k->n_slots; i++) {
		struct vrb_kept *g = &k->slot[i];

		if (g->in_table && !g->refs && (!least || g->used < least->used))
			least = g;
	}
	if (!least)
		return false;
	k->st.evictions++;
	drop_locked(k, least);
	return true;
}

static struct vrb_kept *find(struct vrb_keep *k, uint64_t addr, uint64_t len, uint32_t access,
			     struct vrb_hit *hit)
{
	struct vrb_kept *g;

	if (!vrb_regions_search(&k->table, addr, hit))
		return NULL;
	g = &k->slot[hit->id];
	if (atomic_load(&g->at.gone)) {
		k->st.invalidated++;
		drop_locked(k, g);
		return NULL;
	}
	return len <= hit->len - (addr - hit->base) && (hit->access & access) == access ? g : NULL;
}

/* Registers [from, to), in the place of what it covers in part. */
static int make(struct vrb_keep *k, uint64_t from, uint64_t to, uint32_t access,
		struct vrb_kept **out)
{
	struct vrb_kept *g = NULL, *old;
	bool keep = k->mode == VRB_KEEP_PROMISED;

	while ((old = overlapping(k, from, to))) {
		uint64_t base = atomic_load(&old->at.base), end = base + atomic_load(&old->at.len);

		if (atomic_load(&old->at.gone)) {
			k->st.invalidated++;
		} else {
			from = base < from ? base : from;
			to = end > to ? end : to;
			access |= old->access;
		}
		drop_locked(k, old);
	}
	for (uint32_t i = 0; i < k->n_slots && !g; i++)
		g = k->slot[i].mr ? NULL : &k->slot[i];
	if (!g)
		return -EAGAIN;
	*g = (struct vrb_kept){.access = access};
	atomic_store(&g->at.len, to - from);
	atomic_store(&g->at.base, from);
	/* Watched before it is pinned: what changes in between is noticed. */
	if (k->st.watching)
		keep = vrb_watch_add(&k->watch, &g->at);
	g->mr = ibv_reg_mr(k->pd, (void *)from, to - from, (int)access);
	if (!g->mr) {
		int err = errno;

		atomic_store(&g->at.base, 0);
		return vrb_fail(EFAULT, VRB_V_SEND_REGISTER, to - from, from, (uint64_t)err);
	}
	while (keep &&
	       (k->st.regions >= k->max_regions || k->st.bytes + (to - from) > k->max_bytes))
		keep = evict(k);
	g->in_table = keep;
	*out = g;
	return 0;
}

static void enter(struct vrb_keep *k, struct vrb_kept *g, struct vrb_hit *hit)
{
	*hit = (struct vrb_hit){.base = atomic_load(&g->at.base),
				.len = atomic_load(&g->at.len),
				.lkey = g->mr->lkey,
				.rkey = g->mr->rkey,
				.access = g->access,
				.id = (uint32_t)(g - k->slot)};
	if (g->in_table && vrb_regions_add(&k->table, hit))
		g->in_table = false;
	if (g->in_table) {
		k->st.misses++;
		k->st.regions++;
		k->st.bytes += hit->len;
	} else {
		k->st.once++;
	}
}

int vrb_keep_get(struct vrb_keep *k, uint64_t addr, uint64_t len, uint32_t access,
		 struct vrb_hit *hit)
{
	struct vrb_kept *g;
	int r = 0;

	if (addr + len < addr)
		return vrb_fail(EFAULT, VRB_V_SEND_NOT_REGISTERED, 0, addr, len);
	pthread_mutex_lock(&k->lock);
	vrb_watch_wait(&k->watch);
	g = find(k, addr, len, access, hit);
	if (g) {
		k->st.hits++;
	} else {
		r = make(k, addr, addr + len, access, &g);
		/* The union with what was there may be gone in part: then just what is wanted. */
		if (r == -EFAULT)
			r = make(k, addr, addr + len, access, &g);
		if (!r)
			enter(k, g, hit);
	}
	if (!r) {
		g->refs++;
		g->used = ++k->clock;
	}
	pthread_mutex_unlock(&k->lock);
	return r;
}

void vrb_keep_put(struct vrb_keep *k, uint32_t slot)
{
	struct vrb_kept *g = &k->slot[slot];

	pthread_mutex_lock(&k->lock);
	if (!--g->refs && !g->in_table)
		end_locked(k, g);
	pthread_mutex_unlock(&k->lock);
}

uint32_t vrb_keep_forget(struct vrb_keep *k, uint64_t addr, uint64_t len, uint32_t *dropped)
{
	uint64_t end = len > UINT64_MAX - addr ? UINT64_MAX : addr + len;
	uint32_t busy = 0;

	*dropped = 0;
	pthread_mutex_lock(&k->lock);
	for (uint32_t i = 0; i < k->n_slots; i++) {
		struct vrb_kept *g = &k->slot[i];
		uint64_t base = atomic_load(&g->at.base);

		if (!g->mr || base >= end || addr >= base + atomic_load(&g->at.len))
			continue;
		busy += g->refs != 0;
		++*dropped;
		if (g->in_table)
			drop_locked(k, g);
	}
	pthread_mutex_unlock(&k->lock);
	return busy;
}
