/* SPDX-License-Identifier: BSD-2-Clause */
/* rules/object.c: each limit at its edge, and every verdict of the OBJECT section reached. */
#include "base/names.h"
#include "rules/object.h"
#include "rules/post.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const struct vrb_rules_limits lim = {
	.max_qp_wr = 16384,
	.max_send_sge = 32,
	.max_recv_sge = 32,
	.max_inline = 1024,
	.max_cqe = 4194304,
	.max_srq_wr = 32768,
	.max_srq_sge = 32,
	.n_comp_vectors = 1,
};

static struct vrb_rules_qp good(void)
{
	return (struct vrb_rules_qp){
		.type = VRB_QPT_RC,
		.has_send_cq = true,
		.has_recv_cq = true,
		.max_send_wr = 16384,
		.max_recv_wr = 16384,
		.max_send_sge = 32,
		.max_recv_sge = 32,
		.max_inline = 1024,
	};
}

static void qp(void **state)
{
	struct vrb_rules_qp q = good();
	struct vrb_report r;

	(void)state;
	assert_int_equal(vrb_rules_create_qp(&q, &lim, &r), VRB_OK);
	for (uint32_t type = 0; type < 300; type++) {
		q.type = type;
		assert_int_equal(vrb_rules_create_qp(&q, &lim, &r),
				 type >= 2 && type <= 4 ? VRB_OK : VRB_V_CREATE_QP_TYPE);
	}
	assert_int_equal(r.val[0], 299);
	q = good();
	q.has_send_cq = false;
	assert_int_equal(vrb_rules_create_qp(&q, &lim, &r), VRB_V_CREATE_QP_CQ);
	assert_int_equal(r.val[0], 0);
	q = good();
	q.has_recv_cq = false;
	assert_int_equal(vrb_rules_create_qp(&q, &lim, &r), VRB_V_CREATE_QP_CQ);
	assert_int_equal(r.val[0], 1);
}

static void qp_caps(void **state)
{
	static const struct {
		size_t offset;
		uint32_t attr, max;
	} cap[] = {
		{offsetof(struct vrb_rules_qp, max_send_wr), VRB_OA_MAX_SEND_WR, 16384},
		{offsetof(struct vrb_rules_qp, max_recv_wr), VRB_OA_MAX_RECV_WR, 16384},
		{offsetof(struct vrb_rules_qp, max_send_sge), VRB_OA_MAX_SEND_SGE, 32},
		{offsetof(struct vrb_rules_qp, max_recv_sge), VRB_OA_MAX_RECV_SGE, 32},
		{offsetof(struct vrb_rules_qp, max_inline), VRB_OA_MAX_INLINE, 1024},
	};
	struct vrb_report r;

	(void)state;
	for (size_t i = 0; i < sizeof(cap) / sizeof(cap[0]); i++) {
		struct vrb_rules_qp q = good();
		uint32_t asked = cap[i].max + 1;

		memcpy((char *)&q + cap[i].offset, &asked, sizeof(asked));
		assert_int_equal(vrb_rules_create_qp(&q, &lim, &r), VRB_V_CREATE_LIMIT);
		assert_int_equal(r.verdict, VRB_V_CREATE_LIMIT);
		assert_int_equal(r.val[0], asked);
		assert_int_equal(r.val[1], cap[i].attr);
		assert_int_equal(r.val[2], VRB_OBJ_QP);
		assert_int_equal(r.val[3], cap[i].max);
		q.has_srq = true; /* then the receive figures do not count */
		assert_int_equal(vrb_rules_create_qp(&q, &lim, &r),
				 cap[i].attr == VRB_OA_MAX_RECV_WR ||
						 cap[i].attr == VRB_OA_MAX_RECV_SGE
					 ? VRB_OK
					 : VRB_V_CREATE_LIMIT);
	}
}

static void cq(void **state)
{
	struct vrb_report r;

	(void)state;
	assert_int_equal(vrb_rules_create_cq(1, 0, &lim, &r), VRB_OK);
	assert_int_equal(vrb_rules_create_cq(4194304, 0, &lim, &r), VRB_OK);
	assert_int_equal(vrb_rules_create_cq(0, 0, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(vrb_rules_create_cq(-1, 0, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(vrb_rules_create_cq(4194305, 0, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(r.val[2], VRB_OBJ_CQ);
	assert_int_equal(vrb_rules_create_cq(1, 1, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(r.val[1], VRB_OA_COMP_VECTOR);
	assert_int_equal(vrb_rules_create_cq(1, -1, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(vrb_rules_resize_cq(8, 8, &lim, &r), VRB_OK);
	assert_int_equal(vrb_rules_resize_cq(7, 8, &lim, &r), VRB_V_CQ_TOO_SMALL);
	assert_int_equal(r.val[0], 7);
	assert_int_equal(r.val[1], 8);
	assert_int_equal(vrb_rules_resize_cq(0, 0, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(vrb_rules_resize_cq(4194305, 0, &lim, &r), VRB_V_CREATE_LIMIT);
}

static void srq(void **state)
{
	struct vrb_report r;

	(void)state;
	assert_int_equal(vrb_rules_create_srq(32768, 32, &lim, &r), VRB_OK);
	assert_int_equal(vrb_rules_create_srq(0, 1, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(vrb_rules_create_srq(32769, 1, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(vrb_rules_create_srq(1, 33, &lim, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(r.val[1], VRB_OA_MAX_SGE);
	assert_int_equal(vrb_rules_srq_limit(10, 10, &r), VRB_OK);
	assert_int_equal(vrb_rules_srq_limit(11, 10, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(r.val[1], VRB_OA_SRQ_LIMIT);
}

static void mr(void **state)
{
	struct vrb_report r;

	(void)state;
	for (uint32_t access = 0; access < 512; access++) {
		bool remote_change = access & (VRB_RULES_REMOTE_WRITE | VRB_RULES_REMOTE_ATOMIC);
		enum vrb_verdict want = access > 255 ? VRB_V_REG_ACCESS_BITS
					: remote_change && !(access & VRB_RULES_LOCAL_WRITE)
						? VRB_V_REG_ACCESS
						: VRB_OK;

		assert_int_equal(vrb_rules_reg_mr(4096, 4096, access, &r), want);
	}
	assert_int_equal(vrb_rules_reg_mr(4096, 4096, 1u << 20, &r), VRB_OK);
	assert_int_equal(vrb_rules_reg_mr(4096, 4096, 1u << 29, &r), VRB_OK);
	assert_int_equal(vrb_rules_reg_mr(4096, 4096, 1u << 30, &r), VRB_V_REG_ACCESS_BITS);
	assert_int_equal(r.val[0], 1u << 30);
	assert_int_equal(vrb_rules_reg_mr(UINT64_MAX - 9, 10, 0, &r), VRB_OK);
	assert_int_equal(vrb_rules_reg_mr(UINT64_MAX - 9, 11, 0, &r), VRB_V_REG_RANGE);
	assert_int_equal(vrb_rules_reg_mr(0, UINT64_MAX, 0, &r), VRB_OK);
	assert_int_equal(vrb_rules_reg_mr(4096, UINT64_MAX, 0, &r), VRB_V_REG_RANGE);
	assert_int_equal(vrb_rules_reg_mr(4096, 0, 0, &r), VRB_OK);
}

static void others(void **state)
{
	struct vrb_report r;

	(void)state;
	assert_int_equal(vrb_rules_destroy(VRB_OBJ_PD, 0, &r), VRB_OK);
	assert_int_equal(vrb_rules_destroy(VRB_OBJ_PD, 3, &r), VRB_V_BUSY);
	assert_int_equal(r.val[0], VRB_OBJ_PD);
	assert_int_equal(r.val[1], 3);
	assert_int_equal(vrb_rules_defined(VRB_OA_COMP_MASK, 5, 7, &r), VRB_OK);
	assert_int_equal(vrb_rules_defined(VRB_OA_COMP_MASK, 8, 7, &r), VRB_V_CREATE_INVALID);
	assert_int_equal(r.val[0], VRB_OA_COMP_MASK);
	assert_int_equal(r.val[1], 8);
	assert_int_equal(vrb_rules_unsupported(VRB_VERB_XRC, &r), VRB_V_UNSUPPORTED);
}

static void is_named(char kind, uint32_t v, const char *want)
{
	struct vrb_text t;
	char text[128];

	vrb_text_init(&t, text, sizeof(text));
	assert_true(vrb_name_put(&t, kind, v));
	assert_string_equal(text, want);
}

/* The tables of base/names.c end where our enums end. */
static void names(void **state)
{
	(void)state;
	is_named('b', VRB_OBJ_CONTEXT, "context");
	is_named('b', VRB_OBJ_CHANNEL, "completion channel");
	is_named('b', VRB_OBJ_QP, "queue pair");
	is_named('b', VRB_OBJ_THREAD, "thread");
	is_named('b', VRB_N_OBJECTS, "10");
	is_named('a', VRB_OA_MAX_SEND_WR, "cap.max_send_wr");
	is_named('a', VRB_OA_MAX_WR, "max_wr");
	is_named('a', VRB_OA_ATTR_MASK, "attr_mask");
	is_named('a', VRB_OA_LENGTH, "length");
	is_named('a', VRB_N_OBJ_ATTRS, "18");
	is_named('v', VRB_VERB_IMPORT_DEVICE, "ibv_import_device");
	is_named('v', VRB_VERB_XRC, "XRC");
	is_named('v', VRB_VERB_OTHER + 1, "8");
	is_named('s', VRB_QPS_RESET, "RESET");
	is_named('s', VRB_QPS_ERR, "ERR");
	is_named('s', 255, "255");
	is_named('t', VRB_QPT_UD, "UD");
	is_named('o', 9, "SEND_WITH_INV");
	is_named('w', VRB_MW_BIND_ZERO_BASED, "the region is zero-based");
	is_named('q', 1, "receive");
	is_named('m', VRB_QPA_AV | VRB_QPA_RATE_LIMIT, "IBV_QP_AV | IBV_QP_RATE_LIMIT");
	is_named('m', 1u << 24, "0x1000000");
	is_named('m', VRB_QPA_DEST_QPN | 1u << 24, "IBV_QP_DEST_QPN | 0x1000000");
	is_named('m', 0, "0x0");
}

static void modify_cq(void **state)
{
	struct vrb_report r;

	(void)state;
	assert_int_equal(vrb_rules_modify_cq(1, 1, &r), VRB_OK);
	assert_int_equal(vrb_rules_modify_cq(0, 1, &r), VRB_V_CREATE_INVALID);
	assert_int_equal(r.val[0], VRB_OA_ATTR_MASK);
	assert_int_equal(vrb_rules_modify_cq(3, 1, &r), VRB_V_UNSUPPORTED);
	assert_int_equal(vrb_rules_modify_cq(1, 0, &r), VRB_V_UNSUPPORTED);
}

static void tables(void **state)
{
	struct vrb_report r;

	(void)state;
	assert_int_equal(vrb_rules_one_more(7, 8, VRB_OBJ_QP, &r), VRB_OK);
	assert_int_equal(vrb_rules_one_more(8, 8, VRB_OBJ_QP, &r), VRB_V_CREATE_MANY);
	assert_int_equal(r.val[0], 8);
	assert_int_equal(r.val[1], VRB_OBJ_QP);
	assert_int_equal(vrb_rules_mr_size(4096, 4096, &r), VRB_OK);
	assert_int_equal(vrb_rules_mr_size(UINT64_MAX, UINT64_MAX, &r), VRB_OK);
	assert_int_equal(vrb_rules_mr_size(4097, 4096, &r), VRB_V_CREATE_LIMIT);
	assert_int_equal(r.val[1], VRB_OA_LENGTH);
	assert_int_equal(r.val[3], 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modify_cq), cmocka_unit_test(qp),    cmocka_unit_test(qp_caps),
		cmocka_unit_test(cq),	     cmocka_unit_test(srq),   cmocka_unit_test(mr),
		cmocka_unit_test(others),    cmocka_unit_test(names), cmocka_unit_test(tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
