/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `doctor HOST`: the way to a peer that runs `doctor --serve`: is it reached, how long does it
 * take, which packets does the way carry without fragmenting, are packets lost, reordered or
 * stripped of DSCP and ECN. Everything is bounded: a few seconds in the worst case.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/doctor.h"
#include "tools/doctor_probe.h"

#define REACH_TRIES   5
#define REACH_WAIT_MS 300
#define PINGS	      100
#define PINGS_LOST    5
#define MTU_TRIES     3
#define WAIT_MS_MIN   50
#define BURST	      4
#define BURSTS	      250
#define WINDOW	      48
#define BURST_NS      1000000
#define STREAM_BYTES  1052 /* a packet of path MTU 1024 */
#define DSCP	      26
/* BTH 12, RETH 16, immediate 4, ICRC 4 */
#define ROCE_BYTES 36

struct way {
	struct vrb_doc *d;
	struct vrb_probe p;
	int head;	    /* IP and UDP headers */
	int largest, local; /* IP packets: answered; refused by one's own interface, 0 none */
};

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool reach(struct way *w)
{
	struct vrb_answer a;
	int got;

	w->p.wait_ms = REACH_WAIT_MS;
	got = vrb_probe_once(&w->p, &a, VRB_PROBE_BYTES, REACH_TRIES);
	if (got > 0)
		return true;
	if (got == -ECONNREFUSED)
		vrb_doc_add(w->d, VRB_F_PATH_REFUSED, "{s:s, s:s, s:i}", "host", w->d->host,
			    "address", w->d->gid, "port", w->d->port);
	else if (got < 0)
		vrb_doc_add(w->d, VRB_F_PATH_UNREACHABLE, "{s:s, s:s, s:s}", "host", w->d->host,
			    "address", w->d->gid, "error", strerror(-got));
	else
		vrb_doc_add(w->d, VRB_F_PATH_SILENT, "{s:s, s:s, s:i, s:i}", "host", w->d->host,
			    "address", w->d->gid, "port", w->d->port, "tries", REACH_TRIES);
	return false;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void measure(struct way *w)
{
	double us[PINGS];
	int n = 0, lost = 0;
	char text[3][32];

	while (n < PINGS && lost < PINGS_LOST) {
		double start = now_us();
		struct vrb_answer a;

		if (vrb_probe_once(&w->p, &a, VRB_PROBE_BYTES + 40, 1) <= 0 || a.seq != w->p.seq)
			lost++;
		else
			us[n++] = now_us() - start;
	}
	if (!n)
		return;
	qsort(us, (size_t)n, sizeof(us[0]), by_value);
	snprintf(text[0], sizeof(text[0]), "%.0f", us[0]);
	snprintf(text[1], sizeof(text[1]), "%.0f", us[n / 2]);
	snprintf(text[2], sizeof(text[2]), "%.0f", us[n - 1 - n / 100]);
	vrb_doc_add(w->d, VRB_F_PATH, "{s:s, s:s, s:i, s:s, s:s, s:s, s:i}", "host", w->d->host,
		    "address", w->d->gid, "port", w->d->port, "min", text[0], "median", text[1],
		    "p99", text[2], "answers", n);
	w->p.wait_ms = (int)(us[n - 1] * 4 / 1000);
	if (w->p.wait_ms < WAIT_MS_MIN)
		w->p.wait_ms = WAIT_MS_MIN;
	if (w->p.wait_ms > REACH_WAIT_MS)
		w->p.wait_ms = REACH_WAIT_MS;
}

/* Whether an IP packet of that size comes through and back. */
static bool fits(struct way *w, int packet)
{
	struct vrb_answer a;
	int got;

	vrb_probe_session(&w->p);
	got = vrb_probe_ask(&w->p, packet - w->head);
	if (got == -EMSGSIZE) {
		if (!w->local || packet < w->local)
			w->local = packet;
		return false;
	}
	return vrb_probe_hear(&w->p, &a, w->p.wait_ms) > 0 ||
	       vrb_probe_once(&w->p, &a, packet - w->head, MTU_TRIES - 1) > 0;
}

static int path_mtu_of(const struct way *w, int packet)
{
	int mtu = 4096;

	while (mtu > 256 && mtu + w->head + ROCE_BYTES > packet)
		mtu /= 2;
	return mtu;
}

static void find_mtu(struct way *w)
{
	int low = w->head + VRB_PROBE_BYTES, high = VRB_PROBE_BYTES_MAX + 1;
	int local_mtu, carried;

	while (high - low > 1) {
		int middle = (low + high) / 2;

		if (fits(w, middle))
			low = middle;
		else
			high = middle;
	}
	w->largest = low;
	carried = path_mtu_of(w, low);
	/* refused here or gone on the way: where the own interface would take more, the way is at
	 * fault */
	local_mtu = path_mtu_of(w, w->local ? w->local - 1 : VRB_PROBE_BYTES_MAX);
	if (w->local != low + 1 && carried < local_mtu)
		vrb_doc_add(w->d, VRB_F_PATH_BLACK_HOLE, "{s:s, s:i, s:i, s:i}", "host", w->d->host,
			    "largest", low, "path_mtu", carried, "offered", local_mtu);
	else
		vrb_doc_add(w->d, carried < 4096 ? VRB_F_PATH_MTU_SMALL : VRB_F_PATH_MTU,
			    "{s:s, s:i, s:i}", "host", w->d->host, "largest", low, "path_mtu",
			    carried);
}

struct stream {
	int sent, answers, behind, given_up;
	uint32_t last, arrived, reordered;
	uint8_t tos;
};

static bool take(struct way *w, struct stream *s, int wait_ms)
{
	struct vrb_answer a;

	if (vrb_probe_hear(&w->p, &a, wait_ms) <= 0)
		return false;
	s->answers++;
	s->tos = a.tos;
	s->behind += a.seq < s->last;
	s->last = a.seq > s->last ? a.seq : s->last;
	s->arrived = a.arrived > s->arrived ? a.arrived : s->arrived;
	s->reordered = a.reordered > s->reordered ? a.reordered : s->reordered;
	return true;
}

/* A peer that has no CPU for a while is no bad way: not more than its buffer holds is under way.
 * What does not come then is given up. */
static void hold_back(struct way *w, struct stream *s)
{
	while (s->sent - s->answers - s->given_up > WINDOW)
		if (!take(w, s, REACH_WAIT_MS))
			s->given_up = s->sent - s->answers;
}

static void run_stream(struct way *w, struct stream *s)
{
	int bytes = STREAM_BYTES + w->head > w->largest ? w->largest - w->head : STREAM_BYTES;

	memset(s, 0, sizeof(*s));
	vrb_probe_session(&w->p);
	for (int b = 0; b < BURSTS; b++) {
		struct timespec pause = {.tv_nsec = BURST_NS};

		for (int i = 0; i < BURST; i++)
			s->sent += !vrb_probe_ask(&w->p, bytes);
		nanosleep(&pause, NULL);
		for (int i = 0; i < 2 * BURST && take(w, s, 0); i++)
			;
		hold_back(w, s);
	}
	for (int i = 0; i < 2 * BURST * BURSTS && take(w, s, REACH_WAIT_MS); i++)
		;
}

static void judge_stream(struct way *w, const struct stream *s)
{
	int there = s->sent - (int)s->arrived, back = (int)s->arrived - s->answers;
	int reordered = (int)s->reordered + s->behind;

	if (!s->answers)
		return;
	if (there > 0 || back > 0)
		vrb_doc_add(w->d, VRB_F_PATH_LOSS, "{s:s, s:i, s:i, s:i}", "host", w->d->host,
			    "sent", s->sent, "there", there > 0 ? there : 0, "back",
			    back > 0 ? back : 0);
	if (reordered)
		vrb_doc_add(w->d, VRB_F_PATH_REORDER, "{s:s, s:i, s:i, s:i}", "host", w->d->host,
			    "sent", s->sent, "there", (int)s->reordered, "back", s->behind);
	if (there <= 0 && back <= 0 && !reordered)
		vrb_doc_add(w->d, VRB_F_PATH_CLEAN, "{s:s, s:i}", "host", w->d->host, "sent",
			    s->sent);
	if (s->tos >> 2 != DSCP)
		vrb_doc_add(w->d, VRB_F_PATH_DSCP, "{s:s, s:i, s:i}", "host", w->d->host, "sent",
			    DSCP, "got", s->tos >> 2);
	if (!(s->tos & 3))
		vrb_doc_add(w->d, VRB_F_PATH_ECN, "{s:s, s:i}", "host", w->d->host, "tos", s->tos);
}

void vrb_check_path(struct vrb_doc *d)
{
	struct way w = {.d = d};
	struct stream s;
	int err = vrb_probe_open(&w.p, (struct sockaddr *)&d->to, d->to_len);

	if (err) {
		vrb_doc_add(d, VRB_F_PATH_UNREACHABLE, "{s:s, s:s, s:s}", "host", d->host,
			    "address", d->gid, "error", strerror(-err));
		return;
	}
	w.head = w.p.family == AF_INET6 ? 48 : 28;
	if (reach(&w)) {
		measure(&w);
		find_mtu(&w);
		run_stream(&w, &s);
		judge_stream(&w, &s);
	}
	close(w.p.fd);
}

bool vrb_doc_set_host(struct vrb_doc *d, const char *host)
{
	struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM}, *got;
	char port[16];
	bool ok;

	snprintf(port, sizeof(port), "%d", d->port);
	if (getaddrinfo(host, port, &want, &got))
		return false;
	ok = got->ai_addrlen <= sizeof(d->to) &&
	     !getnameinfo(got->ai_addr, got->ai_addrlen, d->host_address, sizeof(d->host_address),
			  NULL, 0, NI_NUMERICHOST);
	if (ok) {
		memcpy(&d->to, got->ai_addr, got->ai_addrlen);
		d->to_len = got->ai_addrlen;
		d->host = host;
		d->host_address[strcspn(d->host_address, "%")] = '\0';
		d->gid = d->host_address;
	}
	freeaddrinfo(got);
	return ok;
}
