/* SPDX-License-Identifier: BSD-2-Clause */
/* The two queues: what may pass what, flush order, entries released, CQ shared by both. */
#include "core_kit.h"

#define A VRB_PKT_ACKREQ

/* First the culprit with its status, then the rest, in posting order, signaled or not. */
static void test_flush_order(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge s = SGE(k, 0, 8);

	(void)state;
	for (uint64_t i = 1; i <= 6; i++)
		post(k, (struct vrb_swqe){.wr_id = i, .op = VRB_WR_SEND}, &s, 1);
	for (uint32_t i = 0; i < 4; i++)
		want(k, REQ, P(VRB_OP_SEND_ONLY, 100 + i, .len = 8, .flags = A));
	give(k, NAK(102, VRB_NAK_OPERATIONAL));
	want_verdict(k, VRB_V_REM_OP);
	want_wc(k, 3, VRB_WC_REM_OP_ERR); /* 1 and 2 succeeded unsignaled */
	for (uint64_t i = 4; i <= 6; i++)
		want_wc(k, i, VRB_WC_WR_FLUSH_ERR);
	want_quiet(k);
	assert_int_equal(vrb_qp_sq_used(&k->qp), 0);
	kit_free(k);
}

static void test_ring_wraps(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	for (uint32_t i = 0; i < 5 * KIT_SQ; i++) {
		post_op(k, i, VRB_WR_SEND, 0, 8);
		want(k, REQ, P(VRB_OP_SEND_ONLY, 100 + i, .len = 8, .flags = A));
		give(k, ACK(100 + i));
		want_wc(k, i, VRB_WC_SUCCESS);
		assert_int_equal(vrb_qp_sq_used(&k->qp), 0);
		post_recv(k, i, 0, 8);
		give(k, P(VRB_OP_SEND_ONLY, 200 + i, .len = 8));
		want_recv(k, i, VRB_WC_SUCCESS, 8);
	}
	want_quiet(k);
	kit_free(k);
}

static void test_many_at_once(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge s = SGE(k, 0, 8);
	struct vrb_swqe *w;

	(void)state;
	for (uint32_t i = 0; i < KIT_SQ; i++) {
		w = vrb_wq_entry(&k->qp.sq, k->qp.sq.tail + i);
		*w = (struct vrb_swqe){.wr_id = i, .op = VRB_WR_SEND, .len = 8, .n_sge = 1};
		w->flags = i == KIT_SQ - 1 ? VRB_WRF_SIGNALED : 0;
		w->sge[0] = s;
	}
	vrb_qp_post(&k->qp, KIT_SQ, &k->fx);
	for (uint32_t i = 0; i < KIT_SQ; i++)
		want(k, REQ, P(VRB_OP_SEND_ONLY, 100 + i, .len = 8, .flags = A));
	want_none(k, REQ);
	give(k, ACK(100 + KIT_SQ - 1));
	assert_int_equal(vrb_qp_sq_used(&k->qp), KIT_SQ);
	want_wc(k, KIT_SQ - 1, VRB_WC_SUCCESS);
	assert_int_equal(vrb_qp_sq_used(&k->qp), 0);
	want_quiet(k);
	kit_free(k);
}

/* A READ's answer may come long after SENDs behind it were acknowledged... by a peer that is wrong;
 * a right one answers in order. Completions never change their order. */
static void test_order_across_kinds(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_op(k, 2, VRB_WR_READ, 0, 8);
	post_op(k, 3, VRB_WR_FETCH_ADD, 0, 8);
	post_op(k, 4, VRB_WR_WRITE, 0, 8);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	give(k, P(VRB_OP_ATOMIC_ACK, 102, .syndrome = 0x1f)); /* the READ's answer was lost */
	want_verdict(k, VRB_V_IMPLIED_NAK);
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	give(k, P(VRB_OP_READ_RESP_ONLY, 101, .len = 8, .syndrome = 0x1f)); /* only late */
	want_wc(k, 2, VRB_WC_SUCCESS);
	give(k, P(VRB_OP_ATOMIC_ACK, 102, .syndrome = 0x1f, .atomic_orig = 1));
	want_wc(k, 3, VRB_WC_SUCCESS);
	want_none(k, RESP);
	give(k, ACK(103));
	want_wc(k, 4, VRB_WC_SUCCESS);
	want_none(k, REQ); /* nothing has to be repeated any more */
	want_quiet(k);
	kit_free(k);
}

static void test_post_in_err_after_fault(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	give(k, P(VRB_OP_SEND_LAST, 200, .len = 8));
	kit_forget(k);
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_recv(k, 2, 0, 8);
	want_wc(k, 1, VRB_WC_WR_FLUSH_ERR);
	want_recv(k, 2, VRB_WC_WR_FLUSH_ERR, 0);
	want(k, RESP, NAK(200, VRB_NAK_INVALID)); /* still leaves */
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

static void test_error_fires_solicited_arm(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	vrb_cq_arm(&k->scq, true);
	give(k, NAK(100, VRB_NAK_INVALID));
	assert_int_equal(k->n_notified, 1);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flush_order),
		cmocka_unit_test(test_ring_wraps),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_order_across_kinds),
		cmocka_unit_test(test_post_in_err_after_fault),
		cmocka_unit_test(test_error_fires_solicited_arm),
	};

	return VRB_RUN_TESTS(tests);
}
