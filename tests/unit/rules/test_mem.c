/* SPDX-License-Identifier: BSD-2-Clause */
/* rules/mem.c: an SGE at each edge of its region, and the order of the reasons. */
#include "rules/mem.h"
#include "rules/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct vrb_mem region = {0x1000, 0x100, 3, VRB_RULES_LOCAL_WRITE};

static enum vrb_verdict local(struct vrb_mem_use u, struct vrb_report *r)
{
	enum vrb_verdict v = vrb_mem_local(&region, &u, r);

	assert_int_equal(vrb_mem_is_good(&region, &u), v == VRB_OK);
	return v;
}

static void edges(void **state)
{
	struct vrb_report r;

	(void)state;
	assert_int_equal(local((struct vrb_mem_use){0x1000, 0x100, 9, 0, 3, 1}, &r), VRB_OK);
	assert_int_equal(local((struct vrb_mem_use){0x1100, 0, 9, 0, 3, 1}, &r), VRB_OK);
	assert_int_equal(local((struct vrb_mem_use){0x1001, 0x100, 9, 2, 3, 0}, &r),
			 VRB_V_LKEY_RANGE_END);
	assert_int_equal(r.val[0], 2);
	assert_int_equal(r.val[4], 1);
	assert_int_equal(r.val[5], 0x100);
	assert_int_equal(local((struct vrb_mem_use){0xfff, 1, 9, 0, 3, 0}, &r),
			 VRB_V_LKEY_RANGE_START);
	assert_int_equal(r.val[4], 1);
	assert_int_equal(local((struct vrb_mem_use){UINT64_MAX, 8, 9, 0, 3, 0}, &r),
			 VRB_V_LKEY_RANGE_END);
}

static void order(void **state)
{
	struct vrb_mem_use u = {0, 8, 9, 0, 4, VRB_RULES_LOCAL_WRITE | VRB_RULES_MW_BIND};
	struct vrb_report r;

	(void)state;
	assert_int_equal(local(u, &r), VRB_V_LKEY_OTHER_PD);
	u.pd = 3;
	assert_int_equal(local(u, &r), VRB_V_LKEY_NO_WRITE);
	u.need = 1;
	assert_int_equal(local(u, &r), VRB_V_LKEY_RANGE_START);
}

static void alone(void **state)
{
	struct vrb_report r;

	(void)state;
	assert_int_equal(vrb_mem_sge(&(struct vrb_mem_use){.addr = 8}, &r), VRB_V_SGE_EMPTY);
	assert_int_equal(vrb_mem_sge(&(struct vrb_mem_use){.addr = UINT64_MAX, .len = 1}, &r),
			 VRB_OK);
	assert_int_equal(vrb_mem_sge(&(struct vrb_mem_use){.addr = UINT64_MAX, .len = 2}, &r),
			 VRB_V_SGE_WRAPS);
}

static void remote(void **state)
{
	const struct vrb_mem m = {0x1000, 0x100, 3, VRB_RULES_REMOTE_READ};
	struct vrb_mem_remote a = {0x10ff, 2, 7, 4, VRB_RULES_REMOTE_WRITE};
	struct vrb_report r = {.qpn = 5};

	(void)state;
	assert_int_equal(vrb_mem_remote_pd(&m, &a, &r), VRB_V_RKEY_OTHER_PD);
	assert_int_equal(vrb_mem_remote(&m, &a, &r), VRB_V_RKEY_RIGHTS);
	assert_int_equal(r.val[2], VRB_RULES_REMOTE_WRITE);
	a.need = VRB_RULES_REMOTE_READ;
	assert_int_equal(vrb_mem_remote(&m, &a, &r), VRB_V_RKEY_RANGE_END);
	assert_int_equal(r.val[3], 1);
	assert_int_equal(r.qpn, 5);
	a.va = 0xff0;
	assert_int_equal(vrb_mem_remote(&m, &a, &r), VRB_V_RKEY_RANGE_START);
	a.va = 0x1000;
	assert_int_equal(vrb_mem_remote(&m, &a, &r), VRB_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges),
		cmocka_unit_test(order),
		cmocka_unit_test(alone),
		cmocka_unit_test(remote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
