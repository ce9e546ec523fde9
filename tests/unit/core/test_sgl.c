/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter lists at their widest: 32 elements, every offset, nothing outside. */
#include "core_kit.h"

#include <string.h>

/* 32 elements of odd sizes, some empty, in 256-byte cells of mem. */
static uint32_t list(struct kit *k, struct vrb_sge *l)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < VRB_MAX_SGE; i++) {
		uint32_t len = i % 7 == 3 ? 0 : 1 + (37 * i) % 101;

		l[i] = SGE(k, 256 * i, len);
		total += len;
	}
	return total;
}

static void check(const struct kit *k, const struct vrb_sge *l, uint32_t n)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < VRB_MAX_SGE; i++) {
		for (uint32_t j = 0; j < 256; j++) {
			uint8_t want = j < l[i].len && at < n ? k->wire[at++] : 0;

			assert_int_equal(k->mem[256 * i + j], want);
		}
	}
	assert_int_equal(at, n);
}

static void test_scatter(void **state)
{
	(void)state;
	for (uint32_t mtu = 1; mtu < 300; mtu += 13) {
		struct kit *k = kit(.mtu = mtu);
		struct vrb_sge l[VRB_MAX_SGE];
		uint32_t n = list(k, l), psn = 200;

		post_recv_sg(k, 1, l, VRB_MAX_SGE);
		for (uint32_t at = 0; at < n; at += mtu, psn++) {
			bool last = n - at <= mtu;
			uint8_t op = at == 0 ? VRB_OP_SEND_FIRST : VRB_OP_SEND_MIDDLE;

			give_at(k, P(last ? VRB_OP_SEND_LAST : op, psn, .len = last ? n - at : mtu),
				at);
		}
		want_recv(k, 1, VRB_WC_SUCCESS, n);
		want_quiet(k);
		check(k, l, n);
		kit_free(k);
	}
}

static void test_read_scatter(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge l[VRB_MAX_SGE];
	uint32_t n = list(k, l), psn = 100;

	(void)state;
	post(k, (struct vrb_swqe){.wr_id = 1, .op = VRB_WR_READ, .flags = VRB_WRF_SIGNALED}, l,
	     VRB_MAX_SGE);
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	for (uint32_t at = 0; at < n; at += KIT_MTU, psn++)
		give_at(k,
			P(VRB_OP_READ_RESP_MIDDLE, psn, .len = n - at < KIT_MTU ? n - at : KIT_MTU),
			at);
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	check(k, l, n);
	kit_free(k);
}

/* A list whose second element is bad: nothing of the packet is placed, the first included. */
static void test_all_or_nothing(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge l[3] = {SGE(k, 0, 8), {(uintptr_t)k->mem, 8, 0x7777}, SGE(k, 64, 8)};

	(void)state;
	post_recv_sg(k, 1, l, 3);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 24));
	want_verdict(k, VRB_V_LKEY_UNKNOWN);
	assert_int_equal(k->last.val[0], 1); /* which element */
	assert_int_equal(k->last.val[3], 8); /* as the user wrote it */
	assert_int_equal(k->mem[0], 0);
	want_recv(k, 1, VRB_WC_LOC_PROT_ERR, 0);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_read_scatter),
		cmocka_unit_test(test_all_or_nothing),
	};

	return VRB_RUN_TESTS(tests);
}
