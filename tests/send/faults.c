/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	send_faults [CASE]
 *
 * Whatever happens to a channel, each message that was posted ends once, and the pool gets all of
 * its buffers back. The last cases are for a plan of faults (verbena run --faults).
 */
#include "send/storm.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "send/front.h"
#include "support/cases.h"

#define N 4000u

static void qp_to_error(struct end *e)
{
	(void)e;
	front_qp_to_error(front_qp[front_n_qps - 1]);
}

/* ---- both ends, with what each of them does */

static struct storm here, there;

static void tell(const char *who, const struct books *b)
{
	printf("# %s: %u posted, %u done, %u timed out, %u failed, %u flushed; %u received; %s\n",
	       who, b->posted, b->done, b->timed_out, b->failed, b->flushed, b->received,
	       *b->why ? b->why : "ended in order");
	fflush(stdout);
}

static struct books books;

static void at_server(struct end *e)
{
	storm(e, &here, &books);
	tell("server", &books);
}

static void at_client(struct end *e)
{
	child_pid = 0;
	storm(e, &there, &books);
	tell("client", &books);
}

static struct vrb_domain_options domain;

static void run(struct storm server, struct storm client, const struct vrb_channel_options *o)
{
	here = server;
	there = client;
	run_pair(&(struct pair){.domain = &domain, .server = o, .client = o}, at_server, at_client);
}

static const struct vrb_channel_options two = {.qps = 2};

/* ---- nothing happens */

static void case_clean(void)
{
	run((struct storm){.n = N}, (struct storm){.n = N}, &two);
	CHECK(books.done == N);
}

/* ---- the peer is killed */

static void kill_child(struct end *e)
{
	(void)e;
	CHECK(!kill(child_pid, SIGKILL));
}

static void case_killed(void)
{
	run((struct storm){.n = N, .trouble = kill_child, .trouble_at = 500, .may_end = true},
	    (struct storm){.n = N, .may_end = true}, &two);
	CHECK(strstr(books.why, "send_peer_gone") && books.ended < N);
}

/* ---- a queue pair goes to the error state */

static void case_own_error(void)
{
	run((struct storm){.n = N, .trouble = qp_to_error, .trouble_at = 500, .may_end = true},
	    (struct storm){.n = N, .may_end = true}, &two);
	CHECK(strstr(books.why, "send_"));
}

static void case_peer_error(void)
{
	run((struct storm){.n = N, .may_end = true},
	    (struct storm){.n = N, .trouble = qp_to_error, .trouble_at = 500, .may_end = true},
	    &two);
	CHECK(strstr(books.why, "send_"));
}

/* ---- a completion queue that is too short for what is posted */

static void case_overrun(void)
{
	front_tiny_cq = 16;
	run((struct storm){.n = N, .may_end = true}, (struct storm){.n = N, .may_end = true}, &two);
	CHECK(strstr(books.why, "send_cq_error") || strstr(books.why, "send_peer_broke"));
}

static void case_overrun_thread(void)
{
	domain.async_thread = domain.bind_thread = true;
	case_overrun();
}

/* ---- deadlines: the peer stands still for a while, again and again */

/* Until this process has had the time to see that something is late. */
static void let_go(int sig)
{
	struct itimerval t = {.it_value = {.tv_usec = 200000}};

	(void)sig;
	if (books.timed_out)
		kill(child_pid, SIGCONT);
	else
		setitimer(ITIMER_REAL, &t, NULL);
}

static void stop_child(struct end *e)
{
	(void)e;
	signal(SIGALRM, let_go);
	CHECK(!kill(child_pid, SIGSTOP));
	let_go(SIGALRM);
}

static void case_deadlines(void)
{
	run((struct storm){.n = N, .trouble = stop_child, .trouble_at = 500, .timeout_ns = 20 * MS},
	    (struct storm){.n = N}, &two);
	CHECK(books.timed_out && books.done);
	alarm(CASE_SECONDS);
}

/* ---- under a plan: losses, damage, RNR NAKs, a partition shorter or longer than the patience */

static void case_bears(void)
{
	const struct vrb_channel_options o = {.qps = 2, .ack_timeout_us = 1000000};

	run((struct storm){.n = N, .timeout_ns = 100 * MS},
	    (struct storm){.n = N, .timeout_ns = 100 * MS}, &o);
	CHECK(books.done + books.timed_out == N);
}

static void case_gives_up(void)
{
	const struct vrb_channel_options o = {.qps = 2, .ack_timeout_us = 1000, .retries = 2};

	run((struct storm){.n = 1000000, .may_end = true},
	    (struct storm){.n = 1000000, .may_end = true}, &o);
	CHECK(strstr(books.why, "send_"));
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"clean", case_clean},	       {"killed", case_killed},
		{"own_error", case_own_error}, {"peer_error", case_peer_error},
		{"overrun", case_overrun},     {"overrun_thread", case_overrun_thread},
		{"deadlines", case_deadlines}, {"bears", case_bears},
		{"gives_up", case_gives_up},
	};

	return kit_main(argc, argv, tests, argc > 1 ? 9 : 7);
}
