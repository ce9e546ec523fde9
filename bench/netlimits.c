/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	netlimits [ping|tcp|stream|rate]...      (all)
 *
 * What two processes can do at most through UDP sockets, with no protocol at all, from this network
 * namespace to that of BENCH_NETNS (a path; without it within this one): the ping-pong of spinning
 * sockets, the stream of segmented sends and merged receives with the CRC taken on both sides and
 * the copy to the user, the rate of small datagrams. Credit travels in shared memory, so nothing is
 * lost and no acknowledgement costs anything. BENCH_HERE and BENCH_THERE: the two IPv4 addresses;
 * BENCH_PACKET: bytes of a datagram of the stream.
 */
#include "probe.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <libdeflate.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#define BUFFER	 (4 << 20)
#define SEND_MAX 65000u
#define PORT	 20000
#define PATIENCE 5.0 /* seconds without a packet */

#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "netlimits: %s: %s\n", #cond, strerror(errno));            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct windows w;

static struct sockaddr_in address(const char *variable, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	const char *s = getenv(variable);

	MUST(inet_pton(AF_INET, s ? s : "127.0.0.1", &a.sin_addr) == 1);
	return a;
}

static int udp_socket(const struct sockaddr_in *at)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0), v = BUFFER, on = 1;

	MUST(s >= 0);
	setsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, sizeof(v));
	setsockopt(s, SOL_SOCKET, SO_SNDBUF, &v, sizeof(v));
	v = IP_PMTUDISC_DO;
	MUST(!setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &v, sizeof(v)));
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	MUST(!bind(s, (const struct sockaddr *)at, sizeof(*at)));
	return s;
}

/* What both sides see of each other. */
struct credit {
	_Alignas(64) _Atomic uint32_t up;
	_Alignas(64) _Atomic uint64_t got;
};

static void spin_recv(int s, char *buf, size_t n)
{
	double end = 0;

	for (unsigned i = 1; recv(s, buf, n, MSG_DONTWAIT) < 0; i++) {
		if (i % 1024)
			continue;
		if (end == 0)
			end = wall() + PATIENCE;
		MUST(wall() < end);
	}
}

/* ---- ping-pong of unconnected sockets */

static void ping(size_t n)
{
	enum { TRIPS = 20, WINDOWS = 400 };
	const struct sockaddr_in a = address("BENCH_HERE", PORT);
	const struct sockaddr_in b = address("BENCH_THERE", PORT);
	struct credit *c = shared(sizeof(*c));
	char buf[8192] = {0};
	pid_t child;
	int s;

	begin();
	child = spawn(1);
	if (child)
		pin(0);
	s = udp_socket(child ? &a : &b);
	if (!child)
		c->up = 1;
	else
		SPIN_UNTIL(c->up);
	w.n = 0;
	for (int i = 0; i < TRIPS * WINDOWS; i++) {
		const struct sockaddr_in *to = child ? &b : &a;

		if (child && i % TRIPS == 0)
			tick(&w);
		if (!child)
			spin_recv(s, buf, sizeof(buf));
		MUST(sendto(s, buf, n, 0, (const void *)to, sizeof(*to)) == (ssize_t)n);
		if (child)
			spin_recv(s, buf, sizeof(buf));
	}
	close(s);
	if (!child)
		_exit(0);
	reap(child);
	emit("limit UDP one-way", (long)n, "ns", median_window(&w) / TRIPS / 2 * 1e9);
}

static void tcp_ping(size_t n)
{
	enum { TRIPS = 20, WINDOWS = 400 };
	const struct sockaddr_in b = address("BENCH_THERE", PORT);
	struct credit *c = shared(sizeof(*c));
	char buf[8192] = {0};
	int s, on = 1;
	pid_t child;

	begin();
	child = spawn(1);
	s = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (child) {
		pin(0);
		SPIN_UNTIL(c->up);
		MUST(!connect(s, (const void *)&b, sizeof(b)));
	} else {
		MUST(!bind(s, (const void *)&b, sizeof(b)) && !listen(s, 1));
		c->up = 1;
		MUST((s = accept(s, NULL, NULL)) >= 0);
	}
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	w.n = 0;
	for (int i = 0; i < TRIPS * WINDOWS; i++) {
		if (child && i % TRIPS == 0)
			tick(&w);
		if (!child)
			spin_recv(s, buf, n);
		MUST(send(s, buf, n, 0) == (ssize_t)n);
		if (child)
			spin_recv(s, buf, n);
	}
	close(s);
	if (!child)
		_exit(0);
	reap(child);
	emit("limit TCP one-way", (long)n, "ns", median_window(&w) / TRIPS / 2 * 1e9);
}

/* ---- stream */

struct stream {
	size_t packet;
	uint64_t unit, total; /* bytes of a send, of the run */
	bool crc;	      /* and copied to the user */
};

static void stream_recv(const struct stream *t, struct credit *c)
{
	enum { BUFFERS = 4 };
	const struct sockaddr_in b = address("BENCH_THERE", PORT);
	static char buffer[BUFFERS][65536], user[1 << 20];
	struct mmsghdr m[BUFFERS] = {0};
	struct iovec iov[BUFFERS];
	uint64_t at = 0;
	int s = udp_socket(&b), on = 1, n;
	double end = wall() + PATIENCE;
	volatile uint32_t sink = 0;

	MUST(!setsockopt(s, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)));
	for (int i = 0; i < BUFFERS; i++) {
		iov[i] = (struct iovec){buffer[i], sizeof(buffer[i])};
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	memset(buffer, 1, sizeof(buffer));
	memset(user, 1, sizeof(user));
	c->up = 1;
	for (uint64_t got = 0; got < t->total;) {
		n = recvmmsg(s, m, BUFFERS, MSG_DONTWAIT, NULL);
		if (n <= 0) {
			MUST(wall() < end);
			continue;
		}
		end = wall() + PATIENCE;
		for (int i = 0; i < n; i++) {
			got += m[i].msg_len;
			for (size_t o = 0; t->crc && o < m[i].msg_len; o += t->packet) {
				sink = libdeflate_crc32(sink, buffer[i] + o, t->packet);
				at = at + 2 * t->packet > sizeof(user) ? 0 : at + t->packet;
				memcpy(user + at, buffer[i] + o, t->packet);
			}
		}
		atomic_store_explicit(&c->got, got, memory_order_release);
	}
	_exit(0);
}

static void stream_send(const struct stream *t, struct credit *c)
{
	const struct sockaddr_in a = address("BENCH_HERE", PORT), b = address("BENCH_THERE", PORT);
	uint64_t window = t->unit * 3 > 1 << 20 ? t->unit * 3 : 1 << 20, sent = 0, next = 0;
	uint64_t step = (t->total / 100 + t->unit - 1) / t->unit * t->unit;
	static char buffer[65536];
	int s = udp_socket(&a), g = (int)t->packet;
	double end = wall() + PATIENCE * 2;

	MUST(!setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &g, sizeof(g)));
	memset(buffer, 2, sizeof(buffer));
	SPIN_UNTIL(c->up);
	w.n = 0;
	while (sent < t->total) {
		if (sent >= next) {
			tick(&w);
			next += step;
		}
		while (sent + t->unit - atomic_load_explicit(&c->got, memory_order_acquire) >
		       window) {
			relax();
			MUST(wall() < end);
		}
		for (size_t o = 0; t->crc && o < t->unit; o += t->packet) {
			uint32_t crc = libdeflate_crc32(0, buffer + o, t->packet - 4);

			memcpy(buffer + o + t->packet - 4, &crc, 4);
		}
		MUST(sendto(s, buffer, t->unit, 0, (const void *)&b, sizeof(b)) ==
		     (ssize_t)t->unit);
		sent += t->unit;
	}
	close(s);
}

/* The median time of a hundredth of the run's bytes, in seconds per byte. */
static double stream(size_t packet, bool crc, uint64_t bytes)
{
	struct credit *c = shared(sizeof(*c));
	struct stream t = {.packet = packet, .crc = crc};
	uint64_t n = SEND_MAX / packet, step;
	pid_t child;

	t.unit = (n > 64 ? 64 : n) * packet;
	t.total = (bytes + t.unit - 1) / t.unit * t.unit;
	step = (t.total / 100 + t.unit - 1) / t.unit * t.unit;
	begin();
	child = spawn(1);
	if (!child)
		stream_recv(&t, c);
	pin(0);
	stream_send(&t, c);
	reap(child);
	return median_window(&w) / (double)step;
}

int main(int argc, char **argv)
{
	const char *s = getenv("BENCH_PACKET");
	size_t packet = s ? (size_t)atoi(s) : 4112;

	MUST(packet >= 64 && packet <= SEND_MAX);
	if (wanted(argc, argv, "ping"))
		ping(64);
	if (wanted(argc, argv, "tcp"))
		tcp_ping(64);
	if (wanted(argc, argv, "stream"))
		emit("limit UDP stream", (long)packet, "MB/s",
		     1e-6 / stream(packet, false, 256 << 20));
	if (wanted(argc, argv, "stream"))
		emit("limit UDP stream, CRC and copy", (long)packet, "MB/s",
		     1e-6 / stream(packet, true, 256 << 20));
	if (wanted(argc, argv, "rate"))
		emit("limit UDP rate", 64, "M/s", 1e-6 / (64 * stream(64, false, 64 << 20)));
	return 0;
}
