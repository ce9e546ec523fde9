/* SPDX-License-Identifier: BSD-2-Clause */
/* From work requests to packets: segmentation, opcodes, window, fence, order of failures. */
#include "core_kit.h"

#include <string.h>

#define A VRB_PKT_ACKREQ

static void pattern(struct kit *k)
{
	memcpy(k->mem, k->wire, KIT_MEM);
}

static void test_send_only(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	pattern(k);
	want_none(k, REQ);
	post_op(k, 1, VRB_WR_SEND, 0, 100);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 100, .flags = A));
	want_payload(k, k->mem, 100);
	want_none(k, REQ);
	want_quiet(k);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	kit_free(k);
}

static void test_empty_message(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post(k, (struct vrb_swqe){.wr_id = 1, .op = VRB_WR_SEND, .flags = VRB_WRF_SIGNALED}, NULL,
	     0);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .flags = A));
	assert_int_equal(k->tx.n_seg, 0);
	/* a key is not looked at when its SGE is empty */
	post(k, (struct vrb_swqe){.wr_id = 2, .op = VRB_WR_WRITE, .flags = VRB_WRF_SIGNALED},
	     &(struct vrb_sge){0x1234, 0, 0x99}, 1);
	want(k, REQ, P(VRB_OP_WRITE_ONLY, 101, .flags = A));
	give(k, ACK(101));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

static void test_segmentation(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	pattern(k);
	post_op(k, 1, VRB_WR_SEND, 0, 513);
	post_op(k, 2, VRB_WR_WRITE, 0, 512);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 256));
	want_payload(k, k->mem, 256);
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 101, .len = 256));
	want_payload(k, k->mem + 256, 256);
	want(k, REQ, P(VRB_OP_SEND_LAST, 102, .len = 1, .flags = A));
	want_payload(k, k->mem + 512, 1);
	want(k, REQ,
	     P(VRB_OP_WRITE_FIRST, 103, .len = 256, .rkey = 0xabcd00, .va = 0x10000,
	       .dma_len = 512));
	want(k, REQ, P(VRB_OP_WRITE_LAST, 104, .len = 256, .flags = A));
	want_none(k, REQ);
	give(k, ACK(103)); /* in the middle of the second */
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	give(k, ACK(104));
	want_wc(k, 2, VRB_WC_SUCCESS);
	kit_free(k);
}

static void test_last_opcodes(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge one = SGE(k, 0, 10), two = SGE(k, 0, 257);
	struct vrb_swqe w = {.imm = 0x77, .rkey = 5, .va = 6, .flags = VRB_WRF_SOLICITED};

	(void)state;
	for (uint32_t op = VRB_WR_WRITE; op <= VRB_WR_SEND_IMM; op++) {
		w.op = (uint8_t)op;
		post(k, w, &one, 1);
		post(k, w, &two, 1);
	}
	want(k, REQ,
	     P(VRB_OP_WRITE_ONLY, 100, .len = 10, .flags = A, .rkey = 5, .va = 6, .dma_len = 10,
	       .imm = 0x77));
	want(k, REQ, P(VRB_OP_WRITE_FIRST, 101, .len = 256, .rkey = 5, .va = 6, .dma_len = 257));
	want(k, REQ, P(VRB_OP_WRITE_LAST, 102, .len = 1, .flags = A, .imm = 0x77));
	want(k, REQ,
	     P(VRB_OP_WRITE_ONLY_IMM, 103, .len = 10, .flags = A | VRB_PKT_SE, .rkey = 5, .va = 6,
	       .dma_len = 10, .imm = 0x77));
	want(k, REQ, P(VRB_OP_WRITE_FIRST, 104, .len = 256, .rkey = 5, .va = 6, .dma_len = 257));
	want(k, REQ, P(VRB_OP_WRITE_LAST_IMM, 105, .len = 1, .flags = A | VRB_PKT_SE, .imm = 0x77));
	want(k, REQ, P(VRB_OP_SEND_ONLY, 106, .len = 10, .flags = A | VRB_PKT_SE, .imm = 0x77));
	want(k, REQ, P(VRB_OP_SEND_FIRST, 107, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST, 108, .len = 1, .flags = A | VRB_PKT_SE, .imm = 0x77));
	want(k, REQ, P(VRB_OP_SEND_ONLY_IMM, 109, .len = 10, .flags = A | VRB_PKT_SE, .imm = 0x77));
	want(k, REQ, P(VRB_OP_SEND_FIRST, 110, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST_IMM, 111, .len = 1, .flags = A | VRB_PKT_SE, .imm = 0x77));
	w.op = VRB_WR_SEND_INV;
	w.flags = 0;
	post(k, w, &one, 1);
	post(k, w, &two, 1);
	want(k, REQ, P(VRB_OP_SEND_ONLY_INV, 112, .len = 10, .flags = A, .inv_rkey = 0x77));
	want(k, REQ, P(VRB_OP_SEND_FIRST, 113, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST_INV, 114, .len = 1, .flags = A, .inv_rkey = 0x77));
	give(k, ACK(114));
	want_quiet(k); /* nothing was signaled */
	assert_int_equal(k->qp.sq_una, k->qp.sq.tail);
	kit_free(k);
}

static void test_gather(void **state)
{
	struct kit *k = kit(.mtu = 1024);
	struct vrb_sge l[VRB_MAX_SGE];
	uint8_t flat[4096];
	uint32_t n = 0;

	(void)state;
	pattern(k);
	for (uint32_t i = 0; i < VRB_MAX_SGE; i++) {
		uint32_t len = i % 5 == 2 ? 0 : 40 + i;

		l[i] = SGE(k, 100 * i, len);
		memcpy(flat + n, k->mem + 100 * i, len);
		n += len;
	}
	post(k, (struct vrb_swqe){.wr_id = 1, .op = VRB_WR_SEND}, l, VRB_MAX_SGE);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 1024));
	want_payload(k, flat, 1024);
	want(k, REQ, P(VRB_OP_SEND_LAST, 101, .len = n - 1024, .flags = A));
	want_payload(k, flat + 1024, n - 1024);
	kit_free(k);
}

static void test_inline(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_inline(k, (struct vrb_swqe){.wr_id = 1, .op = VRB_WR_SEND}, k->wire, 300);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 256));
	want_payload(k, k->wire, 256);
	want(k, REQ, P(VRB_OP_SEND_LAST, 101, .len = 44, .flags = A));
	want_payload(k, k->wire + 256, 44);
	/* the bytes are still there for a repetition */
	give(k, NAK(100, VRB_NAK_PSN_SEQ));
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 256));
	want_payload(k, k->wire, 256);
	kit_free(k);
}

static void test_big_mtu(void **state)
{
	struct kit *k = kit(.mtu = 32768);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, KIT_MEM);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 32768));
	want(k, REQ, P(VRB_OP_SEND_LAST, 101, .len = 32768, .flags = A));
	kit_free(k);
}

static void test_largest_message(void **state)
{
	struct kit *k = kit(.window = 4);
	struct kit_keys keys;
	struct vrb_swqe w = {.wr_id = 1, .op = VRB_WR_SEND, .flags = VRB_WRF_SIGNALED};

	(void)state;
	/* memory is not touched: packets are gather lists */
	keys = kit_reg(k, k->mem, VRB_MAX_MSG, 1, 0);
	post(k, w, &(struct vrb_sge){(uintptr_t)k->mem, VRB_MAX_MSG, keys.l}, 1);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 256, .flags = A));
	for (uint32_t i = 1; i < 0x800000; i++) {
		give(k, ACK((100 + i - 1) & VRB_PSN_MASK));
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	}
	assert_int_equal(k->tx.pkt.op.v, VRB_OP_SEND_LAST);
	want_quiet(k);
	give(k, ACK(100 + 0x7fffff));
	want_wc(k, 1, VRB_WC_SUCCESS);
	kit_free(k);
}

static void test_too_long(void **state)
{
	struct kit *k = kit(0);
	struct vrb_swqe w = {.wr_id = 1, .op = VRB_WR_SEND, .len = VRB_MAX_MSG + 1};

	(void)state;
	post(k, w, NULL, 0);
	want_none(k, REQ);
	want_verdict(k, VRB_V_POST_LENGTH);
	want_wc(k, 1, VRB_WC_LOC_LEN_ERR);
	kit_free(k);
}

static void test_psn_wrap(void **state)
{
	struct kit *k = kit(.sq_psn = 0xfffffe);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 1024);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 0xfffffe, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 0xffffff, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 0, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST, 1, .len = 256, .flags = A));
	give(k, NAK(0xffffff, VRB_NAK_PSN_SEQ));
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 0xffffff, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 0, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST, 1, .len = 256, .flags = A));
	give(k, ACK(1));
	want_wc(k, 1, VRB_WC_SUCCESS);
	kit_free(k);
}

static void test_window(void **state)
{
	struct kit *k = kit(.window = 4);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 6 * 256);
	for (uint32_t i = 0; i < 4; i++)
		want(k, REQ,
		     P(i == 0 ? VRB_OP_SEND_FIRST : VRB_OP_SEND_MIDDLE, 100 + i, .len = 256,
		       .flags = A));
	want_none(k, REQ);
	give(k, ACK(100));
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 104, .len = 256, .flags = A));
	want_none(k, REQ);
	give(k, ACK(104));
	want(k, REQ, P(VRB_OP_SEND_LAST, 105, .len = 256, .flags = A));
	kit_free(k);
}

static void test_read_request(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_READ, 0, 1000);
	post_op(k, 2, VRB_WR_READ, 0, 0);
	post_op(k, 3, VRB_WR_SEND, 0, 1);
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 100, .flags = A, .rkey = 0xabcd00, .va = 0x10000, .dma_len = 1000));
	want(k, REQ, P(VRB_OP_READ_REQ, 104, .flags = A, .rkey = 0xabcd00, .va = 0x10000));
	want(k, REQ, P(VRB_OP_SEND_ONLY, 105, .len = 1, .flags = A));
	kit_free(k);
}

static void test_atomic_requests(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge s = SGE(k, 0, 8);
	struct vrb_swqe w = {.op = VRB_WR_CMP_SWAP, .rkey = 5, .va = 64, .atomic = {9, 8}};

	(void)state;
	post(k, w, &s, 1);
	w.op = VRB_WR_FETCH_ADD;
	post(k, w, &s, 1);
	want(k, REQ,
	     P(VRB_OP_CMP_SWAP, 100, .flags = A, .rkey = 5, .va = 64, .swap_add = 9, .compare = 8));
	want(k, REQ,
	     P(VRB_OP_FETCH_ADD, 101, .flags = A, .rkey = 5, .va = 64, .swap_add = 9,
	       .compare = 8));
	kit_free(k);
}

static void test_rd_atomic_limit(void **state)
{
	struct kit *k = kit(.rd_atomic = 2);

	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		post_op(k, i, VRB_WR_READ, 0, 8);
	post_op(k, 4, VRB_WR_SEND, 0, 8);
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 100, .flags = A, .rkey = 0xabcd00, .va = 0x10000, .dma_len = 8));
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 101, .flags = A, .rkey = 0xabcd00, .va = 0x10000, .dma_len = 8));
	want_none(k, REQ); /* and nothing passes the third */
	give(k, P(VRB_OP_READ_RESP_ONLY, 100, .len = 8, .syndrome = 0x1f));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 102, .flags = A, .rkey = 0xabcd00, .va = 0x10000, .dma_len = 8));
	want(k, REQ, P(VRB_OP_SEND_ONLY, 103, .len = 8, .flags = A));
	want_none(k, REQ);
	kit_free(k);
}

static void test_rd_atomic_zero(void **state)
{
	struct kit *k = kit(.rd_atomic = 255);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_op(k, 2, VRB_WR_READ, 0, 8);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	want_none(k, REQ);
	want_verdict(k, VRB_V_RD_ATOMIC_ZERO);
	want_quiet(k);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_LOC_QP_OP_ERR);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	kit_free(k);
}

static void test_atomic_length(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_FETCH_ADD, 0, 16);
	want_none(k, REQ);
	want_verdict(k, VRB_V_SGE_LENGTH);
	assert_int_equal(k->last.val[0], 16);
	want_wc(k, 1, VRB_WC_LOC_LEN_ERR);
	kit_free(k);
}

static void test_fence(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge s = SGE(k, 0, 8);
	struct vrb_swqe w = {.wr_id = 2, .op = VRB_WR_SEND, .flags = VRB_WRF_FENCE};

	(void)state;
	post_op(k, 1, VRB_WR_READ, 0, 300);
	post(k, w, &s, 1);
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 100, .flags = A, .rkey = 0xabcd00, .va = 0x10000, .dma_len = 300));
	want_none(k, REQ);
	give(k, P(VRB_OP_READ_RESP_FIRST, 100, .len = 256, .syndrome = 0x1f));
	want_none(k, REQ);
	give(k, P(VRB_OP_READ_RESP_LAST, 101, .len = 44, .syndrome = 0x1f));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 102, .len = 8, .flags = A));
	kit_free(k);
}

/* A READ that is longer than a quarter of the window goes out as several requests. */
static void test_read_in_chunks(void **state)
{
	struct kit *k = kit(.window = 8);

	(void)state;
	post_op(k, 1, VRB_WR_READ, 0, 1300); /* 6 packets, chunks of 2 */
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 100, .flags = A, .rkey = 0xabcd00, .va = 0x10000, .dma_len = 512));
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 102, .flags = A, .rkey = 0xabcd00, .va = 0x10200, .dma_len = 512));
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 104, .flags = A, .rkey = 0xabcd00, .va = 0x10400, .dma_len = 276));
	want_none(k, REQ);
	assert_int_equal(k->qp.n_rd_out, 3);
	for (uint32_t i = 0; i < 5; i++)
		give_at(k,
			P(i % 2 ? VRB_OP_READ_RESP_LAST : VRB_OP_READ_RESP_FIRST, 100 + i,
			  .len = 256, .syndrome = 0x1f),
			256 * i);
	assert_int_equal(k->qp.n_rd_out, 1);
	want_quiet(k);
	give_at(k, P(VRB_OP_READ_RESP_LAST, 105, .len = 20, .syndrome = 0x1f), 1280);
	want_wc(k, 1, VRB_WC_SUCCESS);
	assert_int_equal(k->qp.n_rd_out, 0);
	assert_memory_equal(k->mem, k->wire, 1300);
	kit_free(k);
}

static void test_read_chunk_repeated(void **state)
{
	struct kit *k = kit(.window = 8);

	(void)state;
	post_op(k, 1, VRB_WR_READ, 0, 1300);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	give(k, P(VRB_OP_READ_RESP_FIRST, 100, .len = 256, .syndrome = 0x1f));
	give_at(k, P(VRB_OP_READ_RESP_FIRST, 102, .len = 256, .syndrome = 0x1f), 512);
	want_verdict(k, VRB_V_IMPLIED_NAK);
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 101, .flags = A, .rkey = 0xabcd00, .va = 0x10100, .dma_len = 256));
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 102, .flags = A, .rkey = 0xabcd00, .va = 0x10200, .dma_len = 512));
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 104, .flags = A, .rkey = 0xabcd00, .va = 0x10400, .dma_len = 276));
	want_none(k, REQ);
	for (uint32_t i = 1; i < 6; i++)
		give_at(k, P(VRB_OP_READ_RESP_MIDDLE, 100 + i, .len = i < 5 ? 256 : 20), 256 * i);
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	assert_int_equal(k->qp.n_rd_out, 0);
	assert_memory_equal(k->mem, k->wire, 1300);
	kit_free(k);
}

static void fails_with(enum vrb_verdict v, struct vrb_sge sge)
{
	struct kit *k = kit(0);
	uint64_t base = (uintptr_t)k->mem;
	struct vrb_sge l[2] = {SGE(k, 0, 16), sge};
	struct vrb_swqe w = {.wr_id = 2, .op = VRB_WR_SEND};

	if (sge.lkey == 0) {
		l[1].addr += base;
		l[1].lkey = k->lkey;
	} else if (sge.lkey == 1) {
		l[1].addr += base;
		l[1].lkey = k->rkey;
	} else if (sge.lkey == 2) {
		l[1].lkey = k->other_lkey;
	}
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post(k, w, l, 2);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	post_recv(k, 9, 0, 8);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	want_none(k, REQ);
	want_verdict(k, v);
	assert_int_equal(k->last.val[0], 1);
	assert_int_equal(k->last.val[1], l[1].lkey);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_LOC_PROT_ERR);
	want_wc(k, 3, VRB_WC_WR_FLUSH_ERR);
	want_recv(k, 9, VRB_WC_WR_FLUSH_ERR, 0);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	want_none(k, REQ);
	want_quiet(k);
	kit_free(k);
}

static void test_local_protection(void **state)
{
	(void)state;
	fails_with(VRB_V_LKEY_RANGE_END, (struct vrb_sge){KIT_MEM - 8, 9, 0});
	fails_with(VRB_V_LKEY_RANGE_START, (struct vrb_sge){(uint64_t)-1, 9, 0});
	fails_with(VRB_V_LKEY_IS_RKEY, (struct vrb_sge){0, 8, 1});
	fails_with(VRB_V_LKEY_OTHER_PD, (struct vrb_sge){0, 8, 2});
	fails_with(VRB_V_LKEY_UNKNOWN, (struct vrb_sge){0, 8, 0x77777777});
}

/* The region goes while the message is on its way: what was sent stays outstanding. */
static void test_region_goes_in_mid_message(void **state)
{
	struct kit *k = kit(0);
	struct kit_keys keys;
	struct vrb_swqe w = {.wr_id = 2, .op = VRB_WR_SEND};

	(void)state;
	keys = kit_reg(k, k->mem, 4096, 1, 0);
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post(k, w, &(struct vrb_sge){(uintptr_t)k->mem, 1024, keys.l}, 1);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	want(k, REQ, P(VRB_OP_SEND_FIRST, 101, .len = 256));
	assert_true(vrb_mr_del(&k->keys, keys.l));
	want_none(k, REQ);
	want_verdict(k, VRB_V_LKEY_STALE);
	/* the first was lost: it is repeated, the second only as far as it had come */
	give(k, NAK(100, VRB_NAK_PSN_SEQ));
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	want_none(k, REQ);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_LOC_PROT_ERR);
	kit_free(k);
}

/* Only the repetition of an entry fails; then the answer to the first try arrives. */
static void test_repetition_fails_but_answer_comes(void **state)
{
	struct kit *k = kit(0);
	struct kit_keys keys;
	struct vrb_swqe w = {.wr_id = 2, .op = VRB_WR_SEND, .flags = VRB_WRF_SIGNALED};

	(void)state;
	keys = kit_reg(k, k->mem, 4096, 1, 0);
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post(k, w, &(struct vrb_sge){(uintptr_t)k->mem, 8, keys.l}, 1);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	want(k, REQ, P(VRB_OP_SEND_ONLY, 101, .len = 8, .flags = A));
	assert_true(vrb_mr_del(&k->keys, keys.l));
	pass(k, 70 * VRB_NS_PER_MS);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	want_none(k, REQ);
	want_verdict(k, VRB_V_LKEY_STALE);
	give(k, ACK(101));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_SUCCESS);
	assert_int_equal(k->qp.state, VRB_QPS_RTS);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 102, .len = 8, .flags = A));
	kit_free(k);
}

static void test_sqd(void **state)
{
	struct kit *k = kit(0);
	struct vrb_qp_attr a;

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 600);
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	want(k, REQ, P(VRB_OP_SEND_FIRST, 100, .len = 256));
	kit_to(k, VRB_QPS_SQD);
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 101, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST, 102, .len = 88, .flags = A));
	want_none(k, REQ);
	vrb_qp_query(&k->qp, &a);
	assert_int_equal(a.sq_draining, 1);
	want_quiet(k);
	give(k, NAK(101, VRB_NAK_PSN_SEQ)); /* draining repeats what was lost */
	want(k, REQ, P(VRB_OP_SEND_MIDDLE, 101, .len = 256));
	want(k, REQ, P(VRB_OP_SEND_LAST, 102, .len = 88, .flags = A));
	give(k, ACK(102));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_event(k, VRB_ASYNC_SQ_DRAINED);
	vrb_qp_query(&k->qp, &a);
	assert_int_equal(a.sq_draining, 0);
	assert_int_equal(a.state, VRB_QPS_SQD);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	want_none(k, REQ);
	kit_to(k, VRB_QPS_RTS);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 103, .len = 8, .flags = A));
	want(k, REQ, P(VRB_OP_SEND_ONLY, 104, .len = 8, .flags = A));
	want_quiet(k);
	kit_free(k);
}

static void test_sqd_when_idle(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	kit_to(k, VRB_QPS_SQD);
	want_event(k, VRB_ASYNC_SQ_DRAINED);
	want_quiet(k);
	kit_free(k);
}

static void test_unknown_operation(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, 77, 0, 8);
	want_none(k, REQ);
	want_verdict(k, VRB_V_POST_OPCODE);
	want_wc(k, 1, VRB_WC_LOC_QP_OP_ERR);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_only),
		cmocka_unit_test(test_empty_message),
		cmocka_unit_test(test_segmentation),
		cmocka_unit_test(test_last_opcodes),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_big_mtu),
		cmocka_unit_test(test_largest_message),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_psn_wrap),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_read_request),
		cmocka_unit_test(test_atomic_requests),
		cmocka_unit_test(test_rd_atomic_limit),
		cmocka_unit_test(test_rd_atomic_zero),
		cmocka_unit_test(test_atomic_length),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_read_in_chunks),
		cmocka_unit_test(test_read_chunk_repeated),
		cmocka_unit_test(test_local_protection),
		cmocka_unit_test(test_region_goes_in_mid_message),
		cmocka_unit_test(test_repetition_fails_but_answer_comes),
		cmocka_unit_test(test_sqd),
		cmocka_unit_test(test_sqd_when_idle),
		cmocka_unit_test(test_unknown_operation),
	};

	return VRB_RUN_TESTS(tests);
}
