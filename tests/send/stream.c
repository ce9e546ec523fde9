/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	send_stream MESSAGES LARGE QPS ENGINE [small] [shared]
 *
 * The client streams messages of 1 B to 4 KiB (small: to 64 B), and LARGE ones of log-uniform size
 * up to 1 MiB among them (shared: with one receive queue for all queue pairs), by many flows to a
 *receiver that stops at random. None is lost, each flow is in order, all bytes are right, the pools
 *end empty, memory is bounded, and no message met an empty receive queue.
 */
#include "send/kit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <verbena/stats.h>

#define FLOWS	   61u
#define MEMORY_MAX 400u /* MiB of a process; its pool has 64 */

static uint64_t n_small, n_large;
static unsigned most = 4096;
static struct vrb_channel_options options;

struct head {
	uint32_t flow, number, len, seed;
};

static uint64_t dice(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static size_t pick_len(uint64_t i, uint64_t *s)
{
	uint64_t every = n_large ? (n_small + n_large) / n_large : 0;

	if (every && i % every == 0)
		return (size_t)1 << (dice(s) % 21) | (size_t)(dice(s) % 1000);
	return 1 + dice(s) % most;
}

static void check_memory(void)
{
	struct rusage u;

	CHECK(!getrusage(RUSAGE_SELF, &u));
	printf("# at most %ld MiB of memory\n", u.ru_maxrss >> 10);
	CHECK(u.ru_maxrss >> 10 < MEMORY_MAX);
}

/* Of this process alone: others on the device may have their reasons. */
static uint64_t rnr_naks(void)
{
	static struct vrb_stats_page page;
	char link[64], path[32];

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0 || strncmp(link, "/memfd:verbena-stats", 20) != 0)
			continue;
		CHECK(pread(fd, &page, sizeof(page), 0) == sizeof(page));
		if (page.magic == VRB_STATS_MAGIC && page.pid == (uint32_t)getpid())
			return page.device[0].rnr_naks_received;
	}
	CHECK(!"the counters of this process");
	return 0;
}

static void take(struct vrb_buf *b, uint32_t flow, uint32_t *next)
{
	struct head h = {0};

	CHECK(flow < FLOWS);
	if (b->len >= sizeof(h)) {
		memcpy(&h, b->data, sizeof(h));
		if (h.flow != flow || h.number != next[flow] || h.len != b->len)
			fprintf(stderr, "flow %u number %u of %u bytes, wanted %u %u %u\n", h.flow,
				h.number, h.len, flow, next[flow], b->len);
		CHECK(h.flow == flow && h.number == next[flow] && h.len == b->len);
		CHECK(is_filled((char *)b->data + sizeof(h), h.seed,
				b->len - sizeof(h) < 64 ? b->len - sizeof(h) : 64));
		CHECK(((uint8_t *)b->data)[b->len - 1] == pattern(h.seed, b->len - sizeof(h) - 1) ||
		      b->len == sizeof(h));
	}
	next[flow]++;
	vrb_buf_put(b);
}

/* Pauses now and then, and keeps some messages for a while. */
static void receive(struct end *e)
{
	static uint32_t next[FLOWS];
	struct vrb_event ev[32];
	uint64_t got = 0, seed = 99;
	struct vrb_channel_stats st;

	while (got < n_small + n_large) {
		int n = vrb_poll(e->ch, ev, 32, WAIT);

		CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			if (ev[i].kind != VRB_EV_MESSAGE)
				fprintf(stderr, "event %d: %s\n", ev[i].kind, ev[i].text);
			CHECK(ev[i].kind == VRB_EV_MESSAGE);
			take(ev[i].buf, ev[i].flow, next);
			got++;
		}
		if (dice(&seed) % 20000 == 0)
			usleep(2000);
	}
	vrb_channel_stats(e->ch, &st);
	CHECK(st.received == got);
	CHECK(next_event(e).kind == VRB_EV_CLOSED);
	check_memory();
}

static void stream(struct end *e)
{
	static uint32_t next[FLOWS];
	char *mem = malloc(3 << 20);
	struct vrb_channel_stats st;
	uint64_t seed = 7, start = now_ns(), bytes = 0;
	double s;

	for (uint64_t i = 0; i < n_small + n_large; i++) {
		struct vrb_send_options o = {.flow = (uint32_t)(dice(&seed) % FLOWS)};
		size_t len = pick_len(i, &seed);
		struct head h = {o.flow, next[o.flow]++, (uint32_t)len, (uint32_t)dice(&seed)};

		if (len >= sizeof(h)) {
			memcpy(mem, &h, sizeof(h));
			fill(mem + sizeof(h), h.seed, len - sizeof(h) < 64 ? len - sizeof(h) : 64);
			if (len > sizeof(h))
				mem[len - 1] = (char)pattern(h.seed, len - sizeof(h) - 1);
		}
		if (dice(&seed) % 4 == 0)
			o.flags |= VRB_MORE;
		send_all(e, mem, len, &o);
		bytes += len;
	}
	CHECK(!vrb_flush(e->ch));
	vrb_channel_stats(e->ch, &st);
	s = (double)(now_ns() - start) / 1e9;
	printf("# %.0f messages/s, %.1f MB/s; %llu posts, %llu signaled, %llu inline, again: "
	       "%llu queue %llu credit %llu memory; %llu bare, %llu large, %llu sleeps\n",
	       (double)(n_small + n_large) / s, (double)bytes / s / 1e6,
	       (unsigned long long)st.posts, (unsigned long long)st.signaled,
	       (unsigned long long)st.inlined, (unsigned long long)st.again_queue,
	       (unsigned long long)st.again_credit, (unsigned long long)st.again_memory,
	       (unsigned long long)st.credit_messages, (unsigned long long)st.rendezvous,
	       (unsigned long long)st.sleeps);
	CHECK(!vrb_disconnect(e->ch, WAIT));
	e->ch = NULL;
	CHECK(!rnr_naks());
	check_memory();
	free(mem);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 5);
	for (int i = 5; i < argc; i++) {
		if (!strcmp(argv[i], "small"))
			most = 64;
		options.shared_receives |= !strcmp(argv[i], "shared");
	}
	n_small = strtoull(argv[1], NULL, 0);
	n_large = strtoull(argv[2], NULL, 0);
	options.qps = (unsigned)atoi(argv[3]);
	options.engine = !strcmp(argv[4], "busy")     ? VRB_BUSY
			 : !strcmp(argv[4], "sleepy") ? VRB_SLEEPY
						      : VRB_ADAPTIVE;
	run_pair(&(struct pair){.server = &options, .client = &options}, receive, stream);
	puts("1 passed, 0 failed, 0 skipped");
	return 0;
}
