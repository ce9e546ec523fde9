/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold around each packet: a queue pair that no good packet names, now or when it was
 * kept to wait (hca/wire_keep.c), is the same byte for byte; in the others states go only to ERR,
 * PSNs only forward and no further than what was sent (requester) or came (responder), and indices
 * stay in their order.
 */
#include "fuzz/wire_kit.h"

#include <string.h>

#include "core/internal.h"

static struct vrb_qp before[WK_N_QPS];

/* Its neighbours on the engine's lists come and go. */
static void copy(struct vrb_qp *to, const struct vrb_qp *from)
{
	*to = *from;
	memset(&to->timer_node, 0, sizeof(to->timer_node));
	memset(&to->ack_node, 0, sizeof(to->ack_node));
	memset(&to->active_node, 0, sizeof(to->active_node));
}

static void check_order(const struct vrb_qp *q)
{
	uint32_t n_pending = 0, n_unanswered = 0;

	FZ_CHECK(q->sq_una - q->sq_free <= q->sq.cap && q->sq.tail - q->sq_free <= q->sq.cap);
	FZ_CHECK(q->sq_send - q->sq_una <= q->sq.cap && q->sq.tail - q->sq_send <= q->sq.cap);
	FZ_CHECK(q->rq.tail - q->rq.head <= q->rq.cap);
	FZ_CHECK(vrb_psn_dist(q->next_psn, q->una_psn) <=
		 VRB_WINDOW_CLAMP + VRB_PSN_WINDOW_MAX / 2);
	FZ_CHECK(q->retry_left <= q->attr.retry_cnt && q->rnr_left <= q->attr.rnr_retry);
	FZ_CHECK(q->rd_n <= vrb_qp_rd_max(q));
	for (uint32_t i = q->rd_tail - q->rd_n; i != q->rd_tail; i++) {
		const struct vrb_rd_res *r = vrb_qp_rd((struct vrb_qp *)q, i);

		FZ_CHECK(!r->pending || (int32_t)(i - q->rd_next) >= 0);
		n_pending += r->pending;
		n_unanswered += !r->done;
	}
	FZ_CHECK(q->n_rd_unanswered == n_unanswered);
	FZ_CHECK(q->n_rd_pending == n_pending);
	FZ_CHECK(q->n_rd_out <= q->attr.max_rd_atomic);
	FZ_CHECK(q->state != VRB_QPS_RTS || !q->rewound ||
		 vrb_psn_dist(q->next_psn, q->una_psn) <= vrb_psn_dist(q->high_psn, q->una_psn));
}

/* What no packet may touch. */
static void check_fixed(const struct vrb_qp *old, const struct vrb_qp *q)
{
	struct vrb_qp_attr a = old->attr;

	FZ_CHECK(q->qpn == old->qpn && q->dqpn == old->dqpn && q->type == old->type);
	FZ_CHECK(q->pd == old->pd && q->access == old->access && q->mtu == old->mtu);
	a.sq_draining = q->attr.sq_draining; /* the end of it comes with an ACK */
	FZ_CHECK(!memcmp(&q->attr, &a, sizeof(a)));
	FZ_CHECK(q->sq.tail == old->sq.tail && q->rq.tail == old->rq.tail);
	FZ_CHECK(q->sq.ring == old->sq.ring && q->rq.ring == old->rq.ring);
	FZ_CHECK(q->timeout_ns == old->timeout_ns && q->srq == old->srq);
}

static void check_steps(const struct vrb_qp *old, const struct vrb_qp *q, uint32_t n)
{
	uint32_t sent = vrb_psn_dist(vrb_qp_sent(old), old->una_psn);

	FZ_CHECK(q->state == old->state || q->state == VRB_QPS_ERR);
	if (old->state == VRB_QPS_ERR || old->state < VRB_QPS_RTR) {
		FZ_CHECK(q->state == old->state);
		FZ_CHECK(q->sq_una == old->sq_una && q->rq.head == old->rq.head);
		FZ_CHECK(vrb_psn_eq(q->epsn, old->epsn) && vrb_psn_eq(q->una_psn, old->una_psn));
		return;
	}
	if (q->state == VRB_QPS_ERR)
		return; /* all flushed */
	FZ_CHECK(q->rq.head - old->rq.head <= n);
	FZ_CHECK(q->sq_una - old->sq_una <= vrb_qp_started_end(old) - old->sq_una);
	if (q->type != VRB_QPT_RC)
		return;
	FZ_CHECK(vrb_psn_dist(q->una_psn, old->una_psn) <= sent);
	FZ_CHECK(vrb_psn_dist(vrb_qp_sent(q), q->una_psn) <= sent);
	FZ_CHECK(n != 0 || vrb_psn_eq(q->epsn, old->epsn));
	/* a READ takes the PSNs of its answer: 2^31 bytes at most */
	FZ_CHECK(vrb_psn_dist(q->epsn, old->epsn) <= (uint64_t)n * vrb_n_packets(WK_AREA, q->mtu));
}

void wk_look(uint32_t named, uint32_t n_packets)
{
	struct vrb_engine *e = wk_engine();
	uint32_t refs = 1; /* the address handle's */
	uint32_t n_kept[WK_N_QPS];
	struct vrb_qp now;

	named |= wk.held;
	n_packets += wk.n_held;
	wk.held = wk.n_held = 0;
	for (uint32_t i = 0; i < WK_N_QPS; i++) {
		if (!wk.qp[i])
			continue;
		n_kept[i] = wk.qp[i]->kept.n;
		copy(&before[i], &wk.qp[i]->core);
	}
	vrb_engine_lock(e);
	while (vrb_wire_drain(e, wk.now)) /* a look is bounded: all of them */
		;
	vrb_engine_unlock(e);
	for (uint32_t i = 0; i < WK_N_QPS; i++) {
		if (!wk.qp[i])
			continue;
		copy(&now, &wk.qp[i]->core);
		if (!(named & 1u << i) && !n_kept[i])
			FZ_CHECK(!memcmp(&now, &before[i], sizeof(now)));
		check_fixed(&before[i], &now);
		check_steps(&before[i], &now, n_packets + n_kept[i]);
		check_order(&now);
		refs += wk.qp[i]->wire.addr != NULL;
	}
	for (uint32_t i = 0; i < e->wire->n; i++) {
		FZ_CHECK(e->wire->addr[i].refs == 0 || e->wire->addr[i].refs == refs);
		if (e->wire->addr[i].is_waiting) {
			wk.held = named;
			wk.n_held = n_packets;
		}
	}
	wk_check_memory();
}

void wk_turn(void)
{
	struct vrb_engine *e = wk_engine();

	vrb_engine_lock(e);
	vrb_engine_turn(e, wk.now);
	vrb_engine_unlock(e);
	for (uint32_t i = 0; i < WK_N_QPS; i++)
		if (wk.qp[i])
			check_order(&wk.qp[i]->core);
	wk_check_memory();
}
