/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers and patience: the ACK timeout, RNR, retry counts, a peer that is gone. */
#include "core_kit.h"

#define A	   VRB_PKT_ACKREQ
#define SENT(p, n) P(VRB_OP_SEND_ONLY, p, .len = (n), .flags = A)
#define T14	   (4096ull << 14)

static struct kit *one_sent(const struct kit_opts *o)
{
	struct kit *k = kit_new(o);

	post_op(k, 1, VRB_WR_SEND, 0, 8);
	want(k, REQ, SENT(100, 8));
	return k;
}
#define one(...) one_sent(&(struct kit_opts){__VA_ARGS__})

static void test_timeout_time(void **state)
{
	struct kit *k = one(0);
	vrb_ns at = k->now + T14;

	(void)state;
	assert_int_equal(vrb_qp_next_deadline(&k->qp), at);
	pass(k, T14 - 1);
	want_none(k, REQ);
	pass(k, 1);
	want(k, REQ, SENT(100, 8));
	assert_int_equal(vrb_qp_next_deadline(&k->qp), at + T14);
	kit_free(k);
}

static void test_timeout_codes(void **state)
{
	(void)state;
	for (uint8_t n = 1; n < 32; n++) {
		struct kit *k = one(.timeout = n);

		assert_int_equal(vrb_qp_next_deadline(&k->qp) - k->now, 4096ull << n);
		kit_free(k);
	}
}

static void test_no_timeout(void **state)
{
	struct kit *k = one(.timeout = 255);

	(void)state;
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	kit_free(k);
}

/* retry_cnt 3: four transmissions in all. */
static void test_retry_exceeded(void **state)
{
	struct kit *k = one(.retry = 3);

	(void)state;
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	post_recv(k, 9, 0, 8);
	want(k, REQ, SENT(101, 8));
	for (uint32_t i = 0; i < 3; i++) {
		pass(k, T14);
		want(k, REQ, SENT(100, 8));
		want(k, REQ, SENT(101, 8));
		want_none(k, REQ);
	}
	want_quiet(k);
	pass(k, T14);
	want_verdict(k, VRB_V_RETRY_EXC);
	assert_int_equal(k->last.val[0], 100);
	assert_int_equal(k->last.val[1], 4);
	assert_int_equal(k->last.val[2], 67);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	want_wc(k, 2, VRB_WC_WR_FLUSH_ERR);
	want_recv(k, 9, VRB_WC_WR_FLUSH_ERR, 0);
	want_quiet(k); /* visible as a completion: no event */
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	kit_free(k);
}

static void test_retry_zero(void **state)
{
	struct kit *k = one(.retry = 255);

	(void)state;
	pass(k, T14);
	want_verdict(k, VRB_V_RETRY_EXC);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	kit_free(k);
}

static void test_progress_restores_patience(void **state)
{
	struct kit *k = one(.retry = 1);

	(void)state;
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	want(k, REQ, SENT(101, 8));
	pass(k, T14);
	want(k, REQ, SENT(100, 8));
	want(k, REQ, SENT(101, 8));
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), k->now + T14);
	pass(k, T14);
	want(k, REQ, SENT(101, 8));
	give(k, ACK(101));
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

/* A sequence NAK costs a retry too. */
static void test_naks_cost(void **state)
{
	struct kit *k = one(.retry = 1);

	(void)state;
	give(k, NAK(100, VRB_NAK_PSN_SEQ));
	want(k, REQ, SENT(100, 8));
	pass(k, T14);
	want_verdict(k, VRB_V_RETRY_EXC);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	kit_free(k);
}

static void test_timer_stands_while_nothing_asks(void **state)
{
	struct kit *k = kit(.window = 64);

	(void)state;
	/* the first packets of a long message carry no AckReq */
	post_op(k, 1, VRB_WR_SEND, 0, 8192);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 256));
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	for (uint32_t i = 1; i < 15; i++)
		want(k, REQ, P(VRB_OP_SEND_MIDDLE, 100 + i, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 115, .len = 256, .flags = A));
	assert_int_equal(vrb_qp_next_deadline(&k->qp), k->now + T14);
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 116, .len = 256));
	give(k, ACK(115));
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	kit_free(k);
}

/* The link never has room: what was sent, what is to be repeated and what was never sent at all end
 * in RETRY_EXC. */
static void stalled(uint32_t n_sent)
{
	struct kit *k = kit(.retry = 2);

	post_op(k, 1, VRB_WR_SEND, 0, 8192);
	for (uint32_t i = 0; i < n_sent; i++)
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	for (uint32_t i = 0; i < 3; i++) {
		want_quiet(k);
		vrb_qp_on_stall(&k->qp, k->now);
		assert_int_equal(vrb_qp_next_deadline(&k->qp), k->now + T14);
		pass(k, T14);
	}
	want_verdict(k, VRB_V_RETRY_EXC);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	want_quiet(k);
	kit_free(k);
}

static void test_stall(void **state)
{
	(void)state;
	stalled(0);
	stalled(1); /* no AckReq yet */
	stalled(32);
}

static void test_stall_ends(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	vrb_qp_on_stall(&k->qp, k->now); /* nothing is posted */
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	vrb_qp_on_stall(&k->qp, k->now);
	pass(k, T14 / 2);
	vrb_qp_on_unstall(&k->qp);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	want(k, REQ, SENT(100, 8));
	vrb_qp_on_unstall(&k->qp); /* the timer of what was sent goes on */
	assert_int_equal(vrb_qp_next_deadline(&k->qp), k->now + T14);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

static void test_restart_in_mid_message(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_WRITE, 0, 1024);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	give(k, NAK(102, VRB_NAK_PSN_SEQ));
	want(k, REQ, P(VRB_OP_WRITE_MIDDLE, 102, .len = 256));
	want_payload(k, k->mem + 512, 256);
	want(k, REQ, P(VRB_OP_WRITE_LAST, 103, .len = 256, .flags = A));
	give(k, NAK(103, VRB_NAK_PSN_SEQ));
	want(k, REQ, P(VRB_OP_WRITE_LAST, 103, .len = 256, .flags = A));
	want_payload(k, k->mem + 768, 256);
	want_none(k, REQ);
	kit_free(k);
}

static void test_rnr_table(void **state)
{
	static const uint32_t us10[32] = {65536, 1,    2,    3,	    4,	   6,	  8,	 12,
					  16,	 24,   32,   48,    64,	   96,	  128,	 192,
					  256,	 384,  512,  768,   1024,  1536,  2048,	 3072,
					  4096,	 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	(void)state;
	for (uint8_t code = 0; code < 32; code++) {
		struct kit *k = one(0);
		vrb_ns t = us10[code] * 10ull * VRB_NS_PER_US;

		give(k, NAK(100, VRB_AETH_RNR | code));
		want_none(k, REQ);
		pass(k, t - 1);
		want_none(k, REQ);
		pass(k, 1);
		want(k, REQ, SENT(100, 8));
		kit_free(k);
	}
}

static void test_rnr_holds_everything(void **state)
{
	struct kit *k = one(0);

	(void)state;
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	want(k, REQ, SENT(101, 8));
	give(k, NAK(101, VRB_AETH_RNR | KIT_RNR));
	want_wc(k, 1, VRB_WC_SUCCESS); /* before it is acknowledged */
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	want_none(k, REQ);
	give(k, NAK(101, VRB_AETH_RNR | KIT_RNR)); /* a duplicate costs nothing */
	give(k, NAK(101, VRB_NAK_PSN_SEQ));	   /* Linux rxe says this too */
	want_none(k, REQ);
	assert_int_equal(k->qp.rnr_left, 2);
	assert_int_equal(k->qp.retry_left, 3);
	pass(k, 640 * VRB_NS_PER_US);
	want(k, REQ, SENT(101, 8));
	want(k, REQ, SENT(102, 8));
	give(k, ACK(102));
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_wc(k, 3, VRB_WC_SUCCESS);
	assert_int_equal(k->qp.rnr_left, 3);
	want_quiet(k);
	kit_free(k);
}

static void test_rnr_exceeded(void **state)
{
	struct kit *k = one(.rnr_retry = 2);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		give(k, NAK(100, VRB_AETH_RNR | 1));
		pass(k, 10 * VRB_NS_PER_US);
		want(k, REQ, SENT(100, 8));
	}
	want_quiet(k);
	give(k, NAK(100, VRB_AETH_RNR | 1));
	want_verdict(k, VRB_V_RNR_RETRY_EXC);
	assert_int_equal(k->last.val[0], 3);
	assert_int_equal(k->last.val[1], 2);
	want_wc(k, 1, VRB_WC_RNR_RETRY_EXC_ERR);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	kit_free(k);
}

static void test_rnr_zero(void **state)
{
	struct kit *k = one(.rnr_retry = 255);

	(void)state;
	give(k, NAK(100, VRB_AETH_RNR | 1));
	want_verdict(k, VRB_V_RNR_RETRY_EXC);
	want_wc(k, 1, VRB_WC_RNR_RETRY_EXC_ERR);
	kit_free(k);
}

static void test_rnr_for_ever(void **state)
{
	struct kit *k = one(.rnr_retry = 7);

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		give(k, NAK(100, VRB_AETH_RNR | 1));
		pass(k, 10 * VRB_NS_PER_US);
		want(k, REQ, SENT(100, 8));
	}
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

/* Answers lost now and then during a long wait do not add up: each RNR NAK is an answer. */
static void test_rnr_restores_tries(void **state)
{
	struct kit *k = one(.retry = 1, .rnr_retry = 7);

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		give(k, NAK(100, VRB_AETH_RNR | 1));
		pass(k, 10 * VRB_NS_PER_US);
		want(k, REQ, SENT(100, 8)); /* lost, or its answer is */
		pass(k, T14);
		want(k, REQ, SENT(100, 8));
	}
	want_quiet(k);
	pass(k, T14);
	want_verdict(k, VRB_V_RETRY_EXC);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	kit_free(k);
}

/* Local operations in what is repeated are not done twice. */
static void test_local_operations_once(void **state)
{
	struct kit *k = one(0);
	uint32_t rkey = vrb_mw_add(&k->keys, 1, VRB_KEY_MW2);
	struct vrb_swqe bind = {.wr_id = 2,
				.op = VRB_WR_BIND_MW,
				.flags = VRB_WRF_SIGNALED,
				.rkey = rkey + 1,
				.va = (uintptr_t)k->mem,
				.bind = {4096, VRB_ACC_REMOTE_WRITE, k->lkey}};

	(void)state;
	post(k, bind, NULL, 0);
	want_none(k, REQ);
	want_quiet(k); /* in order: the SEND is outstanding */
	pass(k, T14);
	want(k, REQ, SENT(100, 8));
	want_none(k, REQ);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_quiet(k);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	want(k, REQ, SENT(101, 8));
	kit_free(k);
}

static void test_repetition_passes_over_local_operations(void **state)
{
	struct kit *k = one(0);
	uint32_t rkey = vrb_mw_add(&k->keys, 1, VRB_KEY_MW2);
	struct vrb_swqe bind = {.wr_id = 2,
				.op = VRB_WR_BIND_MW,
				.rkey = rkey + 1,
				.va = (uintptr_t)k->mem,
				.bind = {4096, VRB_ACC_REMOTE_WRITE, k->lkey}};

	(void)state;
	post(k, bind, NULL, 0);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	want(k, REQ, SENT(101, 8));
	pass(k, T14);
	want(k, REQ, SENT(100, 8));
	want(k, REQ, SENT(101, 8));
	want_none(k, REQ);
	give(k, ACK(101));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 3, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

static void test_peer_gone(void **state)
{
	struct vrb_report why = {.verdict = VRB_V_PEER_GONE, .val = {2}};
	struct kit *k = one(0);

	(void)state;
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	post_recv(k, 9, 0, 8);
	vrb_qp_on_peer_gone(&k->qp, &why, &k->fx);
	kit_forget(k);
	give(k, ACK(100)); /* collects the step's effects; too late to matter */
	want_verdict(k, VRB_V_PEER_GONE);
	want_verdict(k, VRB_V_DROP_STATE);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	want_wc(k, 2, VRB_WC_WR_FLUSH_ERR);
	want_recv(k, 9, VRB_WC_WR_FLUSH_ERR, 0);
	want_quiet(k);
	kit_free(k);
}

static void test_peer_gone_while_idle(void **state)
{
	struct vrb_report why = {.verdict = VRB_V_PEER_GONE, .val = {2}};
	struct kit *k = kit(0);

	(void)state;
	vrb_qp_on_peer_gone(&k->qp, &why, &k->fx);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	assert_false(vrb_qp_is_plain_tx(&k->qp));
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	want_verdict(k, VRB_V_PEER_GONE);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	want_wc(k, 2, VRB_WC_WR_FLUSH_ERR);
	want_quiet(k);
	kit_free(k);
}

/* In SQD only what was started ends; the rest when the QP is in RTS again. */
static void test_peer_gone_in_sqd(void **state)
{
	struct vrb_report why = {.verdict = VRB_V_PEER_GONE, .val = {2}};
	struct kit *k = kit(0);

	(void)state;
	kit_to(k, VRB_QPS_SQD);
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	vrb_qp_on_peer_gone(&k->qp, &why, &k->fx);
	want_none(k, REQ);
	want_event(k, VRB_ASYNC_SQ_DRAINED);
	want_quiet(k);
	kit_to(k, VRB_QPS_RTS);
	want_verdict(k, VRB_V_PEER_GONE);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	want_quiet(k);
	kit_free(k);
}

static void test_peer_gone_before_rts(void **state)
{
	struct vrb_report why = {.verdict = VRB_V_PEER_GONE, .val = {2}};
	struct kit *k = kit(.state = VRB_QPS_RTR);

	(void)state;
	post_recv(k, 9, 0, 8);
	vrb_qp_on_peer_gone(&k->qp, &why, &k->fx);
	want_quiet(k);
	kit_to(k, VRB_QPS_RTS);
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	want_verdict(k, VRB_V_PEER_GONE);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	want_recv(k, 9, VRB_WC_WR_FLUSH_ERR, 0);
	kit_free(k);
}

static void test_peer_gone_unreliable(void **state)
{
	struct vrb_report why = {.verdict = VRB_V_PEER_GONE, .val = {2}};
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	vrb_qp_on_peer_gone(&k->qp, &why, &k->fx);
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	want(k, REQ, P(VRB_TP_UC | VRB_OP_SEND_ONLY, 100, .len = 8));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeout_time),
		cmocka_unit_test(test_timeout_codes),
		cmocka_unit_test(test_no_timeout),
		cmocka_unit_test(test_retry_exceeded),
		cmocka_unit_test(test_retry_zero),
		cmocka_unit_test(test_progress_restores_patience),
		cmocka_unit_test(test_naks_cost),
		cmocka_unit_test(test_timer_stands_while_nothing_asks),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_stall_ends),
		cmocka_unit_test(test_restart_in_mid_message),
		cmocka_unit_test(test_rnr_table),
		cmocka_unit_test(test_rnr_holds_everything),
		cmocka_unit_test(test_rnr_exceeded),
		cmocka_unit_test(test_rnr_zero),
		cmocka_unit_test(test_rnr_for_ever),
		cmocka_unit_test(test_rnr_restores_tries),
		cmocka_unit_test(test_local_operations_once),
		cmocka_unit_test(test_peer_gone),
		cmocka_unit_test(test_peer_gone_while_idle),
		cmocka_unit_test(test_repetition_passes_over_local_operations),
		cmocka_unit_test(test_peer_gone_in_sqd),
		cmocka_unit_test(test_peer_gone_before_rts),
		cmocka_unit_test(test_peer_gone_unreliable),
	};

	return VRB_RUN_TESTS(tests);
}
