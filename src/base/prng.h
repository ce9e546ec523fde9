/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A seeded generator (SplitMix64): the same seed gives the same numbers on every machine, so a
 * simulation replays exactly. Not for secrets. There is no other source of randomness below hca.
 */
#ifndef VRB_BASE_PRNG_H
#define VRB_BASE_PRNG_H

#include "base/types.h"

struct vrb_prng {
	uint64_t state;
};

static inline struct vrb_prng vrb_prng_seed(uint64_t seed)
{
	return (struct vrb_prng){seed};
}

static inline uint64_t vrb_prng_next(struct vrb_prng *p)
{
	uint64_t z = p->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0 .. n - 1 (n > 0); the bias of at most n / 2^32 does not matter to tests. */
static inline uint32_t vrb_prng_below(struct vrb_prng *p, uint32_t n)
{
	return (uint32_t)(((vrb_prng_next(p) >> 32) * n) >> 32);
}

/* True in per_million cases of a million. */
static inline bool vrb_prng_chance(struct vrb_prng *p, uint32_t per_million)
{
	return vrb_prng_below(p, 1000000) < per_million;
}

#endif
