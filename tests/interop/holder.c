/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds, until it is killed: a queue pair in RESET, one in ERR, a CQ and a region of 64 KiB. Says
 * the number of the one in ERR when all are there. For `verbena doctor`, which has to find them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define BYTES 65536

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 4, NULL, NULL, 0) : NULL;
	void *memory = aligned_alloc(4096, BYTES);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *fresh, *failed;

	if (!pd || !cq || !memory || !ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE))
		return 1;
	fresh = ibv_create_qp(pd, &init);
	failed = ibv_create_qp(pd, &init);
	/* the kernel's table has no way from RESET to ERR */
	if (!fresh || !failed ||
	    ibv_modify_qp(failed, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return 1;
	attr.qp_state = IBV_QPS_ERR;
	if (ibv_modify_qp(failed, &attr, IBV_QP_STATE))
		return 1;
	printf("%u %u\n", fresh->qp_num, failed->qp_num);
	fflush(stdout);
	for (;;)
		pause();
}
