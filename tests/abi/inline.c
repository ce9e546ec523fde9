/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the inline functions of verbs.h reach: the two ops tables, the extended context's marker and
 * the slots of extended objects. Compiled as C and as C++. Slots that are not offered must make the
 * header answer EOPNOTSUPP; those that are must work on a fresh context.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("line %d: %s (errno %d)\n", __LINE__, #what, errno);                \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static void tables(struct ibv_context *ctx)
{
	struct verbs_context *v = verbs_get_ctx(ctx);

	CHECK(ctx->abi_compat == (void *)-1L);
	CHECK(v != NULL);
	CHECK(v->sz >= sizeof(*v));
	CHECK(ctx->num_comp_vectors >= 1);
	CHECK(ctx->async_fd >= 0 && ctx->cmd_fd >= 0);
	CHECK(ctx->ops.poll_cq && ctx->ops.req_notify_cq && ctx->ops.post_send &&
	      ctx->ops.post_recv && ctx->ops.post_srq_recv);
	CHECK(ctx->ops.alloc_mw && ctx->ops.bind_mw && ctx->ops.dealloc_mw);
	CHECK(v->close_xrcd != NULL);
}

static void queries(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex ex;
	struct ibv_port_attr port;
	struct ibv_values_ex values;
	struct ibv_gid_entry entry;

	memset(&port, 0xff, sizeof(port));
	CHECK(ibv_query_port(ctx, 1, &port) == 0);
	CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET && port.gid_tbl_len > 0);
	CHECK(port.port_cap_flags2 == 0 && port.flags == IBV_QPF_GRH_REQUIRED);
	CHECK(ibv_query_port(ctx, 2, &port) == EINVAL);
	memset(&ex, 0xff, sizeof(ex));
	CHECK(ibv_query_device_ex(ctx, NULL, &ex) == 0);
	CHECK(ex.orig_attr.phys_port_cnt == 1 && ex.phys_port_cnt_ex == 1 && ex.max_dm_size == 0);
	memset(&values, 0, sizeof(values));
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	CHECK(ibv_query_rt_values_ex(ctx, &values) == 0 && values.raw_clock.tv_nsec > 0);
	CHECK(ibv_query_gid_ex(ctx, 1, 0, &entry, 0) == 0);
	CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
	CHECK(ibv_query_gid_table(ctx, &entry, 0, 0) == -EINVAL);
}

#define REFUSED(call) CHECK((errno = 0, (call) == NULL && errno == EOPNOTSUPP))

static void not_offered(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_xrcd_init_attr xrcd;
	struct ibv_td_init_attr td;
	struct ibv_parent_domain_init_attr domain;
	struct ibv_alloc_dm_attr dm;
	struct ibv_wq_init_attr wq;
	struct ibv_counters_init_attr counters;

	memset(&xrcd, 0, sizeof(xrcd));
	memset(&td, 0, sizeof(td));
	memset(&domain, 0, sizeof(domain));
	memset(&dm, 0, sizeof(dm));
	memset(&wq, 0, sizeof(wq));
	memset(&counters, 0, sizeof(counters));
	REFUSED(ibv_open_xrcd(ctx, &xrcd));
	REFUSED(ibv_alloc_td(ctx, &td));
	REFUSED(ibv_alloc_parent_domain(ctx, &domain));
	REFUSED(ibv_alloc_dm(ctx, &dm));
	REFUSED(ibv_alloc_null_mr(pd));
	REFUSED(ibv_create_wq(ctx, &wq));
	REFUSED(ibv_create_counters(ctx, &counters));
	CHECK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0) == EOPNOTSUPP);
}

/* A message goes nowhere here: the QP stays in RESET and every call refuses or finds nothing. */
static void data_path(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_send_wr send, *bad_send = NULL;
	struct ibv_recv_wr recv, *bad_recv = NULL;
	struct ibv_wc wc;

	memset(&send, 0, sizeof(send));
	memset(&recv, 0, sizeof(recv));
	send.opcode = IBV_WR_SEND;
	CHECK(ibv_post_send(qp, &send, &bad_send) == EINVAL && bad_send == &send);
	CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
	CHECK(ibv_req_notify_cq(cq, 0) == 0);
}

static struct ibv_qp *make_qp(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp;

	memset(&attr, 0, sizeof(attr));
	attr.send_cq = attr.recv_cq = cq;
	attr.cap.max_send_wr = 3;
	attr.cap.max_recv_wr = 5;
	attr.cap.max_send_sge = 2;
	attr.cap.max_recv_sge = 1;
	attr.qp_type = IBV_QPT_RC;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.pd = pd;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
	qp = ibv_create_qp_ex(ctx, &attr);
	CHECK(qp != NULL);
	if (!qp)
		return NULL;
	CHECK(attr.cap.max_send_wr == 3 && attr.cap.max_recv_wr == 5 && attr.cap.max_send_sge == 2);
	ex = ibv_qp_to_qp_ex(qp);
	CHECK(ex && ex->wr_start && ex->wr_complete && ex->wr_abort && ex->wr_send &&
	      ex->wr_rdma_write && ex->wr_set_sge && ex->wr_set_inline_data);
	return qp;
}

static void extended_cq(struct ibv_context *ctx)
{
	struct ibv_cq_init_attr_ex attr;
	struct ibv_poll_cq_attr poll;
	struct ibv_cq_ex *cq;

	memset(&attr, 0, sizeof(attr));
	memset(&poll, 0, sizeof(poll));
	attr.cqe = 7;
	attr.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	cq = ibv_create_cq_ex(ctx, &attr);
	CHECK(cq != NULL);
	if (!cq)
		return;
	CHECK(cq->read_opcode && cq->read_byte_len && cq->read_completion_ts && !cq->read_cvlan);
	CHECK(ibv_start_poll(cq, &poll) == ENOENT);
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

static void objects(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_srq_init_attr_ex srq_attr;
	struct ibv_srq *srq;
	struct ibv_mw *mw;
	struct ibv_qp *qp;

	CHECK(pd && cq);
	if (!pd || !cq)
		return;
	memset(&srq_attr, 0, sizeof(srq_attr));
	srq_attr.attr.max_wr = 4;
	srq_attr.attr.max_sge = 1;
	srq_attr.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	srq_attr.pd = pd;
	srq_attr.srq_type = IBV_SRQT_BASIC;
	srq = ibv_create_srq_ex(ctx, &srq_attr);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	qp = make_qp(ctx, pd, cq);
	CHECK(srq && mw);
	not_offered(ctx, pd);
	extended_cq(ctx);
	if (qp && srq)
		data_path(qp, cq, srq);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(ibv_destroy_cq(cq) == EBUSY);
	CHECK(ibv_dealloc_mw(mw) == 0);
	CHECK(ibv_destroy_qp(qp) == 0);
	CHECK(ibv_destroy_srq(srq) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(ibv_dealloc_pd(pd) == 0);
}

int main(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx;

	if (!list || !n) {
		printf("no device: skipped\n");
		return 77;
	}
	ctx = ibv_open_device(list[0]);
	CHECK(ctx != NULL);
	if (ctx) {
		tables(ctx);
		queries(ctx);
		objects(ctx);
		CHECK(ibv_close_device(ctx) == 0);
	}
	ibv_free_device_list(list);
	printf("%d failures\n", failures);
	return failures != 0;
}
