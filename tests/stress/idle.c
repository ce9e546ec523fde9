/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	busy traffic first, then both: sleeping in ibv_get_cq_event | sleeping in poll() | just open
 *
 * A process that waits uses no CPU: its clock ticks (1/100 s) over three seconds are counted in
 * /proc/self/stat by another process. Up to two ticks are forgiven, and on a
 * busy machine a process may come to rest late: in the end it must.
 */
#include "stress.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPANS 10

enum how { GET_EVENT, POLL_FD, JUST_OPEN };

/* Both ends have the same number of rounds: until one of them has said that it was its last. */
static void traffic(struct end *e, long n)
{
	struct ibv_wc wc;

	e->buf[0] = e->buf[64] = 1;
	for (long i = 0; e->buf[0] && e->buf[64]; i++) {
		e->buf[0] = go_on(i, n);
		MUST(!end_recv(e, 7, 64, 64));
		MUST(!end_send(e, 1, 0, 64, IBV_SEND_SIGNALED));
		for (int got = 0; got < 2; got++)
			MUST(end_wc(e, &wc, WAIT_MS) && wc.status == IBV_WC_SUCCESS);
	}
}

static void sleeper(int sock, enum how how, long n)
{
	struct end_opts o = {.channel = true};
	struct end_id peer;
	struct ibv_cq *cq;
	struct end e;
	void *user;

	end_open(&e, &o);
	if (sock >= 0) {
		MUST(end_meet(&e, sock, &peer));
		traffic(&e, n);
		MUST(put_all(sock, "t", 1));
	}
	MUST(!ibv_req_notify_cq(e.cq, 0));
	if (how == GET_EVENT)
		ibv_get_cq_event(e.chan, &cq, &user);
	else if (how == POLL_FD)
		poll(&(struct pollfd){.fd = e.chan->fd, .events = POLLIN}, 1, -1);
	else
		pause();
	die("woke up without a reason");
}

static long ticks_of(pid_t pid)
{
	char path[64], text[1024], *p;
	unsigned long user, system;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY);
	MUST(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	MUST(n > 0);
	text[n] = 0;
	p = strrchr(text, ')');
	MUST(p && sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			 &system) == 2);
	return (long)(user + system);
}

/* Of the one that has used more; b: 0 for none. */
static long ticks_in_span(pid_t a, pid_t b)
{
	struct timespec span = {.tv_sec = 3};
	long ta = ticks_of(a), tb = b ? ticks_of(b) : 0;

	nanosleep(&span, NULL);
	ta = ticks_of(a) - ta;
	tb = b ? ticks_of(b) - tb : 0;
	return ta > tb ? ta : tb;
}

static void watch(enum how how, bool with_traffic, long n)
{
	int s = -1, back = -1, status;
	pid_t a = start_child(&back), b = 0;
	struct timespec settle = {.tv_sec = 1};
	long ticks = 3;

	if (!a && with_traffic) { /* a and b are joined through this process's two sockets */
		sleeper(back, how, n);
	} else if (!a) {
		sleeper(-1, how, n);
	}
	if (with_traffic) {
		struct end_id ia, ib;
		char ra, rb;

		b = start_child(&s);
		if (!b)
			sleeper(s, how, n);
		if (!get_all(back, &ia, sizeof(ia)) || !get_all(s, &ib, sizeof(ib)))
			join_child(a);
		MUST(put_all(back, &ib, sizeof(ib)) && put_all(s, &ia, sizeof(ia)));
		MUST(get_all(back, &ra, 1) && get_all(s, &rb, 1));
		MUST(put_all(back, &rb, 1) && put_all(s, &ra, 1));
		MUST(get_all(back, &ra, 1) && get_all(s, &rb, 1)); /* the traffic is over */
	}
	nanosleep(&settle, NULL);
	if (waitpid(a, &status, WNOHANG) == a)
		_exit(WIFEXITED(status) && WEXITSTATUS(status) == 77 ? 77 : 1);
	for (int i = 0; i < SPANS && ticks > 2; i++)
		ticks = ticks_in_span(a, b);
	kill(a, SIGKILL);
	waitpid(a, &status, 0);
	if (b) {
		kill(b, SIGKILL);
		waitpid(b, &status, 0);
	}
	if (ticks > 2)
		die("way of waiting %d, traffic before %d: %ld ticks in 3 s", (int)how,
		    with_traffic, ticks);
}

void test_idle(long n)
{
	for (int traffic_first = 0; traffic_first < 2; traffic_first++)
		for (enum how how = GET_EVENT; how <= JUST_OPEN; how++)
			watch(how, traffic_first, n);
}
