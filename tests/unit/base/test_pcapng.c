/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of a capture file, byte for byte, and read back. */
#include "support/test.h"

#include <string.h>

#include "base/pcapng.h"

#define NUMBER(b) (b), 0, 0, 0

static void test_head(void **state)
{
	/* clang-format off */
	static const uint8_t want[] = {
		0x0a, 0x0d, 0x0d, 0x0a, NUMBER(44), 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		4, 0, 7, 0, 'v', 'e', 'r', 'b', ' ', '1', '2', 0, 0, 0, 0, 0, NUMBER(44),
		NUMBER(1), NUMBER(40), 101, 0, 0, 0, NUMBER(0),
		2, 0, 4, 0, 'w', 'i', 'r', 'e', 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, NUMBER(40),
		NUMBER(1), NUMBER(48), 101, 0, 0, 0, NUMBER(0),
		2, 0, 9, 0, 's', 'a', 'm', 'e', '-', 'h', 'o', 's', 't', 0, 0, 0,
		9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, NUMBER(48),
	};
	/* clang-format on */
	uint8_t out[VRB_PCAPNG_HEAD_MAX];
	char longest[200];

	(void)state;
	assert_int_equal(vrb_pcapng_emit_head(out, "verb 12"), sizeof(want));
	assert_memory_equal(out, want, sizeof(want));
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_in_range(vrb_pcapng_emit_head(out, longest), sizeof(want) + 56, sizeof(out));
}

static void test_packet(void **state)
{
	/* clang-format off */
	static const uint8_t want[] = {
		NUMBER(6), NUMBER(64), NUMBER(1), 0x01, 0, 0, 0, 0x05, 0x04, 0x03, 0x02,
		NUMBER(5), NUMBER(9), 'a', 'b', 'c', 'd', 'e', 0, 0, 0,
		2, 0, 4, 0, NUMBER(2), 1, 0, 5, 0, 'W', 'R', ' ', '1', '2', 0, 0, 0, 0, 0, 0, 0,
		NUMBER(64),
	};
	/* clang-format on */
	struct vrb_pcapng_packet p = {.time_ns = 0x102030405,
				      .interface = VRB_PCAPNG_SAME_HOST,
				      .out = true,
				      .kept = 5,
				      .len = 9,
				      .comment = "WR 12"};
	struct vrb_pcapng_block b;
	uint8_t out[128];

	(void)state;
	memset(out, 0xee, sizeof(out));
	memcpy(out + VRB_PCAPNG_PACKET_AT, "abcde", 5);
	assert_int_equal(vrb_pcapng_emit_packet(out, &p), sizeof(want));
	assert_memory_equal(out, want, sizeof(want));
	assert_int_equal(out[sizeof(want)], 0xee);
	assert_true(vrb_pcapng_parse(out, sizeof(want), &b));
	assert_true(b.is_packet);
	assert_int_equal(b.len, sizeof(want));
	assert_int_equal(b.interface, VRB_PCAPNG_SAME_HOST);
	assert_int_equal(b.packet_len, 9);
}

static void test_no_comment(void **state)
{
	struct vrb_pcapng_packet p = {.kept = 4, .len = 4};
	uint8_t out[64];

	(void)state;
	assert_int_equal(vrb_pcapng_emit_packet(out, &p), 48);
	assert_int_equal(out[36], 1); /* inbound */
}

static void test_parse(void **state)
{
	uint8_t out[VRB_PCAPNG_HEAD_MAX];
	struct vrb_pcapng_block b;
	size_t len = vrb_pcapng_emit_head(out, "x");

	(void)state;
	assert_true(vrb_pcapng_parse(out, len, &b));
	assert_false(b.is_packet);
	assert_false(vrb_pcapng_parse(out, 11, &b));
	out[4] = 8; /* shorter than a block can be */
	assert_false(vrb_pcapng_parse(out, len, &b));
	out[4] = 30;
	assert_false(vrb_pcapng_parse(out, len, &b));
	out[4] = 44; /* its end says otherwise */
	assert_false(vrb_pcapng_parse(out, len, &b));
	out[5] = 1; /* the rest is not here */
	assert_true(vrb_pcapng_parse(out, len, &b));
	assert_false(b.is_whole);
}

static void test_gap(void **state)
{
	static const uint8_t want[] = {0xad, 0x0b, 0, 0x80, NUMBER(16), 7, 7, 7, 7, NUMBER(16)};
	struct vrb_pcapng_block b;
	uint8_t out[16];

	(void)state;
	memset(out, 7, sizeof(out));
	vrb_pcapng_emit_gap(out, sizeof(out));
	assert_memory_equal(out, want, sizeof(want));
	assert_true(vrb_pcapng_parse(out, sizeof(out), &b));
	assert_true(b.is_whole && !b.is_packet && b.len == 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head),	   cmocka_unit_test(test_packet),
		cmocka_unit_test(test_no_comment), cmocka_unit_test(test_parse),
		cmocka_unit_test(test_gap),
	};

	return VRB_RUN_TESTS(tests);
}
