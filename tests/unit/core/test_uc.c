/* SPDX-License-Identifier: BSD-2-Clause */
/* Unreliable connections: completion at sending, lost packets cost their message only. */
#include "core_kit.h"

#include <string.h>

#define U(o, p, ...) P(VRB_TP_UC | VRB_OP_##o, p, __VA_ARGS__)
#define TO(k, off)   .rkey = (k)->rkey, .va = (uintptr_t)((k)->mem + (off))

static void test_sending(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 300);
	post_op(k, 2, VRB_WR_WRITE, 0, 8);
	want(k, REQ, U(SEND_FIRST, 100, .len = 256));
	want_quiet(k);
	want(k, REQ, U(SEND_LAST, 101, .len = 44));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want(k, REQ, U(WRITE_ONLY, 102, .len = 8, .rkey = 0xabcd00, .va = 0x10000, .dma_len = 8));
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_none(k, REQ);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	want_quiet(k);
	kit_free(k);
}

static void test_no_window(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC, .window = 1);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 5 * 256);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	want_wc(k, 1, VRB_WC_SUCCESS);
	kit_free(k);
}

static void test_receiving(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC, .state = VRB_QPS_RTR);

	(void)state;
	post_recv(k, 1, 0, 300);
	give_at(k, U(SEND_FIRST, 200, .len = 256), 0);
	want_event(k, VRB_ASYNC_COMM_EST);
	give_at(k, U(SEND_LAST_IMM, 201, .len = 44, .imm = 3), 256);
	want_recv(k, 1, VRB_WC_SUCCESS, 300);
	assert_memory_equal(k->mem, k->wire, 300);
	want_none(k, RESP); /* never */
	want_quiet(k);
	kit_free(k);
}

static void test_lost_middle(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	post_recv(k, 1, 0, 600);
	give(k, U(SEND_FIRST, 200, .len = 256));
	give(k, U(SEND_LAST, 202, .len = 88));
	want_verdict(k, VRB_V_DROP_UC_BROKEN);
	assert_int_equal(k->last.val[0], 202);
	assert_int_equal(k->last.val[1], 201);
	want_quiet(k);
	give_at(k, U(SEND_ONLY, 250, .len = 8), 100); /* any PSN begins anew */
	want_recv(k, 1, VRB_WC_SUCCESS, 8);	      /* the receive was kept */
	assert_memory_equal(k->mem, k->wire + 100, 8);
	give(k, U(SEND_ONLY, 251, .len = 8));
	want_verdict(k, VRB_V_DROP_NO_RECV);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	kit_free(k);
}

static void test_new_message_breaks_the_old(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	post_recv(k, 1, 0, 600);
	give(k, U(SEND_FIRST, 200, .len = 256));
	give_at(k, U(SEND_FIRST, 205, .len = 256), 10);
	want_verdict(k, VRB_V_DROP_UC_BROKEN);
	give_at(k, U(SEND_LAST, 206, .len = 8), 266);
	want_recv(k, 1, VRB_WC_SUCCESS, 264);
	assert_memory_equal(k->mem, k->wire + 10, 264);
	want_quiet(k);
	kit_free(k);
}

static void test_lost_first(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	post_recv(k, 1, 0, 600);
	give(k, U(SEND_MIDDLE, 201, .len = 256));
	want_verdict(k, VRB_V_DROP_UC_BROKEN);
	give(k, U(SEND_LAST, 202, .len = 8));
	want_verdict(k, VRB_V_DROP_UC_BROKEN);
	give(k, U(SEND_ONLY, 203, .len = 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want_quiet(k);
	kit_free(k);
}

static void test_lost_write_makes_no_completion(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	post_recv(k, 1, 0, 0);
	give(k, U(WRITE_FIRST, 200, .len = 256, TO(k, 0), .dma_len = 600));
	give(k, U(WRITE_LAST_IMM, 202, .len = 88, .imm = 1));
	want_verdict(k, VRB_V_DROP_UC_BROKEN);
	want_quiet(k);
	assert_memory_equal(k->mem, k->wire, 256); /* what was placed stays */
	give(k, U(WRITE_ONLY_IMM, 203, .len = 8, TO(k, 0), .dma_len = 8, .imm = 1));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	kit_free(k);
}

static void dropped(const struct vrb_pkt *pkt, enum vrb_verdict v)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	post_recv(k, 1, 0, 600);
	give(k, pkt);
	want_verdict(k, v);
	give(k, U(SEND_ONLY, 300, .len = 8)); /* the QP lives, the receive is there */
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

static void test_faults_cost_the_message(void **state)
{
	(void)state;
	dropped(U(WRITE_ONLY, 200, .len = 8, .rkey = 0x7777, .dma_len = 8), VRB_V_RKEY_UNKNOWN);
	dropped(U(WRITE_ONLY, 200, .len = 8, .dma_len = 9), VRB_V_RKEY_UNKNOWN);
	dropped(U(SEND_FIRST, 200, .len = 8), VRB_V_NAK_LENGTH);
	dropped(P(VRB_TP_UC | 0x0c, 200), VRB_V_DROP_OPCODE);
}

static void test_receive_too_short(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	post_recv(k, 1, 0, 8);
	post_recv(k, 2, 0, 8);
	give(k, U(SEND_ONLY, 200, .len = 9));
	want_verdict(k, VRB_V_RECV_TOO_SHORT);
	want_recv(k, 1, VRB_WC_LOC_LEN_ERR, 0);
	want_recv(k, 2, VRB_WC_WR_FLUSH_ERR, 0);
	want_none(k, RESP);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	kit_free(k);
}

static void test_srq_receive_ends_in_error(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC, .srq = true);

	(void)state;
	post_recv(k, 1, 0, 600);
	give(k, U(SEND_FIRST, 200, .len = 256));
	give(k, U(SEND_MIDDLE, 201, .len = 9));
	want_verdict(k, VRB_V_NAK_LENGTH);
	assert_int_not_equal(kit_wc(&k->rcq).status, VRB_WC_SUCCESS);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	want_quiet(k);
	kit_free(k);
}

/* IBA 10.3.1.6: the send queue stops, the receive queue does not. */
static void test_sqe(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	post(k, (struct vrb_swqe){.wr_id = 1, .op = VRB_WR_SEND},
	     &(struct vrb_sge){(uintptr_t)k->mem, 8, 0x7777}, 1);
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	post_recv(k, 9, 0, 8);
	want_none(k, REQ);
	want_verdict(k, VRB_V_LKEY_UNKNOWN);
	want_wc(k, 1, VRB_WC_LOC_PROT_ERR);
	want_wc(k, 2, VRB_WC_WR_FLUSH_ERR);
	assert_int_equal(k->qp.state, VRB_QPS_SQE);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	want_wc(k, 3, VRB_WC_WR_FLUSH_ERR);
	give(k, U(SEND_ONLY, 200, .len = 8));
	want_recv(k, 9, VRB_WC_SUCCESS, 8);
	kit_to(k, VRB_QPS_RTS);
	post_op(k, 4, VRB_WR_SEND, 0, 8);
	want(k, REQ, U(SEND_ONLY, 100, .len = 8));
	want_wc(k, 4, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

static void test_read_refused(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UC);

	(void)state;
	post_op(k, 1, VRB_WR_READ, 0, 8);
	want_none(k, REQ);
	want_verdict(k, VRB_V_POST_OPCODE);
	want_wc(k, 1, VRB_WC_LOC_QP_OP_ERR);
	assert_int_equal(k->qp.state, VRB_QPS_SQE);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sending),
		cmocka_unit_test(test_no_window),
		cmocka_unit_test(test_receiving),
		cmocka_unit_test(test_lost_middle),
		cmocka_unit_test(test_new_message_breaks_the_old),
		cmocka_unit_test(test_lost_first),
		cmocka_unit_test(test_lost_write_makes_no_completion),
		cmocka_unit_test(test_faults_cost_the_message),
		cmocka_unit_test(test_receive_too_short),
		cmocka_unit_test(test_srq_receive_ends_in_error),
		cmocka_unit_test(test_sqe),
		cmocka_unit_test(test_read_refused),
	};

	return VRB_RUN_TESTS(tests);
}
