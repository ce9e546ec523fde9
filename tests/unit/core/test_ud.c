/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams: addressing, Q_Keys, the 40 bytes of GRH, silent drops. */
#include "core_kit.h"

#include <string.h>

#define U(o, p, ...) P(VRB_TP_UD | VRB_OP_##o, p, __VA_ARGS__)
#define QKEY	     0x1111u

static struct vrb_swqe to(struct kit *k, uint64_t wr_id, uint32_t qkey)
{
	return (struct vrb_swqe){.wr_id = wr_id,
				 .op = VRB_WR_SEND,
				 .flags = VRB_WRF_SIGNALED,
				 .ud = {&k->av, KIT_PEER, qkey}};
}

static void test_sending(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD);
	struct vrb_sge s = SGE(k, 0, 256);
	struct vrb_swqe w = to(k, 1, 0x2222);

	(void)state;
	post(k, w, &s, 1);
	want(k, REQ, U(SEND_ONLY, 100, .len = 256, .qkey = 0x2222));
	assert_ptr_equal(k->tx.av, &k->av);
	assert_int_equal(k->tx.pkt.dqpn, KIT_PEER);
	assert_int_equal(k->tx.pkt.sqpn, KIT_QPN);
	want_payload(k, k->mem, 256);
	want_wc(k, 1, VRB_WC_SUCCESS);
	w = to(k, 2, 0x80000001); /* stands for the QP's own */
	w.op = VRB_WR_SEND_IMM;
	w.flags |= VRB_WRF_SOLICITED;
	w.imm = 5;
	post_inline(k, w, "hi", 2);
	want(k, REQ, U(SEND_ONLY_IMM, 101, .len = 2, .qkey = QKEY, .imm = 5, .flags = VRB_PKT_SE));
	want_payload(k, "hi", 2);
	want_wc(k, 2, VRB_WC_SUCCESS);
	post(k, to(k, 3, QKEY), NULL, 0);
	want(k, REQ, U(SEND_ONLY, 102, .qkey = QKEY));
	want_wc(k, 3, VRB_WC_SUCCESS);
	want_none(k, REQ);
	want_quiet(k);
	kit_free(k);
}

static void fails(struct kit *k, struct vrb_swqe w, struct vrb_sge s, enum vrb_wc_status status,
		  enum vrb_verdict v)
{
	post(k, w, &s, 1);
	post(k, to(k, 2, QKEY), NULL, 0);
	want_none(k, REQ);
	want_verdict(k, v);
	want_wc(k, 1, status);
	want_wc(k, 2, VRB_WC_WR_FLUSH_ERR);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_SQE);
	kit_free(k);
}

static void test_sends_refused(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD);
	struct vrb_swqe w = to(k, 1, QKEY);

	(void)state;
	fails(k, w, SGE(k, 0, 257), VRB_WC_LOC_LEN_ERR, VRB_V_UD_TOO_LONG);
	k = kit(.type = VRB_QPT_UD);
	fails(k, to(k, 1, QKEY), (struct vrb_sge){(uintptr_t)k->mem, 8, k->rkey},
	      VRB_WC_LOC_PROT_ERR, VRB_V_LKEY_IS_RKEY);
	k = kit(.type = VRB_QPT_UD);
	k->av.pd = 2;
	fails(k, to(k, 1, QKEY), SGE(k, 0, 8), VRB_WC_LOC_QP_OP_ERR, VRB_V_AV_OTHER_PD);
	k = kit(.type = VRB_QPT_UD);
	w = to(k, 1, QKEY);
	w.op = VRB_WR_WRITE;
	fails(k, w, SGE(k, 0, 8), VRB_WC_LOC_QP_OP_ERR, VRB_V_POST_OPCODE);
}

static void test_receiving(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD);
	struct vrb_wc wc;

	(void)state;
	post_recv(k, 1, 0, 100);
	give(k,
	     U(SEND_ONLY_IMM, 7, .len = 60, .qkey = QKEY, .sqpn = 0x99, .imm = 4, .grh = k->grh));
	wc = kit_wc(&k->rcq);
	assert_int_equal(wc.status, VRB_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 100);
	assert_int_equal(wc.wc_flags, VRB_WCF_GRH | VRB_WCF_IMM);
	assert_int_equal(wc.src_qp, 0x99);
	assert_int_equal(wc.imm, 4);
	assert_int_equal(wc.slid, 0);
	assert_memory_equal(k->mem, k->grh, 40);
	assert_memory_equal(k->mem + 40, k->wire, 60);
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

static void test_no_grh_gives_zeros(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD);
	static const uint8_t zero[40];

	(void)state;
	memset(k->mem, 0xff, 100);
	post_recv(k, 1, 0, 100);
	give(k, U(SEND_ONLY, 7, .len = 8, .qkey = QKEY));
	want_recv(k, 1, VRB_WC_SUCCESS, 48);
	assert_memory_equal(k->mem, zero, 40);
	kit_free(k);
}

/* Every SGE one byte or so: GRH and payload cross boundaries. */
static void test_scattered(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD);
	struct vrb_sge l[VRB_MAX_SGE];

	(void)state;
	for (uint32_t i = 0; i < VRB_MAX_SGE; i++)
		l[i] = SGE(k, 3 * i, 3);
	post_recv_sg(k, 1, l, VRB_MAX_SGE);
	give(k, U(SEND_ONLY, 7, .len = 56, .qkey = QKEY, .grh = k->grh));
	want_recv(k, 1, VRB_WC_SUCCESS, 96);
	assert_memory_equal(k->mem, k->grh, 40);
	assert_memory_equal(k->mem + 40, k->wire, 56);
	kit_free(k);
}

static void test_silent_drops(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD);

	(void)state;
	give(k, U(SEND_ONLY, 7, .len = 8, .qkey = QKEY));
	want_verdict(k, VRB_V_DROP_NO_RECV);
	post_recv(k, 1, 0, 47);
	give(k, U(SEND_ONLY, 7, .len = 8, .qkey = QKEY));
	want_verdict(k, VRB_V_DROP_UD_SHORT);
	assert_int_equal(k->last.val[0], 48);
	assert_int_equal(k->last.val[1], 47);
	give(k, U(SEND_ONLY, 7, .len = 4, .qkey = QKEY + 1));
	want_verdict(k, VRB_V_DROP_QKEY);
	give(k, U(SEND_FIRST, 7, .len = 4, .qkey = QKEY));
	want_verdict(k, VRB_V_DROP_OPCODE);
	give(k, P(VRB_OP_SEND_ONLY, 7, .len = 4));
	want_verdict(k, VRB_V_DROP_TRANSPORT);
	want_quiet(k);
	give(k, U(SEND_ONLY, 1, .len = 7, .qkey = QKEY)); /* the receive is still there */
	want_recv(k, 1, VRB_WC_SUCCESS, 47);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	kit_free(k);
}

static void test_receive_smaller_than_grh(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD);

	(void)state;
	post_recv(k, 1, 0, 39);
	give(k, U(SEND_ONLY, 7, .qkey = QKEY));
	want_verdict(k, VRB_V_DROP_UD_SHORT);
	want_quiet(k);
	kit_free(k);
}

static void test_bad_receive(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD);
	struct vrb_sge l[2] = {SGE(k, 0, 40), {(uintptr_t)k->ro, 40, k->ro_lkey}};

	(void)state;
	post_recv_sg(k, 1, l, 2);
	give(k, U(SEND_ONLY, 7, .len = 8, .qkey = QKEY, .grh = k->grh));
	want_verdict(k, VRB_V_LKEY_NO_WRITE);
	want_recv(k, 1, VRB_WC_LOC_PROT_ERR, 0);
	assert_int_equal(k->mem[0], 0); /* not even the GRH */
	want_quiet(k);
	kit_free(k);
}

static void test_from_srq(void **state)
{
	struct kit *k = kit(.type = VRB_QPT_UD, .srq = true);

	(void)state;
	post_recv(k, 1, 0, 44);
	give(k, U(SEND_ONLY, 7, .len = 8, .qkey = QKEY));
	want_verdict(k, VRB_V_DROP_UD_SHORT);
	assert_int_equal(vrb_srq_posted(&k->srq), 1);
	give(k, U(SEND_ONLY, 7, .len = 4, .qkey = QKEY));
	want_recv(k, 1, VRB_WC_SUCCESS, 44);
	want_quiet(k);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sending),
		cmocka_unit_test(test_sends_refused),
		cmocka_unit_test(test_receiving),
		cmocka_unit_test(test_no_grh_gives_zeros),
		cmocka_unit_test(test_scattered),
		cmocka_unit_test(test_silent_drops),
		cmocka_unit_test(test_receive_smaller_than_grh),
		cmocka_unit_test(test_bad_receive),
		cmocka_unit_test(test_from_srq),
	};

	return VRB_RUN_TESTS(tests);
}
