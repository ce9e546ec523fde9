/* SPDX-License-Identifier: BSD-2-Clause */
/* What the ICRC leaves out, what it covers to the bit, and the solving for an unseen IP ID. */
#include "support/test.h"

#include <string.h>

#include "base/prng.h"
#include "wire/icrc.h"
#include "wire/net.h"
#include "wire/pkt.h"
#include "wire/roce.h"

struct frame {
	uint8_t b[256];
	size_t net, len; /* len: of all */
};

static struct frame make(bool v6, uint32_t payload_len, uint16_t id)
{
	struct vrb_net net = {.tclass = 0,
			      .ttl = 64,
			      .df = true,
			      .ip_id = id,
			      .sport = 0xc001,
			      .dport = VRB_ROCE_PORT};
	struct vrb_pkt pkt = {
		.op = {VRB_OP_SEND_ONLY}, .pkey = 0xffff, .dqpn = 0x11, .len = payload_len};
	struct frame f;
	uint8_t h[VRB_HEADERS_MAX];
	size_t n;

	if (!v6)
		net.src.raw[10] = net.src.raw[11] = net.dst.raw[10] = net.dst.raw[11] = 0xff;
	net.src.raw[15] = 1;
	net.dst.raw[15] = 2;
	memset(&f, 0x33, sizeof(f));
	n = vrb_pkt_emit_headers(&pkt, h) + payload_len + vrb_pkt_pad(payload_len);
	f.net = vrb_net_emit(&net, n + VRB_ICRC_LEN, f.b);
	vrb_pkt_emit_headers(&pkt, f.b + f.net);
	f.len = f.net + n + VRB_ICRC_LEN;
	vrb_icrc_store(vrb_icrc_start(f.b, f.net, f.b + f.net, n), f.b + f.net + n);
	return f;
}

static enum vrb_verdict check(const struct frame *f)
{
	return vrb_icrc_check(f->b, f->net, f->b + f->net, f->len - f->net, NULL);
}

/* Bits that may change on the way, by byte (0xff: all of it). */
static uint8_t invariant_mask(const struct frame *f, size_t i)
{
	bool v6 = f->net == 48;

	if (i == f->net - 2 || i == f->net - 1 || i == f->net + 4)
		return 0; /* UDP checksum; FECN, BECN */
	if (v6)
		return i == 0 ? 0xf0 : i == 1 || i == 2 || i == 3 || i == 7 ? 0 : 0xff;
	return i == 1 || i == 8 || i == 10 || i == 11 ? 0 : 0xff;
}

static void test_every_bit(void **state)
{
	(void)state;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct frame f = make(v6, 21, 0x1234);

		assert_int_equal(check(&f), VRB_OK);
		for (size_t i = 0; i < f.len; i++) {
			for (unsigned bit = 0; bit < 8; bit++) {
				bool covered = invariant_mask(&f, i) >> bit & 1;

				f.b[i] ^= (uint8_t)(1 << bit);
				assert_int_equal(check(&f), covered ? VRB_V_DROP_ICRC : VRB_OK);
				f.b[i] ^= (uint8_t)(1 << bit);
			}
		}
	}
}

static void test_gather(void **state)
{
	struct frame f = make(false, 21, 0);
	const uint8_t *payload = f.b + f.net + VRB_BTH_LEN;
	const struct vrb_seg seg[] = {{payload, 5}, {NULL, 0}, {payload + 5, 1}, {payload + 6, 15}};
	uint32_t whole, pieces;
	uint8_t copy[24];

	(void)state;
	memset(f.b + f.net + VRB_BTH_LEN + 21, 0, 3);
	whole = vrb_icrc_start(f.b, f.net, f.b + f.net, VRB_BTH_LEN + 24);
	pieces = vrb_icrc_start(f.b, f.net, f.b + f.net, VRB_BTH_LEN);
	pieces = vrb_icrc_add_payload(pieces, seg, 4, 21);
	assert_int_equal(whole, pieces);
	pieces = vrb_icrc_start(f.b, f.net, f.b + f.net, VRB_BTH_LEN);
	assert_int_equal(vrb_icrc_copy(pieces, copy, payload, 24), whole);
	assert_memory_equal(copy, payload, 24);
}

static void test_solve(void **state)
{
	struct vrb_prng rng = vrb_prng_seed(5);

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		uint16_t id = (uint16_t)vrb_prng_next(&rng), solved = 0;
		struct frame f = make(false, vrb_prng_below(&rng, 150), id);
		size_t at = f.net + vrb_prng_below(&rng, (uint32_t)(f.len - f.net));

		f.b[4] = (uint8_t)vrb_prng_next(&rng); /* whatever the socket made of it */
		assert_int_equal(
			vrb_icrc_solve_ip_id(f.b, f.b + f.net, f.len - f.net, &solved, NULL),
			VRB_OK);
		assert_int_equal(solved, id);
		/* a single wrong bit is never taken for another ID */
		if (at == f.net + 4)
			continue;
		f.b[at] ^= (uint8_t)(1 << vrb_prng_below(&rng, 8));
		assert_int_equal(
			vrb_icrc_solve_ip_id(f.b, f.b + f.net, f.len - f.net, &solved, NULL),
			VRB_V_DROP_ICRC);
	}
}

static void test_short(void **state)
{
	struct frame f = make(false, 0, 0);
	struct vrb_report why;
	uint16_t id;

	(void)state;
	for (size_t n = 0; n < VRB_BTH_LEN + VRB_ICRC_LEN; n++) {
		assert_int_equal(vrb_icrc_check(f.b, f.net, f.b + f.net, n, &why),
				 VRB_V_DROP_SHORT);
		assert_int_equal(why.val[0], n);
		assert_int_equal(vrb_icrc_solve_ip_id(f.b, f.b + f.net, n, &id, NULL),
				 VRB_V_DROP_SHORT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_solve),
		cmocka_unit_test(test_short),
	};

	return VRB_RUN_TESTS(tests);
}
