/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	event_vs_poll            the server
 *	event_vs_poll HOST [N]   the client: N calls in each way of waiting, one in a millisecond
 *
 * Both ends wait for each other in four ways: spinning, asleep, spinning as long as it has lately
 * been worth it, and in a loop of their own around poll(2). The client prints how long a call
 * takes, the server which part of a CPU its waiting costs.
 *
 *	verbena run ./event_vs_poll &  verbena run ./event_vs_poll 127.0.0.1
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <verbena/verbena.h>

#define PORT "18604"

/* Two ends that spin on a busy machine may be away for long: eight tries of half a second. */
static const struct vrb_channel_options options = {.ack_timeout_us = 500000};

enum way { BUSY, SLEEPY, ADAPTIVE, OWN_LOOP, WAYS };
static const char *const name[WAYS] = {"busy", "sleepy", "adaptive", "own loop"};

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, vrb_error_text());
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* CPU time of all threads of this process. */
static double cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void choose(struct vrb_channel *ch, enum way way)
{
	static const enum vrb_engine engine[] = {VRB_BUSY, VRB_SLEEPY, VRB_ADAPTIVE};

	if (way < OWN_LOOP)
		check(vrb_set_engine(ch, engine[way]), "engine");
}

/* The next event. In a loop of one's own: look, arm, look again if something has come in between
 * (vrb_arm says so), and only then sleep. Without that second look a wake-up can be lost. */
static struct vrb_event next(struct vrb_channel *ch, enum way way)
{
	struct pollfd p = {.fd = vrb_fd(ch), .events = POLLIN};
	struct vrb_event ev;
	int n;

	while ((n = vrb_poll(ch, &ev, 1, way == OWN_LOOP ? 0 : VRB_FOREVER)) == 0) {
		int armed = vrb_arm(ch);

		check(armed, "arm");
		if (armed == 0 && poll(&p, 1, -1) < 0)
			perror("poll");
	}
	check(n, "poll");
	if (ev.kind == VRB_EV_BROKEN) {
		fprintf(stderr, "%s\n", ev.text);
		exit(1);
	}
	return ev;
}

static void tell(enum way way, double since, double cpu_since)
{
	printf("%-8s  server: %3.0f %% of a CPU\n", name[way],
	       100 * (cpu() - cpu_since) / (now() - since));
}

/* Each request says how its successor is to be waited for. */
static void serve(struct vrb_domain *domain)
{
	double since = now(), cpu_since = cpu();
	struct vrb_listener *listener;
	struct vrb_channel *ch;
	enum way way = ADAPTIVE;
	struct vrb_event ev;

	check(vrb_listen(domain, NULL, PORT, &options, &listener), "listen");
	check(vrb_accept(listener, VRB_FOREVER, &ch), "accept");
	vrb_unlisten(listener);
	for (bool first = true;; first = false) {
		ev = next(ch, way);
		if (ev.kind == VRB_EV_CLOSED)
			break;
		if (ev.kind != VRB_EV_MESSAGE)
			continue;
		if (first || (ev.immediate != way && ev.immediate < WAYS)) {
			if (!first)
				tell(way, since, cpu_since);
			since = now();
			cpu_since = cpu();
			way = (enum way)ev.immediate;
			choose(ch, way);
		}
		check(vrb_send_buf(ch, ev.buf, NULL), "answer");
	}
	tell(way, since, cpu_since);
	(void)vrb_disconnect(ch, 0);
}

static void client(struct vrb_domain *domain, const char *host, int calls)
{
	struct vrb_channel *ch;

	check(vrb_connect(domain, host, PORT, &options, &ch), "connect");
	for (enum way way = BUSY; way < WAYS; way++) {
		const struct vrb_send_options o = {.immediate = way, .flags = VRB_IMMEDIATE};
		double sum = 0;

		choose(ch, way);
		for (int i = 0; i < calls; i++) {
			struct vrb_event ev = {.kind = VRB_EV_ROOM};
			double start = now();

			check(vrb_send(ch, "call", 4, &o), "send");
			while (ev.kind != VRB_EV_MESSAGE)
				ev = next(ch, way);
			sum += now() - start;
			vrb_buf_put(ev.buf);
			usleep(1000);
		}
		printf("%-8s  a call: %6.1f us\n", name[way], sum / calls * 1e6);
	}
	check(vrb_disconnect(ch, 1000000000), "disconnect");
}

int main(int argc, char **argv)
{
	int calls = argc > 2 ? atoi(argv[2]) : 1000;
	struct vrb_domain *domain;

	check(vrb_open(NULL, &domain), "open");
	if (argc < 2)
		serve(domain);
	else
		client(domain, argv[1], calls > 0 ? calls : 1);
	check(vrb_close(domain), "close");
	return 0;
}
