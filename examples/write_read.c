/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	write_read        the server: gives 1 MiB of its memory to its client
 *	write_read HOST   the client: writes into it and reads from it
 *
 * RDMA WRITE and READ take no part of the server's program: it learns nothing of them. So the last
 * word is a SEND, which arrives when all that was written before it, in the same flow, is there.
 *
 *	verbena run ./write_read &  verbena run ./write_read 127.0.0.1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <verbena/verbena.h>

#define PORT "18605"
#define HALF (512u * 1024)
#define SIZE (2 * HALF)

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, vrb_error_text());
	exit(1);
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* The next event of a kind, which must not be the channel's end. */
static struct vrb_event next(struct vrb_channel *ch, enum vrb_event_kind kind)
{
	struct vrb_event ev = {.kind = VRB_EV_ROOM};

	while (ev.kind != kind) {
		check(vrb_poll(ch, &ev, 1, VRB_FOREVER), "poll");
		must(ev.kind != VRB_EV_BROKEN && (ev.kind != VRB_EV_CLOSED || kind == ev.kind),
		     ev.text ? ev.text : "the peer has closed");
	}
	return ev;
}

static void fill(unsigned char *to, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(seed + i * 7 + i / 251);
}

static int is_filled(const unsigned char *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != (unsigned char)(seed + i * 7 + i / 251))
			return 0;
	return 1;
}

/* Tells where the memory is (address and rkey: whoever knows them can write), waits for a word. */
static void serve(struct vrb_domain *domain, unsigned char *mem)
{
	struct vrb_listener *listener;
	struct vrb_region *region;
	struct vrb_remote remote;
	struct vrb_channel *ch;

	fill(mem + HALF, HALF, 1);
	check(vrb_register(domain, mem, SIZE, VRB_REMOTE_READ | VRB_REMOTE_WRITE, &region),
	      "register");
	check(vrb_export(region, &remote), "export");
	check(vrb_listen(domain, NULL, PORT, NULL, &listener), "listen");
	check(vrb_accept(listener, VRB_FOREVER, &ch), "accept");
	vrb_unlisten(listener);
	check(vrb_send(ch, &remote, sizeof(remote), NULL), "send");
	vrb_buf_put(next(ch, VRB_EV_MESSAGE).buf);
	/* Not earlier: what is written is whole when a message behind it has come. */
	must(is_filled(mem, 1000, 1), "the second half is not copied to the first");
	must(is_filled(mem + HALF, HALF, 2), "what was written is not here");
	printf("a half written, 1000 bytes copied by the client: right\n");
	(void)next(ch, VRB_EV_CLOSED);
	(void)vrb_disconnect(ch, 0);
	check(vrb_unregister(region), "unregister"); /* ends the peer's rights */
}

/* Until then the memory of a READ or WRITE is the adapter's. */
static void done(struct vrb_channel *ch, const char *what)
{
	struct vrb_event ev = next(ch, VRB_EV_SENT);

	must(ev.outcome == VRB_DONE, vrb_outcome_str(ev.outcome));
	printf("%s\n", what);
}

static void client(struct vrb_domain *domain, const char *host, unsigned char *mem)
{
	struct vrb_send_options o = {.flow = 1};
	struct iovec iov[2] = {{mem, 1000}, {mem + 4096, HALF - 1000}};
	struct vrb_region *region;
	struct vrb_remote remote;
	struct vrb_channel *ch;
	struct vrb_event ev;

	check(vrb_register(domain, mem, SIZE, VRB_LOCAL, &region), "register");
	check(vrb_connect(domain, host, PORT, NULL, &ch), "connect");
	ev = next(ch, VRB_EV_MESSAGE);
	must(ev.buf->len == sizeof(remote), "a message of another size");
	memcpy(&remote, ev.buf->data, sizeof(remote));
	vrb_buf_put(ev.buf);

	/* Its second half, scattered to two places. */
	o.remote_offset = HALF;
	check(vrb_read(ch, iov, 2, &remote, &o), "read");
	done(ch, "read a half into two places");
	memmove(mem + 1000, mem + 4096, HALF - 1000);
	must(is_filled(mem, HALF, 1), "what was read is wrong");

	/* To the peer's first half what is read from the second: the WRITE must wait for the
	 * bytes. A READ's data come after later requests have begun, unless those have a fence. */
	memset(mem, 0, 1000);
	check(vrb_read(ch, iov, 1, &remote, &o), "read");
	o.remote_offset = 0;
	o.flags = VRB_FENCE;
	check(vrb_write(ch, iov, 1, &remote, &o), "write");
	done(ch, "read again");
	done(ch, "written behind a fence");

	fill(mem + HALF, HALF, 2);
	iov[0] = (struct iovec){mem + HALF, HALF};
	o.remote_offset = HALF;
	o.flags = 0;
	check(vrb_write(ch, iov, 1, &remote, &o), "write");
	check(vrb_send(ch, "look", 4, &o), "send"); /* of the same flow: behind the WRITE */
	done(ch, "written");
	check(vrb_disconnect(ch, 1000000000), "disconnect");
	check(vrb_unregister(region), "unregister");
}

int main(int argc, char **argv)
{
	unsigned char *mem = calloc(1, SIZE);
	struct vrb_domain *domain;

	must(mem != NULL, "no memory");
	check(vrb_open(NULL, &domain), "open");
	if (argc < 2)
		serve(domain, mem);
	else
		client(domain, argv[1], mem);
	check(vrb_close(domain), "close");
	free(mem);
	return 0;
}
