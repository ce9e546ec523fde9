/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which registered region holds an address: a sorted array, searched without branches, in front of
 * it the caller's own memory of its last hit. Readers take no lock: a writer makes the version odd
 * while it changes the table, and a reader that saw the version move looks again. Arrays that were
 * outgrown stay until the end, so that a late reader reads stale numbers, never unmapped ones.
 */
#ifndef VRB_SEND_REGIONS_H
#define VRB_SEND_REGIONS_H

#include <stdatomic.h>

#include "base/types.h"

struct vrb_range {
	_Atomic uint64_t base, len;
	_Atomic uint32_t lkey, rkey, access, id;
};

struct vrb_table {
	struct vrb_table *older;
	uint32_t cap;
	_Atomic uint64_t *base; /* of the ranges, packed for the search */
	struct vrb_range *range;
};

struct vrb_regions {
	_Atomic uint64_t version;
	_Atomic uint32_t n;
	struct vrb_table *_Atomic table;
};

/* What a look-up finds, and what the next one tries first. */
struct vrb_hit {
	uint64_t base, len, version;
	uint32_t lkey, rkey, access, id;
};

int vrb_regions_init(struct vrb_regions *r);
void vrb_regions_fini(struct vrb_regions *r);

/* Writers, one at a time. -EEXIST: it overlaps another; -ENOMEM. */
int vrb_regions_add(struct vrb_regions *r, const struct vrb_hit *what);
/* The keys and rights of the region that begins at what->base. */
void vrb_regions_replace(struct vrb_regions *r, const struct vrb_hit *what);
/* -ENOENT: no region begins there. */
int vrb_regions_remove(struct vrb_regions *r, uint64_t base);

/* The region that holds addr; any thread. */
bool vrb_regions_search(const struct vrb_regions *r, uint64_t addr, struct vrb_hit *hit);

/* The same, faster where the last hit holds addr, too. */
static inline bool vrb_regions_find(const struct vrb_regions *r, uint64_t addr, struct vrb_hit *hit)
{
	if (vrb_likely(addr - hit->base < hit->len &&
		       hit->version == atomic_load_explicit(&r->version, memory_order_acquire)))
		return true;
	return vrb_regions_search(r, addr, hit);
}

#endif
