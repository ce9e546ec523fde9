/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: order, arming, moderation, times, overrun, what polling releases. */
#include "core_kit.h"

#define A VRB_PKT_ACKREQ

static void push(struct kit *k, uint64_t wr_id, enum vrb_wc_status status, bool solicited)
{
	struct vrb_cqe c = {.qp = &k->qp, .wc = {.wr_id = wr_id, .status = status}};

	vrb_cq_push(&k->rcq, &c, solicited, &k->fx);
}

/* Whether a push notifies; takes it off the chain as a caller does. */
static bool notified(struct kit *k)
{
	bool yes = k->fx.notify != NULL;

	for (struct vrb_cq *cq = k->fx.notify; cq; cq = cq->notify_next)
		cq->due = 0;
	vrb_fx_reset(&k->fx);
	return yes;
}

static void test_order_and_wrap(void **state)
{
	struct kit *k = kit(0);
	struct vrb_wc wc[5];
	uint64_t next = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		push(k, 2 * i, VRB_WC_SUCCESS, false);
		push(k, 2 * i + 1, VRB_WC_SUCCESS, false);
		for (uint32_t n = vrb_cq_poll(&k->rcq, 2, wc), j = 0; j < n; j++)
			assert_int_equal(wc[j].wr_id, next++);
	}
	assert_int_equal(next, 2000);
	assert_int_equal(vrb_cq_poll(&k->rcq, 5, wc), 0);
	kit_free(k);
}

static void test_arm_is_one_shot(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	push(k, 1, VRB_WC_SUCCESS, true);
	vrb_cq_arm(&k->rcq, false);
	assert_false(notified(k)); /* what lies there already does not count */
	push(k, 2, VRB_WC_SUCCESS, false);
	assert_true(notified(k));
	push(k, 3, VRB_WC_SUCCESS, true);
	assert_false(notified(k));
	kit_free(k);
}

/* Completions behind the last event, or left lying at the last arm, are worth an event at once. */
static void test_arm_behind(void **state)
{
	struct kit *k = kit(0);
	struct vrb_wc wc[2];

	(void)state;
	push(k, 1, VRB_WC_SUCCESS, false);
	assert_false(vrb_cq_is_behind(&k->rcq)); /* there was no event yet */
	vrb_cq_arm(&k->rcq, false);
	push(k, 2, VRB_WC_SUCCESS, false);
	assert_true(notified(k));
	assert_true(vrb_cq_is_behind(&k->rcq)); /* 1 was left lying */
	assert_int_equal(vrb_cq_poll(&k->rcq, 2, wc), 2);
	assert_false(vrb_cq_is_behind(&k->rcq)); /* nothing waits */
	vrb_cq_arm(&k->rcq, false);
	push(k, 3, VRB_WC_SUCCESS, false);
	assert_true(notified(k));
	assert_false(vrb_cq_is_behind(&k->rcq)); /* 3 made the event, nothing came behind it */
	push(k, 4, VRB_WC_SUCCESS, false);
	assert_true(vrb_cq_is_behind(&k->rcq));
	kit_free(k);
}

static void test_arm_solicited(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	vrb_cq_arm(&k->rcq, true);
	push(k, 1, VRB_WC_SUCCESS, false);
	assert_false(notified(k));
	push(k, 2, VRB_WC_SUCCESS, true);
	assert_true(notified(k));
	vrb_cq_arm(&k->rcq, true);
	push(k, 3, VRB_WC_WR_FLUSH_ERR, false); /* any error counts */
	assert_true(notified(k));
	kit_free(k);
}

static void test_arm_upgrades_only(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	vrb_cq_arm(&k->rcq, false);
	vrb_cq_arm(&k->rcq, true);
	push(k, 1, VRB_WC_SUCCESS, false);
	assert_true(notified(k));
	vrb_cq_arm(&k->rcq, true);
	vrb_cq_arm(&k->rcq, false);
	push(k, 2, VRB_WC_SUCCESS, false);
	assert_true(notified(k));
	kit_free(k);
}

static void test_two_cqs_in_one_step(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_recv(k, 2, 0, 8);
	vrb_cq_arm(&k->scq, false);
	vrb_cq_arm(&k->rcq, true);
	kit_to(k, VRB_QPS_ERR);
	assert_int_equal(k->n_notified, 2);
	kit_free(k);
}

static void test_unsignaled_released_later(void **state)
{
	struct kit *k = kit(0);
	struct vrb_sge s = SGE(k, 0, 8);

	(void)state;
	post(k, (struct vrb_swqe){.op = VRB_WR_SEND}, &s, 1);
	post(k, (struct vrb_swqe){.op = VRB_WR_SEND}, &s, 1);
	post_op(k, 3, VRB_WR_SEND, 0, 8);
	post(k, (struct vrb_swqe){.op = VRB_WR_SEND}, &s, 1);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	give(k, ACK(103));
	assert_int_equal(vrb_qp_sq_used(&k->qp), 4);
	want_wc(k, 3, VRB_WC_SUCCESS);
	assert_int_equal(vrb_qp_sq_used(&k->qp), 1);
	kit_free(k);
}

static void test_overrun(void **state)
{
	struct kit *k = kit(.rcq_cap = 2);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		post_recv(k, i, 0, 8);
		give(k, P(VRB_OP_SEND_ONLY, 200 + i, .len = 8, .flags = A));
	}
	want_verdict(k, VRB_V_CQ_OVERRUN);
	assert_int_equal(k->last.val[0], 2);
	want_event(k, VRB_ASYNC_CQ_ERR);
	want_event(k, VRB_ASYNC_QP_FATAL);
	assert_int_equal(k->qp.state, VRB_QPS_ERR);
	want_recv(k, 0, VRB_WC_SUCCESS, 8);
	want_recv(k, 1, VRB_WC_SUCCESS, 8);
	want_quiet(k);
	push(k, 7, VRB_WC_SUCCESS, true); /* dead is dead */
	want_quiet(k);
	assert_int_equal(k->fx.n_event, 0);
	kit_free(k);
}

static void test_overrun_of_sends(void **state)
{
	struct kit *k = kit(.scq_cap = 1);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_op(k, 2, VRB_WR_SEND, 0, 8);
	post_recv(k, 9, 0, 8);
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	assert_true(vrb_qp_poll_request(&k->qp, k->now, &k->tx, &k->fx));
	give(k, ACK(101));
	want_verdict(k, VRB_V_CQ_OVERRUN);
	want_event(k, VRB_ASYNC_CQ_ERR);
	want_event(k, VRB_ASYNC_QP_FATAL);
	want_wc(k, 1, VRB_WC_SUCCESS);
	want_recv(k, 9, VRB_WC_WR_FLUSH_ERR, 0);
	want_quiet(k);
	kit_free(k);
}

/* Another QP of the CQ is failed by the caller. */
static void test_fail_from_outside(void **state)
{
	struct vrb_report why = {.verdict = VRB_V_CQ_OVERRUN, .qpn = KIT_QPN};
	struct kit *k = kit(0);

	(void)state;
	post_op(k, 1, VRB_WR_SEND, 0, 8);
	post_recv(k, 2, 0, 8);
	vrb_qp_fail(&k->qp, &why, &k->fx);
	vrb_qp_fail(&k->qp, &why, &k->fx); /* once */
	want_none(k, RESP);
	want_verdict(k, VRB_V_CQ_OVERRUN);
	want_event(k, VRB_ASYNC_QP_FATAL);
	want_wc(k, 1, VRB_WC_WR_FLUSH_ERR);
	want_recv(k, 2, VRB_WC_WR_FLUSH_ERR, 0);
	want_quiet(k);
	kit_free(k);
}

static void test_purge(void **state)
{
	struct kit *k = kit(0);
	struct vrb_qp other;
	struct vrb_cqe c = {.qp = &other};

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		push(k, i, VRB_WC_SUCCESS, false);
		c.wc.wr_id = 100 + i;
		vrb_cq_push(&k->rcq, &c, false, &k->fx);
	}
	vrb_qp_fini(&k->qp);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(kit_wc(&k->rcq).wr_id, 100 + i);
	want_no_wc(k);
	kit_free(k);
}

/* ---- moderation: due since the last call */

static uint8_t due(struct kit *k)
{
	uint8_t d = k->rcq.due;

	k->rcq.due = 0;
	vrb_fx_reset(&k->fx);
	return d;
}

static void arm_moderated(struct kit *k, uint32_t max, vrb_ns ns)
{
	vrb_cq_moderate(&k->rcq, max, ns, &k->fx);
	vrb_cq_arm(&k->rcq, false);
	due(k);
}

static void test_held_until_the_count(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	arm_moderated(k, 3, 1000);
	push(k, 1, VRB_WC_SUCCESS, false);
	assert_int_equal(due(k), VRB_CQ_DUE_TIMER); /* the time begins with the first */
	push(k, 2, VRB_WC_SUCCESS, false);
	assert_int_equal(due(k), 0);
	push(k, 3, VRB_WC_SUCCESS, false);
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT);
	push(k, 4, VRB_WC_SUCCESS, false); /* not armed any more */
	assert_int_equal(due(k), 0);
	vrb_cq_expire(&k->rcq, &k->fx); /* a timer that was on its way */
	assert_int_equal(due(k), 0);
	kit_free(k);
}

static void test_held_until_the_time(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	arm_moderated(k, 0, 1000); /* without a count */
	vrb_cq_expire(&k->rcq, &k->fx);
	assert_int_equal(due(k), 0); /* nothing came */
	push(k, 1, VRB_WC_SUCCESS, false);
	push(k, 2, VRB_WC_SUCCESS, false);
	assert_int_equal(due(k), VRB_CQ_DUE_TIMER);
	vrb_cq_expire(&k->rcq, &k->fx);
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT);
	assert_int_equal(k->rcq.armed, VRB_CQ_UNARMED);
	kit_free(k);
}

static void test_urgent_is_not_held(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	arm_moderated(k, 10, 1000);
	push(k, 1, VRB_WC_SUCCESS, true);
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT);
	arm_moderated(k, 10, 1000);
	push(k, 2, VRB_WC_SUCCESS, false);
	push(k, 3, VRB_WC_WR_FLUSH_ERR, false);
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT); /* no timer any more */
	vrb_cq_arm(&k->rcq, true);
	push(k, 4, VRB_WC_SUCCESS, true); /* armed for solicited ones: nothing to hold */
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT);
	kit_free(k);
}

static void test_moderate_anew(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	arm_moderated(k, 10, 1000);
	push(k, 1, VRB_WC_SUCCESS, false);
	due(k);
	vrb_cq_moderate(&k->rcq, 0, 0, &k->fx); /* what waits does not wait any longer */
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT);
	vrb_cq_arm(&k->rcq, false);
	push(k, 2, VRB_WC_SUCCESS, false);
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT);
	kit_free(k);
}

/* Completions that came between the event and the arm count for the next one. */
static void test_catch_up_is_moderated(void **state)
{
	struct kit *k = kit(0);

	(void)state;
	arm_moderated(k, 3, 1000);
	push(k, 1, VRB_WC_SUCCESS, true);
	push(k, 2, VRB_WC_SUCCESS, false);
	push(k, 3, VRB_WC_SUCCESS, false);
	due(k);
	assert_true(vrb_cq_is_behind(&k->rcq));
	vrb_cq_arm(&k->rcq, false);
	vrb_cq_catch_up(&k->rcq, &k->fx);
	assert_int_equal(due(k), VRB_CQ_DUE_TIMER); /* two */
	vrb_cq_arm(&k->rcq, false);
	vrb_cq_catch_up(&k->rcq, &k->fx);
	assert_int_equal(due(k), 0); /* counted already */
	push(k, 4, VRB_WC_SUCCESS, false);
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT);
	for (uint64_t i = 5; i < 8; i++)
		push(k, i, VRB_WC_SUCCESS, false);
	vrb_cq_arm(&k->rcq, false);
	vrb_cq_catch_up(&k->rcq, &k->fx);
	assert_int_equal(due(k), VRB_CQ_DUE_EVENT); /* three */
	kit_free(k);
}

/* ---- times */

static void want_stamp(struct kit *k, uint64_t wr_id, uint64_t ns)
{
	struct vrb_stamp s;
	struct vrb_wc wc;

	assert_true(vrb_cq_poll_stamped(&k->rcq, &wc, &s));
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(s.ns, ns);
	assert_int_equal(s.wall_ns, ns ? ns + 1 : 0);
}

static void test_stamps(void **state)
{
	struct kit *k = kit(0);
	struct vrb_stamp stamp[4];
	struct vrb_qp other;
	struct vrb_cqe c = {.qp = &other};

	(void)state;
	push(k, 1, VRB_WC_SUCCESS, false);
	assert_int_equal(due(k), 0); /* nobody asks for times */
	want_stamp(k, 1, 0);
	k->rcq.stamp_tail = k->rcq.tail;
	k->rcq.mask = 3;
	k->rcq.cap = 4;
	k->rcq.stamp = stamp;
	k->rcq.stamped = k->rcq.closed = true;
	for (uint64_t i = 10; i < 40; i += 2) {
		push(k, i, VRB_WC_SUCCESS, false);
		push(k, i + 1, VRB_WC_SUCCESS, false);
		assert_int_equal(due(k), VRB_CQ_DUE_STAMP);
		vrb_cq_stamp(&k->rcq, (struct vrb_stamp){i, i + 1});
		want_stamp(k, i, i);
		want_stamp(k, i + 1, i);
	}
	/* they move along when others are taken out */
	push(k, 1, VRB_WC_SUCCESS, false);
	vrb_cq_stamp(&k->rcq, (struct vrb_stamp){100, 101});
	vrb_cq_push(&k->rcq, &c, false, &k->fx);
	vrb_cq_stamp(&k->rcq, (struct vrb_stamp){200, 201});
	push(k, 2, VRB_WC_SUCCESS, false);
	vrb_cq_stamp(&k->rcq, (struct vrb_stamp){300, 301});
	due(k);
	vrb_cq_purge(&k->rcq, &other);
	push(k, 3, VRB_WC_SUCCESS, false);
	vrb_cq_stamp(&k->rcq, (struct vrb_stamp){400, 401});
	due(k);
	want_stamp(k, 1, 100);
	want_stamp(k, 2, 300);
	want_stamp(k, 3, 400);
	want_no_wc(k);
	kit_free(k);
}

/* With overwrites the oldest goes, and what it released is released. */
static void test_overwrites(void **state)
{
	struct kit *k = kit(.rcq_cap = 4);

	(void)state;
	k->rcq.overwrites = true;
	for (uint64_t i = 0; i < 10; i++) {
		struct vrb_cqe c = {
			.qp = &k->qp, .wc = {.wr_id = i}, .is_send = 1, .sq_free = (uint32_t)i + 1};

		vrb_cq_push(&k->rcq, &c, false, &k->fx);
	}
	assert_int_equal(k->qp.sq_free, 6);
	assert_false(k->rcq.dead);
	assert_int_equal(k->fx.n_event, 0);
	assert_int_equal(k->fx.report[0].verdict, VRB_V_CQ_OVERWRITTEN);
	assert_int_equal(k->fx.report[0].val[0], 4);
	for (uint64_t i = 6; i < 10; i++)
		assert_int_equal(kit_wc(&k->rcq).wr_id, i);
	want_no_wc(k);
	assert_int_equal(k->qp.sq_free, 10);
	k->qp.sq_free = 0;
	vrb_fx_reset(&k->fx);
	kit_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_wrap),
		cmocka_unit_test(test_arm_is_one_shot),
		cmocka_unit_test(test_arm_behind),
		cmocka_unit_test(test_arm_solicited),
		cmocka_unit_test(test_arm_upgrades_only),
		cmocka_unit_test(test_two_cqs_in_one_step),
		cmocka_unit_test(test_unsignaled_released_later),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_overrun_of_sends),
		cmocka_unit_test(test_fail_from_outside),
		cmocka_unit_test(test_purge),
		cmocka_unit_test(test_held_until_the_count),
		cmocka_unit_test(test_held_until_the_time),
		cmocka_unit_test(test_urgent_is_not_held),
		cmocka_unit_test(test_moderate_anew),
		cmocka_unit_test(test_catch_up_is_moderated),
		cmocka_unit_test(test_stamps),
		cmocka_unit_test(test_overwrites),
	};

	return VRB_RUN_TESTS(tests);
}
