/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two tables that inline functions of verbs.h call through. The context's own holds the data
 * path; its compatibility slots are called by no program built since 2007 and stay empty. A slot of
 * verbs_context that is NULL makes the header answer EOPNOTSUPP by itself, so only what is offered
 * is filled; close_xrcd, which the header calls unchecked, is the exception.
 */
#include "verbs/verbs.h"

void vv_ops_init(struct vv_context *ctx)
{
	struct verbs_context *v = &ctx->vctx;

	v->context.ops = (struct ibv_context_ops){
		.alloc_mw = vv_alloc_mw,
		.bind_mw = vv_bind_mw,
		.dealloc_mw = vv_dealloc_mw,
		.poll_cq = vv_poll_cq,
		.req_notify_cq = vv_req_notify_cq,
		.post_srq_recv = vv_post_srq_recv,
		.post_send = vv_post_send,
		.post_recv = vv_post_recv,
	};
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->sz = sizeof(*v);
	v->query_port = vv_query_port;
	v->query_device_ex = vv_query_device_ex;
	v->query_rt_values = vv_query_rt_values;
	v->create_cq_ex = vv_create_cq_ex;
	v->modify_cq = vv_modify_cq;
	v->create_qp_ex = vv_create_qp_ex;
	v->create_srq_ex = vv_create_srq_ex;
	v->close_xrcd = vv_close_xrcd;
}
