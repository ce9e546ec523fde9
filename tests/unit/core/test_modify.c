/* SPDX-License-Identifier: BSD-2-Clause */
/* States: what each lets in and out, what RESET forgets, what query says. */
#include "core_kit.h"

#include <string.h>

#define A VRB_PKT_ACKREQ

static void test_states_and_packets(void **state)
{
	static const bool takes[VRB_N_QP_STATES] = {
		[VRB_QPS_RTR] = true, [VRB_QPS_RTS] = true, [VRB_QPS_SQD] = true};

	(void)state;
	for (uint32_t s = VRB_QPS_RESET; s < VRB_N_QP_STATES; s++) {
		struct kit *k = kit(0);

		if (s == VRB_QPS_SQE) { /* UC and UD only */
			kit_free(k);
			continue;
		}
		if (s == VRB_QPS_INIT || s == VRB_QPS_RTR) {
			kit_free(k);
			k = kit(.state = (enum vrb_qp_state)s);
		} else {
			kit_to(k, (enum vrb_qp_state)s);
		}
		kit_forget(k);
		post_recv(k, 1, 0, 8);
		give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8, .flags = A));
		if (takes[s]) {
			want_recv(k, 1, VRB_WC_SUCCESS, 8);
			want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f));
		} else {
			want_verdict(k, VRB_V_DROP_STATE);
			assert_int_equal(k->last.val[0], s);
			want_none(k, RESP);
		}
		kit_free(k);
	}
}

static void test_rtr_does_not_send(void **state)
{
	struct kit *k = kit(.state = VRB_QPS_RTR);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8); /* rules refuse it; the core holds it */
	want_none(k, REQ);
	kit_free(k);
}

static void test_reset_forgets(void **state)
{
	struct kit *k = kit(0);
	struct vrb_qp_attr a;

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_op(k, 2, VRB_WR_SEND, 0, 600);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	give(k, ACK(100)); /* a completion waits in the CQ */
	want(k, REQ, P(VRB_OP_SEND_FIRST, 101, .len = 256));
	post_recv(k, 9, 0, 600);
	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256));
	give(k, P(VRB_OP_SEND_ONLY, 209, .len = 8));
	kit_forget(k);
	k->qp.refuse_next = VRB_NAK_INVALID;
	kit_to(k, VRB_QPS_RESET);
	want_quiet(k); /* no completions, the old one is gone too */
	want_none(k, REQ);
	want_none(k, RESP);
	assert_int_equal(vrb_qp_sq_used(&k->qp), 0);
	assert_int_equal(vrb_qp_rq_used(&k->qp), 0);
	assert_int_equal(k->qp.refuse_next, 0);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	vrb_qp_query(&k->qp, &a);
	assert_int_equal(a.state, VRB_QPS_RESET);
	assert_int_equal(a.dest_qpn, 0);
	kit_free(k);
}

static void test_connects_anew_after_reset(void **state)
{
	struct kit *k = kit(0);
	struct vrb_qp_attr a = {.dest_qpn = KIT_PEER,
				.rq_psn = 5,
				.sq_psn = 6,
				.max_dest_rd_atomic = 1,
				.max_rd_atomic = 1,
				.retry_cnt = 1,
				.access = 2};

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 600);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 256));
	kit_to(k, VRB_QPS_RESET);
	a.state = VRB_QPS_INIT;
	vrb_qp_modify(&k->qp, &a, VRB_QPA_STATE | VRB_QPA_ACCESS, 0, 0, &k->fx);
	a.state = VRB_QPS_RTR;
	vrb_qp_modify(&k->qp, &a, VRB_QPA_STATE | VRB_QPA_DEST_QPN | VRB_QPA_RQ_PSN, 0, 0, &k->fx);
	a.state = VRB_QPS_RTS;
	vrb_qp_modify(&k->qp, &a, VRB_QPA_STATE | VRB_QPA_SQ_PSN | VRB_QPA_RETRY_CNT, 0, 0, &k->fx);
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 6, .len = 8, .flags = A));
	post_recv(k, 9, 0, 8);
	give(k, P(VRB_OP_SEND_ONLY, 5, .len = 8, .flags = A));
	want(k, RESP, P(VRB_OP_ACK, 5, .syndrome = 0x1f, .msn = 1));
	want_recv(k, 9, VRB_WC_SUCCESS, 8);
	want_quiet(k);
	kit_free(k);
}

static void test_err_flushes_in_order(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge s = SGE(k, 0, 8);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post(k, (struct vrb_swqe){.wr_id = 2, .op = VRB_WR_SEND}, &s, 1); /* unsignaled too */
	post_op(k, 3, VRB_WR_READ, 0, 8);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	post_recv(k, 8, 0, 8);
	post_recv(k, 9, 0, 8);
	kit_to(k, VRB_QPS_ERR);
	for (uint64_t i = 1; i <= 3; i++)
		want_wc(k, i, VRB_WC_WR_FLUSH_ERR);
	want_recv(k, 8, VRB_WC_WR_FLUSH_ERR, 0);
	want_recv(k, 9, VRB_WC_WR_FLUSH_ERR, 0);
	want_quiet(k);
	post_op(k, 4, VRB_WR_SEND, 0, 8); /* posted in ERR: at once */
	want_wc(k, 4, VRB_WC_WR_FLUSH_ERR);
	post_recv(k, 10, 0, 8);
	want_recv(k, 10, VRB_WC_WR_FLUSH_ERR, 0);
	give(k, ACK(100));
	want_verdict(k, VRB_V_DROP_STATE);
	want_quiet(k);
	want_none(k, REQ);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	kit_free(k);
}

/* The bound receive is flushed with the others, in order. */
static void test_err_in_mid_message(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 8, 0, 600);
	post_recv(k, 9, 0, 600);
	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256));
	kit_to(k, VRB_QPS_ERR);
	want_recv(k, 8, VRB_WC_WR_FLUSH_ERR, 0);
	want_recv(k, 9, VRB_WC_WR_FLUSH_ERR, 0);
	want_quiet(k);
	kit_free(k);
}

/* The user has seen the message: its acknowledgement still leaves. Nothing else does. */
static void test_err_keeps_the_ack(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8, .flags = A));
	give(k, P(VRB_OP_READ_REQ, 201, .rkey = k->rkey, .va = (uintptr_t)k->mem, .dma_len = 8));
	kit_to(k, VRB_QPS_ERR);
	want_none(k, REQ);
	/* not the READ's answer, and not an ACK that would imply it */
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f));
	want_none(k, RESP);
	kit_free(k);
}

static void test_query(void **state)
{
	struct kit *k = kit(0);
	struct vrb_qp_attr a;

	(void)state;
	vrb_qp_query(&k->qp, &a);
	assert_int_equal(a.state, VRB_QPS_RTS);
	assert_int_equal(a.cur_state, VRB_QPS_RTS);
	assert_int_equal(a.sq_psn, KIT_SQ_PSN);
	assert_int_equal(a.rq_psn, KIT_RQ_PSN);
	assert_int_equal(a.dest_qpn, KIT_PEER);
	assert_int_equal(a.timeout, 14);
	assert_int_equal(a.min_rnr_timer, KIT_RNR);
	assert_int_equal(a.sq_draining, 0);
	kit_free(k);
}

static void test_address_and_limits(void **state)
{
	struct kit *k = kit(0);
	struct vrb_qp_attr a = {.dgid = {{1, 2, 3}},
				.is_global = 1,
				.sgid_index = 2,
				.hop_limit = 64,
				.flow_label = 77,
				.av_port = 1,
				.traffic_class = 8,
				.max_dest_rd_atomic = 200};

	(void)state;
	vrb_qp_modify(&k->qp, &a, VRB_QPA_AV | VRB_QPA_MAX_DEST_RD_ATOMIC, 4096, 2, &k->fx);
	vrb_qp_query(&k->qp, &a);
	assert_int_equal(a.dgid.raw[2], 3);
	assert_int_equal(a.sgid_index, 2);
	assert_int_equal(a.hop_limit, 64);
	assert_int_equal(a.flow_label, 77);
	assert_int_equal(a.traffic_class, 8);
	assert_int_equal(a.max_dest_rd_atomic, VRB_RD_ATOMIC_OWN);
	assert_int_equal(k->qp.mtu, 4096);
	assert_int_equal(k->qp.window_max, 2);
	assert_int_equal(k->qp.read_chunk, 1);
	kit_free(k);
}

static void test_attributes_in_rts(void **state)
{
	struct kit *k = kit(0);
	struct vrb_qp_attr a = {.min_rnr_timer = 3, .access = 0};

	(void)state;
	vrb_qp_modify(&k->qp, &a, VRB_QPA_MIN_RNR_TIMER | VRB_QPA_ACCESS, 0, 0, &k->fx);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8));
	want(k, RESP, NAK(200, VRB_AETH_RNR | 3));
	give(k, P(VRB_OP_READ_REQ, 200));
	want(k, RESP, NAK(200, VRB_NAK_INVALID));
	kit_free(k);
}

/* slow_tx and slow_rx say when the straight line is barred. */
static void test_straight_line(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	assert_true(vrb_qp_is_plain_tx(&k->qp) && vrb_qp_is_plain_rx(&k->qp));
	post_op(k, 1, VRB_WR_SEND, 0, 600);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 256));
	assert_int_equal(k->qp.slow_tx, VRB_SLOW_MIDDLE);
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 101, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST, 102, .len = 88, .flags = A));
	assert_int_equal(k->qp.slow_tx, 0);
	give(k, NAK(101, VRB_AETH_RNR | 1));
	assert_int_equal(k->qp.slow_tx, VRB_SLOW_MIDDLE | VRB_SLOW_REWOUND | VRB_SLOW_RNR);
	give(k, ACK(102));
	assert_int_equal(k->qp.slow_tx, 0);
	post_recv(k, 9, 0, 600);
	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256));
	assert_int_equal(k->qp.slow_rx, VRB_SLOW_MIDDLE);
	give(k, P(VRB_OP_SEND_LAST, 201, .len = 8));
	assert_int_equal(k->qp.slow_rx, 0);
	give(k, P(VRB_OP_SEND_ONLY, 203, .len = 8));
	assert_int_equal(k->qp.slow_rx, VRB_SLOW_NAK);
	post_recv(k, 10, 0, 8);
	give(k, P(VRB_OP_SEND_ONLY, 202, .len = 8));
	assert_int_equal(k->qp.slow_rx, 0);
	vrb_qp_tap(&k->qp, true);
	assert_int_equal(k->qp.slow_tx, VRB_SLOW_TAPPED);
	assert_int_equal(k->qp.slow_rx, VRB_SLOW_TAPPED);
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 103, .len = 8, .flags = A));
	assert_int_equal(k->qp.slow_tx, VRB_SLOW_TAPPED);
	vrb_qp_tap(&k->qp, false);
	assert_true(vrb_qp_is_plain_tx(&k->qp) && vrb_qp_is_plain_rx(&k->qp));
	kit_to(k, VRB_QPS_SQD);
	assert_int_equal(k->qp.slow_tx, VRB_SLOW_STATE);
	assert_int_equal(k->qp.slow_rx, 0);
	kit_to(k, VRB_QPS_ERR);
	assert_int_equal(k->qp.slow_tx, VRB_SLOW_STATE);
	assert_int_equal(k->qp.slow_rx, VRB_SLOW_STATE);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_and_packets),
		cmocka_unit_test(test_rtr_does_not_send),
		cmocka_unit_test(test_reset_forgets),
		cmocka_unit_test(test_connects_anew_after_reset),
		cmocka_unit_test(test_err_flushes_in_order),
		cmocka_unit_test(test_err_in_mid_message),
		cmocka_unit_test(test_err_keeps_the_ack),
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_attributes_in_rts),
		cmocka_unit_test(test_straight_line),
		cmocka_unit_test(test_address_and_limits),
	};

	return VRB_RUN_TESTS(tests);
}
