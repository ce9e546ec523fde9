/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs never overlap, come back in any pieces, and an empty pool is one run again. */
#include "support/test.h"

#include <string.h>

#include "base/prng.h"
#include "send/pages.h"

#define N    3000u /* not a power of two */
#define RUNS 400u

static struct vrb_page page[N];
static uint8_t owner[N];

static void mark(uint32_t at, uint32_t n, uint8_t from, uint8_t to)
{
	assert_true(at + n <= N);
	for (uint32_t i = at; i < at + n; i++) {
		assert_int_equal(owner[i], from);
		owner[i] = to;
	}
}

static void test_random(void **state)
{
	struct vrb_prng r;
	struct vrb_pages p;
	struct {
		uint32_t at, n;
	} run[RUNS];
	uint32_t k = 0, used = 0;

	(void)state;
	r = vrb_prng_seed(1);
	vrb_pages_init(&p, page, N);
	for (uint32_t step = 0; step < 200000; step++) {
		if (k < RUNS && vrb_prng_below(&r, 2)) {
			uint32_t n = 1 + (uint32_t)vrb_prng_below(&r, step % 7 ? 9 : 300);
			uint32_t at = vrb_pages_get(&p, n);

			if (at == VRB_PAGES_NONE)
				continue;
			mark(at, n, 0, 1);
			run[k].at = at;
			run[k++].n = n;
			used += n;
		} else if (k) {
			uint32_t i = (uint32_t)vrb_prng_below(&r, k), half = run[i].n / 2;

			mark(run[i].at, run[i].n, 1, 0);
			used -= run[i].n;
			vrb_pages_put(&p, run[i].at + half, run[i].n - half);
			if (half)
				vrb_pages_put(&p, run[i].at, half);
			run[i] = run[--k];
		}
		assert_int_equal(p.n_free, N - used);
	}
	while (k--)
		vrb_pages_put(&p, run[k].at, run[k].n);
	assert_int_equal(p.n_free, N);
	assert_int_equal(vrb_pages_get(&p, 2048), N - 2048); /* long ones from the upper end */
	assert_int_equal(vrb_pages_get(&p, 17), 0);
	assert_false(vrb_pages_has(&p, N - 2048 - 16));
	assert_int_equal(vrb_pages_get(&p, N - 2048 - 17), 17);
	assert_int_equal(p.n_free, 0);
}

/* Receives of 17 pages that are replaced all the time, and now and then 257 pages for a while: with
 * 40 % of the pages free there is always a run. */
static void test_among_receives(void **state)
{
	enum { RECEIVES = 90 };
	uint32_t at[RECEIVES], spare;
	struct vrb_prng r;
	struct vrb_pages p;

	(void)state;
	r = vrb_prng_seed(3);
	vrb_pages_init(&p, page, N);
	for (uint32_t i = 0; i < RECEIVES; i++)
		at[i] = vrb_pages_get(&p, 17);
	for (uint32_t step = 0; step < 5000; step++) {
		uint32_t land = vrb_pages_get(&p, 257), i = (uint32_t)vrb_prng_below(&r, RECEIVES);

		assert_int_not_equal(land, VRB_PAGES_NONE);
		spare = vrb_pages_get(&p, 17);
		assert_int_not_equal(spare, VRB_PAGES_NONE);
		if (step & 1)
			vrb_pages_put(&p, land, 257);
		vrb_pages_put(&p, at[i], 17);
		at[i] = spare;
		if (!(step & 1))
			vrb_pages_put(&p, land, 257);
	}
}

static void test_borders(void **state)
{
	struct vrb_pages p;

	(void)state;
	vrb_pages_init(&p, page, 1);
	assert_int_equal(vrb_pages_get(&p, 0), VRB_PAGES_NONE);
	assert_int_equal(vrb_pages_get(&p, 2), VRB_PAGES_NONE);
	assert_int_equal(vrb_pages_get(&p, UINT32_MAX), VRB_PAGES_NONE);
	assert_int_equal(vrb_pages_get(&p, 1), 0);
	assert_int_equal(vrb_pages_get(&p, 1), VRB_PAGES_NONE);
	vrb_pages_put(&p, 0, 1);
	assert_int_equal(vrb_pages_get(&p, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_among_receives),
		cmocka_unit_test(test_borders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
