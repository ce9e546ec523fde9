/* SPDX-License-Identifier: BSD-2-Clause */
/* The small headers of base: serial numbers, list, generator, big-endian numbers. */
#include "support/test.h"

#include "base/bytes.h"
#include "base/list.h"
#include "base/prng.h"
#include "base/psn.h"

static void test_psn(void **state)
{
	struct vrb_psn a = vrb_psn(0xffffff), b = vrb_psn_add(a, 2);

	(void)state;
	assert_int_equal(b.v, 1);
	assert_int_equal(vrb_psn_diff(b, a), 2);
	assert_int_equal(vrb_psn_diff(a, b), -2);
	assert_int_equal(vrb_psn_sub(b, 2).v, 0xffffff);
	assert_int_equal(vrb_psn_diff(vrb_psn(0x800000), vrb_psn(0)), -0x800000);
	assert_int_equal(vrb_psn_diff(vrb_psn(0x7fffff), vrb_psn(0)), 0x7fffff);
	assert_true(vrb_psn_eq(vrb_psn(0x1000001), vrb_psn(1)));
}

static void test_list(void **state)
{
	struct vrb_list head, a, b;

	(void)state;
	vrb_list_init(&head);
	assert_true(vrb_list_empty(&head));
	vrb_list_add_tail(&head, &a);
	vrb_list_add_tail(&head, &b);
	assert_ptr_equal(head.next, &a);
	assert_ptr_equal(head.prev, &b);
	vrb_list_del(&a);
	assert_true(vrb_list_empty(&a));
	assert_ptr_equal(head.next, &b);
	vrb_list_del(&a); /* harmless on a node that is on no list */
	vrb_list_del(&b);
	assert_true(vrb_list_empty(&head));
}

static void test_prng(void **state)
{
	struct vrb_prng p = vrb_prng_seed(1234567), q = p;
	unsigned hits = 0;

	(void)state;
	/* the first numbers of SplitMix64 from this seed, as published with the algorithm */
	assert_true(vrb_prng_next(&p) == 6457827717110365317ull);
	assert_true(vrb_prng_next(&p) == 3203168211198807973ull);
	for (unsigned i = 0; i < 10000; i++) {
		assert_true(vrb_prng_below(&q, 7) < 7);
		hits += vrb_prng_chance(&q, 100000);
	}
	assert_in_range(hits, 900, 1100);
}

static void test_bytes(void **state)
{
	uint8_t b[8];

	(void)state;
	vrb_put_be64(b, 0x0102030405060708ull);
	assert_int_equal(b[0], 1);
	assert_int_equal(b[7], 8);
	assert_true(vrb_get_be64(b) == 0x0102030405060708ull);
	assert_int_equal(vrb_get_be32(b), 0x01020304);
	assert_int_equal(vrb_get_be24(b + 1), 0x020304);
	assert_int_equal(vrb_get_be16(b + 6), 0x0708);
	vrb_put_be24(b, 0xfffefdfc);
	assert_int_equal(vrb_get_be32(b), 0xfefdfc04);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_psn),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_prng),
		cmocka_unit_test(test_bytes),
	};

	return VRB_RUN_TESTS(tests);
}
