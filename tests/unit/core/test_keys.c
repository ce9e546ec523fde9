/* SPDX-License-Identifier: BSD-2-Clause */
/* The key table by itself: numbers, reuse, growth, and each reason to refuse with its values. */
#include "support/test.h"

#include <string.h>

#include "core/mr.h"

#define N 16

struct table {
	struct vrb_keytab t;
	struct vrb_key ent[4 * N];
};

static void setup(struct table *x)
{
	vrb_keytab_init(&x->t, 7);
	vrb_keytab_grow(&x->t, x->ent, N);
}

static const struct vrb_key region = {
	.base = 0x10000, .len = 0x1000, .host = 0x500000, .pd = 1, .access = 1 | 2 | 4 | 8};

#define SGE(lkey, addr, len) ((struct vrb_sge){addr, len, lkey})

static enum vrb_verdict local(const struct table *x, struct vrb_sge s, uint32_t pd, uint32_t need,
			      struct vrb_report *r)
{
	uint64_t host;

	return vrb_key_check_local(&x->t, &s, 3, pd, need, &host, r);
}

struct target {
	uint32_t rkey;
	uint64_t va, len;
};
#define TO(rkey, va, len) ((struct target){rkey, va, len})

static enum vrb_verdict remote(const struct table *x, struct target t, uint32_t need,
			       struct vrb_report *r)
{
	uint64_t host;

	return vrb_key_check_remote(&x->t, t.rkey, t.va, t.len, 1, need, 0x99, &host, r);
}

static void test_numbers(void **state)
{
	struct table x;
	uint32_t l, r;

	(void)state;
	setup(&x);
	assert_int_equal(x.t.n_free, N - 1); /* index 0 is never given out */
	for (uint32_t i = 0; i < (N - 1) / 2; i++) {
		vrb_mr_add(&x.t, &region, &l, &r);
		assert_int_not_equal(l, r);
		assert_true(l >> 8 != 0 && r >> 8 != 0);
		assert_int_equal(local(&x, SGE(l, 0x10000, 1), 1, 1, &(struct vrb_report){0}),
				 VRB_OK);
	}
	assert_int_equal(x.t.n_free, 1);
}

static void test_host_address(void **state)
{
	struct table x;
	struct vrb_report rep;
	uint32_t l, r;
	uint64_t host;

	(void)state;
	setup(&x);
	vrb_mr_add(&x.t, &region, &l, &r);
	assert_int_equal(vrb_key_check_local(&x.t, &(struct vrb_sge){0x10010, 0xff0, l}, 0, 1, 1,
					     &host, &rep),
			 VRB_OK);
	assert_int_equal(host, 0x500010);
	assert_int_equal(
		vrb_key_check_remote(&x.t, r, 0x10ff8, 8, 1, VRB_ACC_REMOTE_ATOMIC, 0, &host, &rep),
		VRB_OK);
	assert_int_equal(host, 0x500ff8);
	/* empty: good whatever the key */
	assert_int_equal(
		vrb_key_check_local(&x.t, &(struct vrb_sge){1, 0, 0}, 0, 9, 1, &host, &rep),
		VRB_OK);
	assert_int_equal(host, 0);
	assert_int_equal(vrb_key_check_remote(&x.t, 0, 1, 0, 9, 2, 0, &host, &rep), VRB_OK);
}

static void test_local_reasons(void **state)
{
	struct table x;
	struct vrb_report p;
	struct vrb_key weak = region;
	uint32_t l, r, wl, wr;

	(void)state;
	setup(&x);
	vrb_mr_add(&x.t, &region, &l, &r);
	weak.access = 0;
	vrb_mr_add(&x.t, &weak, &wl, &wr);
	assert_int_equal(local(&x, SGE(l, 0x10ff8, 20), 1, 0, &p), VRB_V_LKEY_RANGE_END);
	assert_int_equal(p.val[0], 3);
	assert_int_equal(p.val[1], l);
	assert_int_equal(p.val[2], 0x10ff8);
	assert_int_equal(p.val[3], 20);
	assert_int_equal(p.val[4], 12);
	assert_int_equal(p.val[5], 0x1000);
	assert_int_equal(local(&x, SGE(l, 0x10000, 0x1001), 1, 0, &p), VRB_V_LKEY_RANGE_END);
	assert_int_equal(p.val[4], 1);
	assert_int_equal(local(&x, SGE(l, 0xfff0, 8), 1, 0, &p), VRB_V_LKEY_RANGE_START);
	assert_int_equal(p.val[4], 16);
	assert_int_equal(local(&x, SGE(l, UINT64_MAX - 3, 8), 1, 0, &p), VRB_V_LKEY_RANGE_END);
	assert_int_equal(local(&x, SGE(r, 0x10000, 8), 1, 0, &p), VRB_V_LKEY_IS_RKEY);
	assert_int_equal(local(&x, SGE(l, 0x10000, 8), 2, 0, &p), VRB_V_LKEY_OTHER_PD);
	assert_int_equal(local(&x, SGE(wl, 0x10000, 8), 1, 1, &p), VRB_V_LKEY_NO_WRITE);
	assert_int_equal(local(&x, SGE(wl, 0x10000, 8), 1, 0, &p),
			 VRB_OK); /* reading is always good */
	assert_int_equal(local(&x, SGE(0, 0x10000, 8), 1, 0, &p), VRB_V_LKEY_UNKNOWN);
	assert_int_equal(local(&x, SGE(l ^ 0x80, 0x10000, 8), 1, 0, &p), VRB_V_LKEY_UNKNOWN);
	assert_int_equal(local(&x, SGE(0xffffffff, 0x10000, 8), 1, 0, &p), VRB_V_LKEY_UNKNOWN);
	assert_true(vrb_mr_del(&x.t, l));
	assert_int_equal(local(&x, SGE(l, 0x10000, 8), 1, 0, &p), VRB_V_LKEY_STALE);
}

static void test_remote_reasons(void **state)
{
	struct table x;
	struct vrb_report p;
	uint32_t l, r;
	uint64_t host;

	(void)state;
	setup(&x);
	vrb_mr_add(&x.t, &region, &l, &r);
	assert_int_equal(remote(&x, TO(r, 0x10ff8, 20), 2, &p), VRB_V_RKEY_RANGE_END);
	assert_int_equal(p.val[0], r);
	assert_int_equal(p.val[1], 0x10ff8);
	assert_int_equal(p.val[2], 20);
	assert_int_equal(p.val[3], 12);
	assert_int_equal(p.qpn, 0x99);
	assert_int_equal(remote(&x, TO(r, 0xfff0, 8), 2, &p), VRB_V_RKEY_RANGE_START);
	assert_int_equal(p.val[3], 16);
	assert_int_equal(remote(&x, TO(r, UINT64_MAX, UINT64_MAX), 2, &p), VRB_V_RKEY_RANGE_END);
	assert_int_equal(remote(&x, TO(l, 0x10000, 8), 2, &p), VRB_V_RKEY_IS_LKEY);
	assert_int_equal(vrb_key_check_remote(&x.t, r, 0x10000, 8, 2, 2, 0, &host, &p),
			 VRB_V_RKEY_OTHER_PD);
	assert_int_equal(remote(&x, TO(r, 0x10000, 8), 2 | 64, &p), VRB_V_RKEY_RIGHTS);
	assert_int_equal(p.val[1], 15);
	assert_int_equal(p.val[2], 66);
	assert_int_equal(remote(&x, TO(0, 0, 8), 2, &p), VRB_V_RKEY_UNKNOWN);
	assert_int_equal(remote(&x, TO(0x12345678, 0, 8), 2, &p), VRB_V_RKEY_UNKNOWN);
	assert_true(vrb_mr_del(&x.t, l));
	assert_int_equal(remote(&x, TO(r, 0x10000, 8), 2, &p), VRB_V_RKEY_STALE);
}

static void test_zero_based(void **state)
{
	struct table x;
	struct vrb_key z = region;
	struct vrb_report p;
	uint32_t l, r;
	uint64_t host;

	(void)state;
	setup(&x);
	z.base = 0;
	z.access |= VRB_ACC_ZERO_BASED;
	vrb_mr_add(&x.t, &z, &l, &r);
	assert_int_equal(vrb_key_check_remote(&x.t, r, 16, 8, 1, 2, 0, &host, &p), VRB_OK);
	assert_int_equal(host, 0x500010);
	assert_int_equal(remote(&x, TO(r, 0xff9, 8), 2, &p), VRB_V_RKEY_RANGE_END);
}

/* Old keys stay dead through many reuses of their index. */
static void test_reuse(void **state)
{
	struct table x;
	struct vrb_report p;
	uint32_t seen[200][2], n = 0, l, r;

	(void)state;
	setup(&x);
	for (; n < 200; n++) {
		vrb_mr_add(&x.t, &region, &l, &r);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_not_equal(l, seen[i][0]);
			assert_int_not_equal(r, seen[i][1]);
			assert_int_equal(local(&x, SGE(seen[i][0], 0x10000, 1), 1, 0, &p),
					 VRB_V_LKEY_STALE);
			assert_int_equal(remote(&x, TO(seen[i][1], 0x10000, 1), 2, &p),
					 VRB_V_RKEY_STALE);
		}
		seen[n][0] = l;
		seen[n][1] = r;
		assert_true(vrb_mr_del(&x.t, l));
	}
	assert_int_equal(x.t.n_free, N - 1);
}

static void test_grow(void **state)
{
	static struct vrb_key bigger[4 * N];
	struct table x;
	struct vrb_report p;
	uint32_t l[7], r[7], l2, r2;

	(void)state;
	setup(&x);
	for (uint32_t i = 0; i < 7; i++)
		vrb_mr_add(&x.t, &region, &l[i], &r[i]);
	memcpy(bigger, x.ent, N * sizeof(bigger[0]));
	vrb_keytab_grow(&x.t, bigger, 4 * N);
	assert_int_equal(x.t.n_free, 3 * N + 1);
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(local(&x, SGE(l[i], 0x10000, 1), 1, 0, &p), VRB_OK);
		assert_int_equal(remote(&x, TO(r[i], 0x10000, 1), 2, &p), VRB_OK);
	}
	while (x.t.n_free >= 2)
		vrb_mr_add(&x.t, &region, &l2, &r2);
	assert_int_equal(local(&x, SGE(l2, 0x10000, 1), 1, 0, &p), VRB_OK);
}

static void test_change(void **state)
{
	struct table x;
	struct vrb_report p;
	uint32_t l, r;

	(void)state;
	setup(&x);
	vrb_mr_add(&x.t, &region, &l, &r);
	x.ent[r >> 8].n_windows = 1;
	assert_false(vrb_mr_change(&x.t, l, 2, 0));
	assert_int_equal(local(&x, SGE(l, 0x10000, 1), 1, 1, &p), VRB_OK);
	x.ent[r >> 8].n_windows = 0;
	assert_true(vrb_mr_change(&x.t, l, 2, 0));
	assert_int_equal(local(&x, SGE(l, 0x10000, 1), 1, 0, &p), VRB_V_LKEY_OTHER_PD);
	assert_int_equal(local(&x, SGE(l, 0x10000, 1), 2, 1, &p), VRB_V_LKEY_NO_WRITE);
	assert_int_equal(remote(&x, TO(r, 0x10000, 1), 2, &p), VRB_V_RKEY_OTHER_PD);
}

/* The last free index is taken and comes back. */
static void test_exhausted(void **state)
{
	struct table x;
	uint32_t l, r, w;

	(void)state;
	setup(&x);
	while (x.t.n_free >= 2)
		vrb_mr_add(&x.t, &region, &l, &r);
	w = vrb_mw_add(&x.t, 1, VRB_KEY_MW2);
	assert_int_equal(x.t.n_free, 0);
	assert_true(vrb_mw_del(&x.t, w));
	assert_true(vrb_mr_del(&x.t, l));
	assert_int_equal(x.t.n_free, 3);
	vrb_mr_add(&x.t, &region, &l, &r);
	assert_int_equal(x.t.n_free, 1);
}

static void test_unbound_window(void **state)
{
	struct table x;
	struct vrb_report p;
	uint32_t w;

	(void)state;
	setup(&x);
	w = vrb_mw_add(&x.t, 1, VRB_KEY_MW1);
	assert_int_equal(remote(&x, TO(w, 0, 1), 2, &p), VRB_V_RKEY_STALE);
	assert_int_equal(local(&x, SGE(w, 0, 1), 1, 0, &p), VRB_V_LKEY_IS_RKEY);
	assert_true(vrb_mw_del(&x.t, w));
	assert_false(vrb_mw_del(&x.t, w));
	assert_false(vrb_mw_del(&x.t, 0xffffffff));
	assert_int_equal(x.t.n_free, N - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	      cmocka_unit_test(test_host_address),
		cmocka_unit_test(test_local_reasons), cmocka_unit_test(test_remote_reasons),
		cmocka_unit_test(test_zero_based),    cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_grow),	      cmocka_unit_test(test_unbound_window),
		cmocka_unit_test(test_change),	      cmocka_unit_test(test_exhausted),
	};

	return VRB_RUN_TESTS(tests);
}
