/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RC responder: good messages of every kind, PSN classes, and the whole fault table: what is
 * answered, how the receive ends, which event, which state.
 */
#include "core_kit.h"

#include <string.h>

#define A	   VRB_PKT_ACKREQ
#define SEND(p, n) P(VRB_OP_SEND_ONLY, p, .len = (n), .flags = A)
#define TO(k, off) .rkey = (k)->rkey, .va = (uintptr_t)((k)->mem + (off))

static void untouched(const struct kit *k)
{
	for (uint32_t i = 0; i < KIT_MEM; i++)
		assert_int_equal(k->mem[i], 0);
}

static void test_send_only(void **state)
{
	struct kit *k = kit(0);
	struct vrb_wc wc;

	(void)state;
	post_recv(k, 1, 0, 100);
	give(k, SEND(200, 60));
	wc = kit_wc(&k->rcq);
	assert_int_equal(wc.status, VRB_WC_SUCCESS);
	assert_int_equal(wc.opcode, VRB_WCO_RECV);
	assert_int_equal(wc.byte_len, 60);
	assert_int_equal(wc.wc_flags, 0);
	assert_memory_equal(k->mem, k->wire, 60);
	assert_int_equal(k->mem[60], 0);
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f, .msn = 1));
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

/* The count runs on, the packet has 24 bits of it. */
static void test_msn_is_24_bits(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	k->qp.msn = VRB_PSN_MASK + 1;
	post_recv(k, 1, 0, 100);
	give(k, SEND(200, 60));
	assert_int_equal(k->qp.msn, VRB_PSN_MASK + 2);
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f, .msn = 1));
	kit_free(k);
}

static void test_no_ackreq_no_ack(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 100);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 4));
	want_none(k, RESP);
	want_recv(k, 1, VRB_WC_SUCCESS, 4);
	kit_free(k);
}

static void test_acks_coalesce(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		post_recv(k, i, 0, 8);
		give(k, SEND(200 + i, 8));
	}
	want(k, RESP, P(VRB_OP_ACK, 202, .syndrome = 0x1f, .msn = 3));
	want_none(k, RESP);
	kit_free(k);
}

static void test_multi_packet_send(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge l[4] = {SGE(k, 0, 250), SGE(k, 1000, 0), SGE(k, 2000, 200),
			       SGE(k, 3000, 300)};

	(void)state;
	post_recv_sg(k, 1, l, 4);
	give_at(k, P(VRB_OP_SEND_FIRST, 200, .len = 256), 0);
	give_at(k, P(VRB_OP_SEND_MIDDLE, 201, .len = 256), 256);
	want_no_wc(k);
	give_at(k, P(VRB_OP_SEND_LAST, 202, .len = 88, .flags = A), 512);
	want_recv(k, 1, VRB_WC_SUCCESS, 600);
	assert_memory_equal(k->mem, k->wire, 250);
	assert_memory_equal(k->mem + 2000, k->wire + 250, 200);
	assert_memory_equal(k->mem + 3000, k->wire + 450, 150);
	want(k, RESP, P(VRB_OP_ACK, 202, .syndrome = 0x1f, .msn = 1));
	want_quiet(k);
	kit_free(k);
}

static void test_send_with_immediate(void **state)
{
	struct kit *k = kit(0);
	struct vrb_wc wc;

	(void)state;
	post_recv(k, 1, 0, 0);
	vrb_cq_arm(&k->rcq, true);
	give(k, P(VRB_OP_SEND_ONLY_IMM, 200, .imm = 0x11223344, .flags = VRB_PKT_SE));
	wc = kit_wc(&k->rcq);
	assert_int_equal(wc.wc_flags, VRB_WCF_IMM);
	assert_int_equal(wc.imm, 0x11223344);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(k->n_notified, 1);
	kit_free(k);
}

static void test_write(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	give_at(k, P(VRB_OP_WRITE_FIRST, 200, .len = 256, TO(k, 10), .dma_len = 600), 0);
	give_at(k, P(VRB_OP_WRITE_MIDDLE, 201, .len = 256), 256);
	give_at(k, P(VRB_OP_WRITE_LAST, 202, .len = 88, .flags = A), 512);
	assert_memory_equal(k->mem + 10, k->wire, 600);
	give(k, P(VRB_OP_WRITE_ONLY, 203, .len = 5, TO(k, 2000), .dma_len = 5));
	assert_memory_equal(k->mem + 2000, k->wire, 5);
	want(k, RESP, P(VRB_OP_ACK, 203, .syndrome = 0x1f, .msn = 2));
	want_quiet(k); /* no completion, no receive needed */
	kit_free(k);
}

static void test_write_with_immediate(void **state)
{
	struct kit *k = kit(0);
	struct vrb_wc wc;

	(void)state;
	post_recv(k, 1, 0, 0);
	post_recv(k, 2, 0, 0);
	give_at(k, P(VRB_OP_WRITE_FIRST, 200, .len = 256, TO(k, 0), .dma_len = 300), 0);
	assert_int_equal(vrb_qp_rq_used(&k->qp), 2);
	give_at(k, P(VRB_OP_WRITE_LAST_IMM, 201, .len = 44, .imm = 7), 256);
	wc = kit_wc(&k->rcq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.opcode, VRB_WCO_RECV_WRITE_IMM);
	assert_int_equal(wc.byte_len, 300);
	assert_int_equal(wc.imm, 7);
	assert_memory_equal(k->mem, k->wire, 300);
	give(k, P(VRB_OP_WRITE_ONLY_IMM, 202, .imm = 8)); /* empty: no key */
	want_recv(k, 2, VRB_WC_SUCCESS, 0);
	want_quiet(k);
	kit_free(k);
}

static void test_psn_ahead(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	post_recv(k, 2, 0, 8);
	give(k, SEND(202, 8));
	want_verdict(k, VRB_V_NAK_SEQUENCE);
	give(k, SEND(203, 8));
	want_verdict(k, VRB_V_DROP_PSN_AHEAD);
	want(k, RESP, NAK(200, VRB_NAK_PSN_SEQ));
	want_none(k, RESP);
	give(k, SEND(201, 8));
	want_verdict(k, VRB_V_DROP_PSN_AHEAD);
	want_none(k, RESP);
	want_quiet(k);
	give(k, SEND(200, 8)); /* the gap closes; the next gap is answered again */
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f));
	give(k, SEND(205, 8));
	want_verdict(k, VRB_V_NAK_SEQUENCE);
	want(k, RESP, NAK(201, VRB_NAK_PSN_SEQ));
	want_quiet(k);
	kit_free(k);
}

/* The expected packet comes before the NAK has left: the NAK is void. */
static void test_nak_overtaken(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	give(k, SEND(201, 8));
	give(k, SEND(200, 8));
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f));
	want_none(k, RESP);
	kit_free(k);
}

static void test_duplicates(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	post_recv(k, 2, 0, 8);
	give(k, SEND(200, 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	give(k, P(VRB_OP_WRITE_ONLY, 201, .len = 8, TO(k, 64), .dma_len = 8, .flags = A));
	want(k, RESP, P(VRB_OP_ACK, 201, .syndrome = 0x1f, .msn = 2));
	memset(k->mem, 0, 128);
	give(k, SEND(200, 8));
	want_verdict(k, VRB_V_DROP_DUPLICATE);
	want(k, RESP, P(VRB_OP_ACK, 201, .syndrome = 0x1f, .msn = 2));
	give(k, P(VRB_OP_WRITE_ONLY, 201, .len = 8, TO(k, 64), .dma_len = 8));
	want_verdict(k, VRB_V_DROP_DUPLICATE);
	want(k, RESP, P(VRB_OP_ACK, 201, .syndrome = 0x1f, .msn = 2)); /* AckReq or not */
	untouched(k);
	want_quiet(k);
	assert_int_equal(vrb_qp_rq_used(&k->qp), 1);
	kit_free(k);
}

/* Duplicates do not disturb the message in progress. */
static void test_duplicate_in_mid_message(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 600);
	give_at(k, P(VRB_OP_SEND_FIRST, 200, .len = 256), 0);
	give_at(k, P(VRB_OP_SEND_FIRST, 200, .len = 256), 0);
	give_at(k, P(VRB_OP_SEND_LAST, 201, .len = 256, .flags = A), 256);
	want_verdict(k, VRB_V_DROP_DUPLICATE);
	want_recv(k, 1, VRB_WC_SUCCESS, 512);
	assert_memory_equal(k->mem, k->wire, 512);
	want_quiet(k);
	kit_free(k);
}

static void test_psn_wrap(void **state)
{
	struct kit *k = kit(.rq_psn = 0xffffff);

	(void)state;
	post_recv(k, 1, 0, 600);
	post_recv(k, 2, 0, 600);
	give_at(k, P(VRB_OP_SEND_FIRST, 0xffffff, .len = 256), 0);
	give_at(k, P(VRB_OP_SEND_LAST, 0, .len = 256, .flags = A), 256);
	want_recv(k, 1, VRB_WC_SUCCESS, 512);
	want(k, RESP, P(VRB_OP_ACK, 0, .syndrome = 0x1f));
	give(k, P(VRB_OP_SEND_FIRST, 0xffffff, .len = 256));
	want_verdict(k, VRB_V_DROP_DUPLICATE);
	give(k, SEND(2, 8));
	want_verdict(k, VRB_V_NAK_SEQUENCE);
	want(k, RESP, NAK(1, VRB_NAK_PSN_SEQ));
	want_quiet(k);
	kit_free(k);
}

static void test_window_edges(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	give(k, SEND((200 - 0x7fffff) & VRB_PSN_MASK, 8)); /* the oldest duplicate */
	want_verdict(k, VRB_V_DROP_DUPLICATE);
	give(k, SEND((200 - 0x800000) & VRB_PSN_MASK, 8));
	want_verdict(k, VRB_V_NAK_SEQUENCE);
	want_quiet(k);
	kit_free(k);
}

static void test_rnr(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	give(k, SEND(200, 8));
	want_verdict(k, VRB_V_NAK_RNR);
	assert_int_equal(k->last.val[0], KIT_RNR);
	want(k, RESP, NAK(200, VRB_AETH_RNR | KIT_RNR));
	give(k, SEND(201, 8)); /* no sequence NAK behind it */
	want_verdict(k, VRB_V_DROP_PSN_AHEAD);
	want_none(k, RESP);
	give(k, SEND(200, 8)); /* still none */
	want_verdict(k, VRB_V_NAK_RNR);
	want(k, RESP, NAK(200, VRB_AETH_RNR | KIT_RNR));
	post_recv(k, 1, 0, 8);
	give(k, SEND(200, 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f, .msn = 1));
	want_quiet(k);
	kit_free(k);
}

static void test_rnr_at_the_end_of_a_write(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	give_at(k, P(VRB_OP_WRITE_FIRST, 200, .len = 256, TO(k, 0), .dma_len = 300), 0);
	give_at(k, P(VRB_OP_WRITE_LAST_IMM, 201, .len = 44, .imm = 7, .flags = A), 256);
	want_verdict(k, VRB_V_NAK_RNR);
	want(k, RESP, NAK(201, VRB_AETH_RNR | KIT_RNR));
	post_recv(k, 1, 0, 0);
	give_at(k, P(VRB_OP_WRITE_LAST_IMM, 201, .len = 44, .imm = 7, .flags = A), 256);
	want_recv(k, 1, VRB_WC_SUCCESS, 300);
	assert_memory_equal(k->mem, k->wire, 300);
	want(k, RESP, P(VRB_OP_ACK, 201, .syndrome = 0x1f));
	want_quiet(k);
	kit_free(k);
}

/* ---- the fault table */

/* k has a receive (wr_id 9) and an outstanding SEND (wr_id 1); pkt is PSN 200 or 201. */
static struct kit *armed(const struct kit_opts *o)
{
	struct kit *k = kit_new(o);

	post_recv(k, 9, 0, 300);
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	return k;
}
#define armed_kit(...) armed(&(struct kit_opts){__VA_ARGS__})

static void ends(struct kit *k, uint32_t psn, uint8_t syndrome, enum vrb_wc_status rx)
{
	want_recv(k, 9, rx, 0);
	want_wc(k, 1, VRB_WC_WR_FLUSH_ERR);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	if (syndrome)
		want(k, RESP, NAK(psn, syndrome));
	want_none(k, RESP);
	give(k, SEND(200, 8)); /* never answers again */
	want_verdict(k, VRB_V_DROP_STATE);
	want_none(k, RESP);
	untouched(k);
	kit_free(k);
}

static void invalid(const struct vrb_pkt *pkt, enum vrb_verdict v)
{
	struct kit *k = armed_kit(0);
	struct vrb_pkt p = *pkt;

	if (p.rkey == 1)
		p.rkey = k->rkey;
	give(k, &p);
	want_verdict(k, v);
	want_event(k, VRB_ASYNC_QP_REQ_ERR);
	ends(k, 200, VRB_NAK_INVALID,
	     vrb_op_has(p.op, VRB_OPF_SEND | VRB_OPF_FIRST) ? VRB_WC_REM_INV_REQ_ERR
							    : VRB_WC_WR_FLUSH_ERR);
}

static void test_opcode_faults(void **state)
{
	(void)state;
	invalid(P(VRB_OP_SEND_MIDDLE, 200, .len = 256), VRB_V_NAK_OPCODE_SEQ);
	invalid(P(VRB_OP_SEND_LAST, 200, .len = 8), VRB_V_NAK_OPCODE_SEQ);
	invalid(P(VRB_OP_WRITE_MIDDLE, 200, .len = 256), VRB_V_NAK_OPCODE_SEQ);
	invalid(P(VRB_OP_WRITE_LAST_IMM, 200, .len = 8), VRB_V_NAK_OPCODE_SEQ);
	invalid(P(0x15, 200), VRB_V_NAK_OPCODE);
	invalid(P(0x1c, 200), VRB_V_NAK_OPCODE);
	invalid(P(0x1f, 200), VRB_V_NAK_OPCODE);
}

static void test_length_faults(void **state)
{
	(void)state;
	invalid(P(VRB_OP_SEND_FIRST, 200, .len = 255), VRB_V_NAK_LENGTH);
	invalid(P(VRB_OP_SEND_FIRST, 200, .len = 257), VRB_V_NAK_LENGTH);
	invalid(P(VRB_OP_SEND_ONLY, 200, .len = 257), VRB_V_NAK_LENGTH);
	invalid(P(VRB_OP_SEND_ONLY, 200, .len = 5, .pad = 1), VRB_V_NAK_PAD);
	invalid(P(VRB_OP_WRITE_FIRST, 200, .len = 200, .rkey = 1, .dma_len = 300),
		VRB_V_NAK_LENGTH);
	invalid(P(VRB_OP_WRITE_FIRST, 200, .len = 256, .dma_len = VRB_MAX_MSG + 1),
		VRB_V_NAK_DMA_LENGTH);
	invalid(P(VRB_OP_READ_REQ, 200, .dma_len = VRB_MAX_MSG + 1), VRB_V_NAK_DMA_LENGTH);
	invalid(P(VRB_OP_CMP_SWAP, 200, .rkey = 1, .va = 4), VRB_V_NAK_ATOMIC_ALIGN);
	invalid(P(VRB_OP_FETCH_ADD, 200, .rkey = 99, .va = 4), VRB_V_NAK_ATOMIC_ALIGN);
}

static void dma_length(uint8_t op, uint32_t len, uint32_t dma_len)
{
	struct kit *k = armed_kit(0);

	give(k, P(op, 200, .len = len, TO(k, 0), .dma_len = dma_len));
	want_verdict(k, VRB_V_NAK_DMA_LENGTH);
	assert_int_equal(k->last.val[0], dma_len);
	assert_int_equal(k->last.val[1], len);
	want_event(k, VRB_ASYNC_QP_REQ_ERR);
	ends(k, 200, VRB_NAK_INVALID, VRB_WC_WR_FLUSH_ERR);
}

static void test_dma_length(void **state)
{
	(void)state;
	dma_length(VRB_OP_WRITE_ONLY, 8, 9);
	dma_length(VRB_OP_WRITE_ONLY, 8, 7);
	dma_length(VRB_OP_WRITE_FIRST, 256, 256);
}

/* Inside a message: the receive that it has taken ends with the status. */
static void in_message(const struct vrb_pkt *pkt, enum vrb_verdict v)
{
	struct kit *k = armed_kit(0);

	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256));
	memset(k->mem, 0, KIT_MEM);
	give(k, pkt);
	want_verdict(k, v);
	want_event(k, VRB_ASYNC_QP_REQ_ERR);
	ends(k, 201, VRB_NAK_INVALID, VRB_WC_REM_INV_REQ_ERR);
}

static void test_faults_in_a_message(void **state)
{
	(void)state;
	in_message(P(VRB_OP_SEND_FIRST, 201, .len = 256), VRB_V_NAK_OPCODE_SEQ);
	in_message(P(VRB_OP_SEND_ONLY, 201, .len = 8), VRB_V_NAK_OPCODE_SEQ);
	in_message(P(VRB_OP_WRITE_LAST, 201, .len = 8), VRB_V_NAK_OPCODE_SEQ);
	in_message(P(VRB_OP_READ_REQ, 201), VRB_V_NAK_OPCODE_SEQ);
	in_message(P(VRB_OP_FETCH_ADD, 201), VRB_V_NAK_OPCODE_SEQ);
	in_message(P(VRB_OP_SEND_LAST, 201), VRB_V_NAK_LENGTH);
	in_message(P(VRB_OP_SEND_LAST, 201, .len = 257), VRB_V_NAK_LENGTH);
	in_message(P(VRB_OP_SEND_MIDDLE, 201, .len = 44), VRB_V_NAK_LENGTH);
}

static void test_write_sum_wrong(void **state)
{
	struct kit *k = armed_kit(0);

	(void)state;
	give(k, P(VRB_OP_WRITE_FIRST, 200, .len = 256, TO(k, 0), .dma_len = 300));
	memset(k->mem, 0, KIT_MEM);
	give(k, P(VRB_OP_WRITE_LAST, 201, .len = 45));
	want_verdict(k, VRB_V_NAK_DMA_LENGTH);
	assert_int_equal(k->last.val[0], 300);
	assert_int_equal(k->last.val[1], 301);
	want_event(k, VRB_ASYNC_QP_REQ_ERR);
	ends(k, 201, VRB_NAK_INVALID, VRB_WC_WR_FLUSH_ERR);
}

static void not_enabled(const struct vrb_pkt *pkt)
{
	struct kit *k = armed_kit(.access = 1);

	give(k, pkt);
	want_verdict(k, VRB_V_NAK_QP_ACCESS);
	assert_int_equal(k->last.val[0], pkt->op.v);
	want_event(k, VRB_ASYNC_QP_REQ_ERR);
	ends(k, 200, VRB_NAK_INVALID, VRB_WC_WR_FLUSH_ERR);
}

static void test_operations_not_enabled(void **state)
{
	(void)state;
	not_enabled(P(VRB_OP_WRITE_ONLY, 200));
	not_enabled(P(VRB_OP_WRITE_FIRST, 200, .len = 256));
	not_enabled(P(VRB_OP_READ_REQ, 200));
	not_enabled(P(VRB_OP_CMP_SWAP, 200));
	not_enabled(P(VRB_OP_FETCH_ADD, 200));
}

static void test_too_many_reads(void **state)
{
	struct kit *k = armed_kit(.rd_atomic = 2);

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 8));
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 0), .dma_len = 8));
	give(k, P(VRB_OP_READ_REQ, 202, TO(k, 0), .dma_len = 8));
	want_verdict(k, VRB_V_NAK_RD_ATOMIC);
	assert_int_equal(k->last.val[0], 2);
	want_event(k, VRB_ASYNC_QP_REQ_ERR);
	/* what was accepted before is still answered, in order, then the NAK */
	want(k, RESP, P(VRB_OP_READ_RESP_ONLY, 200, .len = 8, .syndrome = 0x1f));
	want(k, RESP, P(VRB_OP_READ_RESP_ONLY, 201, .len = 8, .syndrome = 0x1f));
	ends(k, 202, VRB_NAK_INVALID, VRB_WC_WR_FLUSH_ERR);
}

static void test_no_read_resources(void **state)
{
	struct kit *k = armed_kit(.rd_atomic = 255);

	(void)state;
	give(k, P(VRB_OP_FETCH_ADD, 200, TO(k, 0)));
	want_verdict(k, VRB_V_NAK_RD_ATOMIC);
	want_event(k, VRB_ASYNC_QP_REQ_ERR);
	ends(k, 200, VRB_NAK_INVALID, VRB_WC_WR_FLUSH_ERR);
}

/* which: 0 an unknown key, 1 lkey for rkey, 2 other PD, 3 no rights, 4 past the end, 5 before the
 * start, 6 stale */
static struct vrb_pkt aimed(struct kit *k, uint8_t op, uint32_t which)
{
	struct vrb_pkt p = *P(op, 200, TO(k, 0));
	struct kit_keys keys;

	p.dma_len = 8;
	if (op == VRB_OP_WRITE_ONLY)
		p.len = 8;
	if (op == VRB_OP_WRITE_FIRST) {
		p.len = 256;
		p.dma_len = 300;
	}
	switch (which) {
	case 0:
		p.rkey = 0x7777;
		break;
	case 1:
		p.rkey = k->lkey;
		break;
	case 2:
		p.rkey = k->other_rkey;
		p.va = (uintptr_t)k->other;
		break;
	case 3:
		p.rkey = k->ro_rkey;
		p.va = (uintptr_t)k->ro;
		break;
	case 4:
		p.va += KIT_MEM - (p.len > 8 ? 296 : 0);
		break;
	case 5:
		p.va -= 8;
		break;
	default:
		keys = kit_reg(k, k->mem, 4096, 1, 15);
		p.rkey = keys.r;
		assert_true(vrb_mr_del(&k->keys, keys.l));
		break;
	}
	return p;
}

static void test_rkey_faults(void **state)
{
	static const uint8_t op[] = {VRB_OP_WRITE_ONLY, VRB_OP_WRITE_FIRST, VRB_OP_READ_REQ,
				     VRB_OP_CMP_SWAP, VRB_OP_FETCH_ADD};
	static const enum vrb_verdict v[] = {VRB_V_RKEY_UNKNOWN,   VRB_V_RKEY_IS_LKEY,
					     VRB_V_RKEY_OTHER_PD,  VRB_V_RKEY_RIGHTS,
					     VRB_V_RKEY_RANGE_END, VRB_V_RKEY_RANGE_START,
					     VRB_V_RKEY_STALE};

	(void)state;
	for (uint32_t i = 0; i < sizeof(op); i++) {
		for (uint32_t which = 0; which < 7; which++) {
			struct kit *k = armed_kit(0);
			struct vrb_pkt p = aimed(k, op[i], which);

			give(k, &p);
			want_verdict(k, v[which]);
			assert_int_equal(k->last.val[0], p.rkey);
			want_event(k, VRB_ASYNC_QP_ACCESS_ERR);
			ends(k, 200, VRB_NAK_ACCESS, VRB_WC_WR_FLUSH_ERR);
		}
	}
}

static void test_region_goes_in_mid_write(void **state)
{
	struct kit *k = armed_kit(0);
	struct kit_keys keys;

	(void)state;
	keys = kit_reg(k, k->mem, 4096, 1, 15);
	give(k, P(VRB_OP_WRITE_FIRST, 200, .len = 256, .rkey = keys.r, .va = (uintptr_t)k->mem,
		  .dma_len = 300));
	memset(k->mem, 0, KIT_MEM);
	assert_true(vrb_mr_del(&k->keys, keys.l));
	give(k, P(VRB_OP_WRITE_LAST, 201, .len = 44));
	want_verdict(k, VRB_V_RKEY_STALE);
	want_event(k, VRB_ASYNC_QP_ACCESS_ERR);
	ends(k, 201, VRB_NAK_ACCESS, VRB_WC_WR_FLUSH_ERR);
}

static void test_receive_too_short(void **state)
{
	struct kit *k = armed_kit(0);

	(void)state;
	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256));
	memset(k->mem, 0, KIT_MEM);
	give(k, P(VRB_OP_SEND_LAST, 201, .len = 45));
	want_verdict(k, VRB_V_RECV_TOO_SHORT);
	assert_int_equal(k->last.val[0], 301);
	assert_int_equal(k->last.val[1], 300);
	ends(k, 201, VRB_NAK_INVALID, VRB_WC_LOC_LEN_ERR); /* no event: the completion says it */
}

static void bad_receive(struct vrb_sge sge, enum vrb_verdict v)
{
	struct kit *k = kit(0);
	struct vrb_sge l[2] = {SGE(k, 0, 4), sge};

	if (sge.lkey == 1)
		l[1].lkey = k->ro_lkey, l[1].addr = (uintptr_t)k->ro;
	if (sge.lkey == 2)
		l[1].lkey = k->other_lkey, l[1].addr = (uintptr_t)k->other;
	if (sge.lkey == 3)
		l[1].lkey = k->lkey, l[1].addr += (uintptr_t)k->mem;
	post_recv_sg(k, 9, l, 2);
	post_recv(k, 10, 0, 8);
	give(k, SEND(200, 8));
	want_verdict(k, v);
	assert_int_equal(k->last.val[0], 1);
	assert_int_equal(k->last.val[1], l[1].lkey);
	want_recv(k, 9, VRB_WC_LOC_PROT_ERR, 0);
	want_recv(k, 10, VRB_WC_WR_FLUSH_ERR, 0);
	want(k, RESP, NAK(200, VRB_NAK_OPERATIONAL));
	want_quiet(k);
	untouched(k);
	kit_free(k);
}

static void test_receive_keys(void **state)
{
	(void)state;
	bad_receive((struct vrb_sge){0, 8, 1}, VRB_V_LKEY_NO_WRITE);
	bad_receive((struct vrb_sge){0, 8, 2}, VRB_V_LKEY_OTHER_PD);
	bad_receive((struct vrb_sge){KIT_MEM - 2, 8, 3}, VRB_V_LKEY_RANGE_END);
	bad_receive((struct vrb_sge){0, 8, 0x7777}, VRB_V_LKEY_UNKNOWN);
}

/* Only the bytes that are touched must be good. */
static void test_bad_tail_not_touched(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge l[2] = {SGE(k, 0, 8), {0, 8, 0x7777}};

	(void)state;
	post_recv_sg(k, 9, l, 2);
	give(k, SEND(200, 8));
	want_recv(k, 9, VRB_WC_SUCCESS, 8);
	want_quiet(k);
	kit_free(k);
}

static void test_ack_before_fault(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	give(k, SEND(200, 8));
	give(k, P(VRB_OP_SEND_LAST, 201, .len = 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	/* the NAK acknowledges what is before it */
	want(k, RESP, NAK(201, VRB_NAK_INVALID));
	want_none(k, RESP);
	kit_free(k);
}

static void test_comm_est(void **state)
{
	struct kit *k = kit(.state = VRB_QPS_RTR);

	(void)state;
	post_recv(k, 1, 0, 8);
	post_recv(k, 2, 0, 8);
	give(k, SEND(200, 8));
	want_event(k, VRB_ASYNC_COMM_EST);
	give(k, SEND(201, 8));
	want(k, RESP, P(VRB_OP_ACK, 201, .syndrome = 0x1f));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want_recv(k, 2, VRB_WC_SUCCESS, 8);
	want_quiet(k);
	kit_free(k);
}

static void test_no_comm_est_in_rts(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	give(k, SEND(200, 8));
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want_quiet(k);
	kit_free(k);
}

static void test_silent_drops(void **state)
{
	struct kit *k = kit(.state = VRB_QPS_INIT);

	(void)state;
	post_recv(k, 1, 0, 8);
	give(k, SEND(200, 8));
	want_verdict(k, VRB_V_DROP_STATE);
	kit_free(k);
	k = kit(0);
	give(k, P(VRB_TP_UC | VRB_OP_SEND_ONLY, 200, .len = 8));
	want_verdict(k, VRB_V_DROP_TRANSPORT);
	give(k, P(VRB_TP_UD | VRB_OP_SEND_ONLY, 200, .len = 8));
	want_verdict(k, VRB_V_DROP_TRANSPORT);
	give(k, P(VRB_OPCODE_CNP, 200));
	want_verdict(k, VRB_V_DROP_TRANSPORT);
	give(k, &(struct vrb_pkt){.op = {VRB_OP_SEND_ONLY}, .pkey = 0x7ffe, .psn = {200}});
	want_verdict(k, VRB_V_DROP_PKEY);
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_only),
		cmocka_unit_test(test_msn_is_24_bits),
		cmocka_unit_test(test_no_ackreq_no_ack),
		cmocka_unit_test(test_acks_coalesce),
		cmocka_unit_test(test_multi_packet_send),
		cmocka_unit_test(test_send_with_immediate),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_write_with_immediate),
		cmocka_unit_test(test_psn_ahead),
		cmocka_unit_test(test_nak_overtaken),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_duplicate_in_mid_message),
		cmocka_unit_test(test_psn_wrap),
		cmocka_unit_test(test_window_edges),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_rnr_at_the_end_of_a_write),
		cmocka_unit_test(test_opcode_faults),
		cmocka_unit_test(test_length_faults),
		cmocka_unit_test(test_dma_length),
		cmocka_unit_test(test_faults_in_a_message),
		cmocka_unit_test(test_write_sum_wrong),
		cmocka_unit_test(test_operations_not_enabled),
		cmocka_unit_test(test_too_many_reads),
		cmocka_unit_test(test_no_read_resources),
		cmocka_unit_test(test_rkey_faults),
		cmocka_unit_test(test_region_goes_in_mid_write),
		cmocka_unit_test(test_receive_too_short),
		cmocka_unit_test(test_receive_keys),
		cmocka_unit_test(test_bad_tail_not_touched),
		cmocka_unit_test(test_ack_before_fault),
		cmocka_unit_test(test_comm_est),
		cmocka_unit_test(test_no_comm_est_in_rts),
		cmocka_unit_test(test_silent_drops),
	};

	return VRB_RUN_TESTS(tests);
}
