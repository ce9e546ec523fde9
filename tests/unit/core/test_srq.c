/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: order, binding at the First packet, the limit, the last WQE. */
#include "core_kit.h"

#include <string.h>

#define A VRB_PKT_ACKREQ

static void test_taken_in_order(void **state)
{
	struct kit *k = kit(.srq = true);

	(void)state;
	post_recv(k, 1, 0, 300);
	post_recv(k, 2, 512, 300);
	give_at(k, P(VRB_OP_SEND_FIRST, 200, .len = 256), 0);
	assert_int_equal(vrb_srq_posted(&k->srq), 1); /* bound at the First */
	give_at(k, P(VRB_OP_SEND_LAST, 201, .len = 44), 256);
	want_recv(k, 1, VRB_WC_SUCCESS, 300);
	assert_memory_equal(k->mem, k->wire, 300);
	give(k, P(VRB_OP_SEND_ONLY, 202, .len = 10));
	want_recv(k, 2, VRB_WC_SUCCESS, 10);
	assert_memory_equal(k->mem + 512, k->wire, 10);
	want_quiet(k);
	kit_free(k);
}

/* The slot of a bound entry may be posted anew. */
static void test_slot_reused_in_mid_message(void **state)
{
	struct kit *k = kit(.srq = true);

	(void)state;
	post_recv(k, 1, 0, 300);
	give_at(k, P(VRB_OP_SEND_FIRST, 200, .len = 256), 0);
	for (uint32_t i = 0; i < KIT_RQ; i++)
		post_recv(k, 100 + i, 4096, 8);
	give_at(k, P(VRB_OP_SEND_LAST, 201, .len = 44), 256);
	want_recv(k, 1, VRB_WC_SUCCESS, 300);
	assert_memory_equal(k->mem, k->wire, 300);
	kit_free(k);
}

static void test_empty(void **state)
{
	struct kit *k = kit(.srq = true);

	(void)state;
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8));
	want_verdict(k, VRB_V_NAK_RNR);
	want(k, RESP, NAK(200, VRB_AETH_RNR | KIT_RNR));
	want_quiet(k);
	kit_free(k);
}

static void test_keys_are_of_its_pd(void **state)
{
	struct kit *k = kit(.srq = true);

	(void)state;
	k->srq.pd = 2;
	post_recv_sg(k, 1, &(struct vrb_sge){(uintptr_t)k->other, 64, k->other_lkey}, 1);
	post_recv(k, 2, 0, 64);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	assert_memory_equal(k->other, k->wire, 8);
	give(k, P(VRB_OP_SEND_ONLY, 201, .len = 8));
	want_verdict(k, VRB_V_LKEY_OTHER_PD);
	want_recv(k, 2, VRB_WC_LOC_PROT_ERR, 0);
	want_event(k, VRB_ASYNC_LAST_WQE);
	want_quiet(k);
	kit_free(k);
}

static void test_write_with_immediate_takes_at_the_end(void **state)
{
	struct kit *k = kit(.srq = true);
	uint64_t va = (uintptr_t)k->mem + 1024;

	(void)state;
	post_recv(k, 1, 0, 0);
	give(k, P(VRB_OP_WRITE_FIRST, 200, .len = 256, .rkey = k->rkey, .va = va, .dma_len = 300));
	assert_int_equal(vrb_srq_posted(&k->srq), 1);
	give(k, P(VRB_OP_WRITE_LAST_IMM, 201, .len = 44));
	want_recv(k, 1, VRB_WC_SUCCESS, 300);
	assert_int_equal(vrb_srq_posted(&k->srq), 0);
	want_quiet(k);
	kit_free(k);
}

static void test_limit(void **state)
{
	struct kit *k = kit(.srq = true);

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		post_recv(k, i, 0, 8);
	vrb_srq_arm(&k->srq, 4, &k->fx);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8));
	give(k, P(VRB_OP_SEND_ONLY, 201, .len = 8));
	assert_int_equal(vrb_srq_posted(&k->srq), 4); /* 4 left does not fire */
	assert_int_equal(k->n_event, 0);
	give(k, P(VRB_OP_SEND_ONLY, 202, .len = 8));
	want_event(k, VRB_ASYNC_SRQ_LIMIT);
	assert_int_equal(k->srq.limit, 0);
	give(k, P(VRB_OP_SEND_ONLY, 203, .len = 8));
	assert_int_equal(k->n_event, 0); /* once */
	vrb_srq_arm(&k->srq, 5, &k->fx); /* above what is posted: at once */
	want_none(k, RESP);
	want_event(k, VRB_ASYNC_SRQ_LIMIT);
	kit_free(k);
}

static void test_error_leaves_the_queue(void **state)
{
	struct kit *k = kit(.srq = true);

	(void)state;
	post_recv(k, 1, 0, 300);
	post_recv(k, 2, 0, 300);
	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256));
	kit_to(k, VRB_QPS_ERR);
	want_recv(k, 1, VRB_WC_WR_FLUSH_ERR, 0); /* the bound one */
	want_event(k, VRB_ASYNC_LAST_WQE);
	assert_int_equal(vrb_srq_posted(&k->srq), 1);
	kit_to(k, VRB_QPS_ERR);
	want_quiet(k); /* once */
	kit_free(k);
}

static void test_fault_in_message(void **state)
{
	struct kit *k = kit(.srq = true);

	(void)state;
	post_recv(k, 1, 0, 300);
	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256));
	give(k, P(VRB_OP_SEND_LAST, 201, .len = 100));
	want_verdict(k, VRB_V_RECV_TOO_SHORT);
	want_recv(k, 1, VRB_WC_LOC_LEN_ERR, 0);
	want(k, RESP, NAK(201, VRB_NAK_INVALID));
	want_event(k, VRB_ASYNC_LAST_WQE);
	want_quiet(k);
	kit_free(k);
}

static void test_no_straight_line(void **state)
{
	struct kit *k = kit(.srq = true);

	(void)state;
	assert_false(vrb_qp_is_plain_rx(&k->qp));
	assert_true(vrb_qp_is_plain_tx(&k->qp));
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken_in_order),
		cmocka_unit_test(test_slot_reused_in_mid_message),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_keys_are_of_its_pd),
		cmocka_unit_test(test_write_with_immediate_takes_at_the_end),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_error_leaves_the_queue),
		cmocka_unit_test(test_fault_in_message),
		cmocka_unit_test(test_no_straight_line),
	};

	return VRB_RUN_TESTS(tests);
}
