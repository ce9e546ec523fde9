/* SPDX-License-Identifier: BSD-2-Clause */
/* Look-ups of interior pointers against a plain search, and while a writer changes the table. */
#include "support/test.h"

#include <errno.h>
#include <pthread.h>

#include "base/prng.h"
#include "send/regions.h"

#define N 2000u

static struct vrb_hit region(uint64_t base, uint64_t len)
{
	return (struct vrb_hit){
		.base = base, .len = len, .lkey = (uint32_t)base + 1, .rkey = (uint32_t)base + 2};
}

static void test_random(void **state)
{
	struct vrb_hit all[N], hit = {0};
	struct vrb_regions r;
	struct vrb_prng g;
	uint32_t n = 0;

	(void)state;
	g = vrb_prng_seed(3);
	assert_int_equal(vrb_regions_init(&r), 0);
	for (uint32_t step = 0; step < 20000; step++) {
		uint64_t at = 1 + vrb_prng_below(&g, 1 << 20);
		struct vrb_hit h = region(at, 1 + vrb_prng_below(&g, 400));
		bool overlaps = false, inside = false;

		for (uint32_t i = 0; i < n; i++) {
			overlaps |=
				h.base < all[i].base + all[i].len && all[i].base < h.base + h.len;
			inside |= at - all[i].base < all[i].len;
		}
		assert_int_equal(vrb_regions_find(&r, at, &hit), inside);
		if (inside)
			assert_true(at - hit.base < hit.len && hit.lkey == hit.base + 1);
		if (n < N && vrb_prng_below(&g, 3)) {
			assert_int_equal(vrb_regions_add(&r, &h), overlaps ? -EEXIST : 0);
			if (!overlaps)
				all[n++] = h;
		} else if (n) {
			uint32_t i = (uint32_t)vrb_prng_below(&g, n);

			assert_int_equal(vrb_regions_remove(&r, all[i].base), 0);
			assert_int_equal(vrb_regions_remove(&r, all[i].base), -ENOENT);
			all[i] = all[--n];
		}
	}
	assert_true(n > 500);
	vrb_regions_fini(&r);
}

/* A hit that is remembered must not outlive its region. */
static void test_removed(void **state)
{
	struct vrb_hit h = region(1000, 10), hit = {0};
	struct vrb_regions r;

	(void)state;
	assert_int_equal(vrb_regions_init(&r), 0);
	assert_int_equal(vrb_regions_add(&r, &h), 0);
	assert_true(vrb_regions_find(&r, 1009, &hit));
	assert_false(vrb_regions_find(&r, 1010, &hit));
	assert_false(vrb_regions_find(&r, 999, &hit));
	assert_true(vrb_regions_find(&r, 1000, &hit));
	assert_int_equal(vrb_regions_remove(&r, 1000), 0);
	assert_false(vrb_regions_find(&r, 1000, &hit));
	vrb_regions_fini(&r);
}

static struct vrb_regions shared;
static _Atomic bool stop;

static void *look(void *arg)
{
	struct vrb_hit hit = {0};
	uint64_t *seen = arg;

	while (!atomic_load(&stop)) {
		/* The even ones stay, the odd ones come and go. */
		for (uint64_t i = 0; i < 200; i++) {
			bool found = vrb_regions_find(&shared, i * 100 + 50, &hit);

			if ((!found && i % 2 == 0) ||
			    (found &&
			     (hit.base != i * 100 || hit.lkey != i * 100 + 1 || hit.len != 100)))
				++*seen;
		}
	}
	return NULL;
}

static void test_readers(void **state)
{
	uint64_t wrong = 0;
	pthread_t t;

	(void)state;
	assert_int_equal(vrb_regions_init(&shared), 0);
	for (uint64_t i = 0; i < 200; i += 2) {
		struct vrb_hit h = region(i * 100, 100);

		assert_int_equal(vrb_regions_add(&shared, &h), 0);
	}
	pthread_create(&t, NULL, look, &wrong);
	for (uint32_t round = 0; round < 300; round++)
		for (uint64_t i = 1; i < 200; i += 2) {
			struct vrb_hit h = region(i * 100, 100);

			if (round % 2)
				assert_int_equal(vrb_regions_remove(&shared, h.base), 0);
			else
				assert_int_equal(vrb_regions_add(&shared, &h), 0);
		}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	assert_int_equal(wrong, 0);
	vrb_regions_fini(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
