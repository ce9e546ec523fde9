/* SPDX-License-Identifier: BSD-2-Clause */
/* Loss on the way: probes, repeated NAKs, and the window (core/window.h). */
#include "core_kit.h"

#include "core/window.h"

#define A	   VRB_PKT_ACKREQ
#define SENT(p, n) P(VRB_OP_SEND_ONLY, p, .len = (n), .flags = A)
#define READ_AT(o) .flags = A, .rkey = 0xabcd00, .va = 0x10000 + (o) /* of post_op */
#define T14	   (4096ull << 14)
#define SILENCE	   (200 * VRB_NS_PER_US)
#define RTT	   (20 * VRB_NS_PER_US)

/* n messages of one packet are under way on a link that loses packets. */
static struct kit *lossy_sent(const struct kit_opts *o, uint32_t n)
{
	struct kit *k = kit_new(o);

	k->qp.probe_ns = SILENCE;
	k->qp.rtt_min_ns = RTT;
	for (uint32_t i = 0; i < n; i++) {
		post_op(k, i + 1, VRB_WR_SEND, 0, 8);
		want(k, REQ, SENT(100 + i, 8));
	}
	return k;
}
#define lossy(n, ...) lossy_sent(&(struct kit_opts){__VA_ARGS__}, n)

/* The oldest packet is sent again after a silence; the stream goes on where it was. */
static void test_probe(void **state)
{
	struct kit *k = lossy(3, 0);
	vrb_ns timeout = k->qp.ack_deadline;

	(void)state;
	assert_int_equal(vrb_qp_next_deadline(&k->qp), k->now + SILENCE);
	pass(k, SILENCE - 1);
	want_none(k, REQ);
	pass(k, 1);
	assert_true(vrb_qp_can_send(&k->qp, k->now));
	want(k, REQ, SENT(100, 8));
	want_none(k, REQ);
	post_op(k, 4, VRB_WR_SEND, 0, 8);
	want(k, REQ, SENT(103, 8));
	/* no retry was spent, and the ACK timer has not moved */
	assert_int_equal(k->qp.retry_left, 3);
	assert_int_equal(k->qp.ack_deadline, timeout);
	/* only the acknowledgement had been lost */
	give(k, ACK(103));
	for (uint32_t i = 1; i <= 4; i++)
		want_wc(k, i, VRB_WC_SUCCESS);
	want_none(k, REQ);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	want_quiet(k);
	kit_free(k);
}

/* The peer had waited for just this packet: what was sent behind it is gone. */
static void test_probe_finds_loss(void **state)
{
	struct kit *k = lossy(3, 0);

	(void)state;
	pass(k, SILENCE);
	want(k, REQ, SENT(100, 8));
	pass(k, RTT);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want(k, REQ, SENT(101, 8));
	want(k, REQ, SENT(102, 8));
	want_none(k, REQ);
	assert_int_equal(k->qp.retry_left, 3);
	give(k, ACK(102));
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_wc(k, 3, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

/* An answer sooner than a round trip is the late one to the packet itself: nothing is lost. */
static void test_probe_crosses_answer(void **state)
{
	struct kit *k = lossy(3, 0);

	(void)state;
	pass(k, SILENCE);
	want(k, REQ, SENT(100, 8));
	pass(k, RTT - 1);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_none(k, REQ);
	give(k, ACK(102));
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_wc(k, 3, VRB_WC_SUCCESS);
	want_none(k, REQ);
	kit_free(k);
}

/* A slow peer answers in its own time: nothing is sent again but the probe. */
static void test_probe_of_a_slow_peer(void **state)
{
	struct kit *k = lossy(4, 0);

	(void)state;
	pass(k, SILENCE);
	want(k, REQ, SENT(100, 8));
	give(k, ACK(101));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_wc(k, 2, VRB_WC_SUCCESS);
	want_none(k, REQ);
	give(k, ACK(103));
	want_wc(k, 3, VRB_WC_SUCCESS);
	want_wc(k, 4, VRB_WC_SUCCESS);
	want_none(k, REQ);
	kit_free(k);
}

/* The time between probes doubles with every second one, and a timeout still costs a retry. */
static void test_probes_are_bounded(void **state)
{
	struct kit *k = lossy(1, .retry = 1);
	vrb_ns start = k->now;
	uint32_t n = 0;

	(void)state;
	for (uint32_t timeouts = 0; timeouts < 2;) {
		vrb_ns next = vrb_qp_next_deadline(&k->qp);
		bool is_timeout = next == k->qp.ack_deadline;

		assert_true(next != VRB_NS_NEVER);
		pass(k, next - k->now);
		if (is_timeout && ++timeouts == 2)
			break;
		want(k, REQ, SENT(100, 8));
		want_none(k, REQ);
		n += !is_timeout;
	}
	/* twice the silences 1 1 2 2 4 4 ... that fit into the timeout */
	assert_in_range(n, 20, 36);
	assert_int_equal(k->now - start, 2 * T14);
	want_verdict(k, VRB_V_RETRY_EXC);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	kit_free(k);
}

static void test_no_probe_without_timeout(void **state)
{
	struct kit *k = lossy(1, .timeout = 255);

	(void)state;
	assert_int_equal(vrb_qp_next_deadline(&k->qp), VRB_NS_NEVER);
	kit_free(k);
}

/* A READ is asked for again from where its data ends. */
static void test_probe_of_a_read(void **state)
{
	struct kit *k = lossy(0, 0);

	(void)state;
	post_op(k, 1, VRB_WR_READ, 0, 3 * KIT_MTU);
	want(k, REQ, P(VRB_OP_READ_REQ, 100, READ_AT(0), .dma_len = 3 * KIT_MTU));
	post_op(k, 2, VRB_WR_FETCH_ADD, 1024, 8);
	want(k, REQ, P(VRB_OP_FETCH_ADD, 103, READ_AT(0)));
	give(k, P(VRB_OP_READ_RESP_FIRST, 100, .len = KIT_MTU, .syndrome = 0x1f));
	pass(k, SILENCE);
	want(k, REQ, P(VRB_OP_READ_REQ, 101, READ_AT(KIT_MTU), .dma_len = 2 * KIT_MTU));
	want_none(k, REQ);
	assert_int_equal(k->qp.n_rd_out, 2);
	give(k, P(VRB_OP_READ_RESP_FIRST, 101, .len = KIT_MTU, .syndrome = 0x1f));
	give(k, P(VRB_OP_READ_RESP_LAST, 102, .len = KIT_MTU, .syndrome = 0x1f));
	want_wc(k, 1, VRB_WC_SUCCESS);
	pass(k, SILENCE);
	want(k, REQ, P(VRB_OP_FETCH_ADD, 103, READ_AT(0)));
	give(k, P(VRB_OP_ATOMIC_ACK, 103, .syndrome = 0x1f));
	want_wc(k, 2, VRB_WC_SUCCESS);
	assert_int_equal(k->qp.n_rd_out, 0);
	want_quiet(k);
	kit_free(k);
}

/* The memory of a message that is under way has gone: no probe, and no error. */
static void test_no_probe_without_memory(void **state)
{
	struct kit *k = lossy(1, 0);

	(void)state;
	assert_true(vrb_mr_del(&k->keys, k->lkey));
	pass(k, SILENCE);
	want_none(k, REQ);
	give(k, ACK(100));
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_quiet(k);
	kit_free(k);
}

/* A NAK for what is being repeated is an echo until it can be the answer to the repetition. */
static void test_nak_again(void **state)
{
	struct kit *k = lossy(2, 0);
	vrb_ns deadline;

	(void)state;
	give(k, NAK(100, VRB_NAK_PSN_SEQ));
	assert_int_equal(k->qp.retry_left, 2);
	give(k, NAK(100, VRB_NAK_PSN_SEQ));
	want(k, REQ, SENT(100, 8));
	want(k, REQ, SENT(101, 8));
	deadline = k->qp.ack_deadline;
	pass(k, RTT - 1);
	give(k, NAK(100, VRB_NAK_PSN_SEQ));
	want_none(k, REQ);
	pass(k, 1);
	give(k, NAK(100, VRB_NAK_PSN_SEQ));
	want(k, REQ, SENT(100, 8));
	want(k, REQ, SENT(101, 8));
	want_none(k, REQ);
	/* it costs nothing, and gains no time */
	assert_int_equal(k->qp.retry_left, 2);
	assert_int_equal(k->qp.ack_deadline, deadline);
	kit_free(k);
}

/* A peer that refuses for ever is given up after retry_cnt + 1 timeouts all the same. */
static void test_naks_for_ever(void **state)
{
	struct kit *k = lossy(1, .retry = 2);
	vrb_ns start = k->now;

	(void)state;
	while (k->qp.state == VRB_QPS_RTS && k->now < 10 * T14) {
		pass(k, SILENCE / 2);
		if (k->qp.state == VRB_QPS_RTS && vrb_qp_can_send(&k->qp, k->now))
			want(k, REQ, SENT(100, 8));
		give(k, NAK(100, VRB_NAK_PSN_SEQ));
	}
	/* the first NAK takes one of the two tries */
	assert_in_range(k->now - start, 2 * T14, 2 * T14 + 3 * SILENCE);
	kit_forget(k);
	want_wc(k, 1, VRB_WC_RETRY_EXC_ERR);
	kit_free(k);
}

/* The responder says a gap again when the packet that showed it comes once more. */
static void test_gap_said_again(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_recv(k, 1, 0, 8);
	give(k, SENT(202, 8));
	want_verdict(k, VRB_V_NAK_SEQUENCE);
	want(k, RESP, NAK(200, VRB_NAK_PSN_SEQ));
	give(k, SENT(203, 8));
	want_verdict(k, VRB_V_DROP_PSN_AHEAD);
	give(k, SENT(201, 8));
	want_verdict(k, VRB_V_DROP_PSN_AHEAD);
	want_none(k, RESP);
	give(k, SENT(202, 8));
	want_verdict(k, VRB_V_NAK_SEQUENCE);
	want(k, RESP, NAK(200, VRB_NAK_PSN_SEQ));
	give(k, SENT(203, 8));
	want_verdict(k, VRB_V_DROP_PSN_AHEAD);
	want_none(k, RESP);
	kit_free(k);
}

/* Behind an RNR NAK no gap is said at all. */
static void test_no_gap_behind_rnr(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	give(k, SENT(200, 8));
	want_verdict(k, VRB_V_NAK_RNR);
	want(k, RESP, NAK(200, 0x20 | KIT_RNR));
	for (uint32_t i = 0; i < 3; i++) {
		give(k, SENT(201, 8));
		want_verdict(k, VRB_V_DROP_PSN_AHEAD);
	}
	want_none(k, RESP);
	kit_free(k);
}

/* ---- the window: the values it reads are set by hand */

struct win {
	struct vrb_window w;
	struct vrb_qp qp;
	vrb_ns now;
};

static struct win win(uint32_t max)
{
	struct win x = {.qp = {.una_psn = vrb_psn(0xfffff0), .next_psn = vrb_psn(0xfffff0)}};

	vrb_window_init(&x.w, &x.qp, max);
	return x;
}

/* A full window leaves and is acknowledged one round trip later. */
static void round_trip(struct win *x, vrb_ns rtt)
{
	struct vrb_pkt pkt = {.flags = A, .psn = x->qp.next_psn};

	assert_true(vrb_window_wants_time(&x->w, &pkt));
	vrb_window_on_sent(&x->w, &x->qp, &pkt, x->now);
	x->qp.next_psn = vrb_psn_add(x->qp.next_psn, x->qp.window_max);
	x->now += rtt;
	x->qp.una_psn = x->qp.next_psn;
	assert_false(vrb_window_on_step(&x->w, &x->qp, x->now));
}

static void rewind_to_una(struct win *x, uint32_t in_flight)
{
	x->qp.high_psn = vrb_psn_add(x->qp.una_psn, in_flight);
	x->qp.next_psn = x->qp.una_psn;
	x->qp.rewound = true;
}

static void test_growth(void **state)
{
	struct win x = win(100);

	(void)state;
	assert_int_equal(x.qp.window_max, VRB_WINDOW_FIRST);
	round_trip(&x, RTT);
	assert_int_equal(x.qp.window_max, 32);
	round_trip(&x, RTT);
	assert_int_equal(x.qp.window_max, 64); /* past the threshold of 50 */
	round_trip(&x, RTT);
	assert_int_equal(x.qp.window_max, 65);
	for (uint32_t i = 0; i < 200; i++)
		round_trip(&x, RTT);
	assert_int_equal(x.qp.window_max, 100);
}

static void test_no_growth_without_use(void **state)
{
	struct win x = win(100);

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		x.qp.next_psn = vrb_psn_add(x.qp.next_psn, 2);
		x.qp.una_psn = x.qp.next_psn;
		vrb_window_on_step(&x.w, &x.qp, x.now);
	}
	assert_int_equal(x.qp.window_max, VRB_WINDOW_FIRST);
}

/* Half the range of PSNs later a loss is still one. */
static void test_loss_after_long(void **state)
{
	struct win x = win(100);
	uint32_t size;

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		x.qp.una_psn = x.qp.next_psn = x.qp.high_psn = vrb_psn_add(x.qp.una_psn, 0x100000);
		vrb_window_on_step(&x.w, &x.qp, x.now);
	}
	size = x.qp.window_max;
	rewind_to_una(&x, 32);
	vrb_window_on_step(&x.w, &x.qp, x.now);
	assert_int_equal(x.qp.window_max, size / 2);
}

/* Halved once for a window, not once for each loss in it; an ACK timeout leaves the least. */
static void test_loss(void **state)
{
	struct win x = win(100);

	(void)state;
	round_trip(&x, RTT);
	rewind_to_una(&x, 32);
	assert_true(vrb_window_on_step(&x.w, &x.qp, x.now));
	assert_int_equal(x.qp.window_max, 16);
	assert_false(vrb_window_on_step(&x.w, &x.qp, x.now));
	x.qp.una_psn = vrb_psn_add(x.qp.una_psn, 10);
	x.qp.rewound = false;
	vrb_window_on_step(&x.w, &x.qp, x.now);
	rewind_to_una(&x, 22); /* the rest of the same window */
	assert_true(vrb_window_on_step(&x.w, &x.qp, x.now));
	assert_in_range(x.qp.window_max, 16, 17);
	x.qp.una_psn = x.qp.next_psn = x.qp.high_psn;
	x.qp.rewound = false;
	vrb_window_on_step(&x.w, &x.qp, x.now);
	for (uint32_t i = 0; i < 9; i++) {
		x.qp.n_timeouts++;
		rewind_to_una(&x, 4);
		vrb_window_on_step(&x.w, &x.qp, x.now);
		assert_int_equal(x.qp.window_max, VRB_WINDOW_MIN);
	}
}

static void test_round_trips(void **state)
{
	struct win x = win(100);
	struct vrb_pkt pkt = {.flags = A};
	vrb_ns before;

	(void)state;
	for (uint32_t i = 0; i < 50; i++)
		round_trip(&x, i == 7 ? RTT / 2 : RTT);
	assert_in_range(x.w.rtt, RTT - 100, RTT + 100);
	assert_int_equal(x.qp.rtt_min_ns, RTT / 2);
	assert_in_range(x.qp.probe_ns, RTT, RTT + 200 * VRB_NS_PER_US);
	/* Karn: what was repeated is not timed */
	pkt.psn = x.qp.next_psn;
	before = x.w.rtt;
	vrb_window_on_sent(&x.w, &x.qp, &pkt, x.now);
	x.qp.next_psn = vrb_psn_add(x.qp.next_psn, 1);
	rewind_to_una(&x, 1);
	vrb_window_on_step(&x.w, &x.qp, x.now);
	x.now += VRB_NS_PER_S;
	x.qp.rewound = false;
	x.qp.una_psn = x.qp.next_psn = x.qp.high_psn;
	vrb_window_on_step(&x.w, &x.qp, x.now);
	assert_int_equal(x.w.rtt, before);
	assert_true(vrb_window_wants_time(&x.w, &pkt));
}

/* A mark cuts once a round trip; rounds without one go back half the way each. */
static void test_marks(void **state)
{
	struct win x = win(64);
	uint32_t before, cut;

	(void)state;
	for (uint32_t i = 0; i < 60; i++)
		round_trip(&x, RTT);
	before = x.qp.window_max;
	assert_int_equal(before, 64);
	vrb_window_on_mark(&x.w, &x.qp);
	cut = x.qp.window_max;
	assert_in_range(cut, before / 2, before - 2); /* alpha has shrunk in the quiet rounds */
	vrb_window_on_mark(&x.w, &x.qp);
	assert_int_equal(x.qp.window_max, cut);
	round_trip(&x, RTT); /* the round with the mark ends */
	assert_int_equal(x.qp.window_max, cut);
	round_trip(&x, RTT);
	assert_in_range(x.qp.window_max, (cut + before) / 2 - 1, (cut + before) / 2);
	for (uint32_t i = 0; i < 4; i++)
		round_trip(&x, RTT);
	assert_in_range(x.qp.window_max, before - 1, before);
	/* marks in every round: alpha rises towards one, the window falls to the least */
	for (uint32_t i = 0; i < 60; i++) {
		vrb_window_on_mark(&x.w, &x.qp);
		round_trip(&x, RTT);
	}
	assert_int_equal(x.qp.window_max, VRB_WINDOW_MIN);
	assert_in_range(x.w.alpha, VRB_WINDOW_ALPHA_ONE * 9 / 10, VRB_WINDOW_ALPHA_ONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_probe_finds_loss),
		cmocka_unit_test(test_probe_crosses_answer),
		cmocka_unit_test(test_probe_of_a_slow_peer),
		cmocka_unit_test(test_probes_are_bounded),
		cmocka_unit_test(test_no_probe_without_timeout),
		cmocka_unit_test(test_probe_of_a_read),
		cmocka_unit_test(test_no_probe_without_memory),
		cmocka_unit_test(test_nak_again),
		cmocka_unit_test(test_naks_for_ever),
		cmocka_unit_test(test_gap_said_again),
		cmocka_unit_test(test_no_gap_behind_rnr),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_no_growth_without_use),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_loss_after_long),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_marks),
	};

	return VRB_RUN_TESTS(tests);
}
