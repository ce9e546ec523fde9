/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets ask for an acknowledgement. */
#include "core_kit.h"

#define A VRB_PKT_ACKREQ

static void test_ack_inside_long_message(void **state)
{
	struct kit *k = kit(.window = 64);
	uint32_t n = 0;

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, KIT_MEM);
	for (uint32_t i = 0; i < 64; i++) {
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
		n += (k->tx.pkt.flags & A) != 0;
	}
	want_none(k, REQ);
	assert_int_equal(n, 4);
	kit_free(k);
}

static void post_unsignaled(struct kit *k, uint32_t len)
{
	struct vrb_sge s = SGE(k, 0, len);

	post(k, (struct vrb_swqe){.op = VRB_WR_SEND}, &s, 1);
}

static void want_asks(struct kit *k, bool asks)
{
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	assert_int_equal((k->tx.pkt.flags & A) != 0, asks);
}

/* Short unsignaled messages on a link with probes: one of eight asks, and any that comes late. */
static void test_few_ask(void **state)
{
	struct kit *k = kit(.window = 64);
	const vrb_ns late = 50 * VRB_NS_PER_US;

	(void)state;
	k->qp.probe_ns = 200 * VRB_NS_PER_US;
	for (uint32_t i = 0; i < 17; i++) {
		post_unsignaled(k, i % 3 ? 256 : 0);
		want_asks(k, i % 8 == 0);
	}
	/* asked or not, silence after it is noticed */
	give(k, ACK(115));
	assert_int_equal(vrb_qp_next_deadline(&k->qp), k->now + k->qp.probe_ns);
	give(k, ACK(116));
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	post_unsignaled(k, 8);
	want_asks(k, false);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), k->now + k->qp.probe_ns);
	pass(k, k->qp.probe_ns);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 117, .len = 8, .flags = A));
	give(k, ACK(117));

	post_unsignaled(k, 8);
	want_asks(k, true);
	k->now += late - 1;
	post_unsignaled(k, 8);
	want_asks(k, false);
	k->now++;
	post_unsignaled(k, 8);
	want_asks(k, true);
	post_unsignaled(k, 257);
	want_asks(k, false);
	want_asks(k, true);
	post_op(k, 9, VRB_WR_SEND, 0, 8);
	want_asks(k, true);
	kit_free(k);
}

/* Nothing would ask later: a window of few packets, what is sent again, a link without probes. */
static void test_all_ask(void **state)
{
	struct kit *k = kit(.window = 4);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		post_unsignaled(k, 8);
		want_asks(k, true);
	}
	k->qp.probe_ns = 200 * VRB_NS_PER_US;
	post_unsignaled(k, 8);
	want_asks(k, true);
	k->qp.window_max = 64;
	post_unsignaled(k, 8);
	want_asks(k, false);
	give(k, NAK(100, VRB_NAK_PSN_SEQ));
	for (uint32_t i = 0; i < 4; i++)
		want_asks(k, true);
	k->qp.timeout_ns = VRB_NS_NEVER;
	post_unsignaled(k, 8);
	want_asks(k, true);
	kit_free(k);
}

/* An entry that cannot be sent ends when those before it are acknowledged: nobody has asked, so the
 * probe does. */
static void test_failing_behind(void **state)
{
	struct kit *k = kit(.window = 64, .retry = 255);
	const struct vrb_sge bad = {(uintptr_t)k->mem, 8, 0x77777777};

	(void)state;
	k->qp.probe_ns = 200 * VRB_NS_PER_US;
	post_unsignaled(k, 8);
	want_asks(k, true);
	give(k, ACK(100));
	post_unsignaled(k, 8);
	want_asks(k, false);
	post(k, (struct vrb_swqe){.op = VRB_WR_SEND, .wr_id = 7}, &bad, 1);
	want_none(k, REQ);
	want_verdict(k, VRB_V_LKEY_UNKNOWN);
	want_no_wc(k);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), k->now + k->qp.probe_ns);
	pass(k, k->qp.probe_ns);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 101, .len = 8, .flags = A));
	give(k, ACK(101));
	want_wc(k, 7, VRB_WC_LOC_PROT_ERR);
	kit_free(k);
}

/* Who gives up before a probe would ask has every message asked for. */
static void test_hasty(void **state)
{
	struct kit *k = kit(.window = 64, .timeout = 5); /* 131 us */

	(void)state;
	k->qp.probe_ns = 200 * VRB_NS_PER_US;
	for (uint32_t i = 0; i < 4; i++) {
		post_unsignaled(k, 8);
		want_asks(k, true);
	}
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ack_inside_long_message),
		cmocka_unit_test(test_few_ask),
		cmocka_unit_test(test_all_ask),
		cmocka_unit_test(test_failing_behind),
		cmocka_unit_test(test_hasty),
	};

	return VRB_RUN_TESTS(tests);
}
