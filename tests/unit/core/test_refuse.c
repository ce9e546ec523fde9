/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests refused on purpose (refuse_next): the answer, and a queue pair that goes on, or ends, as
 * by the rule that each answer stands for. */
#include "core_kit.h"

#define A	   VRB_PKT_ACKREQ
#define SEND(p, n) P(VRB_OP_SEND_ONLY, p, .len = (n), .flags = A)

static void test_rnr(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	for (unsigned i = 0; i < 2; i++) {
		k->qp.refuse_next = VRB_AETH_RNR;
		give(k, SEND(200, 8));
		want_verdict(k, VRB_V_FAULT_NAK);
		want(k, RESP, NAK(200, VRB_AETH_RNR | KIT_RNR));
	}
	give(k, SEND(200, 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f, .msn = 1));
	want_quiet(k);
	kit_free(k);
}

static void test_sequence(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	k->qp.refuse_next = VRB_NAK_PSN_SEQ;
	give(k, SEND(200, 8));
	want_verdict(k, VRB_V_FAULT_NAK);
	want(k, RESP, NAK(200, VRB_NAK_PSN_SEQ));
	give(k, SEND(201, 8)); /* no second one for the same gap */
	want_verdict(k, VRB_V_DROP_PSN_AHEAD);
	want_none(k, RESP);
	give(k, SEND(200, 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f, .msn = 1));
	want_quiet(k);
	kit_free(k);
}

/* In the middle of a SEND: the receive in progress ends as the fault says. */
static void ends(uint8_t syndrome, enum vrb_wc_status status)
{
	struct kit *k = kit(0);

	post_recv(k, 1, 0, 600);
	post_recv(k, 2, 0, 600);
	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256));
	k->qp.refuse_next = syndrome;
	give(k, P(VRB_OP_SEND_LAST, 201, .len = 256, .flags = A));
	want_verdict(k, VRB_V_FAULT_NAK);
	if (syndrome == VRB_NAK_INVALID)
		want_event(k, VRB_ASYNC_QP_REQ_ERR);
	want_recv(k, 1, status, 0);
	want_recv(k, 2, VRB_WC_WR_FLUSH_ERR, 0);
	want(k, RESP, NAK(201, syndrome));
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

static void test_fatal(void **state)
{
	(void)state;
	ends(VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR);
	ends(VRB_NAK_OPERATIONAL, VRB_WC_LOC_QP_OP_ERR);
}

static void test_access(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	k->qp.refuse_next = VRB_NAK_ACCESS;
	give(k, P(VRB_OP_READ_REQ, 200, .rkey = k->rkey, .va = (uintptr_t)k->mem, .dma_len = 8));
	want_verdict(k, VRB_V_FAULT_NAK);
	want_event(k, VRB_ASYNC_QP_ACCESS_ERR);
	want(k, RESP, NAK(200, VRB_NAK_ACCESS));
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	want_quiet(k);
	kit_free(k);
}

/* Only the packet it was said for: a duplicate or one ahead is none, and it is not kept. */
static void test_not_kept(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	k->qp.refuse_next = VRB_NAK_INVALID;
	give(k, SEND(201, 8));
	want_verdict(k, VRB_V_NAK_SEQUENCE);
	want(k, RESP, NAK(200, VRB_NAK_PSN_SEQ));
	give(k, SEND(200, 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f, .msn = 1));
	want_quiet(k);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rnr),	 cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_fatal),	 cmocka_unit_test(test_access),
		cmocka_unit_test(test_not_kept),
	};

	return VRB_RUN_TESTS(tests);
}
