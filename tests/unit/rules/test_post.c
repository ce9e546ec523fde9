/* SPDX-License-Identifier: BSD-2-Clause */
/* rules/post.h: each check at its edge, and every verdict of the POST section reached. */
#include "rules/post.h"
#include "rules/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define WANT(v, call, a, b)                                                                        \
	do {                                                                                       \
		memset(&r, 0, sizeof(r));                                                          \
		assert_int_equal(call, v);                                                         \
		assert_int_equal(r.verdict, v);                                                    \
		assert_int_equal(r.val[0], a);                                                     \
		assert_int_equal(r.val[1], b);                                                     \
	} while (0)
#define GOOD(call) WANT(VRB_OK, call, 0, 0)

static void states(void **state)
{
	const struct vrb_post_states ibta = {VRB_POST_NO_SEND, VRB_POST_NO_RECV};
	const struct vrb_post_states not_in_err = {VRB_POST_NO_SEND | 1u << VRB_QPS_ERR,
						   VRB_POST_NO_RECV | 1u << VRB_QPS_ERR};
	struct vrb_report r;

	(void)state;
	WANT(VRB_V_POST_STATE, vrb_post_send_state(&not_in_err, VRB_QPS_ERR, &r), VRB_QPS_ERR, 0);
	WANT(VRB_V_POST_STATE, vrb_post_recv_state(&not_in_err, VRB_QPS_ERR, &r), VRB_QPS_ERR, 0);
	GOOD(vrb_post_send_state(&not_in_err, VRB_QPS_SQE, &r));
	GOOD(vrb_post_recv_state(&not_in_err, VRB_QPS_SQE, &r));
	for (uint32_t s = 0; s < VRB_N_QP_STATES; s++) {
		bool send = s == VRB_QPS_RTS || s == VRB_QPS_SQD || s == VRB_QPS_SQE ||
			    s == VRB_QPS_ERR;

		WANT(send ? VRB_OK : VRB_V_POST_STATE, vrb_post_send_state(&ibta, s, &r),
		     send ? 0 : s, 0);
		WANT(s ? VRB_OK : VRB_V_POST_STATE, vrb_post_recv_state(&ibta, s, &r), 0, 0);
	}
}

static void room(void **state)
{
	struct vrb_report r;

	(void)state;
	GOOD(vrb_post_sq_room(7, 8, 7, &r));
	WANT(VRB_V_POST_SQ_FULL, vrb_post_sq_room(8, 8, 7, &r), 8, 8);
	WANT(VRB_V_POST_SQ_FULL, vrb_post_sq_room(8, 8, 0, &r), 8, 8);
	WANT(VRB_V_POST_SQ_DEAD_END, vrb_post_sq_room(8, 8, 8, &r), 8, 8);
	WANT(VRB_V_POST_SQ_DEAD_END, vrb_post_sq_room(8, 8, 100, &r), 8, 8);
	GOOD(vrb_post_rq_room(7, 8, &r));
	WANT(VRB_V_POST_RQ_FULL, vrb_post_rq_room(8, 8, &r), 8, 8);
	WANT(VRB_V_POST_RQ_FULL, vrb_post_rq_room(0, 0, &r), 0, 0);
}

static void lists_and_lengths(void **state)
{
	struct vrb_report r;

	(void)state;
	GOOD(vrb_post_num_sge(0, 0, &r));
	GOOD(vrb_post_num_sge(4, 4, &r));
	WANT(VRB_V_POST_NUM_SGE, vrb_post_num_sge(5, 4, &r), 5, 4);
	WANT(VRB_V_POST_NUM_SGE, vrb_post_num_sge(-1, 4, &r), UINT64_MAX, 4);
	GOOD(vrb_post_length(0x80000000u, 0x80000000u, &r));
	WANT(VRB_V_POST_LENGTH, vrb_post_length(0x80000001u, 0x80000000u, &r), 0x80000001u,
	     0x80000000u);
	WANT(VRB_V_POST_LENGTH, vrb_post_length(4097, 4096, &r), 4097, 4096);
	GOOD(vrb_post_inline(2, 1024, 1024, &r));
	WANT(VRB_V_POST_INLINE_LEN, vrb_post_inline(2, 1025, 1024, &r), 1025, 1024);
	WANT(VRB_V_POST_INLINE_OPCODE, vrb_post_inline(4, 8, 1024, &r), 4, 0);
	WANT(VRB_V_POST_INLINE_OPCODE, vrb_post_inline(6, 8, 1024, &r), 6, 0);
}

/* IBA table 38, as text: which of the operations 0 to 11 each type has. */
static void opcodes(void **state)
{
	static const struct {
		uint32_t type;
		const char *has;
	} t[] = {
		{VRB_QPT_RC, "yyyyyyyyyynn"},
		{VRB_QPT_UC, "yyyynnnyynnn"},
		{VRB_QPT_UD, "nnyynnnnnnnn"},
		{8, "nnnnnnnnnnnn"},
	};
	struct vrb_report r;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		for (uint32_t op = 0; op < 12; op++) {
			if (t[i].has[op] == 'y')
				GOOD(vrb_post_opcode(op, t[i].type, &r));
			else
				WANT(VRB_V_POST_OPCODE, vrb_post_opcode(op, t[i].type, &r), op,
				     t[i].type);
		}
	WANT(VRB_V_POST_OPCODE, vrb_post_opcode(32, VRB_QPT_RC, &r), 32, VRB_QPT_RC);
	WANT(VRB_V_POST_OPCODE, vrb_post_opcode(UINT32_MAX, VRB_QPT_RC, &r), UINT32_MAX,
	     VRB_QPT_RC);
}

static void conditions(void **state)
{
	struct vrb_report r;

	(void)state;
	GOOD(vrb_post_ah(true, &r));
	WANT(VRB_V_POST_AH, vrb_post_ah(false, &r), 0, 0);
	GOOD(vrb_post_not_on_srq(false, &r));
	WANT(VRB_V_POST_ON_SRQ, vrb_post_not_on_srq(true, &r), 0, 0);
	GOOD(vrb_post_not_foreign(false, &r));
	WANT(VRB_V_POST_DEVICE_GONE, vrb_post_not_foreign(true, &r), 0, 0);
}

static struct vrb_post_bind bind_ok(void)
{
	return (struct vrb_post_bind){
		.window_pd = 5,
		.qp_pd = 5,
		.window_type = 2,
		.wanted_type = 2,
		.has_region = true,
		.region_pd = 5,
		.region_access = VRB_RULES_LOCAL_WRITE | VRB_RULES_MW_BIND,
		.region_addr = 0x1000,
		.region_len = 0x1000,
		.addr = 0x1000,
		.len = 0x1000,
		.access = VRB_RULES_REMOTE_WRITE | VRB_RULES_REMOTE_READ,
	};
}

static void binds(void **state)
{
	struct vrb_post_bind b = bind_ok();
	struct vrb_report r;

	(void)state;
	GOOD(vrb_post_mw_bind(&b, &r));
#define WRONG(field, value, reason)                                                                \
	do {                                                                                       \
		b = bind_ok();                                                                     \
		b.field = value;                                                                   \
		WANT(VRB_V_POST_MW_BIND, vrb_post_mw_bind(&b, &r), reason, 0);                     \
	} while (0)
	WRONG(window_type, 1, VRB_MW_BIND_TYPE);
	WRONG(wanted_type, 1, VRB_MW_BIND_TYPE);
	WRONG(window_pd, 6, VRB_MW_BIND_OTHER_PD);
	WRONG(region_pd, 6, VRB_MW_BIND_OTHER_PD);
	WRONG(region_access, VRB_RULES_LOCAL_WRITE, VRB_MW_BIND_NO_RIGHT);
	WRONG(region_access, VRB_RULES_MW_BIND, VRB_MW_BIND_ACCESS);
	WRONG(region_access, b.region_access | VRB_RULES_ZERO_BASED, VRB_MW_BIND_ZERO_BASED);
	WRONG(access, VRB_RULES_MW_BIND, VRB_MW_BIND_ACCESS);
	WRONG(addr, 0xfff, VRB_MW_BIND_RANGE);
	WRONG(addr, 0x1001, VRB_MW_BIND_RANGE);
	WRONG(len, 0x1001, VRB_MW_BIND_RANGE);
	WRONG(len, UINT64_MAX, VRB_MW_BIND_RANGE);
	WRONG(has_region, false, VRB_MW_BIND_RANGE);
	/* type 1: length 0 unbinds, with the region named or not */
	b = bind_ok();
	b.window_type = b.wanted_type = 1;
	b.len = 0;
	GOOD(vrb_post_mw_bind(&b, &r));
	b.has_region = false;
	b.addr = 0;
	GOOD(vrb_post_mw_bind(&b, &r));
	b.window_type = b.wanted_type = 2; /* a type 2 window is unbound by invalidating it */
	WANT(VRB_V_POST_MW_BIND, vrb_post_mw_bind(&b, &r), VRB_MW_BIND_RANGE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states),  cmocka_unit_test(room),
		cmocka_unit_test(opcodes), cmocka_unit_test(lists_and_lengths),
		cmocka_unit_test(binds),   cmocka_unit_test(conditions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
