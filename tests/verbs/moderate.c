/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CQ moderation as a program meets it: when the event of an armed CQ comes, by count, by period, at
 * once for what is solicited or failed; both for who sleeps in ibv_get_cq_event and for who poll()s
 * the channel. That none is lost is tests/stress/wakeup.c.
 */
#include "kit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#define LONG_US 60000
#define TRIES	1000 /* a busy machine is late: at least once it must be in time */

struct rig {
	struct pair p;
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq[2]; /* of the sender, of the receiver */
	uint64_t next;
};

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr a = {IBV_CQ_ATTR_MODERATE, {count, period_us}};

	return ibv_modify_cq(cq, &a);
}

static void rig_open(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	pair_open(&r->p);
	MUST((r->chan = ibv_create_comp_channel(r->p.ctx)) != NULL);
	MUST((r->cq[0] = ibv_create_cq(r->p.ctx, 64, NULL, NULL, 0)) != NULL);
	MUST((r->cq[1] = ibv_create_cq(r->p.ctx, 64, NULL, r->chan, 0)) != NULL);
	pair_connect(&r->p, IBV_QPT_RC, r->cq);
}

static void rig_close(struct rig *r)
{
	pair_close_qps(&r->p);
	MUST(!ibv_destroy_cq(r->cq[0]) && !ibv_destroy_cq(r->cq[1]));
	MUST(!ibv_destroy_comp_channel(r->chan));
	pair_close(&r->p);
}

/* One message, until it has come. */
static void message(struct rig *r, unsigned int flags)
{
	struct ibv_wc wc;

	pair_recv(&r->p, 1, r->next);
	pair_send(&r->p, 0, r->next++, 8, flags | IBV_SEND_SIGNALED);
	while (ibv_poll_cq(r->cq[0], 1, &wc) == 0)
		;
	MUST(wc.status == IBV_WC_SUCCESS);
}

static void drain(struct rig *r)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(r->cq[1], 1, &wc) == 1)
		;
}

static bool has_event(struct rig *r, int ms)
{
	struct pollfd p = {.fd = r->chan->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *user;

	if (poll(&p, 1, ms) != 1)
		return false;
	MUST(!ibv_get_cq_event(r->chan, &cq, &user) && cq == r->cq[1]);
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* Nothing waits, and the CQ is armed. */
static void arm(struct rig *r)
{
	drain(r);
	MUST(!ibv_req_notify_cq(r->cq[1], 0));
}

static void test_offered(void)
{
	struct ibv_modify_cq_attr a = {0};
	struct ibv_device_attr_ex dev;
	struct rig r;

	rig_open(&r);
	MUST(!ibv_query_device_ex(r.p.ctx, NULL, &dev));
	MUST(dev.cq_mod_caps.max_cq_count == 65535 && dev.cq_mod_caps.max_cq_period == 65535);
	MUST(ibv_modify_cq(r.cq[1], &a) == EINVAL);
	a.attr_mask = IBV_CQ_ATTR_MODERATE | 1 << 5;
	MUST(ibv_modify_cq(r.cq[1], &a) == EOPNOTSUPP);
	MUST(!moderate(r.cq[1], 65535, 65535) && !moderate(r.cq[1], 0, 0));
	rig_close(&r);
}

/* The third message makes the event, unless the period did: then the machine was busy. */
static void test_by_count(void)
{
	int on_time = 0;
	struct rig r;

	rig_open(&r);
	MUST(!moderate(r.cq[1], 3, LONG_US));
	for (int i = 0; i < TRIES && on_time < 5; i++) {
		double start = now_s();

		arm(&r);
		message(&r, 0);
		message(&r, 0);
		if (has_event(&r, 2)) {
			MUST(now_s() - start > LONG_US * 0.9e-6);
			continue;
		}
		message(&r, 0);
		MUST(has_event(&r, WAIT_MS));
		on_time += now_s() - start < LONG_US * 0.9e-6;
	}
	MUST(on_time == 5);
	rig_close(&r);
}

static void test_by_period(void)
{
	int on_time = 0;
	struct rig r;

	rig_open(&r);
	for (uint16_t count = 0; count < 101; count += 100) {
		MUST(!moderate(r.cq[1], count, 5000));
		for (int i = 0; i < 20 || (!on_time && i < TRIES); i++) {
			double start, took;

			arm(&r);
			start = now_s();
			message(&r, 0);
			MUST(has_event(&r, WAIT_MS));
			took = now_s() - start;
			MUST(took > 0.0049);
			on_time += took < 0.0065;
		}
	}
	MUST(on_time >= 1); /* the others: the machine was busy */
	rig_close(&r);
}

/* The same for who sleeps in the call. */
static void test_by_period_asleep(void)
{
	int on_time = 0;
	struct ibv_cq *cq;
	struct rig r;
	void *user;

	rig_open(&r);
	MUST(!moderate(r.cq[1], 100, 300));
	for (int i = 0; i < 100 || (on_time < 5 && i < TRIES); i++) {
		double start, took;

		arm(&r);
		start = now_s();
		message(&r, 0);
		MUST(!ibv_get_cq_event(r.chan, &cq, &user));
		ibv_ack_cq_events(cq, 1);
		took = now_s() - start;
		MUST(took > 0.00029);
		on_time += took < 0.0006;
	}
	MUST(on_time >= 5);
	rig_close(&r);
}

/* Whether the event of an error did not wait for the period. */
static bool error_is_urgent(void)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct rig r;
	double start;

	rig_open(&r);
	MUST(!moderate(r.cq[1], 1000, 65535));
	arm(&r);
	pair_recv(&r.p, 1, 1);
	start = now_s();
	MUST(!ibv_modify_qp(r.p.qp[1], &err, IBV_QP_STATE));
	MUST(has_event(&r, WAIT_MS));
	start = now_s() - start;
	rig_close(&r);
	return start < LONG_US * 1e-6;
}

static void test_urgent(void)
{
	struct rig r;
	int on_time = 0, i;

	rig_open(&r);
	MUST(!moderate(r.cq[1], 1000, 65535));
	for (i = 0; i < 20 || (!on_time && i < TRIES); i++) {
		double start = now_s();

		arm(&r);
		message(&r, 0);
		message(&r, IBV_SEND_SOLICITED);
		MUST(has_event(&r, WAIT_MS));
		on_time += now_s() - start < LONG_US * 1e-6;
	}
	MUST(on_time >= 1);
	rig_close(&r);
	for (i = 0; i < TRIES && !error_is_urgent(); i++)
		;
	MUST(i < TRIES);
}

/* Whether the event that was held back came when that ended, in one of four ways. */
static bool is_off_again(struct rig *r, int way)
{
	double start;

	MUST(!moderate(r->cq[1], 1000, 65535));
	arm(r);
	start = now_s();
	message(r, 0);
	/* no moderation: count 1, period 0, both 0; or only a shorter one */
	MUST(!moderate(r->cq[1], way == 0, way == 3 ? 50 : way == 0 ? 65535 : 0));
	MUST(has_event(r, WAIT_MS));
	start = now_s() - start;
	arm(r);
	message(r, 0);
	MUST(has_event(r, WAIT_MS));
	return start < LONG_US * 1e-6;
}

static void test_off_again(void)
{
	struct rig r;

	rig_open(&r);
	for (int way = 0; way < 4; way++) {
		int i = 0;

		while (i < TRIES && !is_off_again(&r, way))
			i++;
		MUST(i < TRIES);
	}
	rig_close(&r);
}

/* A CQ goes while its event is held back; so does the device. */
static void test_destroyed(void)
{
	struct rig r;

	for (int i = 0; i < 20; i++) {
		rig_open(&r);
		MUST(!moderate(r.cq[1], 1000, 100));
		arm(&r);
		message(&r, 0);
		sleep_ms(i % 2);
		MUST(!ibv_resize_cq(r.cq[1], 32));
		rig_close(&r);
	}
}

/* Events get fewer, and all messages come. */
static void test_fewer_events(void)
{
	unsigned int events[2] = {0};
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r);
	for (int on = 0; on < 2; on++) {
		MUST(!moderate(r.cq[1], on ? 16 : 0, on ? 2000 : 0));
		arm(&r);
		for (int i = 0, got = 0; got < 1600;) {
			if (i < 1600 && i - got < 32) {
				message(&r, 0);
				i++;
			}
			if (!has_event(&r, i == 1600 ? WAIT_MS : 0))
				continue;
			events[on]++;
			MUST(!ibv_req_notify_cq(r.cq[1], 0));
			while (ibv_poll_cq(r.cq[1], 1, &wc) == 1)
				got++;
		}
		drain(&r);
		while (has_event(&r, 10))
			;
	}
	MUST(events[0] > 1000 && events[1] >= 100 && events[1] < events[0] / 2);
	rig_close(&r);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"offered", test_offered},     {"by_count", test_by_count},
		{"by_period", test_by_period}, {"by_period_asleep", test_by_period_asleep},
		{"urgent", test_urgent},       {"off_again", test_off_again},
		{"destroyed", test_destroyed}, {"fewer_events", test_fewer_events},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
