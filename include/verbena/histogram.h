/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram of times (or of anything that is a number) with buckets that grow with the value: 32
 * for each power of two, so that a value is known to 3 % from 1 to 2^64. Fixed memory, no
 * allocation; one writer. Two histograms add up.
 */
#ifndef VERBENA_HISTOGRAM_H
#define VERBENA_HISTOGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define VRB_HISTOGRAM_BUCKETS 1920

struct vrb_histogram {
	uint64_t count, sum, min, max; /* all 0 at first */
	uint64_t bucket[VRB_HISTOGRAM_BUCKETS];
};

static inline unsigned vrb_histogram_bucket(uint64_t value)
{
	unsigned top;

	if (value < 32)
		return (unsigned)value;
	top = 63 - (unsigned)__builtin_clzll(value);
	return (top - 4) * 32 + (unsigned)(value >> (top - 5) & 31);
}

static inline void vrb_histogram_add(struct vrb_histogram *h, uint64_t value)
{
	if (!h->count++ || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->sum += value;
	h->bucket[vrb_histogram_bucket(value)]++;
}

/* The smallest and largest value that falls into a bucket. */
void vrb_histogram_range(unsigned bucket, uint64_t *low, uint64_t *high);

/* A value that at least `percent` of all do not exceed, at most 3 % too large; 0 when empty. */
uint64_t vrb_histogram_percentile(const struct vrb_histogram *h, double percent);

void vrb_histogram_merge(struct vrb_histogram *into, const struct vrb_histogram *from);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
