/* SPDX-License-Identifier: BSD-2-Clause */
/* vrb_drain: it waits for all that was posted, keeps events in order, and knows when it must stop.
 */
#include "send/kit.h"

#include <signal.h>

#include "support/cases.h"

#define N	300
#define LARGE	20000u
#define PATIENT (100 * S) /* the case's alarm comes first */

static char mem[LARGE];

static uint64_t done_of(struct end *e)
{
	struct vrb_channel_stats st;

	vrb_channel_stats(e->ch, &st);
	return st.sent;
}

/* The next N messages, numbered, by whatever way they came. */
static void take_all(struct end *e, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);
		uint32_t number;

		memcpy(&number, ev.buf->data, sizeof(number));
		CHECK(number == i);
		vrb_buf_put(ev.buf);
	}
}

static void want_closed(struct end *e)
{
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

/* ---- everything that was posted is there, and said in order */

static void takes(struct end *e)
{
	take_all(e, N);
	want_closed(e);
}

static void post(struct end *e, uint32_t i)
{
	struct vrb_send_options o = {.cookie = (void *)(uintptr_t)(i + 1),
				     .flags = i % 3 ? 0 : VRB_MORE};

	memcpy(mem, &i, sizeof(i));
	while (vrb_send(e->ch, mem, i % 10 ? 40 : LARGE, &o))
		CHECK(!vrb_drain(e->ch, PATIENT)); /* as good as ROOM */
}

static void drains(struct end *e)
{
	bool ended[N] = {false};
	struct vrb_event ev;
	uint32_t n = 0;

	CHECK(!vrb_drain(e->ch, 0));
	for (uint32_t i = 0; i < N; i++)
		post(e, i);
	CHECK(!vrb_drain(e->ch, PATIENT) && !vrb_drain(e->ch, 0));
	CHECK(done_of(e) == N);
	while (vrb_poll(e->ch, &ev, 1, 0) == 1) {
		uintptr_t i = (uintptr_t)ev.cookie;

		if (ev.kind == VRB_EV_ROOM)
			continue;
		CHECK(ev.kind == VRB_EV_SENT && ev.outcome == VRB_DONE && i && i <= N);
		CHECK(!ended[i - 1]);
		ended[i - 1] = true;
		n++;
	}
	CHECK(n == N);
}

static void case_all(void)
{
	const struct vrb_channel_options o = {.qps = 1}, busy = {.qps = 1, .engine = VRB_BUSY};

	run_pair(&(struct pair){.server = &o, .client = &o}, takes, drains);
	run_pair(&(struct pair){.server = &o, .client = &busy}, takes, drains);
}

/* ---- both ends at once: each fetches what the other offers */

static void drains_then_takes(struct end *e)
{
	for (uint32_t i = 0; i < 20; i++) {
		memcpy(mem, &i, sizeof(i));
		CHECK(!vrb_send(e->ch, mem, LARGE, NULL));
	}
	CHECK(!vrb_drain(e->ch, PATIENT));
	take_all(e, 20);
	send_all(e, mem, 1, NULL); /* the other has drained, too, before it sees the end */
	vrb_buf_put(want_event(e, VRB_EV_MESSAGE).buf);
}

static void server_of_two(struct end *e)
{
	drains_then_takes(e);
	want_closed(e);
}

static void case_both(void)
{
	const struct vrb_channel_options o = {.qps = 1};

	run_pair(&(struct pair){.server = &o, .client = &o}, server_of_two, drains_then_takes);
}

/* ---- the peer stands still: again; it goes on: done; it is gone: the channel has ended */

static void stops(struct end *e)
{
	struct vrb_send_options o = {.cookie = e};
	struct vrb_event ev;

	vrb_buf_put(want_event(e, VRB_EV_MESSAGE).buf);
	CHECK(!kill(child_pid, SIGSTOP));
	CHECK(!vrb_send(e->ch, mem, LARGE, &o));
	CHECK(vrb_drain(e->ch, 0) == -EAGAIN && vrb_drain(e->ch, 20 * MS) == -EAGAIN);
	CHECK(!vrb_poll(e->ch, &ev, 1, 0));
	CHECK(!kill(child_pid, SIGCONT));
	CHECK(!vrb_drain(e->ch, PATIENT));
	ev = next_event(e);
	CHECK(ev.kind == VRB_EV_SENT && ev.outcome == VRB_DONE);
	CHECK(!kill(child_pid, SIGSTOP));
	CHECK(!vrb_send(e->ch, mem, LARGE, &o));
	CHECK(!kill(child_pid, SIGKILL));
	CHECK(vrb_drain(e->ch, PATIENT) == -ENOTCONN);
	CHECK(!strcmp(vrb_error_name(), "send_ended"));
	ev = next_event(e);
	CHECK(ev.kind == VRB_EV_SENT && ev.outcome == VRB_FLUSHED);
	ev = next_event(e);
	CHECK(ev.kind == VRB_EV_BROKEN);
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
}

static void is_stopped(struct end *e)
{
	CHECK(!vrb_send(e->ch, mem, 1, NULL));
	for (;;)
		vrb_buf_put(want_event(e, VRB_EV_MESSAGE).buf);
}

static void case_stopped(void)
{
	const struct vrb_channel_options o = {.qps = 1};

	run_pair(&(struct pair){.server = &o, .client = &o}, stops, is_stopped);
}

/* ---- messages come and come: they must be taken before it goes on */

#define FLOOD 5000u
#define HUGE  (7u << 20)

static void floods(struct end *e)
{
	struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);
	struct vrb_buf *most, *more;

	vrb_buf_put(ev.buf);
	CHECK(!vrb_buf_get(e->d, (8u << 20) - 4096, &most));
	CHECK(!vrb_buf_get(e->d, (2u << 20) - 4096, &more));
	send_all(e, mem, 1, NULL); /* no room for the large one any more */
	for (uint32_t i = 0; i < FLOOD; i++)
		send_all(e, &i, sizeof(i), NULL);
	vrb_buf_put(most);
	vrb_buf_put(more);
	ev = want_event(e, VRB_EV_MESSAGE);
	CHECK(ev.buf->len == HUGE);
	vrb_buf_put(ev.buf);
	want_closed(e);
}

static void is_flooded(struct end *e)
{
	char *huge = calloc(1, HUGE);

	CHECK(!vrb_send(e->ch, mem, 1, NULL));
	vrb_buf_put(want_event(e, VRB_EV_MESSAGE).buf);
	UNTIL_ROOM(e, vrb_send(e->ch, huge, HUGE, NULL));
	CHECK(vrb_drain(e->ch, PATIENT) == -EAGAIN);
	take_all(e, FLOOD);
	CHECK(!vrb_drain(e->ch, PATIENT));
	free(huge);
}

static void case_flood(void)
{
	const struct vrb_channel_options o = {.qps = 1, .send_depth = 16, .recv_depth = 16};
	const struct vrb_domain_options small = {.pool_bytes = 16u << 20, .grow_bytes = SIZE_MAX};

	run_pair(&(struct pair){.domain = &small, .server = &o, .client = &o}, floods, is_flooded);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"all", case_all},
		{"both", case_both},
		{"stopped", case_stopped},
		{"flood", case_flood},
	};

	return kit_main(argc, argv, tests, 4);
}
