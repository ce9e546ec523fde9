/* SPDX-License-Identifier: BSD-2-Clause */
/* What responses do to the send queue: ACK, NAK, READ responses, atomic acknowledges, ghosts. */
#include "core_kit.h"

#include <string.h>

#define A	   VRB_PKT_ACKREQ
#define SENT(p, n) P(VRB_OP_SEND_ONLY, p, .len = (n), .flags = A)
#define READ(p, at, n)                                                                             \
	P(VRB_OP_READ_REQ, p, .flags = A, .rkey = 0xabcd00, .va = (at), .dma_len = (n))
#define DATA(o, p, n) P(VRB_OP_READ_RESP_##o, p, .len = (n), .syndrome = 0x1f)

/* Posts and sends n SENDs of 8 bytes, wr_id 1.., PSN 100.. */
static struct kit *sent(uint32_t n)
{
	struct kit *k = kit(0);

	for (uint32_t i = 0; i < n; i++) {
		post_op(k, i + 1, VRB_WR_SEND, 0, 8);
		want(k, REQ, SENT(100 + i, 8));
	}
	return k;
}

static void test_coalesced(void **state)
{
	struct kit *k = sent(5);

	(void)state;
	give(k, ACK(103));
	for (uint64_t i = 1; i <= 4; i++)
		want_wc(k, i, VRB_WC_SUCCESS);
	want_quiet(k);
	give(k, ACK(104));
	want_wc(k, 5, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

static void test_ghosts(void **state)
{
	static const uint32_t psn[] = {99, 102, 100 + 0x800000, 0};
	struct kit *k = sent(2);

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		give(k, ACK(psn[i] & VRB_PSN_MASK));
		want_verdict(k, VRB_V_DROP_GHOST);
		give(k, NAK(psn[i] & VRB_PSN_MASK, VRB_NAK_ACCESS));
		want_verdict(k, VRB_V_DROP_GHOST);
		give(k, DATA(ONLY, psn[i] & VRB_PSN_MASK, 8));
		want_verdict(k, VRB_V_DROP_GHOST);
	}
	want_quiet(k);
	want_none(k, REQ);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	kit_free(k);
}

static void test_nothing_sent(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	give(k, ACK(100));
	want_verdict(k, VRB_V_DROP_GHOST);
	give(k, NAK(100, 0x2c));
	want_verdict(k, VRB_V_DROP_GHOST);
	want_quiet(k);
	kit_free(k);
}

static void test_response_in_rtr(void **state)
{
	struct kit *k = kit(.state = VRB_QPS_RTR);

	(void)state;
	give(k, ACK(0));
	want_verdict(k, VRB_V_DROP_STATE);
	want_quiet(k);
	kit_free(k);
}

static void test_reserved_syndromes(void **state)
{
	static const uint8_t bad[] = {0x40, 0x5f, 0x64, 0x7f, 0x80, 0xff};
	struct kit *k = sent(1);

	(void)state;
	for (uint32_t i = 0; i < sizeof(bad); i++) {
		give(k, NAK(100, bad[i]));
		want_verdict(k, VRB_V_DROP_SYNDROME);
		assert_int_equal(k->last.val[0], bad[i]);
	}
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	kit_free(k);
}

static void refused(uint8_t syndrome, enum vrb_wc_status status, enum vrb_verdict v)
{
	struct kit *k = kit(0);

	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_op(k, 2, VRB_WR_WRITE, 0, 600);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	post_op(k, 4, VRB_WR_SEND, 0, 8);
	post_recv(k, 9, 0, 8);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	give(k, NAK(102, syndrome));
	want_verdict(k, v);
	assert_int_equal(k->last.val[0], 102);
	assert_int_equal(k->last.val[1], 0xabcd00);
	assert_int_equal(k->last.val[2], 0x10000);
	assert_int_equal(k->last.val[3], 600);
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, status);
	want_wc(k, 3, VRB_WC_WR_FLUSH_ERR);
	want_wc(k, 4, VRB_WC_WR_FLUSH_ERR);
	want_recv(k, 9, VRB_WC_WR_FLUSH_ERR, 0);
	want_quiet(k);
	want_none(k, REQ);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	kit_free(k);
}

static void test_refusals(void **state)
{
	(void)state;
	refused(VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR, VRB_V_REM_INVALID);
	refused(VRB_NAK_ACCESS, VRB_WC_REM_ACCESS_ERR, VRB_V_REM_ACCESS);
	refused(VRB_NAK_OPERATIONAL, VRB_WC_REM_OP_ERR, VRB_V_REM_OP);
}

static void test_sequence_nak(void **state)
{
	struct kit *k = sent(4);

	(void)state;
	give(k, NAK(101, VRB_NAK_PSN_SEQ));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want(k, REQ, SENT(101, 8));
	give(k, NAK(101, VRB_NAK_PSN_SEQ)); /* an echo of the same gap */
	want(k, REQ, SENT(102, 8));
	want(k, REQ, SENT(103, 8));
	give(k, NAK(101, VRB_NAK_PSN_SEQ));
	want_none(k, REQ);
	give(k, ACK(101));
	want_wc(k, 2, VRB_WC_SUCCESS);
	give(k, NAK(102, VRB_NAK_PSN_SEQ)); /* another gap */
	want(k, REQ, SENT(102, 8));
	want(k, REQ, SENT(103, 8));
	want_none(k, REQ);
	give(k, ACK(103));
	want_wc(k, 3, VRB_WC_SUCCESS);
	want_wc(k, 4, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

/* Going back is overtaken by late ACKs of the first try. */
static void test_late_acks_skip_repetition(void **state)
{
	struct kit *k = sent(3);

	(void)state;
	post_op(k, 4, VRB_WR_SEND, 0, 600);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 103, .len = 256));
	pass(k, 70 * VRB_NS_PER_MS);
	want(k, REQ, SENT(100, 8));
	give(k, ACK(101));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_SUCCESS);
	want(k, REQ, SENT(102, 8));
	give(k, ACK(103)); /* beyond what was repeated, inside the started message */
	want_wc(k, 3, VRB_WC_SUCCESS);
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 104, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST, 105, .len = 88, .flags = A));
	want_none(k, REQ);
	give(k, ACK(105));
	want_wc(k, 4, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

static void test_read(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge l[3] = {SGE(k, 0, 300), SGE(k, 1000, 0), SGE(k, 2000, 300)};
	struct vrb_swqe w = {.wr_id = 1, .op = VRB_WR_READ, .flags = 2, .rkey = 0xabcd00, .va = 64};
	struct vrb_wc wc;

	(void)state;
	post(k, w, l, 3);
	want(k, REQ, READ(100, 64, 600));
	give_at(k, DATA(FIRST, 100, 256), 0);
	give_at(k, P(VRB_OP_READ_RESP_MIDDLE, 101, .len = 256), 256);
	want_quiet(k);
	give_at(k, DATA(LAST, 102, 88), 512);
	wc = kit_wc(&k->scq);
	assert_int_equal(wc.opcode, VRB_WCO_READ);
	assert_int_equal(wc.byte_len, 600);
	assert_int_equal(wc.status, VRB_WC_SUCCESS);
	assert_memory_equal(k->mem, k->wire, 300);
	assert_memory_equal(k->mem + 2000, k->wire + 300, 300);
	assert_int_equal(k->mem[300], 0);
	want_quiet(k);
	kit_free(k);
}

static void test_read_acknowledges_earlier(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_op(k, 2, VRB_WR_READ, 0, 8);
	want(k, REQ, SENT(100, 8));
	want(k, REQ, READ(101, 0x10000, 8));
	give(k, DATA(ONLY, 101, 8));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

/* The READ's answer is lost; a later ACK says so. */
static void test_implied_nak(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_op(k, 2, VRB_WR_READ, 0, 300);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	post_op(k, 4, VRB_WR_SEND, 0, 8);
	want(k, REQ, SENT(100, 8));
	want(k, REQ, READ(101, 0x10000, 300));
	want(k, REQ, SENT(103, 8));
	want(k, REQ, SENT(104, 8));
	give(k, ACK(103));
	want_verdict(k, VRB_V_IMPLIED_NAK);
	want_wc(k, 1, VRB_WC_SUCCESS);
	want(k, REQ, READ(101, 0x10000, 300));
	give(k, ACK(104)); /* implies the same loss once more */
	want(k, REQ, SENT(103, 8));
	want(k, REQ, SENT(104, 8));
	want_none(k, REQ);
	want_quiet(k);
	give(k, DATA(FIRST, 101, 256));
	give(k, DATA(LAST, 102, 44));
	want_wc(k, 2, VRB_WC_SUCCESS);
	give(k, ACK(104));
	want_wc(k, 3, VRB_WC_SUCCESS);
	want_wc(k, 4, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

static void test_read_response_lost_in_the_middle(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_READ, 0, 1000);
	want(k, REQ, READ(100, 0x10000, 1000));
	give_at(k, DATA(FIRST, 100, 256), 0);
	give_at(k, P(VRB_OP_READ_RESP_MIDDLE, 102, .len = 256), 512);
	want_verdict(k, VRB_V_IMPLIED_NAK);
	want(k, REQ, READ(101, 0x10100, 744));
	give_at(k, DATA(LAST, 103, 232), 768); /* still of the first answer */
	want_none(k, REQ);
	give_at(k, DATA(FIRST, 101, 256), 256);
	give_at(k, P(VRB_OP_READ_RESP_MIDDLE, 102, .len = 256), 512);
	give_at(k, DATA(LAST, 103, 232), 768);
	want_wc(k, 1, VRB_WC_SUCCESS);
	assert_memory_equal(k->mem, k->wire, 1000);
	want_quiet(k);
	kit_free(k);
}

static void bad(const struct vrb_pkt *response, enum vrb_wr_op op, uint32_t len)
{
	struct kit *k = kit(0);

	post_op(k, 1, op, 0, len);
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	give(k, response);
	want_verdict(k, VRB_V_BAD_RESPONSE);
	assert_int_equal(k->last.val[0], response->op.v);
	want_wc(k, 1, VRB_WC_BAD_RESP_ERR);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	kit_free(k);
}

static void test_bad_responses(void **state)
{
	(void)state;
	bad(DATA(ONLY, 100, 8), VRB_WR_SEND, 8);
	bad(P(VRB_OP_ATOMIC_ACK, 100), VRB_WR_SEND, 8);
	bad(P(VRB_OP_ATOMIC_ACK, 100), VRB_WR_READ, 8);
	bad(DATA(ONLY, 100, 8), VRB_WR_FETCH_ADD, 8);
	bad(DATA(ONLY, 100, 7), VRB_WR_READ, 8);
	bad(DATA(FIRST, 100, 255), VRB_WR_READ, 300);
	bad(DATA(FIRST, 100, 257), VRB_WR_READ, 300);
}

static void test_answer_without_a_place(void **state)
{
	struct kit *k = kit(0);
	struct vrb_swqe w = {.wr_id = 1, .op = VRB_WR_READ};

	(void)state;
	post(k, w, &(struct vrb_sge){(uintptr_t)k->ro, 16, k->ro_lkey}, 1);
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	want_quiet(k); /* it is looked at when the answer comes */
	give(k, DATA(ONLY, 100, 16));
	want_verdict(k, VRB_V_LKEY_NO_WRITE);
	want_wc(k, 1, VRB_WC_LOC_PROT_ERR);
	assert_int_equal(k->ro[0], 0);
	kit_free(k);
}

static void test_both_keys_bad(void **state)
{
	struct kit *k = kit(0);
	struct vrb_swqe w = {.wr_id = 1, .op = VRB_WR_READ};

	(void)state;
	post(k, w, &(struct vrb_sge){(uintptr_t)k->ro, 16, k->ro_lkey}, 1);
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	give(k, NAK(100, VRB_NAK_ACCESS));
	want_verdict(k, VRB_V_REM_ACCESS);
	want_wc(k, 1, VRB_WC_REM_ACCESS_ERR);
	kit_free(k);
}

static void test_atomic(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge l[2] = {SGE(k, 0, 3), SGE(k, 100, 5)};
	uint64_t orig = 0x0102030405060708, got;
	struct vrb_swqe w = {.wr_id = 1, .op = VRB_WR_CMP_SWAP, .flags = VRB_WRF_SIGNALED};
	struct vrb_wc wc;

	(void)state;
	post(k, w, l, 2);
	want(k, REQ, P(VRB_OP_CMP_SWAP, 100, .flags = A));
	give(k, P(VRB_OP_ATOMIC_ACK, 100, .syndrome = 0x1f, .atomic_orig = orig));
	wc = kit_wc(&k->scq);
	assert_int_equal(wc.status, VRB_WC_SUCCESS);
	assert_int_equal(wc.opcode, VRB_WCO_CMP_SWAP);
	assert_int_equal(wc.byte_len, 8);
	memcpy(&got, k->mem, 3);
	memcpy((char *)&got + 3, k->mem + 100, 5);
	assert_true(got == orig);
	kit_free(k);
}

static void test_opcodes_of_completions(void **state)
{
	static const struct {
		enum vrb_wr_op op;
		enum vrb_wc_opcode wc;
	} row[] = {
		{VRB_WR_WRITE, VRB_WCO_WRITE},	 {VRB_WR_WRITE_IMM, VRB_WCO_WRITE},
		{VRB_WR_SEND, VRB_WCO_SEND},	 {VRB_WR_SEND_IMM, VRB_WCO_SEND},
		{VRB_WR_SEND_INV, VRB_WCO_SEND},
	};
	struct kit *k = kit(0);

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		post_op(k, i, row[i].op, 0, 8);
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
		give(k, ACK(100 + i));
		assert_int_equal(kit_wc(&k->scq).opcode, row[i].wc);
	}
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_coalesced),
		cmocka_unit_test(test_ghosts),
		cmocka_unit_test(test_nothing_sent),
		cmocka_unit_test(test_response_in_rtr),
		cmocka_unit_test(test_reserved_syndromes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_sequence_nak),
		cmocka_unit_test(test_late_acks_skip_repetition),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_acknowledges_earlier),
		cmocka_unit_test(test_implied_nak),
		cmocka_unit_test(test_read_response_lost_in_the_middle),
		cmocka_unit_test(test_bad_responses),
		cmocka_unit_test(test_answer_without_a_place),
		cmocka_unit_test(test_both_keys_bad),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_opcodes_of_completions),
	};

	return VRB_RUN_TESTS(tests);
}
