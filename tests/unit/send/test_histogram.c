/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include <verbena/histogram.h>

#include "base/prng.h"

static struct vrb_histogram h, other;

static void test_buckets(void **state)
{
	uint64_t low, high, next = 0;

	(void)state;
	for (unsigned i = 0; i < VRB_HISTOGRAM_BUCKETS; i++) {
		vrb_histogram_range(i, &low, &high);
		assert_int_equal(low, next); /* without gaps */
		assert_int_equal(vrb_histogram_bucket(low), i);
		assert_int_equal(vrb_histogram_bucket(high), i);
		assert_true(low < 32 || (high - low) <= low / 32);
		next = high + 1;
	}
	assert_int_equal(next, 0); /* up to the last number */
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_percentiles(void **state)
{
	static uint64_t all[100000];
	const double ask[] = {0, 1, 50, 90, 99, 99.9, 99.99, 100};
	struct vrb_prng g = vrb_prng_seed(11);

	(void)state;
	assert_int_equal(vrb_histogram_percentile(&h, 50), 0);
	for (size_t i = 0; i < 100000; i++) {
		all[i] = vrb_prng_next(&g) >> vrb_prng_below(&g, 60);
		vrb_histogram_add(i % 3 ? &h : &other, all[i]);
	}
	vrb_histogram_merge(&h, &other);
	qsort(all, 100000, sizeof(all[0]), compare);
	assert_int_equal(h.count, 100000);
	assert_int_equal(h.min, all[0]);
	assert_int_equal(h.max, all[99999]);
	for (size_t i = 0; i < sizeof(ask) / sizeof(ask[0]); i++) {
		double exact = ask[i] / 100 * 100000;
		uint64_t want = all[exact < 1 ? 0 : (size_t)(exact + 0.999) - 1];
		uint64_t got = vrb_histogram_percentile(&h, ask[i]);

		assert_true(got >= want && got - want <= want / 31 + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
