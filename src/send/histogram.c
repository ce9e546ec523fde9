/* SPDX-License-Identifier: BSD-2-Clause */
#include <verbena/histogram.h>

void vrb_histogram_range(unsigned bucket, uint64_t *low, uint64_t *high)
{
	unsigned shift;

	if (bucket < 32) {
		*low = *high = bucket;
		return;
	}
	shift = bucket / 32 - 1;
	*low = (32 + (uint64_t)(bucket % 32)) << shift;
	*high = *low + (((uint64_t)1 << shift) - 1);
}

uint64_t vrb_histogram_percentile(const struct vrb_histogram *h, double percent)
{
	double want = (double)h->count * percent / 100;
	uint64_t seen = 0, low, high;

	for (unsigned i = 0; i < VRB_HISTOGRAM_BUCKETS; i++) {
		seen += h->bucket[i];
		if (!h->bucket[i] || (double)seen < want)
			continue;
		vrb_histogram_range(i, &low, &high);
		return high < h->max ? high : h->max;
	}
	return h->max;
}

void vrb_histogram_merge(struct vrb_histogram *into, const struct vrb_histogram *from)
{
	if (!from->count)
		return;
	if (!into->count || from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum += from->sum;
	for (unsigned i = 0; i < VRB_HISTOGRAM_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}
