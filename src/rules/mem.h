/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a legal use of local memory is: an SGE against the region its lkey belongs to, and an SGE by
 * itself. Pure functions over plain values. Who knows keys (the device's table, the checker's)
 * looks the region up; what an unknown key was once, only he can say.
 */
#ifndef VRB_RULES_MEM_H
#define VRB_RULES_MEM_H

#include "base/verdict.h"

/* A region as the rules see it; base: the address of its first byte in SGEs. */
struct vrb_mem {
	uint64_t base, len;
	uint32_t pd, access;
};

/* One SGE, its place in the list, and what is done with it: need is VRB_RULES_LOCAL_WRITE or 0. */
struct vrb_mem_use {
	uint64_t addr;
	uint32_t len, key;
	uint32_t index, pd, need;
};

/* VRB_OK, LKEY_RANGE_START or LKEY_RANGE_END with the bytes outside through by. */
enum vrb_verdict vrb_mem_range(const struct vrb_mem *m, uint64_t addr, uint64_t len, uint64_t *by);

/* VRB_OK, or the reason with r's verdict and values filled in (not r->qpn). */
enum vrb_verdict vrb_mem_local(const struct vrb_mem *m, const struct vrb_mem_use *u,
			       struct vrb_report *r);

/* The same for a remote access of len bytes at va: protection domain, rights, range. */
struct vrb_mem_remote {
	uint64_t va, len;
	uint32_t key, pd, need; /* need: VRB_RULES_REMOTE_ flags */
};
enum vrb_verdict vrb_mem_remote_pd(const struct vrb_mem *m, const struct vrb_mem_remote *a,
				   struct vrb_report *r);
enum vrb_verdict vrb_mem_remote(const struct vrb_mem *m, const struct vrb_mem_remote *a,
				struct vrb_report *r);

/* True for nearly every SGE, at the price of a few comparisons; else vrb_mem_local says why. */
static inline bool vrb_mem_is_good(const struct vrb_mem *m, const struct vrb_mem_use *u)
{
	uint64_t off = u->addr - m->base;

	return m->pd == u->pd && (m->access & u->need) == u->need && u->addr >= m->base &&
	       off <= m->len && u->len <= m->len - off;
}

/* What an SGE can have wrong whatever its key: no length (some devices read that as 2^31), an end
 * beyond the last address. */
enum vrb_verdict vrb_mem_sge(const struct vrb_mem_use *u, struct vrb_report *r);

/* Fills r for an SGE and returns v, for reasons that only the keeper of the keys knows. */
enum vrb_verdict vrb_mem_refuse(struct vrb_report *r, enum vrb_verdict v,
				const struct vrb_mem_use *u);

#endif
