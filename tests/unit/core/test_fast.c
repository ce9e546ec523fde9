/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight line equals the full step: two kits see the same random events; one takes the
 * straight line whenever it may, the other never. After every event their states must be equal:
 * the queue pair, both CQs, the memory, and what was sent.
 */
#include "core_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/qp_fast.h"

#define RUNS  400u
#define STEPS 400u

struct pair {
	struct kit *fast, *full;
	uint32_t rnd;
	uint32_t n_fast[3];
};

static uint32_t next(struct pair *p, uint32_t n)
{
	p->rnd = p->rnd * 1664525u + 1013904223u;
	return (p->rnd >> 8) % n;
}

/* State compared field by field where pointers into the kit differ. */
static void same_qp(const struct vrb_qp *a, const struct vrb_qp *b)
{
#define EQ(f) assert_int_equal(a->f, b->f)
	EQ(state);
	EQ(slow_tx);
	EQ(slow_rx);
	EQ(ack_pending);
	EQ(resp_pending);
	EQ(next_psn.v);
	EQ(una_psn.v);
	EQ(epsn.v);
	EQ(ack_psn.v);
	EQ(msn);
	EQ(sq_free);
	EQ(sq_una);
	EQ(sq_send);
	EQ(sq.tail);
	EQ(rq.head);
	EQ(rq.tail);
	EQ(send_off);
	EQ(n_rd_out);
	EQ(retry_left);
	EQ(rnr_left);
	EQ(rnr_wait);
	EQ(rewound);
	EQ(resend_guard);
	EQ(failing);
	EQ(ack_run);
	EQ(ack_deadline);
	EQ(rnr_deadline);
	EQ(rx_seq);
	EQ(nak_sent);
	EQ(nak_syndrome);
#undef EQ
}

static void same_cq(const struct vrb_cq *a, const struct vrb_cq *b)
{
	assert_int_equal(a->head, b->head);
	assert_int_equal(a->tail, b->tail);
	assert_int_equal(a->armed, b->armed);
	assert_int_equal(a->n_pushed, b->n_pushed);
	for (uint32_t i = a->head; i != a->tail; i++) {
		const struct vrb_cqe *x = &a->ring[i & a->mask], *y = &b->ring[i & b->mask];

		assert_memory_equal(&x->wc, &y->wc, sizeof(x->wc));
		assert_int_equal(x->is_send, y->is_send);
		if (x->is_send)
			assert_int_equal(x->sq_free, y->sq_free);
	}
}

static void same(struct pair *p)
{
	same_qp(&p->fast->qp, &p->full->qp);
	same_cq(&p->fast->scq, &p->full->scq);
	same_cq(&p->fast->rcq, &p->full->rcq);
	if (next(p, 32) == 0)
		assert_memory_equal(p->fast->mem, p->full->mem, KIT_MEM);
}

static void fill(struct kit *k, struct vrb_swqe *w, uint32_t kind, uint32_t len, uint32_t flags)
{
	struct vrb_sge s = SGE(k, 128 * (kind % 7), len);

	*w = (struct vrb_swqe){
		.wr_id = kind, .op = VRB_WR_SEND, .flags = (uint8_t)flags, .len = len, .n_sge = 1};
	w->sge[0] = s;
	if (kind == 1)
		w->op = VRB_WR_WRITE;
	if (kind == 2)
		w->op = VRB_WR_READ;
	if (kind == 3) {
		w->flags |= VRB_WRF_INLINE;
		w->n_sge = 0;
		memset(w->data, (int)len, len < 16 ? len : 16);
	}
}

/* Posts one request; the packets that the two make must be equal. */
static void do_post(struct pair *p)
{
	uint32_t kind = next(p, 20), flags = next(p, 4), len = next(p, kind == 4 ? 600 : 16);
	struct kit *k = p->fast, *l = p->full;
	struct vrb_swqe *w = vrb_wq_entry(&k->qp.sq, k->qp.sq.tail);
	const void *src = NULL;

	if (vrb_qp_sq_used(&k->qp) == KIT_SQ)
		return;
	fill(k, w, kind, len, flags);
	fill(l, vrb_wq_entry(&l->qp.sq, l->qp.sq.tail), kind, len, flags);
	vrb_qp_post(&l->qp, 1, &l->fx);
	if (!vrb_qp_fast_send(&k->qp, w, k->now, &src)) {
		vrb_qp_post(&k->qp, 1, &k->fx);
		return;
	}
	p->n_fast[0]++;
	want(l, REQ, P(VRB_OP_SEND_ONLY, w->first.v, .len = len, .flags = VRB_PKT_ACKREQ));
	want_payload(l, src, len);
}

static bool do_poll_request(struct pair *p)
{
	bool a = vrb_qp_poll_request(&p->fast->qp, p->fast->now, &p->fast->tx, &p->fast->fx);
	bool b = vrb_qp_poll_request(&p->full->qp, p->full->now, &p->full->tx, &p->full->fx);

	assert_int_equal(a, b);
	if (a) {
		assert_int_equal(p->fast->tx.pkt.op.v, p->full->tx.pkt.op.v);
		assert_int_equal(p->fast->tx.pkt.psn.v, p->full->tx.pkt.psn.v);
	}
	vrb_fx_reset(&p->fast->fx);
	vrb_fx_reset(&p->full->fx);
	return a;
}

static void do_post_recv(struct pair *p)
{
	uint32_t off = 4096 + 64 * next(p, 100), len = next(p, 2) ? 64 : 600,
		 n = 1 + next(p, 3) / 2;
	struct kit *both[2] = {p->fast, p->full};

	if (vrb_qp_rq_used(&p->fast->qp) == KIT_RQ)
		return;
	for (uint32_t i = 0; i < 2; i++) {
		struct vrb_sge s[2] = {SGE(both[i], off, len), SGE(both[i], off + 2048, len)};

		post_recv_sg(both[i], off, s, n);
	}
}

static void do_arrival(struct pair *p)
{
	struct kit *k = p->fast;
	uint32_t len = next(p, 60), ahead = next(p, 20) == 0, at = next(p, 1000);
	uint32_t psn = (k->qp.epsn.v + ahead - (next(p, 20) == 0)) & VRB_PSN_MASK;
	bool ackreq = next(p, 2);
	uint8_t op = next(p, 10) ? VRB_OP_SEND_ONLY : VRB_OP_SEND_FIRST;
	const struct vrb_rwqe *w = vrb_wq_entry(&k->qp.rq, k->qp.rq.head);
	void *dst;

	/* faults end a run, so they are rare */
	if (op == VRB_OP_SEND_FIRST && w->len < 600 && next(p, 50))
		op = VRB_OP_SEND_ONLY;
	if (k->qp.rx_seq && next(p, 50)) {
		op = VRB_OP_SEND_LAST;
		len++;
	} else if (op == VRB_OP_SEND_FIRST) {
		len = KIT_MTU;
	}
	give_at(p->full, P(op, psn, .len = len, .flags = ackreq ? VRB_PKT_ACKREQ : 0), at);
	dst = op == VRB_OP_SEND_ONLY ? vrb_qp_fast_recv(&k->qp, psn, len) : NULL;
	if (!dst) {
		give_at(k, P(op, psn, .len = len, .flags = ackreq ? VRB_PKT_ACKREQ : 0), at);
		return;
	}
	memcpy(dst, k->wire + at, len);
	vrb_qp_fast_recv_done(&k->qp, len, ackreq);
	p->n_fast[1]++;
}

/* What the peer may say next: an ACK, now and then a NAK or RNR NAK, or the answer to a READ. */
static void do_response(struct pair *p)
{
	struct kit *k = p->fast;
	const struct vrb_swqe *w = vrb_wq_entry(&k->qp.sq, k->qp.sq_una);
	uint32_t psn = (k->qp.una_psn.v + next(p, 6) - (next(p, 10) == 0)) & VRB_PSN_MASK;
	uint32_t what = next(p, 20);
	struct vrb_pkt pkt = *ACK(psn);

	if (k->qp.sq_una != k->qp.sq_send && w->op == VRB_WR_READ && what < 12)
		pkt = *P(VRB_OP_READ_RESP_ONLY, w->first.v, .len = w->len, .syndrome = 0x1f);
	else if (what == 0)
		pkt.syndrome = VRB_NAK_PSN_SEQ;
	else if (what == 1)
		pkt.syndrome = VRB_AETH_RNR | 5;
	give(p->full, &pkt);
	if (pkt.op.v == VRB_OP_ACK && pkt.syndrome == 0x1f &&
	    vrb_qp_fast_ack(&k->qp, pkt.psn, k->now)) {
		p->n_fast[2]++;
		return;
	}
	give(k, &pkt);
}

static void do_time(struct pair *p)
{
	vrb_ns dt = next(p, 50) ? next(p, 1000000) : 70 * VRB_NS_PER_MS;

	pass(p->fast, dt);
	pass(p->full, dt);
}

static void do_poll_response(struct pair *p)
{
	bool a = vrb_qp_poll_response(&p->fast->qp, p->fast->now, &p->fast->tx, &p->fast->fx);
	bool b = vrb_qp_poll_response(&p->full->qp, p->full->now, &p->full->tx, &p->full->fx);

	assert_int_equal(a, b);
	if (a)
		assert_memory_equal(&p->fast->tx.pkt, &p->full->tx.pkt, sizeof(struct vrb_pkt));
}

static void do_cq(struct pair *p)
{
	struct vrb_wc wc[8];
	uint32_t what = next(p, 20);

	for (uint32_t i = 0; i < 2; i++) {
		struct kit *k = i ? p->full : p->fast;

		if (what == 0)
			vrb_cq_arm(&k->rcq, true);
		if (what == 1)
			vrb_cq_arm(&k->scq, false);
		(void)vrb_cq_poll(&k->scq, 8, wc);
		(void)vrb_cq_poll(&k->rcq, 8, wc);
	}
}

static void step(struct pair *p)
{
	switch (next(p, 8)) {
	case 0:
		do_post(p);
		break;
	case 1:
	case 2:
		for (uint32_t n = next(p, 16); n > 0 && do_poll_request(p);)
			n--;
		do_response(p);
		break;
	case 3:
		do_post_recv(p);
		break;
	case 4:
		do_arrival(p);
		break;
	case 5:
		do_response(p);
		break;
	case 6:
		do_cq(p);
		do_poll_response(p);
		break;
	default:
		do_time(p);
		break;
	}
	same(p);
	kit_forget(p->fast);
	kit_forget(p->full);
}

static void test_straight_line_equals_full_step(void **state)
{
	struct pair p = {.rnd = 1};

	(void)state;
	for (uint32_t run = 0; run < RUNS; run++) {
		/* a small window and PSNs near the wrap */
		p.fast = kit(.window = 6, .sq_psn = 0xffffe0, .rq_psn = 0xfffff0, .rnr_retry = 7,
			     .retry = 7);
		p.full = kit(.window = 6, .sq_psn = 0xffffe0, .rq_psn = 0xfffff0, .rnr_retry = 7,
			     .retry = 7);
		for (uint32_t i = 0; i < STEPS && p.full->qp.state != VRB_QPS_ERR; i++)
			step(&p);
		kit_free(p.fast);
		kit_free(p.full);
	}
	print_message("straight line: %u sent, %u received, %u acknowledged\n", p.n_fast[0],
		      p.n_fast[1], p.n_fast[2]);
	assert_true(p.n_fast[0] > 500 && p.n_fast[1] > 500 && p.n_fast[2] > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_straight_line_equals_full_step),
	};

	return VRB_RUN_TESTS(tests);
}
