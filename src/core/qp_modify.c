/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a queue pair: init, state transitions, query, fini. Which transitions and attributes
 * are legal is decided by src/rules before; here they are applied. What a state means for traffic
 * is read from qp->state where packets are made and taken.
 */
#include <string.h>

#include "core/internal.h"

#define TIMEOUT_UNIT_NS 4096ull /* IBA 9.7.6.1.3: 4.096 us * 2^n */

void vrb_qp_init(struct vrb_qp *qp, const struct vrb_qp_conf *conf)
{
	qp->type = (uint8_t)conf->type;
	qp->state = VRB_QPS_RESET;
	qp->qpn = conf->qpn;
	qp->pd = conf->pd;
	qp->sig_all = conf->sig_all;
	qp->scq = conf->scq;
	qp->rcq = conf->rcq;
	qp->srq = conf->srq;
	qp->keys = conf->keys;
	qp->sq = conf->sq;
	qp->rq = conf->rq;
	qp->cur_rwqe = conf->cur_rwqe;
	qp->max_inline = conf->max_inline;
	qp->prefetch = conf->prefetch;
	qp->owner = conf->owner;
	qp->mtu = 256;
	qp->window_max = VRB_WINDOW_CLAMP;
	qp->read_chunk = VRB_WINDOW_CLAMP / 4;
	qp->ack_deadline = qp->rnr_deadline = qp->timeout_ns = VRB_NS_NEVER;
	qp->probe_deadline = qp->probe_ns = VRB_NS_NEVER;
	vrb_list_init(&qp->active_node);
	vrb_list_init(&qp->timer_node);
	vrb_list_init(&qp->ack_node);
	qp->slow_tx = qp->slow_rx = VRB_SLOW_STATE;
}

void vrb_qp_forget_responses(struct vrb_qp *qp)
{
	for (uint32_t i = 0; i < vrb_qp_rd_max(qp); i++)
		vrb_qp_rd(qp, i)->pending = false;
	qp->n_rd_pending = 0;
	qp->nak_syndrome = 0;
	qp->resp_pending = false;
}

static void purge_cqs(struct vrb_qp *qp)
{
	if (qp->scq)
		vrb_cq_purge(qp->scq, qp);
	if (qp->rcq && qp->rcq != qp->scq)
		vrb_cq_purge(qp->rcq, qp);
}

/* To RESET: the queues are emptied without completions, everything about the connection is
 * forgotten (IBA 10.3.1.2). */
static void reset(struct vrb_qp *qp)
{
	purge_cqs(qp);
	qp->sq_free = qp->sq_una = qp->sq_send = qp->sq.tail;
	qp->rq.head = qp->rq.tail;
	qp->send_off = qp->n_rd_out = qp->unsignaled_run = qp->ack_run = 0;
	qp->rewound = qp->failing = qp->rnr_wait = qp->resend_guard = false;
	qp->peer_gone = false;
	qp->ack_pending = qp->nak_sent = qp->comm_est_done = qp->last_wqe_done = false;
	qp->have_rwqe = false;
	qp->refuse_next = 0;
	qp->rx_seq = VRB_RX_IDLE;
	qp->rd_tail = qp->rd_n = qp->rd_next = qp->n_rd_unanswered = 0;
	vrb_qp_forget_responses(qp);
	qp->ack_deadline = qp->rnr_deadline = qp->timeout_ns = VRB_NS_NEVER;
	qp->probe_deadline = qp->probe_ns = VRB_NS_NEVER;
	qp->rtt_min_ns = 0;
	qp->n_probes = 0;
	qp->probe = VRB_PROBE_NONE;
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->access = qp->msn = 0;
	qp->next_psn = qp->una_psn = qp->epsn = qp->ack_psn = vrb_psn(0);
	qp->state = VRB_QPS_RESET;
}

static void copy_address(struct vrb_qp_attr *to, const struct vrb_qp_attr *from)
{
	to->dgid = from->dgid;
	to->is_global = from->is_global;
	to->sgid_index = from->sgid_index;
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	to->sl = from->sl;
	to->static_rate = from->static_rate;
	to->src_path_bits = from->src_path_bits;
	to->av_port = from->av_port;
	to->dlid = from->dlid;
	to->flow_label = from->flow_label;
}

#define COPY(bit, field)                                                                           \
	do {                                                                                       \
		if (mask & (bit))                                                                  \
			to->field = from->field;                                                   \
	} while (0)

static void copy_attr(struct vrb_qp_attr *to, const struct vrb_qp_attr *from, uint32_t mask)
{
	COPY(VRB_QPA_EN_SQD_ASYNC, en_sqd_async);
	COPY(VRB_QPA_ACCESS, access);
	COPY(VRB_QPA_PKEY_INDEX, pkey_index);
	COPY(VRB_QPA_PORT, port);
	COPY(VRB_QPA_QKEY, qkey);
	COPY(VRB_QPA_PATH_MTU, path_mtu);
	COPY(VRB_QPA_TIMEOUT, timeout);
	COPY(VRB_QPA_RETRY_CNT, retry_cnt);
	COPY(VRB_QPA_RNR_RETRY, rnr_retry);
	COPY(VRB_QPA_RQ_PSN, rq_psn);
	COPY(VRB_QPA_MAX_QP_RD_ATOMIC, max_rd_atomic);
	COPY(VRB_QPA_MIN_RNR_TIMER, min_rnr_timer);
	COPY(VRB_QPA_SQ_PSN, sq_psn);
	COPY(VRB_QPA_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY(VRB_QPA_DEST_QPN, dest_qpn);
	if (mask & VRB_QPA_AV)
		copy_address(to, from);
}

static void apply_attr(struct vrb_qp *qp, uint32_t mask)
{
	struct vrb_qp_attr *a = &qp->attr;

	qp->access = a->access;
	qp->dqpn = a->dest_qpn;
	if (a->max_dest_rd_atomic > vrb_qp_rd_max(qp))
		a->max_dest_rd_atomic = (uint8_t)vrb_qp_rd_max(qp);
	if (mask & VRB_QPA_TIMEOUT)
		qp->timeout_ns = a->timeout ? TIMEOUT_UNIT_NS << (a->timeout & 31) : VRB_NS_NEVER;
	if (mask & VRB_QPA_RETRY_CNT)
		qp->retry_left = a->retry_cnt;
	if (mask & VRB_QPA_RNR_RETRY)
		qp->rnr_left = a->rnr_retry;
	if (mask & VRB_QPA_RQ_PSN) {
		qp->epsn = vrb_psn(a->rq_psn);
		qp->ack_psn = vrb_psn_sub(qp->epsn, 1);
		qp->msn = 0;
	}
	if (mask & VRB_QPA_SQ_PSN) {
		qp->next_psn = qp->una_psn = vrb_psn(a->sq_psn);
		qp->ackreq_psn = qp->ackreq_before = vrb_psn_sub(qp->una_psn, 1);
	}
}

static void apply_link(struct vrb_qp *qp, uint32_t mtu, uint32_t window_max)
{
	if (mtu)
		qp->mtu = mtu;
	if (!window_max)
		return;
	qp->window_max = window_max < VRB_WINDOW_CLAMP ? window_max : VRB_WINDOW_CLAMP;
	/* chunks of a READ under way keep their place */
	if (qp->sq_una == qp->sq_send)
		qp->read_chunk = qp->window_max < 4 ? 1 : qp->window_max / 4;
}

static void enter(struct vrb_qp *qp, enum vrb_qp_state to, struct vrb_fx *fx)
{
	if (to == VRB_QPS_ERR) {
		vrb_rd_abandon(qp);
		vrb_qp_to_err(qp, fx);
		return;
	}
	if (to == VRB_QPS_SQD && qp->state == VRB_QPS_RTS)
		qp->attr.sq_draining = 1;
	if (to == VRB_QPS_RTS)
		qp->attr.sq_draining = 0;
	qp->state = (uint8_t)to;
}

void vrb_qp_modify(struct vrb_qp *qp, const struct vrb_qp_attr *attr, uint32_t mask, uint32_t mtu,
		   uint32_t window_max, struct vrb_fx *fx)
{
	if ((mask & VRB_QPA_STATE) && attr->state == VRB_QPS_RESET) {
		reset(qp);
		vrb_qp_settle(qp, fx);
		return;
	}
	copy_attr(&qp->attr, attr, mask);
	apply_attr(qp, mask);
	apply_link(qp, mtu, window_max);
	if (mask & VRB_QPA_STATE)
		enter(qp, attr->state, fx);
	vrb_qp_settle(qp, fx);
}

void vrb_qp_query(const struct vrb_qp *qp, struct vrb_qp_attr *attr)
{
	*attr = qp->attr;
	attr->state = attr->cur_state = qp->state;
}

void vrb_qp_fini(struct vrb_qp *qp)
{
	purge_cqs(qp);
}
