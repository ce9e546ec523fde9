/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces to SGEs: merged, split, refused with the piece named; and which GID is taken. */
#include "support/test.h"

#include <arpa/inet.h>
#include <string.h>

#include "send/gid.h"
#include "send/sgl.h"

#define P(at, len)                                                                                 \
	{                                                                                          \
		(void *)(uintptr_t)(at), len                                                       \
	}

static struct vrb_regions regions;

static int set_up(void **state)
{
	const struct vrb_hit all[] = {
		{.base = 1000, .len = 1000, .lkey = 1, .access = IBV_ACCESS_LOCAL_WRITE},
		{.base = 2000, .len = 1000, .lkey = 2},
		{.base = 5000, .len = 100, .lkey = 3, .access = IBV_ACCESS_REMOTE_READ},
	};

	(void)state;
	assert_int_equal(vrb_regions_init(&regions), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(vrb_regions_add(&regions, &all[i]), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	vrb_regions_fini(&regions);
	return 0;
}

static void want(const struct ibv_sge *s, uint64_t addr, uint32_t len, uint32_t lkey)
{
	assert_int_equal(s->addr, addr);
	assert_int_equal(s->length, len);
	assert_int_equal(s->lkey, lkey);
}

static void test_lists(void **state)
{
	const struct iovec iov[] = {P(1000, 10), P(1010, 5),   P(0, 0),
				    P(1100, 50), P(1950, 100), P(5000, 100)};
	struct vrb_sgl_walk w = {.regions = &regions, .iov = iov, .n = 6};
	struct ibv_sge s[8];
	struct vrb_report why;
	uint64_t total;

	(void)state;
	assert_true(vrb_sgl_total(iov, 6, 265, &total));
	assert_int_equal(total, 265);
	assert_false(vrb_sgl_total(iov, 6, 264, &total));
	assert_int_equal(vrb_sgl_next(&w, s, 8, 265, &why), 5);
	assert_int_equal(w.i, 6); /* that was all, and it is known */
	want(&s[0], 1000, 15, 1);
	want(&s[1], 1100, 50, 1);
	want(&s[2], 1950, 50, 1); /* into the neighbouring region */
	want(&s[3], 2000, 50, 2);
	want(&s[4], 5000, 100, 3);
	assert_int_equal(vrb_sgl_next(&w, s, 8, 1, &why), 0);
	/* The same by one SGE at a time, and by 7 bytes. */
	w = (struct vrb_sgl_walk){.regions = &regions, .iov = iov, .n = 6};
	for (int i = 0; i < 5; i++)
		assert_int_equal(vrb_sgl_next(&w, s, 1, 1000, &why), 1);
	assert_int_equal(vrb_sgl_next(&w, s, 1, 1000, &why), 0);
	w = (struct vrb_sgl_walk){.regions = &regions, .iov = iov, .n = 6};
	assert_int_equal(vrb_sgl_next(&w, s, 8, 7, &why), 1);
	want(&s[0], 1000, 7, 1);
	assert_int_equal(vrb_sgl_next(&w, s, 8, 10, &why), 2);
	want(&s[0], 1007, 8, 1);
	want(&s[1], 1100, 2, 1);
}

static void refused(const struct iovec *iov, int n, uint32_t access, const struct vrb_report *r)
{
	struct vrb_sgl_walk w = {.regions = &regions, .iov = iov, .n = n, .access = access};
	struct ibv_sge s[4];
	struct vrb_report why = {0};

	assert_int_equal(vrb_sgl_next(&w, s, 4, 10000, &why), -1);
	assert_int_equal(why.verdict, r->verdict);
	assert_memory_equal(why.val, r->val, sizeof(why.val));
}

static void test_refusals(void **state)
{
	const struct iovec none[] = {P(1000, 1), P(4000, 8)}, past[] = {P(5000, 101)};
	const struct iovec plain[] = {P(1000, 1), P(2000, 8)};

	(void)state;
	refused(none, 2, 0,
		&(struct vrb_report){.verdict = VRB_V_SEND_NOT_REGISTERED, .val = {1, 4000, 8}});
	refused(past, 1, 0,
		&(struct vrb_report){.verdict = VRB_V_SEND_RANGE, .val = {0, 5000, 101, 1}});
	refused(plain, 2, IBV_ACCESS_LOCAL_WRITE,
		&(struct vrb_report){.verdict = VRB_V_SEND_RIGHTS, .val = {1, 2000, 4}});
	refused(plain, 2, IBV_ACCESS_REMOTE_READ,
		&(struct vrb_report){.verdict = VRB_V_SEND_RIGHTS, .val = {0, 1000, 1}});
}

static struct vrb_gid gid(const char *text)
{
	struct vrb_gid g;
	uint32_t v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		vrb_gid_from_ipv4(&g, v4);
	else
		assert_int_equal(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

/* A table with holes, as containers have them; index 0 is never what it seems. */
static void test_gids(void **state)
{
	const struct vrb_gid_entry e[] = {
		{gid("fe80::1"), 2, VRB_GID_ROCE1},	{gid("fe80::1"), 3, VRB_GID_ROCE2},
		{gid("192.0.2.7"), 4, VRB_GID_ROCE1},	{gid("192.0.2.7"), 5, VRB_GID_ROCE2},
		{gid("2001:db8::7"), 9, VRB_GID_ROCE2},
	};
	const struct vrb_gid v4 = gid("192.0.2.7"), v6 = gid("2001:db8::7"),
			     other = gid("10.0.0.1");
	const struct vrb_gid lo = gid("127.0.0.1"), lo6 = gid("::1");

	(void)state;
	assert_int_equal(vrb_gid_choose(e, 5, true, &v4)->index, 5);
	assert_int_equal(vrb_gid_choose(e, 5, true, &v6)->index, 9);
	assert_null(vrb_gid_choose(e, 5, true, &other));
	assert_int_equal(vrb_gid_choose(e, 5, true, NULL)->index, 5);
	assert_int_equal(vrb_gid_choose(e, 5, true, &lo)->index, 5);
	assert_int_equal(vrb_gid_choose(e, 5, true, &lo6)->index, 5);
	assert_int_equal(vrb_gid_choose(e, 2, true, NULL)->index, 3);
	assert_null(vrb_gid_choose(e, 1, true, NULL));
	assert_null(vrb_gid_choose(e, 0, true, NULL));
	assert_int_equal(vrb_gid_choose(e, 1, false, &v4)->index, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lists, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
		cmocka_unit_test(test_gids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
