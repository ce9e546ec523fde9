/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	sendlib [memory|pingpong]...      (both)
 *
 * What libverbena costs. memory: a buffer got and put back, and look-ups of keys among
 * 10,000 regions, the same one again and in random order. pingpong: one way of a ping-pong
 * over raw verbs, as a careful program does it (inline, one signal in 32, receives posted by
 * 16), and over libverbena, in turn between the same two processes; only their difference
 * counts.
 */
#include "probe.h"
#include "support/end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <verbena/verbena.h>

#define REGIONS 10000
#define ROUNDS	1000
#define TRIPS	200 /* short: what others do on the CPUs falls into few of them */
#define DEPTH	128
#define BATCH	16
#define SIGNAL	32

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, vrb_error_text());
	exit(1);
}

/* ---- memory */

static void pool_cost(struct vrb_domain *d, size_t len)
{
	struct windows w = {0};

	begin();
	for (int i = 0; i < 200; i++) {
		tick(&w);
		for (int k = 0; k < 10000; k++) {
			struct vrb_buf *b;

			must(vrb_buf_get(d, len, &b), "buffer");
			vrb_buf_put(b);
		}
	}
	tick(&w);
	emit("pool get + put", (long)len, "ns", median_window(&w) / 10000 * 1e9);
}

static void look_up(struct vrb_domain *d, uint8_t **at, bool random)
{
	struct windows w = {0};
	uint64_t state = 1;
	uint32_t order[4096], lkey, sum = 0;

	for (int k = 0; k < 4096; k++)
		order[k] = random ? (uint32_t)(rnd(&state) % REGIONS) : 77;
	begin();
	for (int i = 0; i < 200; i++) {
		tick(&w);
		for (int k = 0; k < 4096; k++) {
			must(vrb_lkey(d, at[order[k]] + 33, 8, &lkey), "key");
			sum += lkey;
		}
	}
	tick(&w);
	emit(random ? "lkey random" : "lkey repeated", REGIONS, "ns",
	     median_window(&w) / 4096 * 1e9);
	if (sum == 1)
		puts("");
}

static void memory(void)
{
	uint8_t *mem = malloc((size_t)REGIONS * 128), **at = calloc(REGIONS, sizeof(*at));
	struct vrb_region **r = calloc(REGIONS, sizeof(struct vrb_region *));
	struct vrb_domain *d;

	must(vrb_open(NULL, &d), "open");
	pool_cost(d, 64);
	pool_cost(d, 4096);
	for (int i = 0; i < REGIONS; i++) {
		at[i] = mem + (size_t)i * 128;
		must(vrb_register(d, at[i], 100, 0, &r[i]), "register");
	}
	look_up(d, at, false);
	look_up(d, at, true);
	for (int i = 0; i < REGIONS; i++)
		must(vrb_unregister(r[i]), "unregister");
	must(vrb_close(d), "close");
}

/* ---- ping-pong */

struct raw {
	struct end e;
	uint32_t sent, missing;
};

static void raw_refill(struct raw *w)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge = {.addr = (uintptr_t)w->e.buf, .length = 4096, .lkey = w->e.mr->lkey};

	for (; w->missing >= BATCH; w->missing -= BATCH) {
		for (int i = 0; i < BATCH; i++)
			wr[i] = (struct ibv_recv_wr){.next = i + 1 < BATCH ? &wr[i + 1] : NULL,
						     .sg_list = &sge,
						     .num_sge = 1};
		MUST(!ibv_post_recv(w->e.qp, wr, &bad));
	}
}

static void raw_send(struct raw *w, uint32_t len)
{
	bool inl = len <= 220;
	struct ibv_sge sge = {
		.addr = (uintptr_t)w->e.buf + 8192, .length = len, .lkey = w->e.mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = inl ? IBV_SEND_INLINE : 0};

	if (++w->sent % SIGNAL == 0)
		wr.send_flags |= IBV_SEND_SIGNALED;
	MUST(!ibv_post_send(w->e.qp, &wr, &bad));
}

static void raw_take(struct raw *w)
{
	struct ibv_wc wc[BATCH];
	bool got = false;

	while (!got) {
		int n = ibv_poll_cq(w->e.cq, BATCH, wc);

		for (int i = 0; i < n; i++) {
			MUST(wc[i].status == IBV_WC_SUCCESS);
			got |= wc[i].opcode == IBV_WC_RECV;
			w->missing += wc[i].opcode == IBV_WC_RECV;
		}
	}
	raw_refill(w);
}

static void lib_take(struct vrb_channel *ch)
{
	struct vrb_event ev[4];
	int n = vrb_poll(ch, ev, 4, VRB_FOREVER);

	must(n, "poll");
	MUST(n == 1 && ev[0].kind == VRB_EV_MESSAGE);
	vrb_buf_put(ev[0].buf);
}

static void raw_trips(struct raw *w, bool first, uint32_t len)
{
	for (int i = 0; i < TRIPS; i++) {
		if (first)
			raw_send(w, len);
		raw_take(w);
		if (!first)
			raw_send(w, len);
	}
}

static void lib_trips(struct vrb_channel *ch, bool first, const void *mem, uint32_t len)
{
	for (int i = 0; i < TRIPS; i++) {
		if (first)
			must(vrb_send(ch, mem, len, NULL), "send");
		lib_take(ch);
		if (!first)
			must(vrb_send(ch, mem, len, NULL), "send");
	}
}

static int other; /* a socket to the other process */

/* The same two processes, raw and library in turn. */
static void rounds(struct raw *w, struct vrb_channel *ch, bool first, uint32_t len)
{
	static struct windows raw, lib, both;
	static char mem[4096];

	raw.n = lib.n = both.n = 0;
	if (first) {
		begin(); /* moves its caller about, and the other must not spin meanwhile */
		pin(0);
		MUST(put_all(other, mem, 1));
	} else {
		MUST(get_all(other, mem, 1));
	}
	for (int i = 0; i <= ROUNDS; i++) {
		double t[3];

		t[0] = wall();
		raw_trips(w, first, len);
		t[1] = wall();
		lib_trips(ch, first, mem, len);
		t[2] = wall();
		if (!i)
			continue; /* warming up */
		sample(&raw, t[1] - t[0]);
		sample(&lib, t[2] - t[1]);
		sample(&both, (t[2] - t[1]) - (t[1] - t[0]));
	}
	if (!first)
		return;
	emit("raw SEND one-way", len, "ns", median_sample(&raw) / TRIPS / 2 * 1e9);
	emit("libverbena one-way", len, "ns", median_sample(&lib) / TRIPS / 2 * 1e9);
	emit("libverbena more than raw", len, "ns", median_sample(&both) / TRIPS / 2 * 1e9);
}

static void pingpong(void)
{
	struct vrb_channel_options o = {.qps = 1, .engine = VRB_BUSY};
	struct end_opts eo = {.send_wr = DEPTH, .recv_wr = DEPTH, .inline_max = 220, .len = 16384};
	struct raw w = {.missing = DEPTH};
	struct vrb_domain *d;
	struct vrb_listener *l;
	struct vrb_channel *ch;
	struct end_id peer;
	char port[16];
	int s[2], me;
	pid_t child;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	child = spawn(1);
	if (child)
		pin(0);
	other = me = s[child ? 0 : 1];
	end_open(&w.e, &eo);
	raw_refill(&w);
	MUST(end_meet(&w.e, me, &peer));
	must(vrb_open(NULL, &d), "open");
	if (child) {
		must(vrb_listen(d, "127.0.0.1", "0", &o, &l), "listen");
		snprintf(port, sizeof(port), "%d", vrb_listener_port(l));
		MUST(put_all(me, port, sizeof(port)));
		must(vrb_accept(l, VRB_FOREVER, &ch), "accept");
	} else {
		MUST(get_all(me, port, sizeof(port)));
		must(vrb_connect(d, "127.0.0.1", port, &o, &ch), "connect");
	}
	rounds(&w, ch, child, 8);
	rounds(&w, ch, child, 64);
	rounds(&w, ch, child, 2048);
	(void)vrb_disconnect(ch, 1000000000);
	if (!child)
		_exit(0);
	reap(child);
}

int main(int argc, char **argv)
{
	bool all = argc < 2;

	for (int i = 1; i < argc || all; i++, all = false) {
		if (all || !strcmp(argv[i], "memory"))
			memory();
		if (all || !strcmp(argv[i], "pingpong"))
			pingpong();
		if (all)
			break;
	}
	return 0;
}
