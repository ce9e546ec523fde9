/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	process A: 4 threads <=== 4 RC, windows of SENDs both ways ===> 4 threads: process B
 *	           one more registers, creates and destroys all the while, in each
 *
 * One engine and one pair of rings carry everything. Lengths are random, so that lines, payloads in
 * the data area and messages of several frames alternate; every byte is checked, and the order.
 */
#include "stress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 4
#define WINDOW	16u
#define SLOT	20000u
#define MARK	(1ull << 32)

struct worker {
	struct end e;
	pthread_t thread;
	int sock;
	long n;
	uint64_t seed;
};

static _Atomic bool stop;

static uint32_t length_of(uint64_t *seed)
{
	uint64_t r = rnd(seed);

	return 1 + (uint32_t)(r >> 8) % (r % 4 ? 200 : SLOT);
}

/* Message i of a direction: its length and bytes follow from i alone. */
static uint32_t fill(uint8_t *p, uint64_t i)
{
	uint64_t seed = i * 0x9e3779b97f4a7c15u + 1;
	uint32_t len = length_of(&seed);

	for (uint32_t k = 0; k < len; k++)
		p[k] = (uint8_t)(i + k * 7);
	return len;
}

static void check(const uint8_t *p, uint32_t len, uint64_t i)
{
	uint64_t seed = i * 0x9e3779b97f4a7c15u + 1;

	if (len != length_of(&seed))
		die("message %llu has %u bytes", (unsigned long long)i, len);
	for (uint32_t k = 0; k < len; k++)
		if (p[k] != (uint8_t)(i + k * 7))
			die("message %llu differs at byte %u of %u", (unsigned long long)i, k, len);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t sent = 0, acked = 0, got = 0, n = (uint64_t)w->n;
	struct end_id peer;
	struct ibv_wc wc;
	char c;

	for (uint64_t i = 0; i < WINDOW; i++)
		MUST(!end_recv(&w->e, MARK + i, (WINDOW + i) * SLOT, SLOT));
	MUST(end_meet(&w->e, w->sock, &peer));
	while (acked < n || got < n) {
		if (sent < n && sent - acked < WINDOW) {
			size_t at = sent % WINDOW * SLOT;

			MUST(!end_send(&w->e, sent, at, fill(w->e.buf + at, sent),
				       IBV_SEND_SIGNALED));
			sent++;
		}
		if (!end_wc(&w->e, &wc, sent < n && sent - acked < WINDOW ? 0 : WAIT_MS))
			continue;
		MUST(wc.status == IBV_WC_SUCCESS);
		if (wc.wr_id < MARK) {
			MUST(wc.wr_id == acked++);
			continue;
		}
		MUST(wc.wr_id == MARK + got % WINDOW);
		check(w->e.buf + (WINDOW + got % WINDOW) * SLOT, wc.byte_len, got);
		MUST(!end_recv(&w->e, wc.wr_id, (WINDOW + got % WINDOW) * SLOT, SLOT));
		got++;
	}
	MUST(put_all(w->sock, "q", 1) && get_all(w->sock, &c, 1));
	return arg;
}

/* Objects that come and go beside the traffic. */
static void *disturb(void *arg)
{
	struct end_opts o = {.ctx = arg, .len = 8192, .channel = true};

	while (!atomic_load(&stop)) {
		struct end a, b;

		end_open(&a, &o);
		end_open(&b, &o);
		end_connect(&a, &b.id);
		end_connect(&b, &a.id);
		MUST(!end_recv(&b, 7, 64, 64));
		MUST(!ibv_req_notify_cq(b.cq, 0));
		MUST(!end_send(&a, 1, 0, 64, IBV_SEND_SIGNALED));
		end_done(&b, 7);
		MUST(!ibv_resize_cq(a.cq, 300));
		end_done(&a, 1);
		end_close(&a);
		end_close(&b);
	}
	return arg;
}

static void play(const int *socks, long n)
{
	static struct worker w[THREADS];
	struct ibv_context *ctx = end_device();
	pthread_t extra;

	for (int i = 0; i < THREADS; i++) {
		struct end_opts o = {.ctx = ctx, .len = 2 * WINDOW * SLOT};

		end_open(&w[i].e, &o);
		w[i].sock = socks[i];
		w[i].n = n;
	}
	MUST(!pthread_create(&extra, NULL, disturb, ctx));
	for (int i = 0; i < THREADS; i++)
		MUST(!pthread_create(&w[i].thread, NULL, work, &w[i]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	atomic_store(&stop, true);
	pthread_join(extra, NULL);
	for (int i = 0; i < THREADS; i++)
		end_close(&w[i].e);
	MUST(!ibv_close_device(ctx));
}

void test_threads(long n)
{
	int here[THREADS], there[THREADS], sock;
	pid_t pid;

	for (int i = 0; i < THREADS; i++) {
		int s[2];

		MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
		here[i] = s[0];
		there[i] = s[1];
	}
	pid = start_child(&sock);
	play(pid ? here : there, n);
	if (!pid)
		_exit(0);
	join_child(pid);
}
