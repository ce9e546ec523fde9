/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small table of what the two processes reach on this machine: SEND latency by ping-pong (half of
 * a round trip), SEND bandwidth, SEND rate. Short first runs tell how many rounds fill the time
 * that is given to a figure. No figure decides whether the demo passes.
 */
#include "tools/demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/out.h"

#define ROUND_NS     300000000ull /* time of one figure */
#define PROBE_NS     20000000ull  /* a run of this length tells how many rounds that is */
#define PROBES_MAX   8
#define ROUNDS_MAX   1000000u
#define SIGNAL_EVERY DEMO_BATCH

/* The number of messages of one run; the sender decides, both run it. */
struct plan {
	uint32_t rounds; /* a multiple of SIGNAL_EVERY, so that no send is left unfinished */
	bool is_last;	 /* the run that is reported */
};

/* Sends message i of size bytes; takes completions so that the send queue never fills. */
static bool ping(struct demo *d, uint32_t i, uint32_t size)
{
	struct ibv_sge sge = vrb_demo_sge(d, 0, size);
	struct ibv_send_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_wc wc;

	if (size <= d->max_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	if (i % SIGNAL_EVERY == SIGNAL_EVERY - 1)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (!vrb_demo_post_send(d, &wr))
		return false;
	return i % SIGNAL_EVERY != SIGNAL_EVERY - 1 || vrb_demo_wait(d, d->send_cq, &wc);
}

/* The next receive is posted before the answer to this message goes out. */
static bool pong(struct demo *d, uint32_t size)
{
	struct ibv_wc wc;

	return vrb_demo_wait(d, d->recv_cq, &wc) &&
	       vrb_demo_post_recv(d, 0, DEMO_RECV_OFFSET, size);
}

/* rounds is a multiple of SIGNAL_EVERY, so that none is left unfinished. Samples are round trips.
 */
static bool ping_pong(struct demo *d, uint32_t size, uint32_t rounds, uint32_t *sample)
{
	uint64_t then = vrb_demo_now_ns(), now;

	for (uint32_t i = 0; i < rounds; i++) {
		if (d->is_sender) {
			if (!ping(d, i, size) || !pong(d, size))
				return false;
			now = vrb_demo_now_ns();
			if (sample)
				sample[i] = (uint32_t)(now - then);
			then = now;
		} else if (!pong(d, size) || !ping(d, i, size)) {
			return false;
		}
	}
	return true;
}

/* After a run of p that took ns the sender plans the next: longer probes until one is long enough
 * to tell how many rounds fill the time, then the last run. */
static bool plan_next(struct demo *d, struct plan *p, unsigned probes, uint64_t ns)
{
	uint64_t n = (uint64_t)p->rounds * 4;

	if (!d->is_sender)
		return vrb_demo_tcp_read(d, p, sizeof(*p));
	if (ns >= PROBE_NS || probes + 1 == PROBES_MAX) {
		n = ROUND_NS * p->rounds / (ns ? ns : 1);
		p->is_last = true;
	}
	n = n < ROUNDS_MAX ? n : ROUNDS_MAX;
	p->rounds = n < SIGNAL_EVERY ? SIGNAL_EVERY : (uint32_t)(n - n % SIGNAL_EVERY);
	return vrb_demo_tcp_write(d, p, sizeof(*p));
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report_latency(struct demo *d, uint32_t size, uint32_t *sample, uint32_t n)
{
	qsort(sample, n, sizeof(sample[0]), compare);
	json_array_append_new(json_object_get(d->report, "latency"),
			      json_pack("{s:i, s:f, s:f, s:i}", "bytes", (int)size, "p50 us",
					sample[n / 2] / 2000.0, "p99 us",
					sample[(uint64_t)n * 99 / 100] / 2000.0, "rounds", (int)n));
}

/* The receives of a measurement: all of them name the same buffer, what arrives is not looked at.
 */
static bool post_receives(struct demo *d, uint32_t n, uint32_t size)
{
	for (uint32_t i = 0; i < n; i++)
		if (!vrb_demo_post_recv(d, 0, DEMO_RECV_OFFSET, size))
			return false;
	return vrb_demo_sync(d);
}

/* One receive stays posted at the end; a last message takes it, so that the next figure starts
 * with an empty receive queue. */
static bool take_last(struct demo *d, uint32_t size)
{
	struct ibv_sge sge = vrb_demo_sge(d, 0, size);
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	return vrb_demo_post_send(d, &wr) && vrb_demo_wait(d, d->send_cq, &wc) &&
	       vrb_demo_wait(d, d->recv_cq, &wc) && vrb_demo_sync(d);
}

static bool latency(struct demo *d, uint32_t size)
{
	struct plan p = {.rounds = SIGNAL_EVERY};
	uint32_t *sample = NULL;
	uint64_t start;
	bool ok;

	if (!post_receives(d, 1, size))
		return false;
	for (unsigned i = 0; i < PROBES_MAX && !p.is_last; i++) {
		start = vrb_demo_now_ns();
		if (!ping_pong(d, size, p.rounds, NULL) ||
		    !plan_next(d, &p, i, vrb_demo_now_ns() - start))
			return false;
	}
	if (d->is_sender) {
		sample = malloc(p.rounds * sizeof(sample[0]));
		if (!sample)
			return vrb_demo_fail(d, "out of memory");
	}
	ok = ping_pong(d, size, p.rounds, sample);
	if (ok && d->is_sender)
		report_latency(d, size, sample, p.rounds);
	free(sample);
	return ok && take_last(d, size);
}

static bool throughput(struct demo *d, uint32_t size, uint32_t list)
{
	struct plan p = {.rounds = SIGNAL_EVERY};
	uint64_t ns = 1;

	for (unsigned i = 0; i < PROBES_MAX && !p.is_last; i++)
		if (!vrb_demo_stream(d, size, p.rounds, list, &ns) || !plan_next(d, &p, i, ns))
			return false;
	if (!vrb_demo_stream(d, size, p.rounds, list, &ns))
		return false;
	if (d->is_sender)
		json_array_append_new(json_object_get(d->report, "throughput"),
				      json_pack("{s:i, s:f, s:i}", "bytes", (int)size, "GB/s",
						(double)size * p.rounds / (double)ns, "messages/s",
						(int)(p.rounds * 1e9 / (double)ns)));
	return true;
}

bool vrb_demo_measure(struct demo *d)
{
	static const uint32_t latency_size[] = {8, 64, 256, 4096};
	static const uint32_t stream_size[] = {64 << 10, 1 << 20};
	char why[DEMO_WHY_BYTES];
	uint32_t at = 0;
	bool ok = true;

	json_object_set_new(d->report, "latency", json_array());
	json_object_set_new(d->report, "throughput", json_array());
	for (size_t i = 0; ok && i < sizeof(latency_size) / sizeof(latency_size[0]); i++)
		ok = latency(d, at = latency_size[i]);
	for (size_t i = 0; ok && i < sizeof(stream_size) / sizeof(stream_size[0]); i++)
		ok = throughput(d, at = stream_size[i], 1);
	ok = ok && throughput(d, at = 64, DEMO_LIST);
	if (!ok) {
		memcpy(why, d->why, sizeof(why));
		return vrb_demo_fail(d, "measuring %u bytes: %.*s", at, DEMO_WHY_BYTES - 40, why);
	}
	if (!d->is_sender || d->json)
		return true;
	puts("\nSEND, one way:");
	vrb_out_table(stdout, json_object_get(d->report, "latency"));
	puts("\nSEND, as many as possible (64 bytes: posted in lists of 16):");
	vrb_out_table(stdout, json_object_get(d->report, "throughput"));
	return true;
}
