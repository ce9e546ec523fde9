/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	send_lanes [CASE]
 *
 * Queue pairs that fail, stand still, or are reported by the adapter; channels that connect again.
 * The last case is for a plan of faults.
 */
#include "send/storm.h"

#include <sys/wait.h>
#include <unistd.h>

#include "send/front.h"
#include "support/cases.h"

static const struct vrb_channel_options four = {.qps = 4, .failover = true};
static struct storm here, there;
static struct books books;

static void at_server(struct end *e)
{
	storm(e, &here, &books);
}

static void at_client(struct end *e)
{
	child_pid = 0;
	storm(e, &there, &books);
	printf("# client: %u done, %u lost on %u lanes\n", books.done, books.lost,
	       books.lanes_down);
}

static void run(const struct vrb_channel_options *o)
{
	fflush(stdout);
	run_pair(&(struct pair){.server = o, .client = o}, at_server, at_client);
	printf("# server: %u done, %u failed, %u flushed, %u lost on %u lanes, %u in use again\n",
	       books.done, books.failed, books.flushed, books.lost, books.lanes_down,
	       books.lanes_up);
}

/* ---- a queue pair fails again and again; the channel goes on */

static void fail_one(struct end *e)
{
	struct vrb_channel_info info;
	static uint32_t n;

	/* One at a time from each end: the channel needs one that works. */
	if (books.lanes_up != books.lanes_down) {
		here.trouble_at += 100;
		there.trouble_at += 100;
		return;
	}
	vrb_channel_info(e->ch, &info);
	for (int i = 0; i < front_n_qps; i++)
		if (front_qp[i] && front_qp[i]->qp_num == info.qp_num[n % 4])
			front_qp_to_error(front_qp[i]);
	n++;
	here.trouble_at += 1000;
	there.trouble_at += 1000;
}

static void case_fail(void)
{
	here = (struct storm){.n = 8000, .trouble = fail_one, .trouble_at = 1000, .may_lose = true};
	there = (struct storm){.n = 8000, .may_lose = true};
	run(&four);
	/* How many depends on how long one takes to come back; the peer may leave before. */
	CHECK(books.lanes_down && books.lanes_up + 1 >= books.lanes_down);
	CHECK(books.done + books.failed + books.flushed == 8000);
	/* The last word, which has no account, may be among them. */
	CHECK(books.lost + 1 >= books.failed + books.flushed);
	CHECK(books.lost <= books.failed + books.flushed + 1);
}

/* All of them at once, of both ends: it waits for those that are built in their places. */
static void fail_all(struct end *e)
{
	(void)e;
	for (int i = 0; i < front_n_qps; i++)
		if (front_qp[i])
			front_qp_to_error(front_qp[i]);
	here.trouble_at += 2000;
	there.trouble_at += 2000;
}

static void case_fail_all(void)
{
	here = (struct storm){.n = 8000, .trouble = fail_all, .trouble_at = 1000, .may_lose = true};
	there = (struct storm){.n = 8000, .may_lose = true};
	run(&four);
	CHECK(books.lanes_down >= 4 && books.lanes_up + 4 >= books.lanes_down);
	CHECK(books.done + books.failed + books.flushed == 8000);
}

/* The receives are shared: those of the one that failed wait for the one that takes its place. */
static void case_fail_shared(void)
{
	static const struct vrb_channel_options shared = {
		.qps = 4, .failover = true, .shared_receives = true};

	here = (struct storm){.n = 8000, .trouble = fail_one, .trouble_at = 1000, .may_lose = true};
	there = here;
	there.trouble_at = 1500;
	run(&shared);
	CHECK(books.lanes_down && books.lanes_up + 1 >= books.lanes_down);
}

static void case_fail_both(void)
{
	here = (struct storm){.n = 8000, .trouble = fail_one, .trouble_at = 1000, .may_lose = true};
	there = here;
	there.trouble_at = 1500;
	run(&four);
	CHECK(books.lanes_down && books.lanes_up + 1 >= books.lanes_down);
}

/* ---- order within a flow, while its lane fails and comes back */

#define FLOWS	 40u
#define MESSAGES 20000u

static struct {
	uint32_t flow, number;
} word;

static void takes_in_order(struct end *e)
{
	uint32_t next[FLOWS] = {0}, got = 0, fails = 0;

	for (;;) {
		struct vrb_event ev = next_event(e);

		if (ev.kind == VRB_EV_CLOSED)
			break;
		if (ev.kind != VRB_EV_MESSAGE) {
			if (ev.kind != VRB_EV_LANE)
				fprintf(stderr, "event %d: %s\n", ev.kind, ev.text);
			CHECK(ev.kind == VRB_EV_LANE);
			books.lanes_down += ev.outcome == VRB_FAILED;
			books.lanes_up += ev.outcome != VRB_FAILED;
			continue;
		}
		memcpy(&word, ev.buf->data, sizeof(word));
		CHECK(word.flow == ev.flow && word.flow < FLOWS);
		CHECK(word.number >= next[word.flow]); /* gaps, where a lane failed; none twice */
		next[word.flow] = word.number + 1;
		vrb_buf_put(ev.buf);
		if (++got % 3000 == 0 && fails++ < 5)
			fail_one(e);
	}
	CHECK(got > MESSAGES / 2);
}

static uint32_t ended, down, up;

static void polls(struct end *e)
{
	struct vrb_event ev[16];
	int n = vrb_poll(e->ch, ev, 16, MS);

	for (int i = 0; i < n; i++) {
		CHECK(ev[i].kind == VRB_EV_SENT || ev[i].kind == VRB_EV_LANE ||
		      ev[i].kind == VRB_EV_ROOM);
		ended += ev[i].kind == VRB_EV_SENT;
		down += ev[i].kind == VRB_EV_LANE && ev[i].outcome == VRB_FAILED;
		up += ev[i].kind == VRB_EV_LANE && ev[i].outcome == VRB_DONE;
	}
}

static void sends_in_order(struct end *e)
{
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct vrb_send_options o = {.flow = i % FLOWS, .flags = VRB_REPORT};
		int r;

		word.flow = i % FLOWS;
		word.number = i / FLOWS;
		while ((r = vrb_send(e->ch, &word, sizeof(word), &o)) == -EAGAIN)
			polls(e);
		CHECK(!r);
	}
	while (ended < MESSAGES || up < down)
		polls(e);
	CHECK(down > 0);
}

static void case_order(void)
{
	run_pair(&(struct pair){.server = &four, .client = &four}, takes_in_order, sends_in_order);
}

/* ---- what the adapter reports */

static struct vrb_event end_of(struct end *e)
{
	struct vrb_event ev;

	do {
		ev = next_event(e);
		if (ev.kind == VRB_EV_MESSAGE)
			vrb_buf_put(ev.buf);
	} while (ev.kind != VRB_EV_BROKEN && ev.kind != VRB_EV_CLOSED);
	return ev;
}

static void waits_for_end(struct end *e)
{
	(void)end_of(e);
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
}

static void sees_port(struct end *e)
{
	struct vrb_event ev;

	front_report(IBV_EVENT_PORT_ERR, NULL, 1);
	CHECK(vrb_async_fd(e->d) >= 0 && vrb_async_poll(e->d) == 1);
	ev = want_event(e, VRB_EV_PORT);
	CHECK(ev.outcome == VRB_FAILED && strstr(ev.text, "send_port_down"));
	front_report(IBV_EVENT_PORT_ACTIVE, NULL, 1); /* read by vrb_poll */
	ev = want_event(e, VRB_EV_PORT);
	CHECK(ev.outcome == VRB_DONE);
	front_report(IBV_EVENT_PORT_ERR, NULL, 2); /* another one's */
	CHECK(vrb_async_poll(e->d) == 1 && !vrb_poll(e->ch, &ev, 1, 5 * MS));
	CHECK(!vrb_send(e->ch, "x", 1, NULL));
}

static void sees_qp(struct end *e)
{
	struct vrb_event ev;

	front_report(IBV_EVENT_QP_FATAL, front_qp[front_n_qps - 1], 0);
	ev = end_of(e);
	CHECK(ev.kind == VRB_EV_BROKEN && strstr(ev.text, "send_qp_event"));
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
}

static void sees_device(struct end *e)
{
	struct vrb_event ev;

	front_report(IBV_EVENT_DEVICE_FATAL, NULL, 0);
	ev = end_of(e);
	CHECK(ev.kind == VRB_EV_BROKEN && strstr(ev.text, "send_device"));
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
}

static void case_reports(void)
{
	static const struct vrb_channel_options one = {.qps = 1};
	const struct pair p = {.server = &one, .client = &one};

	run_pair(&p, waits_for_end, sees_port);
	run_pair(&p, waits_for_end, sees_qp);
	run_pair(&p, waits_for_end, sees_device);
}

/* ---- NUMA: there is a node, or it is said that there is none */

static void case_node(void)
{
	struct vrb_domain *d;
	int node;

	CHECK(!vrb_open(NULL, &d));
	node = vrb_bind_thread(d);
	CHECK(node >= 0 || (node == -ENODATA && !strcmp(vrb_error_name(), "send_no_node")));
	CHECK(!vrb_close(d));
}

/* ---- connecting again: the server goes without a word, twice, and then for good */

static void client_again(const char *port)
{
	const struct vrb_channel_options o = {
		.qps = 2, .reconnect = 4, .reconnect_ms = 20, .connect_ms = 5000};
	struct vrb_pool_stats st;
	struct vrb_event ev;
	struct end e;

	CHECK(!vrb_open(NULL, &e.d));
	CHECK(!vrb_connect(e.d, "127.0.0.1", port, &o, &e.ch));
	for (int round = 0; round < 3; round++) {
		struct vrb_send_options big = {.cookie = &e};
		char text[8000] = "hello";

		if (round)
			want_event(&e, VRB_EV_BACK);
		CHECK(!vrb_send(e.ch, text, 6, NULL));
		CHECK(!vrb_send(e.ch, text, sizeof(text), &big)); /* never fetched */
		ev = want_event(&e, VRB_EV_SENT);
		CHECK(ev.outcome == VRB_FLUSHED);
		ev = want_event(&e, VRB_EV_AWAY);
		CHECK(strstr(ev.text, "send_peer_gone"));
		CHECK(vrb_send(e.ch, text, 6, NULL) == -EAGAIN);
	}
	ev = want_event(&e, VRB_EV_BROKEN);
	CHECK(strstr(ev.text, "send_reconnect"));
	CHECK(vrb_send(e.ch, "x", 1, NULL) == -ENOTCONN);
	CHECK(vrb_disconnect(e.ch, 0) == -ENOTCONN);
	vrb_pool_stats(e.d, &st);
	CHECK(!st.outside && !vrb_close(e.d));
	exit(0);
}

static void case_reconnect(void)
{
	const struct vrb_channel_options o = {.qps = 2};
	struct vrb_listener *l;
	int fds[2], status, pid;
	struct vrb_event ev;
	char port[16];
	struct end e;

	CHECK(!pipe(fds));
	pid = fork();
	if (!pid) {
		CHECK(read(fds[0], port, sizeof(port)) > 0);
		client_again(port);
	}
	CHECK(!vrb_open(NULL, &e.d));
	CHECK(!vrb_listen(e.d, "127.0.0.1", "0", &o, &l));
	snprintf(port, sizeof(port), "%d", vrb_listener_port(l));
	CHECK(write(fds[1], port, sizeof(port)) == sizeof(port));
	for (int round = 0; round < 3; round++) {
		CHECK(!vrb_accept(l, WAIT, &e.ch));
		ev = want_event(&e, VRB_EV_MESSAGE);
		CHECK(!strcmp(ev.buf->data, "hello"));
		vrb_buf_put(ev.buf);
		(void)vrb_disconnect(e.ch, 0);
	}
	vrb_unlisten(l);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(!vrb_close(e.d));
}

/* ---- under a plan: one queue pair stands still, long before the transport gives it up */

static void case_stall(void)
{
	static const struct vrb_channel_options patient = {
		.qps = 4, .failover = true, .stall_ms = 200, .ack_timeout_us = 8000000};

	here = there = (struct storm){.n = 20000, .may_lose = true};
	run(&patient);
	CHECK(books.lanes_down >= 1 && books.lanes_up == books.lanes_down);
	CHECK(vrb_error_count("send_lane_stalled") + vrb_error_count("send_peer_lane") > 0);
}

/* All of them, for ever: it does not wait for ever. */
static void case_dark(void)
{
	static const struct vrb_channel_options quick = {.qps = 4,
							 .failover = true,
							 .connect_ms = 5000,
							 .ack_timeout_us = 4000,
							 .retries = 2};

	here = there = (struct storm){.n = 1000000, .may_lose = true, .may_end = true};
	run(&quick);
	CHECK(strstr(books.why, "send_no_lane") || strstr(books.why, "send_peer_broke"));
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"fail", case_fail},
		{"fail_both", case_fail_both},
		{"fail_shared", case_fail_shared},
		{"fail_all", case_fail_all},
		{"order", case_order},
		{"reports", case_reports},
		{"node", case_node},
		{"reconnect", case_reconnect},
		{"stall", case_stall},
		{"dark", case_dark},
	};

	return kit_main(argc, argv, tests, argc > 1 ? 10 : 8);
}
