/* SPDX-License-Identifier: BSD-2-Clause */
/* Every way to the CRC-32 that this CPU can go gives what the library gives, and copies exactly. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

#include "base/prng.h"
#include "wire/crc32.h"

#define LONG_MAX_BYTES 70000u
#define GUARD	       64u

static struct vrb_crc32_way ways[VRB_CRC32_WAYS_MAX];
static size_t n_ways;

static int find_ways(void **state)
{
	(void)state;
	n_ways = vrb_crc32_ways(ways);
	print_message("# the best way here: %s\n", ways[n_ways - 1].name);
	return 0;
}

static uint8_t *random_bytes(struct vrb_prng *r, size_t n)
{
	uint8_t *p = malloc(n ? n : 1);

	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)vrb_prng_next(r);
	return p;
}

/* One piece by every way: the CRC, the bytes copied, and that nothing beside them is touched. */
static void compare(const uint8_t *src, size_t len, size_t dst_off, uint32_t seed)
{
	static uint8_t dst[LONG_MAX_BYTES + 3 * GUARD];
	uint8_t *at = dst + GUARD + dst_off;
	uint32_t want = len ? libdeflate_crc32(seed, src, len) : seed;

	for (size_t w = 0; w < n_ways; w++) {
		assert_int_equal(ways[w].crc(seed, src, len), want);
		memset(at - GUARD, 0xa5, len + 2 * GUARD);
		assert_int_equal(ways[w].copy(seed, at, src, len), want);
		assert_memory_equal(at, src, len);
		for (size_t i = 1; i <= GUARD; i++) {
			assert_int_equal(at[-(ptrdiff_t)i], 0xa5);
			assert_int_equal(at[len + i - 1], 0xa5);
		}
	}
	assert_int_equal(vrb_crc32(seed, src, len), want);
	assert_int_equal(vrb_crc32_copy(seed, at, src, len), want);
}

/* Each length in memory of just that length, so that a sanitizer sees a byte read too many. */
static void short_lengths(void **state)
{
	struct vrb_prng r;

	(void)state;
	r = vrb_prng_seed(1);
	for (size_t len = 0; len <= 700; len++) {
		uint8_t *src = random_bytes(&r, len);

		compare(src, len, len % GUARD, (uint32_t)vrb_prng_next(&r));
		compare(src, len, 0, 0);
		free(src);
	}
}

static void alignments(void **state)
{
	struct vrb_prng r;
	uint8_t *src;

	(void)state;
	r = vrb_prng_seed(2);
	src = random_bytes(&r, 300 + GUARD);
	for (size_t len = 0; len <= 300; len++)
		for (size_t off = 0; off < 16; off++)
			compare(src + off, len, (off * 7 + len) % GUARD, ~(uint32_t)len);
	free(src);
}

static void long_ones(void **state)
{
	struct vrb_prng r;
	uint8_t *src;

	(void)state;
	r = vrb_prng_seed(3);
	src = random_bytes(&r, LONG_MAX_BYTES);
	for (int i = 0; i < 300; i++) {
		size_t off = vrb_prng_next(&r) % GUARD;
		size_t len = vrb_prng_next(&r) % (LONG_MAX_BYTES - GUARD);

		compare(src + off, len, vrb_prng_next(&r) % GUARD, (uint32_t)vrb_prng_next(&r));
	}
	free(src);
}

static void pieces_make_the_whole(void **state)
{
	struct vrb_prng r;
	uint8_t *src;

	(void)state;
	r = vrb_prng_seed(4);
	src = random_bytes(&r, 2000);
	for (size_t w = 0; w < n_ways; w++)
		for (size_t cut = 0; cut <= 2000; cut += 37) {
			uint32_t crc = ways[w].crc(0, src, cut);

			assert_int_equal(ways[w].crc(crc, src + cut, 2000 - cut),
					 libdeflate_crc32(0, src, 2000));
		}
	free(src);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_lengths),
		cmocka_unit_test(alignments),
		cmocka_unit_test(long_ones),
		cmocka_unit_test(pieces_make_the_whole),
	};

	return cmocka_run_group_tests(tests, find_ways, NULL);
}
