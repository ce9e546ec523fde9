/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended CQs: what may be asked for, every field that can be read against what was sent, the two
 * times against the clocks, and that all else (events, resizing, overrun) is as with plain CQs.
 */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIMES (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define ALL   ((uint64_t)IBV_WC_STANDARD_FLAGS | TIMES)

static struct ibv_cq_ex *make(struct pair *p, uint32_t cqe, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex a = {.cqe = cqe,
					.wc_flags = wc_flags,
					.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					.flags = flags};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(p->ctx, &a);

	MUST(cq);
	return cq;
}

static void connect_on(struct pair *p, enum ibv_qp_type type, struct ibv_cq_ex *cq)
{
	struct ibv_cq *both[2] = {ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq)};

	pair_connect(p, type, both);
}

/* Waits for a completion; the CQ is between start_poll and end_poll then. */
static void start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr a = {0};
	double until = now_s() + WAIT_MS / 1e3;
	int err;

	do
		err = ibv_start_poll(cq, &a);
	while (err == ENOENT && now_s() < until);
	MUST(!err);
}

/* Waits until a message whose last byte is 1 has been handled, without a look at the CQ. */
static void await_message(struct pair *p, uint32_t len)
{
	double until = now_s() + WAIT_MS / 1e3;
	const volatile uint8_t *last = p->buf + PAIR_LEN / 2 + len - 1;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	while (*last != 1)
		MUST(now_s() < until);
	MUST(!ibv_query_qp(p->qp[1], &a, IBV_QP_STATE, &init)); /* behind who wrote it */
}

static void skip(struct ibv_cq_ex *cq, int n)
{
	while (n--) {
		start(cq);
		MUST(cq->status == IBV_WC_SUCCESS);
		ibv_end_poll(cq);
	}
}

/* ---- creating */

static int refused(struct pair *p, const struct ibv_cq_init_attr_ex *a)
{
	struct ibv_cq_init_attr_ex copy = *a;

	errno = 0;
	MUST(!ibv_create_cq_ex(p->ctx, &copy));
	return errno;
}

static void test_refused(void)
{
	static const uint64_t not_offered[] = {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG,
					       IBV_WC_EX_WITH_TM_INFO};
	struct pair p;

	pair_open(&p);
	for (size_t i = 0; i < 3; i++)
		MUST(refused(&p, &(struct ibv_cq_init_attr_ex){
					 .cqe = 1, .wc_flags = not_offered[i]}) == EOPNOTSUPP);
	MUST(refused(&p, &(struct ibv_cq_init_attr_ex){.cqe = 1, .wc_flags = 1ull << 40}) ==
	     EINVAL);
	MUST(refused(&p, &(struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 1 << 20}) == EINVAL);
	MUST(refused(&p, &(struct ibv_cq_init_attr_ex){.cqe = 1,
						       .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
						       .flags = 1 << 9}) == EINVAL);
	MUST(refused(&p, &(struct ibv_cq_init_attr_ex){.cqe = 1,
						       .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
						       .parent_domain = p.pd}) == EOPNOTSUPP);
	MUST(refused(&p, &(struct ibv_cq_init_attr_ex){.cqe = 0}) == EINVAL);
	MUST(refused(&p, &(struct ibv_cq_init_attr_ex){.cqe = 1, .comp_vector = 9}) == EINVAL);
	pair_close(&p);
}

static void test_slots(void)
{
	struct ibv_poll_cq_attr bad = {.comp_mask = 1}, good = {0};
	struct ibv_cq_ex *cq;
	struct pair p;

	pair_open(&p);
	cq = make(&p, 4, 0, 0);
	MUST(cq->read_opcode && cq->read_vendor_err && cq->read_wc_flags);
	MUST(!cq->read_byte_len && !cq->read_imm_data && !cq->read_qp_num && !cq->read_src_qp &&
	     !cq->read_slid && !cq->read_sl && !cq->read_dlid_path_bits &&
	     !cq->read_completion_ts && !cq->read_completion_wallclock_ns);
	MUST(ibv_start_poll(cq, &bad) == EINVAL && ibv_start_poll(cq, &good) == ENOENT);
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	cq = make(&p, 4, ALL, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	MUST(cq->read_byte_len && cq->read_imm_data && cq->read_qp_num && cq->read_src_qp &&
	     cq->read_slid && cq->read_sl && cq->read_dlid_path_bits && cq->read_completion_ts &&
	     cq->read_completion_wallclock_ns);
	MUST(!cq->read_cvlan && !cq->read_flow_tag && !cq->read_tm_info);
	MUST(ibv_start_poll(cq, &good) == ENOENT);
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	pair_close(&p);
}

/* ---- reading */

static void read_send(struct pair *p, struct ibv_cq_ex *cq)
{
	MUST(cq->status == IBV_WC_SUCCESS && cq->wr_id == 7);
	MUST(ibv_wc_read_opcode(cq) == IBV_WC_SEND && ibv_wc_read_vendor_err(cq) == 0);
	MUST(ibv_wc_read_qp_num(cq) == p->qp[0]->qp_num && ibv_wc_read_wc_flags(cq) == 0);
}

static void read_recv(struct pair *p, struct ibv_cq_ex *cq, bool ud)
{
	MUST(cq->status == IBV_WC_SUCCESS && cq->wr_id == 8);
	MUST(ibv_wc_read_opcode(cq) == IBV_WC_RECV);
	MUST(ibv_wc_read_byte_len(cq) == (ud ? 140u : 100u));
	MUST(ibv_wc_read_imm_data(cq) == 0x12345678);
	MUST(ibv_wc_read_qp_num(cq) == p->qp[1]->qp_num);
	MUST(ibv_wc_read_src_qp(cq) == (ud ? p->qp[0]->qp_num : 0));
	MUST(ibv_wc_read_wc_flags(cq) == (unsigned int)(IBV_WC_WITH_IMM | (ud ? IBV_WC_GRH : 0)));
	MUST(ibv_wc_read_slid(cq) == 0 && ibv_wc_read_dlid_path_bits(cq) == 0);
	/* UD: the kind of the packet, as NICs say it (core/ud.c) */
	MUST(ud ? ibv_wc_read_sl(cq) & 8 : ibv_wc_read_sl(cq) == 0);
}

static void fields(enum ibv_qp_type type)
{
	bool sent = false, got = false;
	struct ibv_cq_ex *cq;
	struct pair p;

	pair_open(&p);
	cq = make(&p, 2 * PAIR_WR, ALL, 0);
	connect_on(&p, type, cq);
	pair_recv(&p, 1, 8);
	p.imm = 0x12345678;
	pair_send(&p, 0, 7, 100, IBV_SEND_SIGNALED);
	while (!sent || !got) {
		start(cq);
		if (cq->wr_id == 7)
			read_send(&p, cq);
		else
			read_recv(&p, cq, type == IBV_QPT_UD);
		sent |= cq->wr_id == 7;
		got |= cq->wr_id == 8;
		ibv_end_poll(cq);
	}
	MUST(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){0}) == ENOENT);
	pair_close_qps(&p);
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	pair_close(&p);
}

static void test_fields_rc(void)
{
	fields(IBV_QPT_RC);
}

static void test_fields_uc(void)
{
	fields(IBV_QPT_UC);
}

static void test_fields_ud(void)
{
	fields(IBV_QPT_UD);
}

/* ---- times */

static uint64_t raw_clock(struct ibv_context *ctx)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	MUST(!ibv_query_rt_values_ex(ctx, &v) && v.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)v.raw_clock.tv_sec * 1000000000 + (uint64_t)v.raw_clock.tv_nsec;
}

/* Ticks of the raw clock, hca_core_clock thousand in a second, in the mask. */
static void test_clock(void)
{
	struct ibv_device_attr_ex dev;
	uint64_t a, b, t, u;
	struct pair p;

	pair_open(&p);
	MUST(!ibv_query_device_ex(p.ctx, NULL, &dev));
	MUST(dev.hca_core_clock && dev.completion_timestamp_mask == UINT64_MAX);
	t = clock_ns(CLOCK_MONOTONIC);
	a = raw_clock(p.ctx);
	sleep_ms(20);
	b = raw_clock(p.ctx);
	u = clock_ns(CLOCK_MONOTONIC);
	MUST(b - a >= 20 * dev.hca_core_clock &&
	     b - a <= (u - t) / 1000000 * dev.hca_core_clock + dev.hca_core_clock);
	pair_close(&p);
}

/* The completion comes while nobody polls: its time is not that of the poll. True when it was in
 * time, which a busy machine may prevent. */
static bool is_time_of_arrival(struct pair *p, struct ibv_cq_ex *cq)
{
	uint64_t from, to, wall_from, wall_to;
	bool early = true;

	from = raw_clock(p->ctx);
	wall_from = clock_ns(CLOCK_REALTIME);
	pair_recv(p, 1, 8);
	pair_send(p, 0, 7, 100, IBV_SEND_SIGNALED);
	sleep_ms(100);
	to = raw_clock(p->ctx);
	wall_to = clock_ns(CLOCK_REALTIME);
	for (int i = 0; i < 2; i++) {
		start(cq);
		MUST(ibv_wc_read_completion_ts(cq) >= from);
		MUST(ibv_wc_read_completion_wallclock_ns(cq) >= wall_from);
		early &= ibv_wc_read_completion_ts(cq) < to - 30000000 &&
			 ibv_wc_read_completion_wallclock_ns(cq) <= wall_to;
		ibv_end_poll(cq);
	}
	return early;
}

static void test_time_of_arrival(void)
{
	struct ibv_cq_ex *cq;
	bool early = false;
	struct pair p;

	pair_open(&p);
	cq = make(&p, 2 * PAIR_WR, ALL, 0);
	connect_on(&p, IBV_QPT_RC, cq);
	for (int i = 0; i < 200 && !early; i++)
		early = is_time_of_arrival(&p, cq);
	MUST(early);
	pair_close_qps(&p);
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	pair_close(&p);
}

/* Times never go back, whichever of the two is kept, and stay with their completions when the CQ
 * gets other memory or loses those of a queue pair. */
static void test_times_move_along(void)
{
	uint64_t ts[8], last = 0;
	struct ibv_cq_ex *cq;
	struct pair p;

	pair_open(&p);
	cq = make(&p, 8, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
	connect_on(&p, IBV_QPT_RC, cq);
	for (uint64_t i = 0; i < 3; i++) {
		pair_recv(&p, 1, i);
		p.buf[7 + i] = 1;
		pair_send(&p, 0, 7, 8 + (uint32_t)i, 0);
		await_message(&p, 8 + (uint32_t)i);
		ts[i] = raw_clock(p.ctx);
	}
	MUST(!ibv_resize_cq(ibv_cq_ex_to_cq(cq), 64));
	start(cq);
	MUST(cq->wr_id == 0);
	last = ibv_wc_read_completion_ts(cq);
	MUST(last <= ts[0]);
	ibv_end_poll(cq);
	MUST(!ibv_resize_cq(ibv_cq_ex_to_cq(cq), 5));
	for (uint64_t i = 1; i < 3; i++) {
		start(cq);
		MUST(cq->wr_id == i && ibv_wc_read_completion_ts(cq) >= last &&
		     ibv_wc_read_completion_ts(cq) <= ts[i]);
		last = ibv_wc_read_completion_ts(cq);
		ibv_end_poll(cq);
	}
	pair_close_qps(&p);
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	pair_close(&p);
}

/* ---- as with plain CQs */

static void test_events(void)
{
	struct ibv_cq_init_attr_ex a = {.cqe = 2 * PAIR_WR, .wc_flags = ALL, .cq_context = &a};
	struct ibv_cq_ex *ex;
	struct ibv_cq *cq;
	struct pair p;
	void *user;

	pair_open(&p);
	MUST((a.channel = ibv_create_comp_channel(p.ctx)) != NULL);
	MUST((ex = ibv_create_cq_ex(p.ctx, &a)) != NULL);
	MUST(ex->channel == a.channel && ex->cq_context == &a && ex->cqe >= 2 * PAIR_WR);
	connect_on(&p, IBV_QPT_RC, ex);
	for (int i = 0; i < 100; i++) {
		MUST(!ibv_req_notify_cq(ibv_cq_ex_to_cq(ex), i % 2));
		pair_recv(&p, 1, 8);
		pair_send(&p, 0, 7, 8, IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
		MUST(!ibv_get_cq_event(a.channel, &cq, &user));
		MUST(cq == ibv_cq_ex_to_cq(ex) && user == &a);
		ibv_ack_cq_events(cq, 1);
		skip(ex, 2);
	}
	MUST(ibv_destroy_comp_channel(a.channel) == EBUSY);
	MUST(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)) == EBUSY);
	pair_close_qps(&p);
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	MUST(!ibv_destroy_comp_channel(a.channel));
	pair_close(&p);
}

/* 30 completions into a CQ of 4. */
static void overrun(bool ignored)
{
	struct ibv_async_event ev;
	struct pollfd async = {.events = POLLIN};
	struct ibv_cq_ex *cq;
	struct pair p;

	pair_open(&p);
	async.fd = p.ctx->async_fd;
	fcntl(p.ctx->async_fd, F_SETFL, fcntl(p.ctx->async_fd, F_GETFL) | O_NONBLOCK);
	cq = make(&p, 4, TIMES, ignored ? IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN : 0);
	connect_on(&p, IBV_QPT_RC, cq);
	for (uint64_t i = 0; i < 30; i++)
		pair_recv(&p, 1, i);
	p.buf[15] = 1;
	for (uint64_t i = 0; i < 30; i++)
		pair_send(&p, 0, 100, i < 29 ? 8 : 16, 0);
	if (ignored)
		await_message(&p, 16);
	else
		MUST(poll(&async, 1, WAIT_MS) == 1);
	for (uint64_t i = 0; i < 4; i++) {
		start(cq);
		MUST(cq->wr_id == (ignored ? 26 + i : i) && cq->status == IBV_WC_SUCCESS);
		ibv_end_poll(cq);
	}
	if (!ignored) {
		MUST(!ibv_get_async_event(p.ctx, &ev));
		MUST(ev.event_type == IBV_EVENT_CQ_ERR || ev.event_type == IBV_EVENT_QP_FATAL);
		ibv_ack_async_event(&ev);
		_exit(0);
	}
	MUST(ibv_get_async_event(p.ctx, &ev) && errno == EAGAIN);
	pair_recv(&p, 1, 99);
	pair_send(&p, 0, 98, 8, IBV_SEND_SIGNALED);
	skip(cq, 2);
	pair_close_qps(&p);
	MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	pair_close(&p);
}

static void test_overrun_is_fatal(void)
{
	overrun(false);
}

static void test_overrun_ignored(void)
{
	overrun(true);
}

/* ---- several threads: between start and end a completion is one thread's alone */

#define MESSAGES 20000

static struct {
	struct ibv_cq_ex *cq;
	_Atomic uint32_t seen[MESSAGES], n;
} shared;

static void *poller(void *arg)
{
	(void)arg;
	while (shared.n < MESSAGES) {
		struct ibv_poll_cq_attr a = {0};

		if (ibv_start_poll(shared.cq, &a))
			continue;
		do {
			uint64_t id = shared.cq->wr_id;

			MUST(shared.cq->status == IBV_WC_SUCCESS && id < MESSAGES);
			MUST(ibv_wc_read_byte_len(shared.cq) == id % 64 + 1);
			MUST(shared.cq->wr_id == id);
			MUST(shared.seen[id]++ == 0);
		} while (++shared.n % 100 && !ibv_next_poll(shared.cq));
		ibv_end_poll(shared.cq);
	}
	return NULL;
}

static void test_threads(void)
{
	struct ibv_cq *cq[2];
	pthread_t t[2];
	struct pair p;

	pair_open(&p);
	MUST((cq[0] = ibv_create_cq(p.ctx, PAIR_WR, NULL, NULL, 0)) != NULL);
	shared.cq = make(&p, MESSAGES, ALL, 0);
	cq[1] = ibv_cq_ex_to_cq(shared.cq);
	pair_connect(&p, IBV_QPT_RC, cq);
	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&t[i], NULL, poller, NULL));
	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct ibv_wc wc;

		pair_recv(&p, 1, i);
		pair_send(&p, 0, i, (uint32_t)(i % 64 + 1), IBV_SEND_SIGNALED);
		while (ibv_poll_cq(cq[0], 1, &wc) != 1)
			;
		MUST(wc.status == IBV_WC_SUCCESS);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	MUST(shared.n == MESSAGES);
	pair_close_qps(&p);
	MUST(!ibv_destroy_cq(cq[0]) && !ibv_destroy_cq(cq[1]));
	pair_close(&p);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"refused", test_refused},
		{"slots", test_slots},
		{"fields_rc", test_fields_rc},
		{"fields_uc", test_fields_uc},
		{"fields_ud", test_fields_ud},
		{"clock", test_clock},
		{"time_of_arrival", test_time_of_arrival},
		{"times_move_along", test_times_move_along},
		{"events", test_events},
		{"overrun_is_fatal", test_overrun_is_fatal},
		{"overrun_ignored", test_overrun_ignored},
		{"threads", test_threads},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
