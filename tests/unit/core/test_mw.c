/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: binding, invalidating here and by the peer, and what goes through them. */
#include "core_kit.h"

#include <string.h>

#define A VRB_PKT_ACKREQ

struct bind {
	uint32_t rkey; /* of the window at present */
	uint32_t access, tag, mr_lkey;
	uint64_t off, len;
	bool unsignaled;
};

/* Posts a bind (wr_id 50) and lets it run; returns the rkey asked for. */
static uint32_t bind_it(struct kit *k, const struct bind *b)
{
	uint32_t rkey = (b->rkey & ~0xffu) | ((b->rkey + (b->tag ? b->tag : 1)) & 0xff);
	struct vrb_swqe w = {.wr_id = 50,
			     .op = VRB_WR_BIND_MW,
			     .flags = b->unsignaled ? 0 : VRB_WRF_SIGNALED,
			     .rkey = b->tag == 256 ? b->rkey : rkey,
			     .va = (uintptr_t)k->mem + b->off,
			     .bind = {b->len, b->access, b->mr_lkey ? b->mr_lkey : k->lkey}};

	post(k, w, NULL, 0);
	want_none(k, REQ);
	return w.rkey;
}
#define bind_mw(k, ...) bind_it(k, &(struct bind){__VA_ARGS__})

static enum vrb_verdict reach(struct kit *k, uint32_t rkey, uint64_t off, uint32_t need)
{
	struct vrb_report r;
	uint64_t host;

	return vrb_key_check_remote(&k->keys, rkey, (uintptr_t)k->mem + off, 8, 1, need, KIT_QPN,
				    &host, &r);
}

static void test_type_1(void **state)
{
	struct kit *k = kit(0);
	uint32_t w = vrb_mw_add(&k->keys, 1, VRB_KEY_MW1), r1, r2;
	struct vrb_wc wc;

	(void)state;
	r1 = bind_mw(k, .rkey = w, .access = 2, .off = 64, .len = 64);
	wc = kit_wc(&k->scq);
	assert_int_equal(wc.status, VRB_WC_SUCCESS);
	assert_int_equal(wc.opcode, VRB_WCO_BIND_MW);
	assert_int_equal(reach(k, w, 64, 2), VRB_V_RKEY_STALE);
	assert_int_equal(reach(k, r1, 64, 2), VRB_OK);
	assert_int_equal(reach(k, r1, 120, 2), VRB_OK);
	assert_int_equal(reach(k, r1, 121, 2), VRB_V_RKEY_RANGE_END);
	assert_int_equal(reach(k, r1, 63, 2), VRB_V_RKEY_RANGE_START);
	assert_int_equal(reach(k, r1, 64, 4), VRB_V_RKEY_RIGHTS);
	assert_false(vrb_mr_del(&k->keys, k->lkey));		      /* a window is bound to it */
	r2 = bind_mw(k, .rkey = r1, .access = 4, .off = 0, .len = 8); /* while bound */
	want_wc(k, 50, VRB_WC_SUCCESS);
	assert_int_equal(reach(k, r1, 64, 2), VRB_V_RKEY_STALE);
	assert_int_equal(reach(k, r2, 0, 4), VRB_OK);
	r1 = bind_mw(k, .rkey = r2, .access = 2); /* length 0 unbinds */
	want_wc(k, 50, VRB_WC_SUCCESS);
	assert_int_equal(reach(k, r1, 0, 2), VRB_V_RKEY_STALE);
	assert_int_equal(reach(k, r2, 0, 4), VRB_V_RKEY_STALE);
	assert_true(vrb_mr_del(&k->keys, k->lkey));
	kit_free(k);
}

static void test_window_deleted_while_bound(void **state)
{
	struct kit *k = kit(0);
	uint32_t w = vrb_mw_add(&k->keys, 1, VRB_KEY_MW1);

	(void)state;
	w = bind_mw(k, .rkey = w, .access = 2, .len = 64);
	assert_true(vrb_mw_del(&k->keys, w));
	assert_int_equal(reach(k, w, 0, 2), VRB_V_RKEY_STALE);
	assert_true(vrb_mr_del(&k->keys, k->lkey));
	kit_free(k);
}

static void test_type_2_and_local_invalidate(void **state)
{
	struct kit *k = kit(0);
	uint32_t w = vrb_mw_add(&k->keys, 1, VRB_KEY_MW2);
	struct vrb_report r;
	struct vrb_wc wc;
	uint64_t host;

	(void)state;
	w = bind_mw(k, .rkey = w, .access = 2 | 4 | 8, .len = 64, .tag = 9);
	want_wc(k, 50, VRB_WC_SUCCESS);
	assert_int_equal(reach(k, w, 0, 2), VRB_OK);
	assert_int_equal(vrb_key_check_remote(&k->keys, w, (uintptr_t)k->mem, 8, 1, 2, KIT_QPN + 1,
					      &host, &r),
			 VRB_V_RKEY_OTHER_QP);
	post(k, (struct vrb_swqe){.wr_id = 51, .op = VRB_WR_LOCAL_INV, .flags = 2, .imm = w}, NULL,
	     0);
	want_none(k, REQ);
	wc = kit_wc(&k->scq);
	assert_int_equal(wc.opcode, VRB_WCO_LOCAL_INV);
	assert_int_equal(wc.status, VRB_WC_SUCCESS);
	assert_int_equal(reach(k, w, 0, 2), VRB_V_RKEY_STALE);
	w = bind_mw(k, .rkey = w, .access = 2, .len = 64); /* free again */
	want_wc(k, 50, VRB_WC_SUCCESS);
	assert_int_equal(reach(k, w, 0, 2), VRB_OK);
	kit_free(k);
}

static void test_zero_based_window(void **state)
{
	struct kit *k = kit(0);
	uint32_t w = vrb_mw_add(&k->keys, 1, VRB_KEY_MW2);

	(void)state;
	w = bind_mw(k, .rkey = w, .access = 2 | VRB_ACC_ZERO_BASED, .off = 128, .len = 64);
	want_wc(k, 50, VRB_WC_SUCCESS);
	give(k, P(VRB_OP_WRITE_ONLY, 200, .len = 4, .rkey = w, .va = 8, .dma_len = 4));
	assert_memory_equal(k->mem + 136, k->wire, 4);
	want_quiet(k);
	kit_free(k);
}

static void refused(enum vrb_key_kind kind, const struct bind *b, uint64_t reason)
{
	struct kit *k = kit(0);
	struct bind x = *b;

	x.rkey = vrb_mw_add(&k->keys, b->rkey == 2 ? 2 : 1, kind);
	if (b->rkey == 1)
		x.rkey = k->rkey;
	if (b->mr_lkey == 1)
		x.mr_lkey = k->ro_lkey;
	if (b->mr_lkey == 2)
		x.mr_lkey = k->other_lkey;
	if (b->mr_lkey == 3)
		x.mr_lkey = k->rkey;
	if (b->mr_lkey == 4) { /* bindable, but without LOCAL_WRITE */
		x.mr_lkey = kit_reg(k, k->mem, 4096, 1, VRB_ACC_MW_BIND).l;
	}
	if (b->mr_lkey == 5) {
		x.mr_lkey = kit_reg(k, k->mem, 4096, 1, 1 | VRB_ACC_MW_BIND | VRB_ACC_ZERO_BASED).l;
	}
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 100, .len = 8, .flags = A));
	bind_it(k, &x);
	want_verdict(k, VRB_V_MW_BIND_FAILED);
	assert_int_equal(k->last.val[0], reason);
	want_quiet(k);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 50, VRB_WC_MW_BIND_ERR);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	kit_free(k);
}
#define B(...) (&(struct bind){__VA_ARGS__})

static void test_binds_refused(void **state)
{
	(void)state;
	refused(VRB_KEY_MW1, B(.rkey = 1, .access = 2, .len = 8), 1);
	refused(VRB_KEY_MW1, B(.mr_lkey = 3, .access = 2, .len = 8), 2);
	refused(VRB_KEY_MW1, B(.rkey = 2, .access = 2, .len = 8), 3);
	refused(VRB_KEY_MW1, B(.mr_lkey = 2, .access = 2, .len = 8), 3);
	refused(VRB_KEY_MW2, B(.tag = 256, .access = 2, .len = 8), 4);
	refused(VRB_KEY_MW2, B(.access = 2, .len = 0), 6);
	refused(VRB_KEY_MW1, B(.mr_lkey = 1, .access = 4, .len = 8), 7);
	refused(VRB_KEY_MW1, B(.mr_lkey = 4, .access = 2, .len = 8), 7);
	refused(VRB_KEY_MW2, B(.mr_lkey = 4, .access = 8, .len = 8), 7);
	refused(VRB_KEY_MW1, B(.access = 2 | VRB_ACC_ZERO_BASED, .len = 8), 8);
	refused(VRB_KEY_MW2, B(.mr_lkey = 5, .access = 2, .len = 8), 8);
	refused(VRB_KEY_MW1, B(.access = 2, .off = KIT_MEM - 4, .len = 8), 9);
	refused(VRB_KEY_MW1, B(.access = 2, .off = (uint64_t)-1, .len = 8), 9);
	refused(VRB_KEY_MW1, B(.access = 2, .len = UINT64_MAX), 9);
}

static void test_type_2_bound_twice(void **state)
{
	struct kit *k = kit(0);
	uint32_t w = vrb_mw_add(&k->keys, 1, VRB_KEY_MW2);

	(void)state;
	w = bind_mw(k, .rkey = w, .access = 2, .len = 64);
	want_wc(k, 50, VRB_WC_SUCCESS);
	bind_mw(k, .rkey = w, .access = 2, .len = 64);
	want_verdict(k, VRB_V_MW_BIND_FAILED);
	assert_int_equal(k->last.val[0], 5);
	want_wc(k, 50, VRB_WC_MW_BIND_ERR);
	assert_int_equal(reach(k, w, 0, 2), VRB_OK); /* the old binding stands */
	kit_free(k);
}

static void invalidate_fails(uint32_t which)
{
	struct kit *k = kit(0);
	uint32_t w1 = vrb_mw_add(&k->keys, 1, VRB_KEY_MW1), key = k->rkey;
	uint32_t w2 = vrb_mw_add(&k->keys, 1, VRB_KEY_MW2);

	if (which == 1) {
		key = bind_mw(k, .rkey = w1, .access = 2, .len = 64, .unsignaled = true);
	} else if (which == 2) {
		key = w2; /* not bound */
	} else if (which == 3) {
		key = bind_mw(k, .rkey = w2, .access = 2, .len = 64, .unsignaled = true);
		k->key_mem[key >> 8].qpn++; /* another QP's */
	} else if (which == 4) {
		key = 0xffffffff;
	}
	post(k, (struct vrb_swqe){.wr_id = 51, .op = VRB_WR_LOCAL_INV, .imm = key}, NULL, 0);
	want_none(k, REQ);
	want_verdict(k, VRB_V_LOCAL_INV_FAILED);
	assert_int_equal(k->last.val[0], key);
	want_wc(k, 51, VRB_WC_LOC_QP_OP_ERR);
	want_quiet(k);
	kit_free(k);
}

static void test_local_invalidate_refused(void **state)
{
	(void)state;
	for (uint32_t which = 0; which < 5; which++)
		invalidate_fails(which);
}

static void test_send_with_invalidate(void **state)
{
	struct kit *k = kit(0);
	uint32_t w = vrb_mw_add(&k->keys, 1, VRB_KEY_MW2);
	struct vrb_wc wc;

	(void)state;
	w = bind_mw(k, .rkey = w, .access = 2, .len = 64, .unsignaled = true);
	post_recv(k, 1, 0, 8);
	give(k, P(VRB_OP_SEND_ONLY_INV, 200, .len = 8, .inv_rkey = w, .flags = A));
	wc = kit_wc(&k->rcq);
	assert_int_equal(wc.status, VRB_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, VRB_WCF_INV);
	assert_int_equal(wc.imm, w);
	assert_memory_equal(k->mem, k->wire, 8);
	assert_int_equal(reach(k, w, 0, 2), VRB_V_RKEY_STALE);
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f));
	want_quiet(k);
	kit_free(k);
}

/* Class J: the receive ends in an error, the requester hears nothing. */
static void test_send_with_invalidate_refused(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 300);
	post_recv(k, 2, 0, 300);
	give(k, P(VRB_OP_SEND_FIRST, 200, .len = 256, .flags = A));
	give_at(k, P(VRB_OP_SEND_LAST_INV, 201, .len = 8, .inv_rkey = k->rkey, .flags = A), 256);
	want_verdict(k, VRB_V_RECV_INVALIDATE);
	assert_int_equal(k->last.val[0], k->rkey);
	want_recv(k, 1, VRB_WC_REM_INV_REQ_ERR, 0);
	want_recv(k, 2, VRB_WC_WR_FLUSH_ERR, 0);
	assert_int_equal(k->mem[256], 0);		     /* nothing of this packet */
	want(k, RESP, P(VRB_OP_ACK, 200, .syndrome = 0x1f)); /* only what was before */
	want_none(k, RESP);
	want_quiet(k);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	kit_free(k);
}

/* Binds take effect in the order of the queue and complete in it; a fenced one waits for READs. */
static void test_bind_in_order(void **state)
{
	struct kit *k = kit(0);
	uint32_t w = vrb_mw_add(&k->keys, 1, VRB_KEY_MW2);
	struct vrb_swqe b = {.wr_id = 2,
			     .op = VRB_WR_BIND_MW,
			     .flags = VRB_WRF_SIGNALED,
			     .rkey = w + 1,
			     .va = (uintptr_t)k->mem,
			     .bind = {64, VRB_ACC_REMOTE_WRITE, k->lkey}};
	struct vrb_swqe inv = {.wr_id = 3,
			       .op = VRB_WR_LOCAL_INV,
			       .flags = VRB_WRF_SIGNALED | VRB_WRF_FENCE,
			       .imm = w + 1};

	(void)state;
	post_op(k, 1, VRB_WR_READ, 0, 8);
	post(k, b, NULL, 0);
	post(k, inv, NULL, 0);
	post_op(k, 4, VRB_WR_SEND, 0, 8);
	want(k, REQ,
	     P(VRB_OP_READ_REQ, 100, .flags = A, .rkey = 0xabcd00, .va = 0x10000, .dma_len = 8));
	want_none(k, REQ);
	want_quiet(k);
	assert_int_equal(reach(k, w + 1, 0, 2), VRB_OK);
	give(k, P(VRB_OP_READ_RESP_ONLY, 100, .len = 8, .syndrome = 0x1f));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_quiet(k);
	want(k, REQ, P(VRB_OP_SEND_ONLY, 101, .len = 8, .flags = A));
	want_wc(k, 3, VRB_WC_SUCCESS);
	assert_int_equal(reach(k, w + 1, 0, 2), VRB_V_RKEY_STALE);
	give(k, ACK(101));
	want_wc(k, 4, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_type_1),
		cmocka_unit_test(test_window_deleted_while_bound),
		cmocka_unit_test(test_type_2_and_local_invalidate),
		cmocka_unit_test(test_zero_based_window),
		cmocka_unit_test(test_binds_refused),
		cmocka_unit_test(test_type_2_bound_twice),
		cmocka_unit_test(test_local_invalidate_refused),
		cmocka_unit_test(test_send_with_invalidate),
		cmocka_unit_test(test_send_with_invalidate_refused),
		cmocka_unit_test(test_bind_in_order),
	};

	return VRB_RUN_TESTS(tests);
}
