/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITE and READ with long lists, deadlines, reports, a loop of one's own, flows on queue pairs. */
#include "send/kit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define AREA (1u << 20)

/* ---- WRITE and READ: the server exports, the client writes 100 pieces, reads them back shuffled
 */

static void put_u64(struct end *e, uint64_t v)
{
	send_all(e, &v, sizeof(v), NULL);
}

static void take_u64(struct end *e, uint64_t want)
{
	struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);
	uint64_t v;

	CHECK(ev.buf->len == sizeof(v));
	memcpy(&v, ev.buf->data, sizeof(v));
	CHECK(v == want);
	vrb_buf_put(ev.buf);
}

static void exports(struct end *e)
{
	char *area = aligned_alloc(4096, AREA);
	struct vrb_region *r;
	struct vrb_remote remote;

	CHECK(!vrb_register(e->d, area, AREA, VRB_REMOTE_READ | VRB_REMOTE_WRITE, &r));
	CHECK(!vrb_export(r, &remote));
	send_all(e, &remote, sizeof(remote), NULL);
	take_u64(e, 1); /* behind the WRITE on the same queue pair */
	CHECK(is_filled(area + 5, 3, 100 * 100));
	fill(area, 4, AREA);
	put_u64(e, 2);
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
	CHECK(!vrb_unregister(r));
	free(area);
}

static void want_done(struct end *e, void *cookie)
{
	struct vrb_event ev = want_event(e, VRB_EV_SENT);

	CHECK(ev.outcome == VRB_DONE && ev.cookie == cookie);
}

static void one_sided(struct end *e)
{
	char *area = aligned_alloc(4096, AREA), *copy = malloc(AREA);
	struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);
	struct vrb_send_options o = {.remote_offset = 5, .cookie = area};
	struct vrb_remote remote;
	struct iovec iov[100];
	struct vrb_region *r;

	memcpy(&remote, ev.buf->data, sizeof(remote));
	vrb_buf_put(ev.buf);
	CHECK(!vrb_register(e->d, area, AREA, 0, &r));
	for (int i = 0; i < 100; i++)
		iov[i] = (struct iovec){area + (99 - i) * 1000, 100};
	fill(copy, 3, 100 * 100);
	for (int i = 0; i < 100; i++)
		memcpy(iov[i].iov_base, copy + i * 100, 100);
	CHECK(!vrb_write(e->ch, iov, 100, &remote, &o));
	put_u64(e, 1);
	CHECK(vrb_channel_latency(e->ch));
	want_done(e, area);
	take_u64(e, 2);
	CHECK(vrb_channel_latency(e->ch)->count && vrb_channel_latency(e->ch)->min > 100);
	o.remote_offset = 0;
	CHECK(!vrb_read(e->ch, iov, 100, &remote, &o));
	want_done(e, area);
	for (int i = 0; i < 100; i++)
		memcpy(copy + i * 100, iov[i].iov_base, 100);
	CHECK(is_filled(copy, 4, 100 * 100));
	CHECK(!vrb_disconnect(e->ch, WAIT));
	e->ch = NULL;
	CHECK(!vrb_unregister(r));
	free(area);
	free(copy);
}

/* ---- deadlines: the peer is stopped, its adapter's thread with it */

static void stops(struct end *e)
{
	struct vrb_send_options o = {.cookie = e, .timeout_ns = 20 * MS};
	struct vrb_event ev[8];
	char *mem = malloc(100000);
	struct vrb_region *r;
	struct iovec iov = {mem, 100000};
	int late = 0, done = 0, released = 0, n_sent = 0, r_end;

	CHECK(!vrb_register(e->d, mem, 100000, VRB_REMOTE_READ, &r));
	take_u64(e, 1);
	CHECK(!kill(child_pid, SIGSTOP));
	/* Without inline data one offer is under way at a time. */
	while (n_sent < 3 && !vrb_sendv(e->ch, &iov, 1, &o))
		n_sent++;
	CHECK(n_sent);
	while (late < n_sent) {
		int n = vrb_poll(e->ch, ev, 8, WAIT);

		CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			if (ev[i].kind == VRB_EV_ROOM)
				continue;
			CHECK(ev[i].kind == VRB_EV_SENT && ev[i].outcome == VRB_TIMED_OUT);
			late++;
		}
	}
	CHECK(!kill(child_pid, SIGCONT));
	o.timeout_ns = 0;
	while ((r_end = vrb_send(e->ch, "end", 3, &o)) == -EAGAIN)
		released += next_event(e).kind == VRB_EV_RELEASED;
	CHECK(!r_end);
	while (released < n_sent || done < 1) {
		struct vrb_event one = next_event(e);

		released += one.kind == VRB_EV_RELEASED;
		done += one.kind == VRB_EV_SENT && one.outcome == VRB_DONE;
		CHECK(one.kind != VRB_EV_BROKEN && one.kind != VRB_EV_MESSAGE);
	}
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
	CHECK(!vrb_unregister(r));
	free(mem);
}

static void is_stopped(struct end *e)
{
	put_u64(e, 1);
	for (uint32_t len = 0; len != 3;) {
		struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);

		len = ev.buf->len;
		CHECK(len == 3 || len == 100000);
		vrb_buf_put(ev.buf);
	}
}

/* ---- a loop of one's own: never inside of vrb_poll asleep; the peer pauses at random */

static void by_fd(struct end *e, int n, int first)
{
	uint64_t seed = 5 + (uint64_t)first;
	struct vrb_event ev[4];
	int sent = first, got = 0;

	if (first)
		CHECK(!vrb_send(e->ch, "x", 1, NULL));
	while (got < n) {
		struct pollfd p = {.fd = vrb_fd(e->ch), .events = POLLIN};
		int k;

		while ((k = vrb_poll(e->ch, ev, 4, 0)) > 0)
			for (int i = 0; i < k; i++) {
				CHECK(ev[i].kind == VRB_EV_MESSAGE);
				vrb_buf_put(ev[i].buf);
				got++;
				if (sent++ < n)
					CHECK(!vrb_send(e->ch, "x", 1, NULL));
			}
		CHECK(k == 0);
		seed = seed * 6364136223846793005ull + 1;
		if (seed >> 60 == 0)
			usleep((useconds_t)(seed >> 32) % 300);
		if (got < n && !vrb_arm(e->ch))
			CHECK(poll(&p, 1, 5000) == 1);
	}
}

static void loop_server(struct end *e)
{
	by_fd(e, 3000, 0);
	while (next_event(e).kind != VRB_EV_CLOSED)
		;
}

static void loop_client(struct end *e)
{
	by_fd(e, 3000, 1);
}

/* ---- a large message for which there is no memory yet, and many small ones behind it */

#define LARGE  (7u << 20)
#define BEHIND 3000

static void has_no_room(struct end *e)
{
	uint64_t start = now_ns();
	struct vrb_buf *half, *more;
	int got = -1;

	CHECK(!vrb_buf_get(e->d, (8u << 20) - 4096, &half));
	CHECK(!vrb_buf_get(e->d, (2u << 20) - 4096, &more));
	while (got < BEHIND) {
		struct vrb_event ev;
		int n = vrb_poll(e->ch, &ev, 1, half ? 10 * MS : WAIT);

		if (half && now_ns() - start > 300 * MS) {
			vrb_buf_put(half);
			vrb_buf_put(more);
			half = NULL;
		}
		CHECK(n || half);
		if (!n)
			continue;
		CHECK(ev.kind == VRB_EV_MESSAGE);
		CHECK(got < 0 ? ev.buf->len == LARGE : *(int *)ev.buf->data == got);
		got++;
		vrb_buf_put(ev.buf);
	}
	if (half) {
		vrb_buf_put(half);
		vrb_buf_put(more);
	}
}

static void sends_behind(struct end *e)
{
	static char large[LARGE];

	send_all(e, large, LARGE, NULL);
	for (int i = 0; i < BEHIND; i++)
		send_all(e, &i, sizeof(i), NULL);
}

/* ---- flows */

static void flows(struct end *e)
{
	/* A published vector: 66.9.149.187:2794 to 161.142.100.80:1766. */
	const uint8_t tuple[12] = {66, 9, 149, 187, 161, 142, 100, 80, 10, 234, 6, 230};
	unsigned on[4] = {0};

	CHECK(vrb_flow_hash(e->ch, tuple, 12) == 0x51ccc178);
	CHECK(vrb_flow_hash(e->ch, tuple, 8) == 0x323e8fc2);
	CHECK(vrb_flow_qp(e->ch, 0x51ccc178, VRB_HASHED) < 4);
	for (uint32_t flow = 0; flow < 4000; flow++) {
		uint32_t key = htonl(flow);

		CHECK(vrb_flow_qp(e->ch, flow, 0) ==
		      vrb_flow_qp(e->ch, vrb_flow_hash(e->ch, &key, 4), VRB_HASHED));
		on[vrb_flow_qp(e->ch, flow, 0)]++;
	}
	for (int i = 0; i < 4; i++)
		CHECK(on[i] > 700 && on[i] < 1300);
}

static void nothing(struct end *e)
{
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

int main(void)
{
	const struct vrb_channel_options four = {.qps = 4}, one = {.qps = 1, .latency = true};
	const struct vrb_channel_options few = {.qps = 1, .sges = 3, .latency = true};

	const struct vrb_channel_options shallow = {.qps = 1, .send_depth = 16, .recv_depth = 16};
	const struct vrb_domain_options small = {.pool_bytes = 16u << 20};

	run_pair(&(struct pair){.client = &one}, exports, one_sided);
	run_pair(&(struct pair){.client = &few}, exports, one_sided);
	run_pair(&(struct pair){.client = &one}, stops, is_stopped);
	run_pair(&(struct pair){.domain = &small, .client = &shallow, .server = &shallow},
		 has_no_room, sends_behind);
	run_pair(&(struct pair){0}, loop_server, loop_client);
	run_pair(&(struct pair){.client = &four, .server = &four}, nothing, flows);
	puts("6 passed, 0 failed, 0 skipped");
	return 0;
}
