/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/kit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int child_pid;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint8_t pattern(uint64_t seed, uint64_t i)
{
	return (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

void fill(void *at, uint64_t seed, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)at)[i] = pattern(seed, i);
}

int is_filled(const void *at, uint64_t seed, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((const uint8_t *)at)[i] != pattern(seed, i))
			return 0;
	return 1;
}

static void run_client(const struct pair *p, const char *port, side *client)
{
	struct end e;

	CHECK(!vrb_open(p->domain, &e.d));
	CHECK(!vrb_connect(e.d, "127.0.0.1", port, p->client, &e.ch));
	client(&e);
	if (e.ch)
		CHECK(!vrb_disconnect(e.ch, WAIT));
	CHECK(!vrb_close(e.d));
	exit(0);
}

void run_pair(const struct pair *p, side *server, side *client)
{
	struct vrb_listener *l;
	int port[2], status;
	char text[16];
	struct end e;

	CHECK(!pipe(port));
	child_pid = fork();
	if (!child_pid) {
		close(port[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(read(port[0], text, sizeof(text)) > 0);
		run_client(p, text, client);
	}
	CHECK(!vrb_open(p->domain, &e.d));
	CHECK(!vrb_listen(e.d, "127.0.0.1", "0", p->server, &l));
	snprintf(text, sizeof(text), "%d", vrb_listener_port(l));
	CHECK(write(port[1], text, sizeof(text)) == sizeof(text));
	CHECK(!vrb_accept(l, WAIT, &e.ch));
	vrb_unlisten(l);
	server(&e);
	if (e.ch)
		CHECK(!vrb_disconnect(e.ch, WAIT));
	if (vrb_close(e.d)) {
		vrb_leak_report(e.d, 2);
		CHECK(!"closed");
	}
	close(port[0]);
	close(port[1]);
	CHECK(waitpid(child_pid, &status, 0) == child_pid);
	CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
}

struct vrb_event next_event(struct end *e)
{
	struct vrb_event ev;
	int n = vrb_poll(e->ch, &ev, 1, WAIT);

	CHECK(n == 1);
	return ev;
}

struct vrb_event want_event(struct end *e, enum vrb_event_kind kind)
{
	struct vrb_event ev;

	do
		ev = next_event(e);
	while ((ev.kind == VRB_EV_ROOM && kind != VRB_EV_ROOM) ||
	       (ev.kind == VRB_EV_SENT && ev.outcome == VRB_DONE && kind == VRB_EV_ROOM));
	if (ev.kind != kind)
		fprintf(stderr, "event %d, wanted %d: %s\n", ev.kind, kind,
			ev.text ? ev.text : vrb_outcome_str(ev.outcome));
	CHECK(ev.kind == kind);
	return ev;
}

void send_all(struct end *e, const void *data, size_t len, const struct vrb_send_options *o)
{
	UNTIL_ROOM(e, vrb_send(e->ch, data, len, o));
}
