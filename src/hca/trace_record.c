/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is recorded of a work request. The clock is read for each record, so that records are in the
 * order of time; a fetch has the time before the packet was made. A request that is repeated is
 * fetched once and sent again.
 */
#include "hca/trace.h"
#include "hca/whose.h"
#include "wire/roce.h"

static struct vrb_trace_rec record(enum vrb_trace_kind kind, vrb_qpn qpn)
{
	return (struct vrb_trace_rec){.time_ns = vrb_clock_now(),
				      .qpn = qpn,
				      .index = VRB_TRACE_NO_INDEX,
				      .kind = (uint8_t)kind};
}

static void name_send(struct vrb_trace_rec *r, const struct vrb_qp *c, uint32_t index)
{
	r->index = index;
	r->wr_id = vrb_whose_entry(c, index)->wr_id;
	r->flags |= VRB_TRACE_HAS_WR;
}

static void name_recv(struct vrb_trace_rec *r, const struct vrb_qp *c, const struct vrb_rwqe *w,
		      uint32_t index)
{
	r->index = c->srq ? VRB_TRACE_NO_INDEX : index;
	r->wr_id = w->wr_id;
	r->flags |= VRB_TRACE_HAS_WR | VRB_TRACE_RECV | (c->srq ? VRB_TRACE_SHARED : 0);
}

/* ---- of a queue pair */

void vrb_trace_qp(struct vrb_engine *e, const struct vrb_hqp *q)
{
	struct vrb_trace_rec r = record(VRB_TRACE_QP, q->core.qpn);

	r.op = q->core.type;
	vrb_trace_put(e->trace, &r);
}

void vrb_trace_verdict(struct vrb_engine *e, const struct vrb_report *why)
{
	struct vrb_trace_rec r = record(VRB_TRACE_VERDICT, why->qpn);

	r.arg = (uint32_t)why->verdict;
	if (why->verdict == VRB_V_QP_MOVED) {
		r.kind = VRB_TRACE_STATE;
		r.op = (uint8_t)why->val[0];
		r.code = (uint8_t)why->val[1];
	}
	vrb_trace_put(e->trace, &r);
}

/* ---- posts */

void vrb_trace_post(struct vrb_engine *e, const struct vrb_hqp *q, uint32_t n)
{
	const struct vrb_qp *c = &q->core;

	for (uint32_t i = c->sq.tail; i != c->sq.tail + n; i++) {
		const struct vrb_swqe *w = vrb_whose_entry(c, i);
		struct vrb_trace_rec r = record(VRB_TRACE_POST, c->qpn);

		name_send(&r, c, i);
		r.op = w->op;
		r.len = w->len;
		r.flags |= w->flags & VRB_WRF_SIGNALED ? VRB_TRACE_SIGNALED : 0;
		vrb_trace_put(e->trace, &r);
	}
}

static void post_recv(struct vrb_engine *e, const struct vrb_wq *wq, uint32_t i, vrb_qpn qpn)
{
	const struct vrb_rwqe *w = vrb_wq_entry(wq, i);
	struct vrb_trace_rec r = record(VRB_TRACE_POST, qpn);

	r.index = i;
	r.wr_id = w->wr_id;
	r.len = w->len;
	r.flags = VRB_TRACE_HAS_WR | VRB_TRACE_RECV;
	if (!qpn) {
		r.flags |= VRB_TRACE_SHARED;
		r.index = VRB_TRACE_NO_INDEX;
	}
	vrb_trace_put(e->trace, &r);
}

void vrb_trace_post_recv(struct vrb_engine *e, const struct vrb_hqp *q, uint32_t n)
{
	const struct vrb_wq *wq = &q->core.rq;

	for (uint32_t i = wq->tail; i != wq->tail + n; i++)
		post_recv(e, wq, i, q->core.qpn);
}

void vrb_trace_post_srq(struct vrb_engine *e, const struct vrb_hsrq *s, uint32_t from)
{
	for (uint32_t i = from; i != s->core.wq.tail; i++)
		post_recv(e, &s->core.wq, i, 0);
}

/* ---- packets out */

static uint32_t started_end(const struct vrb_qp *c)
{
	return c->rewound ? c->sq_started : c->sq_send + (c->send_off > 0);
}

void vrb_trace_before_request(struct vrb_engine *e, const struct vrb_hqp *q)
{
	const struct vrb_qp *c = &q->core;

	e->trace->fetched_at = vrb_clock_now();
	e->trace->fetch_from = started_end(c);
	e->trace->sent = c->rewound ? c->high_psn : c->next_psn;
}

static void fetched(struct vrb_engine *e, const struct vrb_qp *c)
{
	uint32_t end = started_end(c);

	/* looked at, and found to be bad */
	if (c->failing && c->fail_at == end && end != c->sq.tail)
		end++;
	if ((int32_t)(end - e->trace->fetch_from) <= 0)
		return;
	for (uint32_t i = e->trace->fetch_from; i != end; i++) {
		struct vrb_trace_rec r = record(VRB_TRACE_FETCH, c->qpn);

		r.time_ns = e->trace->fetched_at;
		name_send(&r, c, i);
		vrb_trace_put(e->trace, &r);
	}
}

static uint8_t link_of(const struct vrb_engine *e, const struct vrb_hqp *q, bool by_shm)
{
	if (by_shm)
		return VRB_TRACE_SHM;
	if (e->tx.av ? e->tx.av->route == VRB_ROUTE_WIRE : q->wire.addr != NULL)
		return VRB_TRACE_WIRE;
	return 0;
}

static struct vrb_trace_rec packet(enum vrb_trace_kind kind, const struct vrb_qp *c,
				   const struct vrb_pkt *pkt)
{
	struct vrb_trace_rec r = record(kind, c->qpn);

	r.op = pkt->op.v;
	r.len = pkt->len;
	r.psn = pkt->psn.v;
	r.arg = pkt->dqpn;
	r.code = vrb_op_has(pkt->op, VRB_OPF_AETH) ? pkt->syndrome : 0;
	return r;
}

void vrb_trace_request(struct vrb_engine *e, const struct vrb_hqp *q, bool made, bool by_shm)
{
	const struct vrb_qp *c = &q->core;
	struct vrb_trace_rec r;
	uint32_t index;

	fetched(e, c);
	if (!made)
		return;
	r = packet(VRB_TRACE_SENT, c, &e->tx.pkt);
	if (vrb_whose_made(c, e->tx.pkt.psn, &index))
		name_send(&r, c, index);
	r.flags |= link_of(e, q, by_shm);
	if (vrb_psn_diff(e->tx.pkt.psn, e->trace->sent) < 0)
		r.flags |= VRB_TRACE_AGAIN;
	vrb_trace_put(e->trace, &r);
}

void vrb_trace_answer(struct vrb_engine *e, const struct vrb_hqp *q, bool by_shm)
{
	struct vrb_trace_rec r = packet(VRB_TRACE_SENT, &q->core, &e->tx.pkt);

	r.flags |= link_of(e, q, by_shm);
	vrb_trace_put(e->trace, &r);
}

void vrb_trace_ack_along(struct vrb_engine *e, const struct vrb_hqp *q, struct vrb_psn psn)
{
	struct vrb_trace_rec r = record(VRB_TRACE_SENT, q->core.qpn);

	r.op = vrb_opcode(VRB_TP_RC, VRB_OP_ACK).v;
	r.psn = psn.v;
	r.arg = q->core.dqpn;
	r.code = VRB_AETH_ACK | VRB_AETH_CREDITS_UNLIMITED;
	r.flags = VRB_TRACE_SHM;
	vrb_trace_put(e->trace, &r);
}

/* ---- packets in */

void vrb_trace_before_packet(struct vrb_engine *e, const struct vrb_hqp *q,
			     const struct vrb_pkt *pkt)
{
	const struct vrb_qp *c = &q->core;
	struct vrb_trace_rec r = packet(VRB_TRACE_GOT, c, pkt);
	const struct vrb_rwqe *w;
	uint32_t index;

	e->trace->una = c->sq_una;
	e->trace->una_end = started_end(c);
	if (c->type != VRB_QPT_UD)
		r.flags = q->wire.addr ? VRB_TRACE_WIRE : VRB_TRACE_SHM;
	if (vrb_op_has(pkt->op, VRB_OPF_RESPONSE)) {
		if (vrb_whose_asked(c, pkt->psn, &index))
			name_send(&r, c, index);
	} else {
		w = vrb_whose_taken(c, pkt, &index);
		if (w)
			name_recv(&r, c, w, index);
	}
	vrb_trace_put(e->trace, &r);
}

/* Entries that have ended otherwise (flushed) lie behind what the packet answers for, and local
 * ones have no answer. */
void vrb_trace_packet(struct vrb_engine *e, const struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	const struct vrb_qp *c = &q->core;
	struct vrb_psn limit = vrb_pkt_is_nak(pkt) ? vrb_psn_sub(pkt->psn, 1) : pkt->psn;

	if (!vrb_op_has(pkt->op, VRB_OPF_RESPONSE))
		return;
	for (uint32_t i = e->trace->una; i != c->sq_una && i != e->trace->una_end; i++) {
		const struct vrb_swqe *w = vrb_whose_entry(c, i);
		struct vrb_trace_rec r = record(VRB_TRACE_ACK, c->qpn);

		if (w->op == VRB_WR_LOCAL_INV || w->op == VRB_WR_BIND_MW)
			continue;
		if (vrb_psn_diff(w->last, limit) > 0)
			return;
		name_send(&r, c, i);
		vrb_trace_put(e->trace, &r);
	}
}

/* ---- completions */

static void completion(struct vrb_engine *e, enum vrb_trace_kind kind, const struct vrb_cqe *c)
{
	struct vrb_trace_rec r = record(kind, c->wc.qp_num);
	bool shared = !c->is_send && c->qp->srq;

	r.wr_id = c->wc.wr_id;
	r.op = (uint8_t)c->wc.opcode;
	r.code = (uint8_t)c->wc.status;
	r.len = c->wc.status == VRB_WC_SUCCESS ? c->wc.byte_len : 0;
	r.flags = VRB_TRACE_HAS_WR;
	if (!c->is_send)
		r.flags |= VRB_TRACE_RECV | (shared ? VRB_TRACE_SHARED : 0);
	r.index = shared ? VRB_TRACE_NO_INDEX : c->sq_free - 1;
	vrb_trace_put(e->trace, &r);
}

void vrb_trace_cq(struct vrb_engine *e, struct vrb_hcq *cq)
{
	struct vrb_cq *c = &cq->core;

	/* with IGNORE_OVERRUN some may be gone */
	if (c->tail - c->told_tail > c->tail - c->head)
		c->told_tail = c->head;
	for (; c->told_tail != c->tail; c->told_tail++) {
		struct vrb_cqe *one = &c->ring[c->told_tail & c->mask];

		/* receives of a queue pair end in order; the field has no other use for them */
		if (!one->is_send && !one->qp->srq) {
			struct vrb_hqp *q = vrb_container_of(one->qp, struct vrb_hqp, core);

			one->sq_free = ++q->traced_recvs;
		}
		completion(e, VRB_TRACE_CQE, one);
	}
}

void vrb_trace_poll(struct vrb_engine *e, const struct vrb_hcq *cq, uint32_t from, uint32_t n)
{
	const struct vrb_cq *c = &cq->core;

	for (uint32_t i = from; i != from + n; i++)
		completion(e, VRB_TRACE_POLL, &c->ring[i & c->mask]);
}
