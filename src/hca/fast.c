/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight line of a small SEND between two processes: no effects, no header values, no clock.
 * Whatever core/qp_fast.h does not take is left in place for the full step (in.c); order on
 * the ring keeps the two in order.
 */
#include "hca/data.h"
#include "hca/direct.h"

#include "core/qp_fast.h"
#include "hca/fast.h"

#define OP_SEND_ONLY (VRB_TP_RC | VRB_OP_SEND_ONLY)
#define OP_ACK	     (VRB_TP_RC | VRB_OP_ACK)
#define ACK_EVERY    32u /* unsignaled messages between two that ask for an acknowledgement */

/* Copies few bytes with overlapping fixed-size moves. */
static inline void copy_small(void *dst, const void *src, uint32_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (n >= 16) {
		uint32_t i = 0;

		for (; i + 16 <= n; i += 16)
			memcpy(d + i, s + i, 16);
		memcpy(d + n - 16, s + n - 16, 16);
	} else if (n >= 8) {
		uint64_t a, b;

		memcpy(&a, s, 8);
		memcpy(&b, s + n - 8, 8);
		memcpy(d, &a, 8);
		memcpy(d + n - 8, &b, 8);
	} else if (n >= 4) {
		uint32_t a, b;

		memcpy(&a, s, 4);
		memcpy(&b, s + n - 4, 4);
		memcpy(d, &a, 4);
		memcpy(d + n - 4, &b, 4);
	} else {
		for (uint32_t i = 0; i < n; i++)
			d[i] = s[i];
	}
}

bool vrb_hqp_fast_post(struct vrb_hqp *q, struct vrb_swqe *w, bool hold)
{
	struct vrb_engine *e = q->e;
	struct vrb_qp *c = &q->core;
	struct vrb_peer *p = q->peer;
	struct vrb_shm_line *l;
	uint32_t at = 0, end = 0, ack = 0;
	uint8_t flags = 0;
	const void *src;
	uint64_t word;

	if (vrb_unlikely(!p || !p->tx_open || q->on_active || q->direct_n ||
			 !vrb_shm_line_room(&p->tx, VRB_SHM_KEEP)))
		return false;
	if (vrb_unlikely(w->len > VRB_SHM_SLOT)) {
		at = vrb_shm_data_alloc(&p->tx, w->len, &end);
		if (vrb_unlikely(at == UINT32_MAX))
			return false;
	}
	if (!vrb_qp_fast_send(c, w, vrb_engine_timer_base(e), &src))
		return false;
	/* Nobody waits for an unsignaled one: its acknowledgement can come with a later one's. */
	if (w->flags & VRB_WRF_SIGNALED || w->first.v % ACK_EVERY == 0)
		flags |= VRB_SHM_ACKREQ;
	if (w->flags & VRB_WRF_SOLICITED)
		flags |= VRB_SHM_SE;
	if (c->ack_pending && !c->resp_pending) {
		flags |= VRB_SHM_ACK;
		ack = c->ack_psn.v;
		c->ack_pending = false;
		q->acks_owed = 0;
		q->acked = c->ack_psn;
		vrb_engine_owes_none(e, q);
	}
	l = &p->tx.m.line[p->tx.head % VRB_SHM_LINES];
	if (vrb_likely(w->len <= VRB_SHM_BODY)) {
		copy_small(l->body, src, w->len);
		l->ack = ack | w->len << 24;
	} else if (vrb_likely(w->len <= VRB_SHM_SLOT)) {
		copy_small(vrb_shm_slot(&p->tx.m, p->tx.head), src, w->len);
		l->ack = ack | (w->len - 1) << 24;
		flags |= VRB_SHM_BESIDE;
	} else {
		memcpy(p->tx.m.data + at, src, w->len);
		memcpy(l->body, &end, 4);
		memcpy(l->body + 4, &w->len, 4);
		l->ack = ack;
		flags |= VRB_SHM_DATA_REF;
		p->tx.data_head = end;
	}
	word = vrb_shm_word(p->tx.head, OP_SEND_ONLY, (uint16_t)c->dqpn, w->first, flags);
	if (hold) {
		e->held = l;
		e->held_word = word;
	} else {
		/* pairs with the acquire in vrb_shm_peek and take_line */
		atomic_store_explicit(&l->word, word, memory_order_release);
	}
	p->tx.head++;
	vrb_engine_pushed(e, p);
	q->count.tx_packets++;
	q->count.tx_bytes += w->len;
	if (vrb_unlikely(!q->on_timers))
		vrb_engine_timer(e, q);
	return true;
}

/* The payload of a line by reference, bounded as in link/shm.c; NULL sends the frame to the full
 * step. */
static inline const uint8_t *data_of(const struct vrb_shm_rx *rx, const struct vrb_shm_line *l,
				     uint32_t *len, uint32_t *end)
{
	uint32_t start, e, n;

	memcpy(&e, l->body, 4);
	memcpy(&n, l->body + 4, 4);
	VRB_SHM_ONCE(e);
	VRB_SHM_ONCE(n);
	*end = e;
	*len = n;
	if (n == 0 || n > VRB_SHM_FRAME_MAX || e % 64)
		return NULL;
	start = (e - ((n + 63) & ~63u)) % VRB_SHM_DATA;
	if (start + n > VRB_SHM_DATA || e - rx->data_tail > VRB_SHM_DATA)
		return NULL;
	return rx->m.data + start;
}

/* A plain acknowledgement: syndrome in front of the body. */
static inline bool take_ack(struct vrb_engine *e, struct vrb_peer *p, struct vrb_hqp *q,
			    uint64_t word)
{
	const struct vrb_shm_line *l = &p->rx.m.line[p->rx.tail % VRB_SHM_LINES];

	if (l->body[0] != (VRB_AETH_ACK | VRB_AETH_CREDITS_UNLIMITED) || q->on_active ||
	    !vrb_qp_fast_ack(&q->core, vrb_psn((uint32_t)(word >> 32)), vrb_engine_timer_base(e)))
		return false;
	q->count.rx_packets++;
	vrb_shm_pop(&p->rx, false, 0);
	if (vrb_unlikely(vrb_shm_publish_due(&p->rx)) && vrb_shm_publish(&p->rx))
		vrb_peer_wake(p);
	return true;
}

/* One waiting line: true when it was a plain SEND and has been taken. */
static inline bool take_line(struct vrb_engine *e, struct vrb_peer *p, uint64_t word)
{
	struct vrb_shm_line *l = &p->rx.m.line[p->rx.tail % VRB_SHM_LINES];
	uint8_t flags = (uint8_t)(word >> 56);
	uint32_t low = *(volatile uint32_t *)&l->ack, len = low >> 24, end = 0;
	struct vrb_hqp *q = e->qp[(uint16_t)(word >> 16)];
	const uint8_t *src = l->body;
	struct vrb_qp *c;
	void *dst;

	if (vrb_unlikely(!q || q->peer != p))
		return false;
	if (vrb_unlikely((uint8_t)(word >> 8) != OP_SEND_ONLY))
		return (uint8_t)(word >> 8) == OP_ACK && take_ack(e, p, q, word);
	c = &q->core;
	if (flags & VRB_SHM_BESIDE) {
		if (vrb_unlikely(flags & VRB_SHM_DATA_REF))
			return false;
		src = vrb_shm_slot(&p->rx.m, p->rx.tail);
		len++;
	} else if (flags & VRB_SHM_DATA_REF) {
		src = data_of(&p->rx, l, &len, &end);
		if (vrb_unlikely(!src))
			return false;
	} else if (vrb_unlikely(len > VRB_SHM_BODY)) {
		return false;
	}
	dst = vrb_qp_fast_recv(c, (uint32_t)(word >> 32) & VRB_PSN_MASK, len);
	if (vrb_unlikely(!dst))
		return false;
	if (flags & VRB_SHM_ACK && !vrb_qp_fast_ack(c, vrb_psn(low), vrb_engine_timer_base(e)))
		return false;
	/* The acknowledgement may have taken the last free place of a CQ that both queues share. */
	if (vrb_unlikely(!vrb_cq_fast_slot(c->rcq)))
		return false;
	if (vrb_likely(len <= VRB_SHM_SLOT))
		copy_small(dst, src, len);
	else
		memcpy(dst, src, len);
	vrb_qp_fast_recv_done(c, len, true);
	q->count.rx_packets++;
	q->count.rx_bytes += len;
	vrb_shm_pop(&p->rx, flags & VRB_SHM_DATA_REF, end);
	vrb_engine_owes(e, q, flags & VRB_SHM_ACKREQ);
	if (vrb_unlikely(++q->acks_owed >= VRB_ACK_BATCH))
		vrb_engine_ack_now(e, q);
	if (vrb_unlikely(vrb_shm_publish_due(&p->rx)) && vrb_shm_publish(&p->rx))
		vrb_peer_wake(p);
	return true;
}

bool vrb_engine_fast_drain(struct vrb_engine *e)
{
	uint32_t n = atomic_load_explicit(&e->n_hot, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		struct vrb_peer *p = atomic_load_explicit(&e->hot[i], memory_order_relaxed);

		for (uint32_t k = 0; k < VRB_TURN_FRAMES; k++) {
			uint64_t w =
				atomic_load_explicit(&p->rx.m.line[p->rx.tail % VRB_SHM_LINES].word,
						     memory_order_acquire);

			if ((uint8_t)w != vrb_shm_lap(p->rx.tail))
				break;
			if (!take_line(e, p, w))
				return false;
		}
	}
	return vrb_list_empty(&e->active) && !e->n_stalled;
}
