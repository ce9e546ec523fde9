/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	send_partition CASE MS
 *
 * Under `partition from 300ms for MS`: the client sends by several ways from before until after it.
 * Whether the transport outlasts the partition, gives up in it, or the channel is connected again,
 * each message ends once, what ended well has been handed out, none is handed out twice, flows are
 * in order, and the pools have all of their buffers in the end.
 */
#include "send/kit.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cases.h"

#define FROM	   (300 * MS)
#define MESSAGES   (1u << 23) /* at most */
#define AFTERWARDS 2000u
#define FLOWS	   7u
#define LARGE	   20000u
#define UNDER_WAY  300u
#define CASE_S	   240u

enum { POSTED = 1, ENDED = 2, DONE = 4 };

/* Of both processes: the client writes sent, the server seen. */
static struct books {
	uint8_t sent[MESSAGES], seen[MESSAGES];
	uint32_t posted, afterwards;
} * books;

static struct vrb_channel_options options = {.qps = 2};
static uint64_t timeout_ns, partition_ns, opened_ns;
static uint32_t ended, outcomes[VRB_SHRUNK + 1], away;
static bool over, end_has_come, closed;

static void report(const char *who, struct vrb_domain *d)
{
	struct vrb_pool_stats st;

	vrb_pool_stats(d, &st);
	printf("# %s: %u posted (%u afterwards), %u done, %u timed out, %u failed, %u flushed; "
	       "%u times away; %llu buffers outside\n",
	       who, books->posted, books->afterwards, outcomes[VRB_DONE], outcomes[VRB_TIMED_OUT],
	       outcomes[VRB_FAILED], outcomes[VRB_FLUSHED], away, (unsigned long long)st.outside);
	fflush(stdout);
	CHECK(!st.outside);
}

/* ---- the server */

static void take(const struct vrb_event *ev, int64_t *last)
{
	uint32_t i;

	CHECK(ev->buf->len >= sizeof(i));
	memcpy(&i, ev->buf->data, sizeof(i));
	vrb_buf_put(ev->buf);
	if (i == UINT32_MAX) {
		end_has_come = true;
		return;
	}
	CHECK(i < MESSAGES && ev->flow == i % FLOWS && (int64_t)i > last[ev->flow]);
	CHECK(!books->seen[i]);
	books->seen[i] = 1;
	last[ev->flow] = i;
}

/* Until the channel ends, by whatever. */
static void serve(struct vrb_channel *ch)
{
	static int64_t last[FLOWS] = {-1, -1, -1, -1, -1, -1, -1};
	struct vrb_event ev[16];
	bool up = true;

	while (up) {
		int n = vrb_poll(ch, ev, 16, 60 * S);

		CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			if (ev[i].kind == VRB_EV_MESSAGE)
				take(&ev[i], last);
			closed |= ev[i].kind == VRB_EV_CLOSED;
			up &= !closed && ev[i].kind != VRB_EV_BROKEN;
		}
	}
	(void)vrb_disconnect(ch, 0);
}

static void run_server(int port_to)
{
	struct vrb_listener *l;
	struct vrb_channel *ch;
	char port[16];
	struct end e;
	int r;

	CHECK(!vrb_open(NULL, &e.d));
	CHECK(!vrb_listen(e.d, "127.0.0.1", "0", &options, &l));
	snprintf(port, sizeof(port), "%d", vrb_listener_port(l));
	CHECK(write(port_to, port, sizeof(port)) == sizeof(port));
	do {
		r = vrb_accept(l, 60 * S, &ch);
		if (!r)
			serve(ch);
		CHECK(r != -ETIMEDOUT);
	} while (options.reconnect && !closed);
	vrb_unlisten(l);
	report("server", e.d);
	CHECK(!vrb_close(e.d));
}

/* ---- the client */

static void sees(const struct vrb_event *ev)
{
	uint32_t i = (uint32_t)(uintptr_t)ev->cookie - 1;

	if (ev->kind == VRB_EV_BROKEN)
		over = true;
	else if (ev->kind == VRB_EV_AWAY)
		away++;
	else if (ev->kind != VRB_EV_SENT)
		CHECK(ev->kind == VRB_EV_ROOM || ev->kind == VRB_EV_BACK);
	else if (!ev->cookie) /* the last word */
		end_has_come |= ev->outcome == VRB_DONE;
	else {
		CHECK(books->sent[i] == POSTED);
		books->sent[i] |= ENDED | (ev->outcome == VRB_DONE ? DONE : 0);
		outcomes[ev->outcome]++;
		ended++;
	}
}

static void look(struct end *e, int64_t wait_ns)
{
	struct vrb_event ev[16];
	int n = over ? 0 : vrb_poll(e->ch, ev, 16, wait_ns);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++)
		sees(&ev[i]);
}

static int post(struct end *e, uint32_t i)
{
	struct vrb_send_options o = {
		.cookie = (void *)(uintptr_t)(i + 1), .flow = i % FLOWS, .timeout_ns = timeout_ns};
	uint32_t word[500] = {i};
	struct vrb_buf *b;
	int r;

	if (i % 5 == 0)
		return vrb_send(e->ch, word, sizeof(word), &o);
	if (i % 5 < 4)
		return vrb_send(e->ch, word, 40, &o);
	/* Large, from a buffer of one's own. */
	if (vrb_buf_get(e->d, LARGE, &b))
		return -EAGAIN;
	memset(b->data, 7, LARGE);
	memcpy(b->data, &i, sizeof(i));
	b->len = LARGE;
	r = vrb_send_buf(e->ch, b, &o);
	if (r)
		vrb_buf_put(b);
	return r;
}

static void send_through(struct end *e)
{
	while (!over && books->afterwards < AFTERWARDS && books->posted < MESSAGES) {
		uint32_t i = books->posted;
		int r = -EAGAIN;

		if (books->posted - ended < UNDER_WAY) {
			books->sent[i] = POSTED;
			r = post(e, i);
		}
		if (r && books->posted - ended < UNDER_WAY)
			books->sent[i] = 0;
		CHECK(!r || r == -EAGAIN || r == -ENOTCONN);
		books->posted += !r;
		books->afterwards += !r && now_ns() - opened_ns > FROM + partition_ns;
		look(e, r ? MS : 0);
	}
}

static void run_client(const char *port)
{
	struct vrb_send_options to_all = {.flags = VRB_REPORT};
	uint32_t word = UINT32_MAX;
	struct end e;

	opened_ns = now_ns();
	CHECK(!vrb_open(NULL, &e.d));
	CHECK(!vrb_connect(e.d, "127.0.0.1", port, &options, &e.ch));
	send_through(&e);
	while (ended < books->posted)
		look(&e, MS);
	while (!over && !end_has_come) {
		int r = vrb_send(e.ch, &word, sizeof(word), &to_all);

		for (uint32_t was = away; !over && !end_has_come && away == was && !r;)
			look(&e, MS);
		look(&e, MS);
	}
	CHECK(!vrb_disconnect(e.ch, over ? 0 : 20 * S) || over);
	report("client", e.d);
	for (uint32_t i = 0; i < books->posted; i++)
		CHECK((books->sent[i] | DONE) == (POSTED | ENDED | DONE));
	CHECK(!vrb_close(e.d));
}

static void run(bool all_arrive)
{
	int fds[2], status, pid;
	uint32_t missing = 0;
	char port[16];

	alarm(CASE_S);
	books = mmap(NULL, sizeof(*books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(books != MAP_FAILED && !pipe(fds));
	pid = fork();
	if (!pid) {
		alarm(CASE_S);
		CHECK(read(fds[0], port, sizeof(port)) > 0);
		run_client(port);
		exit(0);
	}
	run_server(fds[1]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	for (uint32_t i = 0; i < books->posted; i++) {
		CHECK(books->seen[i] || !(books->sent[i] & DONE));
		missing += !books->seen[i];
	}
	printf("# %u messages did not arrive\n", missing);
	CHECK(!all_arrive || !missing);
}

/* The transport repeats for longer than it lasts. */
static void case_bears(void)
{
	options.ack_timeout_us = 4000000;
	timeout_ns = 100 * MS;
	run(true);
}

/* With default options it gives up. */
static void case_gives_up(void)
{
	run(false);
}

static void case_comes_back(void)
{
	options.reconnect = 1000000;
	options.reconnect_ms = 20;
	run(false);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"bears", case_bears},
		{"gives_up", case_gives_up},
		{"comes_back", case_comes_back},
	};

	CHECK(argc == 3);
	partition_ns = strtoull(argv[2], NULL, 0) * MS;
	return kit_main(argc, argv, tests, 3);
}
