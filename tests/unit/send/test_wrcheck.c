/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of work requests is checked as an adapter would, without one; each refusal has its rule.
 */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include <verbena/sgl.h>

#include "send/domain.h"

static struct vrb_domain d;
static struct ibv_sge sge[4];
static struct ibv_send_wr wr[40];
static struct vrb_wr_limits l;

static int set_up(void **state)
{
	const struct vrb_hit all[] = {
		{.base = 1000, .len = 1000, .lkey = 7, .rkey = 8, .access = IBV_ACCESS_LOCAL_WRITE},
		{.base = 4000, .len = 100, .lkey = 9, .rkey = 10},
	};

	(void)state;
	assert_int_equal(vrb_regions_init(&d.regions), 0);
	assert_int_equal(vrb_regions_add(&d.regions, &all[0]), 0);
	assert_int_equal(vrb_regions_add(&d.regions, &all[1]), 0);
	sge[0] = (struct ibv_sge){1000, 100, 7};
	sge[1] = (struct ibv_sge){1100, 50, 7};
	sge[2] = (struct ibv_sge){4000, 100, 9};
	memset(wr, 0, sizeof(wr));
	wr[0] = (struct ibv_send_wr){.sg_list = sge, .num_sge = 3, .opcode = IBV_WR_SEND};
	l = (struct vrb_wr_limits){.qp_type = IBV_QPT_RC,
				   .state = IBV_QPS_RTS,
				   .max_send_wr = 8,
				   .max_send_sge = 3,
				   .max_inline_data = 64};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	vrb_regions_fini(&d.regions);
	return 0;
}

static void refused(int err, const char *name, const struct ibv_send_wr *which)
{
	const struct ibv_send_wr *bad = NULL;

	assert_int_equal(vrb_check_send(&d, &l, wr, &bad, NULL), -err);
	assert_string_equal(vrb_error_name(), name);
	assert_ptr_equal(bad, which);
}

static void test_good(void **state)
{
	const struct ibv_send_wr *bad;
	struct vrb_wr_summary s;

	(void)state;
	wr[0].next = &wr[1];
	sge[1].length = 60;
	wr[1] = (struct ibv_send_wr){.sg_list = sge + 1,
				     .num_sge = 1,
				     .opcode = IBV_WR_RDMA_READ,
				     .send_flags = IBV_SEND_SIGNALED};
	assert_int_equal(vrb_check_send(&d, &l, wr, &bad, &s), 0);
	assert_int_equal(s.wrs, 2);
	assert_int_equal(s.sges, 4);
	assert_int_equal(s.bytes, 320);
	assert_int_equal(s.signaled, 1);
	assert_int_equal(s.mergeable, 1);
	assert_int_equal(s.straddling, 2);
	assert_int_equal(s.could_inline, 0);
	assert_int_equal(vrb_check_send(&d, &l, NULL, &bad, &s), 0);
}

static void test_post(void **state)
{
	(void)state;
	l.state = IBV_QPS_INIT;
	refused(EINVAL, "post_state", &wr[0]);
	l.state = IBV_QPS_RTS;
	l.max_send_sge = 2;
	refused(EINVAL, "post_num_sge", &wr[0]);
	wr[0].num_sge = 2;
	wr[0].send_flags = IBV_SEND_INLINE;
	refused(EINVAL, "post_inline_len", &wr[0]);
	wr[0].opcode = IBV_WR_RDMA_READ;
	refused(EINVAL, "post_inline_opcode", &wr[0]);
	wr[0].send_flags = 0;
	l.qp_type = IBV_QPT_UC;
	refused(EINVAL, "post_opcode", &wr[0]);
	wr[0].opcode = IBV_WR_SEND;
	l.max_message = 149;
	refused(EINVAL, "post_length", &wr[0]);
	l.qp_type = IBV_QPT_UD;
	l.max_message = 4096;
	refused(EINVAL, "post_ah", &wr[0]);
}

static void test_keys(void **state)
{
	(void)state;
	wr[0].next = &wr[1];
	wr[1] = (struct ibv_send_wr){.sg_list = sge + 2, .num_sge = 1, .opcode = IBV_WR_SEND};
	sge[2].lkey = 7;
	refused(EFAULT, "send_other_lkey", &wr[0]);
	sge[2].lkey = 10;
	refused(EFAULT, "lkey_is_rkey", &wr[0]);
	wr[0].num_sge = 2;
	sge[2].lkey = 9;
	sge[2].length = 101;
	refused(EFAULT, "lkey_range_end", &wr[1]);
	sge[2].addr = 5000;
	refused(EFAULT, "lkey_unknown", &wr[1]);
	sge[2] = (struct ibv_sge){4000, 100, 9};
	wr[1].opcode = IBV_WR_RDMA_READ;
	refused(EFAULT, "lkey_no_write", &wr[1]);
	wr[1].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	refused(EINVAL, "sge_length", &wr[1]);
	/* Inline data lies anywhere. */
	sge[2] = (struct ibv_sge){5000, 60, 0};
	wr[1].opcode = IBV_WR_SEND;
	wr[1].send_flags = IBV_SEND_INLINE;
	assert_int_equal(vrb_check_send(&d, &l, wr, &(const struct ibv_send_wr *){NULL}, NULL), 0);
}

static void test_room(void **state)
{
	const struct ibv_send_wr *bad;

	(void)state;
	for (int i = 0; i < 8; i++) {
		wr[i] = (struct ibv_send_wr){
			.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND, .next = &wr[i + 1]};
	}
	wr[7].next = NULL;
	refused(ENOMEM, "post_sq_dead_end", &wr[7]); /* it fits, and nothing follows ever */
	wr[3].send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(vrb_check_send(&d, &l, wr, &bad, NULL), 0);
	l.used = 1;
	refused(ENOMEM, "post_sq_full", &wr[7]);
	wr[7].next = &wr[0]; /* a ring */
	refused(ENOMEM, "post_sq_full", &wr[7]);
}

static void test_build(void **state)
{
	struct iovec iov[] = {{(void *)1000, 10}, {(void *)1010, 20}, {(void *)4000, 100}};
	struct ibv_sge out[2];

	(void)state;
	assert_int_equal(vrb_sgl_build(&d, iov, 3, out, 2), 2);
	assert_int_equal(out[0].length, 30);
	assert_int_equal(out[1].lkey, 9);
	assert_int_equal(vrb_sgl_build(&d, iov, 3, NULL, 0), 2);
	iov[2].iov_len = 101;
	assert_int_equal(vrb_sgl_build(&d, iov, 3, out, 2), -EFAULT);
	assert_string_equal(vrb_error_name(), "send_range");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_post, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_keys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_build, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
