/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	sgl_three_chunks
 *
 * One SEND gathered from three chunks of memory: a header, a body and a trailer that lie
 * apart. Both ends in one process; the receiver gets them as one message.
 *
 *	verbena run ./sgl_three_chunks
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <verbena/verbena.h>

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, vrb_error_text());
	exit(1);
}

/* The next message, or the end of the send that has this cookie. */
static struct vrb_event next(struct vrb_channel *ch, enum vrb_event_kind kind)
{
	struct vrb_event ev = {.kind = VRB_EV_ROOM};

	while (ev.kind != kind) {
		int n = vrb_poll(ch, &ev, 1, 5000000000);

		check(n, "poll");
		if (n == 0 || ev.kind == VRB_EV_BROKEN)
			exit(1);
	}
	return ev;
}

/* Each end is driven by one thread. */
static void *receiver(void *arg)
{
	struct vrb_listener *listener = arg;
	struct vrb_channel *ch;
	struct vrb_event ev;

	check(vrb_accept(listener, 5000000000, &ch), "accept");
	ev = next(ch, VRB_EV_MESSAGE);
	printf("received %u bytes: %.*s\n", ev.buf->len, (int)ev.buf->len, (char *)ev.buf->data);
	vrb_buf_put(ev.buf);
	(void)next(ch, VRB_EV_CLOSED);
	(void)vrb_disconnect(ch, 0);
	return NULL;
}

int main(void)
{
	static char memory[3][4096];
	const char *text[3] = {"header, ", "body, ", "trailer"};
	struct vrb_channel_options o = {.qps = 1, .inline_bytes = UINT32_MAX};
	struct vrb_domain *domain;
	struct vrb_listener *listener;
	struct vrb_channel *ch;
	struct vrb_region *region;
	struct vrb_event ev;
	struct iovec iov[3];
	char port[16];
	pthread_t t;

	check(vrb_open(NULL, &domain), "open");
	check(vrb_listen(domain, "127.0.0.1", "0", &o, &listener), "listen");
	check(-pthread_create(&t, NULL, receiver, listener), "thread");
	snprintf(port, sizeof(port), "%d", vrb_listener_port(listener));
	check(vrb_connect(domain, "127.0.0.1", port, &o, &ch), "connect");

	/* Registered once; a piece may lie anywhere in it. */
	check(vrb_register(domain, memory, sizeof(memory), VRB_LOCAL, &region), "register");
	for (int i = 0; i < 3; i++) {
		iov[i].iov_base = memory[i] + 100 * i;
		iov[i].iov_len = strlen(text[i]);
		memcpy(iov[i].iov_base, text[i], iov[i].iov_len);
	}
	check(vrb_sendv(ch, iov, 3, NULL), "send");
	ev = next(ch, VRB_EV_SENT); /* until then the memory is the library's */
	printf("sent: %s\n", vrb_outcome_str(ev.outcome));

	check(vrb_disconnect(ch, 1000000000), "disconnect");
	pthread_join(t, NULL);
	vrb_unlisten(listener);
	check(vrb_unregister(region), "unregister");
	check(vrb_close(domain), "close");
	return 0;
}
