/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: create, modify, query, destroy, multicast. Capabilities are granted exactly as
 * asked (a profile may round inline data up), and reported in every state. The transition tables
 * are in src/rules; which state the QP is in, the device says (it may have failed since the program
 * last looked).
 */
#include "verbs/verbs.h"
#include "rules/post.h"
#include "verbs/ret.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What ibv_create_qp and ibv_create_qp_ex have in common. */
struct make {
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp_cap *cap;
	void *qp_context;
	enum ibv_qp_type type;
	bool sig_all, has_ex;
	uint64_t send_ops;
};

static enum vrb_verdict check(const struct make *m, struct vrb_report *r)
{
	const struct ibv_context *ctx = m->pd->context;
	struct vrb_rules_qp q = {
		.type = m->type,
		.has_send_cq = m->send_cq && m->send_cq->context == ctx,
		.has_recv_cq = m->recv_cq && m->recv_cq->context == ctx,
		.has_srq = m->srq,
		.max_send_wr = m->cap->max_send_wr,
		.max_recv_wr = m->cap->max_recv_wr,
		.max_send_sge = m->cap->max_send_sge,
		.max_recv_sge = m->cap->max_recv_sge,
		.max_inline = m->cap->max_inline_data,
	};

	return vrb_rules_create_qp(&q, &vv_limits, r);
}

static int make_below(struct vv_qp *q, const struct make *m)
{
	struct vrb_hqp_init init = {
		.type = (enum vrb_qp_type)m->type,
		.sig_all = m->sig_all,
		.scq = vv_cq(m->send_cq)->h,
		.rcq = vv_cq(m->recv_cq)->h,
		.srq = m->srq ? vv_srq(m->srq)->h : NULL,
		.max_send_wr = m->cap->max_send_wr,
		.max_recv_wr = m->cap->max_recv_wr,
		.max_send_sge = m->cap->max_send_sge,
		.max_recv_sge = m->cap->max_recv_sge,
		.max_inline = m->cap->max_inline_data,
		.user = q,
	};

	if (m->srq)
		init.max_recv_wr = init.max_recv_sge = 0;
	return vrb_hqp_create(vv_pd(m->pd)->h, &init, &q->h);
}

/* What is asked for, but for what the profile rounds up. */
static void grant(const struct make *m)
{
	const struct vrb_profile *p = vrb_hca_profile();
	uint32_t asked = m->cap->max_inline_data, more = asked + p->inline_round - 1;

	if (asked && p->inline_round > 1)
		more -= more % p->inline_round;
	m->cap->max_inline_data = !asked ? 0 : more < p->max_inline ? more : p->max_inline;
	if (m->srq)
		m->cap->max_recv_wr = m->cap->max_recv_sge = 0;
}

static struct ibv_qp *make_qp(const struct make *m)
{
	struct vrb_report r;
	struct vv_qp *q;
	int err;

	if (check(m, &r) != VRB_OK)
		return vv_null(vv_reason(&r));
	err = vv_count_in(m->pd->context, VRB_OBJ_QP);
	if (err)
		return vv_null(err);
	q = calloc(1, sizeof(*q));
	if (!q) {
		vv_count_out(m->pd->context, VRB_OBJ_QP);
		return vv_null(ENOMEM);
	}
	grant(m);
	q->cap = *m->cap;
	q->sig_all = m->sig_all;
	q->has_ex = m->has_ex;
	q->send_ops = m->send_ops;
	q->qp.context = m->pd->context;
	q->qp.qp_context = m->qp_context;
	q->qp.pd = m->pd;
	q->qp.send_cq = m->send_cq;
	q->qp.recv_cq = m->recv_cq;
	q->qp.srq = m->srq;
	q->qp.state = IBV_QPS_RESET;
	q->qp.qp_type = m->type;
	pthread_mutex_init(&q->qp.mutex, NULL);
	pthread_cond_init(&q->qp.cond, NULL);
	err = make_below(q, m);
	if (err) {
		vv_count_out(m->pd->context, VRB_OBJ_QP);
		free(q);
		return vv_null(err);
	}
	q->qp.qp_num = vrb_hqp_qpn(q->h);
	q->qp.handle = q->qp.qp_num;
	if (q->has_ex)
		vv_qp_ex_init(q);
	return &q->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct make m = {
		.pd = pd,
		.send_cq = a->send_cq,
		.recv_cq = a->recv_cq,
		.srq = a->srq,
		.cap = &a->cap,
		.qp_context = a->qp_context,
		.type = a->qp_type,
		.sig_all = a->sq_sig_all,
	};

	return make_qp(&m);
}

/* Bits that the header defines; those outside MASK_OFFERED belong to features not offered here. */
#define MASK_DEFINED ((IBV_QP_INIT_ATTR_SEND_OPS_FLAGS << 1) - 1)
#define MASK_OFFERED                                                                               \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

static enum vrb_verdict check_ex(const struct ibv_qp_init_attr_ex *a, struct vrb_report *r)
{
	uint64_t flags = a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? a->create_flags : 0;
	uint64_t ops = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? a->send_ops_flags : 0;

	if (vrb_rules_defined(VRB_OA_COMP_MASK, a->comp_mask, MASK_DEFINED, r) != VRB_OK)
		return r->verdict;
	/* bit n of the send operations is the operation with number n of enum ibv_wr_opcode */
	if (a->comp_mask & ~(uint32_t)MASK_OFFERED || flags || ops & ~(uint64_t)VRB_POST_OPS_RC)
		return vrb_rules_unsupported(VRB_VERB_OTHER, r);
	if (a->qp_type >= IBV_QPT_RC && a->qp_type <= IBV_QPT_UD)
		return vrb_rules_defined(VRB_OA_SEND_OPS, ops, vrb_post_ops(a->qp_type), r);
	return VRB_OK;
}

struct ibv_qp *vv_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *a)
{
	struct make m = {
		.pd = a->comp_mask & IBV_QP_INIT_ATTR_PD ? a->pd : NULL,
		.send_cq = a->send_cq,
		.recv_cq = a->recv_cq,
		.srq = a->srq,
		.cap = &a->cap,
		.qp_context = a->qp_context,
		.type = a->qp_type,
		.sig_all = a->sq_sig_all,
		.has_ex = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	struct vrb_report r;

	if (check_ex(a, &r) != VRB_OK)
		return vv_null(vv_reason(&r));
	if (m.has_ex)
		m.send_ops = a->send_ops_flags;
	if (a->qp_type < IBV_QPT_RC || a->qp_type > IBV_QPT_UD) { /* XRC comes without a PD */
		r = (struct vrb_report){.verdict = VRB_V_CREATE_QP_TYPE, .val = {a->qp_type}};
		return vv_null(vv_reason(&r));
	}
	if (!m.pd || m.pd->context != ctx)
		return vv_null(EINVAL);
	return make_qp(&m);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return vv_qp(qp)->has_ex ? &vv_qp(qp)->ex : NULL;
}

/* Values of enums and ints of the program that do not fit a byte become 255, which is never legal.
 */
static uint8_t byte_of(unsigned v)
{
	return v > 255 ? 255 : (uint8_t)v;
}

static void attr_from_ibv(struct vrb_qp_attr *out, const struct ibv_qp_attr *in, uint32_t mask)
{
	*out = (struct vrb_qp_attr){
		.state = byte_of(in->qp_state),
		.cur_state = byte_of(in->cur_qp_state),
		.path_mtu = byte_of(in->path_mtu),
		.port = in->port_num,
		.timeout = in->timeout,
		.retry_cnt = in->retry_cnt,
		.rnr_retry = in->rnr_retry,
		.min_rnr_timer = in->min_rnr_timer,
		.max_rd_atomic = in->max_rd_atomic,
		.max_dest_rd_atomic = in->max_dest_rd_atomic,
		.en_sqd_async = in->en_sqd_async_notify,
		.path_mig_state = byte_of(in->path_mig_state),
		.pkey_index = in->pkey_index,
		.access = in->qp_access_flags,
		.qkey = in->qkey,
		.dest_qpn = in->dest_qp_num,
		.rq_psn = in->rq_psn,
		.sq_psn = in->sq_psn,
	};
	if (mask & IBV_QP_AV)
		vv_av_from_ibv(out, &in->ah_attr);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vv_qp *q = vv_qp(qp);
	uint32_t mask = (uint32_t)attr_mask;
	struct vrb_rules_port port;
	struct vrb_qp_attr a;
	struct vrb_rules_modify m = {
		.type = qp->qp_type,
		.cur = vrb_hqp_state(q->h),
		.attr = &a,
		.mask = mask,
		.port = &port,
	};
	struct vrb_report r;
	int err;

	attr_from_ibv(&a, attr, mask);
	vv_rules_port(vv_context(qp->context)->dev, &port);
	if (vrb_rules_modify(&m, &r) != VRB_OK) {
		r.qpn = qp->qp_num;
		return vv_refuse(&r);
	}
	err = vrb_hqp_modify(q->h, &a, mask);
	if (err == -EHOSTUNREACH || err == -ENETUNREACH) {
		r = (struct vrb_report){.verdict = VRB_V_MODIFY_UNREACHABLE, .qpn = qp->qp_num};
		return vv_refuse(&r);
	}
	if (!err)
		qp->state = (enum ibv_qp_state)vrb_rules_modify_target(&m);
	return vv_ret(err);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init)
{
	struct vv_qp *q = vv_qp(qp);
	struct vrb_qp_attr a;

	(void)attr_mask; /* all is at hand: all is given */
	if (vrb_hctx_is_foreign(vv_context(qp->context)->h))
		return EIO;
	vrb_hqp_query(q->h, &a);
	qp->state = (enum ibv_qp_state)a.state;
	*attr = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)a.state,
		.cur_qp_state = (enum ibv_qp_state)a.state,
		.path_mtu = (enum ibv_mtu)a.path_mtu,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = a.qkey,
		.rq_psn = a.rq_psn,
		.sq_psn = a.sq_psn,
		.dest_qp_num = a.dest_qpn,
		.qp_access_flags = a.access,
		.cap = q->cap,
		.pkey_index = a.pkey_index,
		.en_sqd_async_notify = a.en_sqd_async,
		.sq_draining = a.sq_draining,
		.max_rd_atomic = a.max_rd_atomic,
		.max_dest_rd_atomic = a.max_dest_rd_atomic,
		.min_rnr_timer = a.min_rnr_timer,
		.port_num = a.port,
		.timeout = a.timeout,
		.retry_cnt = a.retry_cnt,
		.rnr_retry = a.rnr_retry,
	};
	vv_av_to_ibv(&attr->ah_attr, &a);
	*init = (struct ibv_qp_init_attr){
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap = q->cap,
		.qp_type = qp->qp_type,
		.sq_sig_all = q->sig_all,
	};
	return 0;
}

/* Every placement writes its last byte last, but the bytes before it in no promised order. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct vv_qp *q = vv_qp(qp);
	bool foreign = vrb_hctx_is_foreign(vv_context(qp->context)->h);
	struct vrb_report r = {
		.verdict = VRB_V_BUSY,
		.qpn = qp->qp_num,
		.val = {VRB_OBJ_QP, 1},
	};
	int err = vrb_hqp_destroy(q->h);

	if (err == -EBUSY)
		return vv_refuse(&r);
	if (err && !foreign)
		return vv_ret(err);
	if (!foreign)
		vv_wait_acks(&(struct vv_ack_wait){&qp->mutex, &qp->cond, &q->async_events_given,
						   &qp->events_completed, VRB_OBJ_QP});
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	vv_count_out(qp->context, VRB_OBJ_QP);
	free(q);
	return 0;
}

static int group(struct ibv_qp *qp, const union ibv_gid *gid, struct vrb_gid *out)
{
	struct vrb_report r;

	memcpy(out->raw, gid->raw, sizeof(out->raw));
	if (vrb_rules_attach(qp->qp_type, out, &r) == VRB_OK)
		return 0;
	r.qpn = qp->qp_num;
	return vv_refuse(&r);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vrb_gid g;
	int err = group(qp, gid, &g);

	(void)lid; /* RoCE has none */
	return err ? err : vv_ret(vrb_hqp_attach(vv_qp(qp)->h, &g));
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vrb_gid g;
	int err = group(qp, gid, &g);

	(void)lid;
	return err ? err : vv_ret(vrb_hqp_detach(vv_qp(qp)->h, &g));
}

/* Enhanced connection establishment has no options here. */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	struct vrb_report r;

	(void)qp;
	if (!ece->vendor_id)
		return 0;
	vrb_rules_unsupported(VRB_VERB_SET_ECE, &r);
	return vv_refuse(&r);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	*ece = (struct ibv_ece){0};
	return 0;
}
