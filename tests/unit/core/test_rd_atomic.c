/* SPDX-License-Identifier: BSD-2-Clause */
/* READ and atomic at the responder: responses, order, replay, regions that go. */
#include "core_kit.h"

#include <stdlib.h>
#include <string.h>

#define A	       VRB_PKT_ACKREQ
#define TO(k, off)     .rkey = (k)->rkey, .va = (uintptr_t)((k)->mem + (off))
#define RESP_(o, p, n) P(VRB_OP_READ_RESP_##o, p, .len = (n), .syndrome = 0x1f)

static struct kit *filled(void)
{
	struct kit *k = kit(0);

	memcpy(k->mem, k->wire, KIT_MEM);
	return k;
}

static uint64_t *word(struct kit *k, uint32_t off)
{
	return (uint64_t *)(void *)(k->mem + off);
}

static void test_read_only(void **state)
{
	struct kit *k = filled();

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 5), .dma_len = 256, .flags = A));
	want(k, RESP, P(VRB_OP_READ_RESP_ONLY, 200, .len = 256, .syndrome = 0x1f, .msn = 1));
	want_payload(k, k->mem + 5, 256);
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

static void test_read_many(void **state)
{
	struct kit *k = filled();

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 600));
	want(k, RESP, RESP_(FIRST, 200, 256));
	want_payload(k, k->mem, 256);
	want(k, RESP, P(VRB_OP_READ_RESP_MIDDLE, 201, .len = 256));
	want_payload(k, k->mem + 256, 256);
	want(k, RESP, RESP_(LAST, 202, 88));
	want_payload(k, k->mem + 512, 88);
	want_none(k, RESP);
	/* the next request has the PSN behind the answer */
	give(k, P(VRB_OP_READ_REQ, 203, TO(k, 0), .dma_len = 512));
	want(k, RESP, P(VRB_OP_READ_RESP_FIRST, 203, .len = 256, .syndrome = 0x1f, .msn = 2));
	want(k, RESP, RESP_(LAST, 204, 256));
	want_quiet(k);
	kit_free(k);
}

static void test_read_nothing(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, .rkey = 0x7777, .va = 1));
	want(k, RESP, RESP_(ONLY, 200, 0));
	assert_int_equal(k->tx.n_seg, 0);
	want_quiet(k);
	kit_free(k);
}

/* An ACK behind a READ waits for its answer, since it would imply it. */
static void test_order_of_responses(void **state)
{
	struct kit *k = filled();

	(void)state;
	post_recv(k, 1, 4096, 8);
	post_recv(k, 2, 4096, 8);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8, .flags = A));
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 0), .dma_len = 300));
	give(k, P(VRB_OP_FETCH_ADD, 203, TO(k, 8), .swap_add = 0));
	give(k, P(VRB_OP_SEND_ONLY, 204, .len = 8, .flags = A));
	assert_true(k->qp.resp_pending && k->qp.ack_pending);
	want(k, RESP, RESP_(FIRST, 201, 256));
	want(k, RESP, RESP_(LAST, 202, 44));
	want(k, RESP, P(VRB_OP_ATOMIC_ACK, 203, .syndrome = 0x1f, .atomic_orig = *word(k, 8)));
	assert_false(k->qp.resp_pending);
	want(k, RESP, P(VRB_OP_ACK, 204, .syndrome = 0x1f, .msn = 4));
	want_none(k, RESP);
	kit_free(k);
}

static void test_nak_behind_read(void **state)
{
	struct kit *k = filled();

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 8));
	give(k, P(VRB_OP_SEND_ONLY, 205, .len = 8));
	want(k, RESP, RESP_(ONLY, 200, 8));
	want(k, RESP, NAK(201, VRB_NAK_PSN_SEQ));
	want_none(k, RESP);
	kit_free(k);
}

static void test_repeated_read(void **state)
{
	struct kit *k = filled();

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 600));
	for (uint32_t i = 0; i < 3; i++)
		assert_true(vrb_qp_poll_response(&k->qp, k->now, &k->tx, &k->fx));
	memset(k->mem + 256, 0x33, 344); /* memory as it is now, not as it was */
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 256), .dma_len = 344));
	want(k, RESP, P(VRB_OP_READ_RESP_FIRST, 201, .len = 256, .syndrome = 0x1f, .msn = 1));
	want_payload(k, k->mem + 256, 256);
	want(k, RESP, RESP_(LAST, 202, 88));
	want_none(k, RESP);
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 256), .dma_len = 256)); /* a part of it */
	want(k, RESP, RESP_(ONLY, 201, 256));
	want_none(k, RESP);
	want_quiet(k);
	assert_int_equal(k->qp.epsn.v, 203);
	kit_free(k);
}

static void test_repetition_restarts(void **state)
{
	struct kit *k = filled();

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 600));
	want(k, RESP, RESP_(FIRST, 200, 256));
	want(k, RESP, P(VRB_OP_READ_RESP_MIDDLE, 201, .len = 256));
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 600));
	want(k, RESP, RESP_(FIRST, 200, 256));
	want(k, RESP, P(VRB_OP_READ_RESP_MIDDLE, 201, .len = 256));
	want(k, RESP, RESP_(LAST, 202, 88));
	want_none(k, RESP);
	kit_free(k);
}

/* The requester goes back over two READs: the answers come in its order. */
static void test_repeated_in_order(void **state)
{
	struct kit *k = filled();

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 8));
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 8), .dma_len = 8));
	give(k, P(VRB_OP_READ_REQ, 202, TO(k, 16), .dma_len = 300));
	want(k, RESP, RESP_(ONLY, 200, 8));
	want(k, RESP, RESP_(ONLY, 201, 8));
	want(k, RESP, RESP_(FIRST, 202, 256));
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 8), .dma_len = 8));
	give(k, P(VRB_OP_READ_REQ, 202, TO(k, 16), .dma_len = 300));
	want(k, RESP, RESP_(ONLY, 201, 8));
	want(k, RESP, RESP_(FIRST, 202, 256));
	want(k, RESP, RESP_(LAST, 203, 44));
	want_none(k, RESP);
	kit_free(k);
}

static void test_repetitions_refused(void **state)
{
	struct kit *k = filled();
	uint32_t psn = 200;

	(void)state;
	give(k, P(VRB_OP_READ_REQ, psn, TO(k, 0), .dma_len = 600));
	for (uint32_t i = 0; i < 3; i++)
		assert_true(vrb_qp_poll_response(&k->qp, k->now, &k->tx, &k->fx));
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 0), .dma_len = 344)); /* VA not advanced */
	want_verdict(k, VRB_V_DROP_READ_DUP);
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 256), .dma_len = 600)); /* too long */
	want_verdict(k, VRB_V_DROP_READ_DUP);
	give(k, P(VRB_OP_READ_REQ, 201, .rkey = k->ro_rkey, .va = (uintptr_t)k->mem + 256,
		  .dma_len = 344)); /* another key */
	want_verdict(k, VRB_V_DROP_READ_DUP);
	give(k, P(VRB_OP_READ_REQ, 199, TO(k, 0), .dma_len = 8)); /* never seen */
	want_verdict(k, VRB_V_DROP_READ_DUP);
	give(k, P(VRB_OP_FETCH_ADD, 200, TO(k, 0)));
	want_verdict(k, VRB_V_DROP_READ_DUP);
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

static void test_repeated_read_key_gone(void **state)
{
	struct kit *k = filled();
	struct kit_keys keys;

	(void)state;
	keys = kit_reg(k, k->mem, 4096, 1, 15);
	give(k, P(VRB_OP_READ_REQ, 200, .rkey = keys.r, .va = (uintptr_t)k->mem, .dma_len = 8));
	want(k, RESP, RESP_(ONLY, 200, 8));
	assert_true(vrb_mr_del(&k->keys, keys.l));
	give(k, P(VRB_OP_READ_REQ, 200, .rkey = keys.r, .va = (uintptr_t)k->mem, .dma_len = 8));
	want_verdict(k, VRB_V_RKEY_STALE);
	want_event(k, VRB_ASYNC_QP_ACCESS_ERR);
	want(k, RESP, NAK(200, VRB_NAK_ACCESS));
	want_none(k, RESP);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	kit_free(k);
}

static void test_region_goes_in_mid_answer(void **state)
{
	struct kit *k = filled();
	struct kit_keys keys;

	(void)state;
	keys = kit_reg(k, k->mem, 4096, 1, 15);
	give(k, P(VRB_OP_READ_REQ, 200, .rkey = keys.r, .va = (uintptr_t)k->mem, .dma_len = 600));
	give(k, P(VRB_OP_READ_REQ, 203, TO(k, 0), .dma_len = 8));
	want(k, RESP, RESP_(FIRST, 200, 256));
	assert_true(vrb_mr_del(&k->keys, keys.l));
	want(k, RESP, NAK(201, VRB_NAK_ACCESS));
	want_verdict(k, VRB_V_RKEY_STALE);
	want_event(k, VRB_ASYNC_QP_ACCESS_ERR);
	want_none(k, RESP);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	kit_free(k);
}

static void test_cmp_swap(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	*word(k, 64) = 5;
	give(k, P(VRB_OP_CMP_SWAP, 200, TO(k, 64), .compare = 5, .swap_add = 9));
	want(k, RESP, P(VRB_OP_ATOMIC_ACK, 200, .syndrome = 0x1f, .atomic_orig = 5, .msn = 1));
	assert_int_equal(*word(k, 64), 9);
	give(k, P(VRB_OP_CMP_SWAP, 201, TO(k, 64), .compare = 5, .swap_add = 7));
	want(k, RESP, P(VRB_OP_ATOMIC_ACK, 201, .syndrome = 0x1f, .atomic_orig = 9, .msn = 2));
	assert_int_equal(*word(k, 64), 9);
	want_quiet(k);
	kit_free(k);
}

static void test_fetch_add_replay(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	*word(k, 0) = UINT64_MAX;
	give(k, P(VRB_OP_FETCH_ADD, 200, TO(k, 0), .swap_add = 3));
	want(k, RESP, P(VRB_OP_ATOMIC_ACK, 200, .syndrome = 0x1f, .atomic_orig = UINT64_MAX));
	assert_int_equal(*word(k, 0), 2);
	give(k, P(VRB_OP_FETCH_ADD, 201, TO(k, 0), .swap_add = 1));
	for (uint32_t i = 0; i < 3; i++) {
		give(k, P(VRB_OP_FETCH_ADD, 200, TO(k, 0), .swap_add = 3));
		want(k, RESP,
		     P(VRB_OP_ATOMIC_ACK, 200, .syndrome = 0x1f, .atomic_orig = UINT64_MAX));
		if (i == 0)
			want(k, RESP,
			     P(VRB_OP_ATOMIC_ACK, 201, .syndrome = 0x1f, .atomic_orig = 2));
	}
	want_none(k, RESP);
	assert_int_equal(*word(k, 0), 3);
	assert_int_equal(k->qp.msn, 2);
	want_quiet(k);
	kit_free(k);
}

static void test_replay_forgets_the_oldest(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	for (uint32_t i = 0; i <= VRB_RD_ATOMIC_OWN; i++) {
		give(k, P(VRB_OP_FETCH_ADD, 200 + i, TO(k, 0), .swap_add = 1));
		want(k, RESP, P(VRB_OP_ATOMIC_ACK, 200 + i, .syndrome = 0x1f, .atomic_orig = i));
	}
	give(k, P(VRB_OP_FETCH_ADD, 200, TO(k, 0), .swap_add = 1));
	want_verdict(k, VRB_V_DROP_READ_DUP);
	want_none(k, RESP);
	give(k, P(VRB_OP_FETCH_ADD, 201, TO(k, 0), .swap_add = 1));
	want(k, RESP, P(VRB_OP_ATOMIC_ACK, 201, .syndrome = 0x1f, .atomic_orig = 1));
	assert_int_equal(*word(k, 0), VRB_RD_ATOMIC_OWN + 1);
	want_quiet(k);
	kit_free(k);
}

/* More room on the way: what is held moves along, and then so many are. */
static void test_more_room(void **state)
{
	struct kit *k = kit(0);
	struct vrb_rd_res *mem = calloc(VRB_RD_ATOMIC_MAX, sizeof(*mem));
	struct vrb_qp_attr a = {.max_dest_rd_atomic = VRB_RD_ATOMIC_MAX};
	uint32_t n = VRB_RD_ATOMIC_OWN + 3, end = n + VRB_RD_ATOMIC_MAX;

	(void)state;
	for (uint32_t i = 0; i < n; i++) {
		give(k, P(VRB_OP_FETCH_ADD, 200 + i, TO(k, 0), .swap_add = 1));
		if (i < n - 2)
			want(k, RESP,
			     P(VRB_OP_ATOMIC_ACK, 200 + i, .syndrome = 0x1f, .atomic_orig = i));
	}
	vrb_qp_give_rd(&k->qp, mem);
	vrb_qp_modify(&k->qp, &a, VRB_QPA_MAX_DEST_RD_ATOMIC, 0, 0, &k->fx);
	vrb_qp_query(&k->qp, &a);
	assert_int_equal(a.max_dest_rd_atomic, VRB_RD_ATOMIC_MAX);
	give(k, P(VRB_OP_FETCH_ADD, 200 + n - 3, TO(k, 0), .swap_add = 1));
	for (uint32_t i = n - 3; i < n; i++)
		want(k, RESP, P(VRB_OP_ATOMIC_ACK, 200 + i, .syndrome = 0x1f, .atomic_orig = i));
	for (uint32_t i = n; i < end; i++)
		give(k, P(VRB_OP_FETCH_ADD, 200 + i, TO(k, 0), .swap_add = 1));
	for (uint32_t i = n; i < end; i++)
		want(k, RESP, P(VRB_OP_ATOMIC_ACK, 200 + i, .syndrome = 0x1f, .atomic_orig = i));
	give(k, P(VRB_OP_FETCH_ADD, 200 + n, TO(k, 0), .swap_add = 1));
	want(k, RESP, P(VRB_OP_ATOMIC_ACK, 200 + n, .syndrome = 0x1f, .atomic_orig = n));
	assert_int_equal(*word(k, 0), end);
	for (uint32_t i = end; i <= end + VRB_RD_ATOMIC_MAX; i++)
		give(k, P(VRB_OP_FETCH_ADD, 200 + i, TO(k, 0), .swap_add = 1));
	want_verdict(k, VRB_V_NAK_RD_ATOMIC);
	kit_free(k);
	free(mem);
}

/* Linux rxe takes a plain ACK with the PSN of an atomic for its answer. */
static void test_plain_ack_is_no_answer(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 512, 8);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8, .flags = VRB_PKT_ACKREQ));
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 0), .dma_len = 300));
	give(k, P(VRB_OP_FETCH_ADD, 203, TO(k, 0), .swap_add = 1));
	want(k, RESP, RESP_(FIRST, 201, 256));
	want(k, RESP, RESP_(LAST, 202, 44));
	want(k, RESP, P(VRB_OP_ATOMIC_ACK, 203, .syndrome = 0x1f, .atomic_orig = 0));
	want_none(k, RESP);
	give(k, P(VRB_OP_SEND_ONLY, 200, .len = 8, .flags = VRB_PKT_ACKREQ));
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f));
	kit_free(k);
}

/* As many as were agreed are held, answers repeated or not. */
static void test_limit_counts_first_answers_only(void **state)
{
	struct kit *k = kit(.rd_atomic = 2);

	(void)state;
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 8));
	give(k, P(VRB_OP_READ_REQ, 201, TO(k, 0), .dma_len = 8));
	want(k, RESP, RESP_(ONLY, 200, 8));
	give(k, P(VRB_OP_READ_REQ, 200, TO(k, 0), .dma_len = 8)); /* was on its way */
	give(k, P(VRB_OP_READ_REQ, 202, TO(k, 0), .dma_len = 8));
	want(k, RESP, RESP_(ONLY, 200, 8));
	want(k, RESP, RESP_(ONLY, 201, 8));
	want(k, RESP, RESP_(ONLY, 202, 8));
	want_quiet(k);
	kit_free(k);
}

static void test_psn_wrap(void **state)
{
	struct kit *k = kit(.rq_psn = 0xffffff);

	(void)state;
	memcpy(k->mem, k->wire, 4096);
	give(k, P(VRB_OP_READ_REQ, 0xffffff, TO(k, 0), .dma_len = 600));
	want(k, RESP, RESP_(FIRST, 0xffffff, 256));
	want(k, RESP, P(VRB_OP_READ_RESP_MIDDLE, 0, .len = 256));
	want(k, RESP, RESP_(LAST, 1, 88));
	give(k, P(VRB_OP_READ_REQ, 0, TO(k, 256), .dma_len = 344));
	want(k, RESP, RESP_(FIRST, 0, 256));
	want_payload(k, k->mem + 256, 256);
	want(k, RESP, RESP_(LAST, 1, 88));
	want_quiet(k);
	kit_free(k);
}

static void test_largest_read(void **state)
{
	struct kit *k = kit(0);
	struct kit_keys keys;

	(void)state;
	keys = kit_reg(k, k->mem, VRB_MAX_MSG, 1, 15);
	give(k, P(VRB_OP_READ_REQ, 200, .rkey = keys.r, .va = (uintptr_t)k->mem,
		  .dma_len = VRB_MAX_MSG));
	assert_int_equal(k->qp.epsn.v, 200 + 0x800000);
	want(k, RESP, RESP_(FIRST, 200, 256));
	give(k, P(VRB_OP_READ_REQ, 200 + 0x7fffff, .rkey = keys.r,
		  .va = (uintptr_t)k->mem + VRB_MAX_MSG - 256, .dma_len = 256));
	want(k, RESP, RESP_(ONLY, 200 + 0x7fffff, 256));
	want_none(k, RESP);
	want_quiet(k);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_read_many),
		cmocka_unit_test(test_read_nothing),
		cmocka_unit_test(test_order_of_responses),
		cmocka_unit_test(test_nak_behind_read),
		cmocka_unit_test(test_repeated_read),
		cmocka_unit_test(test_repetition_restarts),
		cmocka_unit_test(test_repeated_in_order),
		cmocka_unit_test(test_repetitions_refused),
		cmocka_unit_test(test_repeated_read_key_gone),
		cmocka_unit_test(test_region_goes_in_mid_answer),
		cmocka_unit_test(test_cmp_swap),
		cmocka_unit_test(test_fetch_add_replay),
		cmocka_unit_test(test_replay_forgets_the_oldest),
		cmocka_unit_test(test_more_room),
		cmocka_unit_test(test_plain_ack_is_no_answer),
		cmocka_unit_test(test_limit_counts_first_answers_only),
		cmocka_unit_test(test_psn_wrap),
		cmocka_unit_test(test_largest_read),
	};

	return VRB_RUN_TESTS(tests);
}
