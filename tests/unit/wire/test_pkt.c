/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing what is cut, odd or random, and round trips of random packets of every opcode. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "wire/pkt.h"
#include "wire/roce.h"

#define ROUNDS 200

/* The parser gets a heap copy of exactly len bytes: a sanitizer sees each byte read beyond. */
static enum vrb_verdict parse(const uint8_t *bytes, size_t len, struct vrb_pkt *out)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct vrb_report why;
	enum vrb_verdict v;

	if (len)
		memcpy(copy, bytes, len);
	v = vrb_pkt_parse(copy, len, out, &why);
	if (v != VRB_OK)
		assert_int_equal(why.verdict, v);
	else
		out->payload = bytes + (out->payload - copy);
	free(copy);
	return v;
}

static struct vrb_pkt random_pkt(struct vrb_prng *rng, uint8_t op)
{
	uint32_t f = vrb_opcode_table[op].flags;
	struct vrb_pkt p = {.op = {op}};

	p.flags = (uint8_t)vrb_prng_below(rng, 32);
	p.pkey = (uint16_t)vrb_prng_next(rng);
	p.dqpn = (uint32_t)vrb_prng_next(rng) & VRB_QPN_MASK;
	p.psn = vrb_psn((uint32_t)vrb_prng_next(rng));
	p.len = f & VRB_OPF_PAYLOAD ? vrb_prng_below(rng, 300) : 0;
	p.imm = f & VRB_OPF_IMM ? (uint32_t)vrb_prng_next(rng) : 0;
	p.inv_rkey = f & VRB_OPF_INV ? (uint32_t)vrb_prng_next(rng) : 0;
	p.syndrome = f & VRB_OPF_AETH ? (uint8_t)vrb_prng_next(rng) : 0;
	p.msn = f & VRB_OPF_AETH ? vrb_prng_below(rng, 1 << 24) : 0;
	if (f & (VRB_OPF_RETH | VRB_OPF_ATOMICETH)) {
		p.rkey = (uint32_t)vrb_prng_next(rng);
		p.va = vrb_prng_next(rng);
	}
	p.dma_len = f & VRB_OPF_RETH ? (uint32_t)vrb_prng_next(rng) : 0;
	p.qkey = f & VRB_OPF_DETH ? (uint32_t)vrb_prng_next(rng) : 0;
	p.sqpn = f & VRB_OPF_DETH ? vrb_prng_below(rng, 1 << 24) : 0;
	p.swap_add = f & VRB_OPF_ATOMICETH ? vrb_prng_next(rng) : 0;
	p.compare = f & VRB_OPF_ATOMICETH ? vrb_prng_next(rng) : 0;
	p.atomic_orig = f & VRB_OPF_ATOMICACK ? vrb_prng_next(rng) : 0;
	return p;
}

static size_t emit(const struct vrb_pkt *p, uint8_t *out)
{
	size_t n = vrb_pkt_emit_headers(p, out);

	memset(out + n, 0x5a, p->len);
	memset(out + n + p->len, 0, vrb_pkt_pad(p->len));
	return n + p->len + vrb_pkt_pad(p->len);
}

static void test_round_trip(void **state)
{
	struct vrb_prng rng = vrb_prng_seed(1);
	uint8_t bytes[VRB_ROCE_PACKET_MAX];

	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		if (!(vrb_opcode_table[op].flags & VRB_OPF_KNOWN))
			continue;
		for (unsigned i = 0; i < ROUNDS; i++) {
			struct vrb_pkt in = random_pkt(&rng, (uint8_t)op), out;
			size_t len = emit(&in, bytes);

			assert_int_equal(parse(bytes, len, &out), VRB_OK);
			assert_ptr_equal(out.payload + out.len + vrb_pkt_pad(in.len), bytes + len);
			in.payload = out.payload;
			in.pad = (uint8_t)vrb_pkt_pad(in.len);
			assert_int_equal(out.op.v, in.op.v);
			assert_memory_equal(&out, &in, sizeof(in));
		}
	}
}

static void test_every_truncation(void **state)
{
	struct vrb_prng rng = vrb_prng_seed(2);
	uint8_t bytes[VRB_ROCE_PACKET_MAX];

	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		struct vrb_pkt in = random_pkt(&rng, (uint8_t)op), out;
		size_t len = emit(&in, bytes), need = VRB_BTH_LEN + vrb_opcode_table[op].header_len;

		for (size_t cut = 0; cut < len; cut++) {
			enum vrb_verdict v = parse(bytes, cut, &out);

			if (!vrb_opcode_table[op].flags && cut >= VRB_BTH_LEN)
				assert_int_equal(v, VRB_V_DROP_OPCODE);
			else if (cut < need)
				assert_int_equal(v, VRB_V_DROP_SHORT);
			else if (cut % 4)
				assert_int_equal(v, VRB_V_DROP_PADCNT);
		}
	}
}

static void test_garbage(void **state)
{
	struct vrb_prng rng = vrb_prng_seed(3);
	uint8_t bytes[128];
	unsigned n_ok = 0;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		size_t len = vrb_prng_below(&rng, sizeof(bytes) + 1);
		struct vrb_pkt out;

		for (size_t k = 0; k < len; k += 8) {
			uint64_t r = vrb_prng_next(&rng);

			memcpy(bytes + k, &r, len - k < 8 ? len - k : 8);
		}
		if (parse(bytes, len, &out) != VRB_OK)
			continue;
		assert_true(out.payload >= bytes + VRB_BTH_LEN);
		assert_true(out.payload + out.len + out.pad == bytes + len);
		n_ok++;
	}
	assert_true(n_ok > 0);
}

static void test_refusals(void **state)
{
	uint8_t b[64] = {VRB_OP_SEND_ONLY};
	struct vrb_pkt out;
	struct vrb_report why;

	(void)state;
	assert_int_equal(vrb_pkt_parse(b, 12, &out, NULL), VRB_OK);
	b[1] = 0x10; /* one pad byte, no payload */
	assert_int_equal(vrb_pkt_parse(b, 12, &out, &why), VRB_V_DROP_PADCNT);
	assert_int_equal(why.val[0], 1);
	assert_int_equal(vrb_pkt_parse(b, 16, &out, &why), VRB_OK);
	assert_int_equal(out.len, 3);
	b[1] = 0x01;
	assert_int_equal(vrb_pkt_parse(b, 12, &out, &why), VRB_V_DROP_TVER);
	b[1] = 0;
	b[0] = 0x15; /* reserved RC opcode: the responder refuses it */
	assert_int_equal(vrb_pkt_parse(b, 12, &out, &why), VRB_OK);
	assert_false(vrb_op_has(out.op, VRB_OPF_KNOWN));
	b[0] = 0xa4; /* XRC is not spoken */
	assert_int_equal(vrb_pkt_parse(b, 12, &out, &why), VRB_V_DROP_OPCODE);
	assert_int_equal(vrb_pkt_parse(b, VRB_ROCE_PACKET_MAX + 1, &out, &why), VRB_V_DROP_LONG);
}

static void test_dump(void **state)
{
	struct vrb_pkt p = {
		.op = {VRB_OP_ACK}, .dqpn = 0x12, .psn = {7}, .syndrome = 0x60, .msn = 3};
	char line[256], tiny[8];

	(void)state;
	vrb_pkt_dump(line, sizeof(line), &p);
	assert_string_equal(line, "RC ACK qp=0x12 psn=0x7 NAK:psn-sequence msn=3");
	p.syndrome = 0x2c;
	vrb_pkt_dump(line, sizeof(line), &p);
	assert_string_equal(line, "RC ACK qp=0x12 psn=0x7 RNR-NAK=12 msn=3");
	assert_int_equal(vrb_pkt_dump(tiny, sizeof(tiny), &p), 7);
	assert_string_equal(tiny, "RC ACK ");
	p = (struct vrb_pkt){.op = {0x65}, .flags = VRB_PKT_SE, .len = 5, .qkey = 0x11, .sqpn = 9};
	vrb_pkt_dump(line, sizeof(line), &p);
	assert_string_equal(line, "UD SEND Only with Imm qp=0x0 psn=0x0 len=5 qkey=0x11 sqpn=0x9 "
				  "imm=0x0 se");
	p = (struct vrb_pkt){.op = {0xff}};
	vrb_pkt_dump(line, sizeof(line), &p);
	assert_string_equal(line, "undefined op=0xff qp=0x0 psn=0x0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_garbage),	   cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_dump),
	};

	return VRB_RUN_TESTS(tests);
}
