/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	echo_rpc            the server
 *	echo_rpc HOST [N]   the client: N calls, 16 of them under way at a time
 *
 * A service by messages. The server sends each request back in the buffer that it came in,
 * without a copy; an immediate says which call an answer belongs to.
 *
 *	verbena run ./echo_rpc &  verbena run ./echo_rpc 127.0.0.1
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <verbena/verbena.h>

#define PORT	  "18601"
#define UNDER_WAY 16

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, vrb_error_text());
	exit(1);
}

/* Answers the calls that wait, as many as there is room for; the number left. */
static int answer_all(struct vrb_channel *ch, struct vrb_event *call, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		struct vrb_send_options o = {.flow = call[i].flow,
					     .immediate = call[i].immediate,
					     .flags = VRB_IMMEDIATE};
		int r = vrb_send_buf(ch, call[i].buf, &o);

		if (r == -EAGAIN) /* VRB_EV_ROOM comes when there is room again */
			break;
		check(r, "answer");
	}
	memmove(call, call + i, (size_t)(n - i) * sizeof(*call));
	return n - i;
}

static void serve(struct vrb_domain *domain)
{
	struct vrb_listener *listener;
	struct vrb_channel *ch;
	struct vrb_event ev[UNDER_WAY], call[2 * UNDER_WAY];
	int waiting = 0;

	check(vrb_listen(domain, NULL, PORT, NULL, &listener), "listen");
	check(vrb_accept(listener, VRB_FOREVER, &ch), "accept");
	vrb_unlisten(listener);
	while (waiting <= UNDER_WAY) { /* a client that keeps to the rules has no more under way */
		int n = vrb_poll(ch, ev, UNDER_WAY, VRB_FOREVER);

		check(n, "poll");
		for (int i = 0; i < n; i++) {
			if (ev[i].kind == VRB_EV_MESSAGE) {
				call[waiting++] = ev[i];
			} else if (ev[i].kind == VRB_EV_CLOSED || ev[i].kind == VRB_EV_BROKEN) {
				printf("served; %s\n",
				       ev[i].kind == VRB_EV_CLOSED ? "closed" : ev[i].text);
				(void)vrb_disconnect(ch, 0);
				return;
			}
		}
		waiting = answer_all(ch, call, waiting);
	}
	fprintf(stderr, "more than %d calls under way\n", UNDER_WAY);
	exit(1);
}

/* False: not now. */
static int request(struct vrb_channel *ch, uint32_t number)
{
	struct vrb_send_options o = {.flow = number, .immediate = number, .flags = VRB_IMMEDIATE};
	char text[64];
	int n = snprintf(text, sizeof(text), "call %u", number);
	int r = vrb_send(ch, text, (size_t)n, &o);

	if (r == -EAGAIN)
		return 0;
	check(r, "request");
	return 1;
}

/* Whether it is one. */
static int answer(const struct vrb_event *ev)
{
	char want[64];

	if (ev->kind == VRB_EV_BROKEN || ev->kind == VRB_EV_CLOSED) {
		fprintf(stderr, "the server is gone: %s\n", ev->text);
		exit(1);
	}
	if (ev->kind != VRB_EV_MESSAGE)
		return 0;
	snprintf(want, sizeof(want), "call %u", ev->immediate);
	if (ev->buf->len != strlen(want) || memcmp(ev->buf->data, want, strlen(want)) != 0) {
		fprintf(stderr, "a wrong answer to call %u\n", ev->immediate);
		exit(1);
	}
	vrb_buf_put(ev->buf);
	return 1;
}

static void call(struct vrb_domain *domain, const char *host, uint32_t calls)
{
	struct vrb_channel *ch;
	struct vrb_event ev[UNDER_WAY];
	uint32_t asked = 0, answered = 0;

	check(vrb_connect(domain, host, PORT, NULL, &ch), "connect");
	while (answered < calls) {
		int n;

		while (asked < calls && asked - answered < UNDER_WAY && request(ch, asked))
			asked++;
		n = vrb_poll(ch, ev, UNDER_WAY, VRB_FOREVER);
		check(n, "poll");
		for (int i = 0; i < n; i++)
			answered += answer(&ev[i]);
	}
	check(vrb_disconnect(ch, 1000000000), "disconnect");
	printf("%u calls answered\n", answered);
}

int main(int argc, char **argv)
{
	struct vrb_domain *domain;

	check(vrb_open(NULL, &domain), "open");
	if (argc < 2)
		serve(domain);
	else
		call(domain, argv[1], argc > 2 ? (uint32_t)atoi(argv[2]) : 10000);
	check(vrb_close(domain), "close");
	return 0;
}
