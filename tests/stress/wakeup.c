/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	ping ---- SEND ----> pong: both sleep in ibv_get_cq_event (or poll) for every message
 *	     <---- SEND ----
 *
 * Random pauses between arming, polling once more and sleeping, and before the answer, try
 * every place where a wake-up could fall between two stools. A lost one ends in the
 * watchdog. The same with CQs whose events are held back for company that rarely comes.
 */
#include "stress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 16

static void pause_some(uint64_t *seed)
{
	uint64_t r = rnd(seed), n = 0;

	if (r % 8 == 0)
		n = r / 8 % 20000;
	else if (r % 8 == 1)
		n = r / 8 % 300;
	for (volatile uint64_t i = 0; i < n; i++)
		;
	if (r % 512 == 2)
		nanosleep(&(struct timespec){.tv_nsec = (long)(r / 512 % 200000)}, NULL);
}

static void take_event(struct end *e, bool by_poll, unsigned int *events)
{
	struct ibv_cq *cq;
	void *user;

	while (by_poll) {
		struct pollfd p = {.fd = e->chan->fd, .events = POLLIN};

		if (poll(&p, 1, WAIT_MS) != 1)
			die("poll() on the channel: nothing for a minute");
		if (!ibv_get_cq_event(e->chan, &cq, &user))
			break;
		MUST(errno == EAGAIN);
	}
	if (!by_poll)
		MUST(!ibv_get_cq_event(e->chan, &cq, &user));
	MUST(cq == e->cq && user == e);
	if (++*events == 100) { /* acknowledged in bunches, as the manual advises */
		ibv_ack_cq_events(cq, *events);
		*events = 0;
	}
}

static void want_success(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		die("wr_id %llu: %s", (unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status));
}

/* Waits until a receive completion has been polled; sends complete on the way. */
static void wait_recv(struct end *e, bool by_poll, uint64_t *seed, unsigned int *events)
{
	struct ibv_wc wc;

	for (;;) {
		while (ibv_poll_cq(e->cq, 1, &wc) == 1) {
			want_success(&wc);
			if (wc.opcode == IBV_WC_RECV)
				return;
		}
		pause_some(seed);
		MUST(!ibv_req_notify_cq(e->cq, 0));
		pause_some(seed);
		if (ibv_poll_cq(e->cq, 1, &wc) == 1) {
			want_success(&wc);
			if (wc.opcode == IBV_WC_RECV)
				return;
			continue;
		}
		pause_some(seed);
		take_event(e, by_poll, events);
	}
}

static void moderate(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr a = {IBV_CQ_ATTR_MODERATE, {count, period}};

	MUST(!ibv_modify_cq(cq, &a));
}

struct game {
	bool by_poll, is_moderated;
	long n;
};

static void play(int sock, bool first, const struct game *g)
{
	struct end_opts o = {.channel = true, .send_wr = 64, .recv_wr = 64};
	uint64_t seed = first ? 0x777 : 0x9999;
	unsigned int events = 0;
	struct end_id peer;
	bool more = true;
	struct end e;
	char c;

	end_open(&e, &o);
	if (g->is_moderated)
		moderate(e.cq, 3, first ? 40 : 150);
	if (g->by_poll)
		fcntl(e.chan->fd, F_SETFL, fcntl(e.chan->fd, F_GETFL) | O_NONBLOCK);
	for (uint64_t i = 0; i < DEPTH; i++)
		MUST(!end_recv(&e, i, 0, 64));
	MUST(end_meet(&e, sock, &peer));
	for (long i = 0; more; i++) {
		if (g->is_moderated && i % 512 == 511) /* in the middle of things */
			moderate(e.cq, (uint16_t)(i / 512 % 5), (uint16_t)(i / 512 % 7 * 20));
		if (first) { /* says whether more rounds come */
			more = go_on(i, g->n);
			e.buf[64] = more;
			MUST(!end_send(&e, 1, 64, 64, IBV_SEND_SIGNALED));
		}
		wait_recv(&e, g->by_poll, &seed, &events);
		if (!first)
			more = e.buf[0];
		MUST(!end_recv(&e, 0, 0, 64));
		pause_some(&seed);
		if (!first)
			MUST(!end_send(&e, 1, 64, 64, IBV_SEND_SIGNALED));
	}
	ibv_ack_cq_events(e.cq, events);
	MUST(put_all(sock, "q", 1) && get_all(sock, &c, 1));
	end_close(&e);
}

static void both(const struct game *g)
{
	int sock;
	pid_t pid = start_child(&sock);

	play(sock, pid != 0, g);
	if (!pid)
		_exit(0);
	join_child(pid);
}

void test_wakeup(long n)
{
	both(&(struct game){.n = n});
}

void test_wakeup_poll(long n)
{
	both(&(struct game){.by_poll = true, .n = n});
}

void test_wakeup_held(long n)
{
	both(&(struct game){.is_moderated = true, .n = n});
}

void test_wakeup_held_poll(long n)
{
	both(&(struct game){.is_moderated = true, .by_poll = true, .n = n});
}
