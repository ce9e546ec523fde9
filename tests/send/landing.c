/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where large messages land: among receives that come and go, in a pool that has to grow, in one
 * that must not and is used up, in one that will never have the room. And VRB_EV_ROOM comes when
 * there is memory, not before.
 */
#include "send/kit.h"

#define MIB (1u << 20)

/* ---- each message lands among receives of 17 pages that are replaced meanwhile */

enum { ROUNDS = 400 };

static void ping(struct end *e, bool first)
{
	char *mem = malloc(MIB);

	for (int i = 0; i < ROUNDS; i++) {
		struct vrb_event ev;

		if (first) {
			memset(mem, i, MIB);
			send_all(e, mem, MIB, NULL);
		}
		ev = want_event(e, VRB_EV_MESSAGE);
		CHECK(ev.buf->len == MIB && ((char *)ev.buf->data)[MIB - 1] == (char)i);
		memcpy(mem, ev.buf->data, MIB);
		vrb_buf_put(ev.buf);
		if (!first)
			send_all(e, mem, MIB, NULL);
	}
	free(mem);
}

static void pings(struct end *e)
{
	ping(e, true);
}

static void pongs(struct end *e)
{
	ping(e, false);
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

/* ---- the receiver keeps what it gets: the pool grows within its bound, then the sender waits */

static void keeps(struct end *e)
{
	struct vrb_buf *kept[4];
	struct vrb_pool_stats s;
	struct vrb_event ev;

	for (int i = 0; i < 4; i++)
		kept[i] = want_event(e, VRB_EV_MESSAGE).buf;
	vrb_pool_stats(e->d, &s);
	CHECK(s.bytes_grown && s.bytes_grown <= 2 * MIB && s.bytes == 2 * MIB + s.bytes_grown);
	CHECK(!vrb_poll(e->ch, &ev, 1, 50 * MS)); /* the fifth finds no place */
	for (int i = 0; i < 4; i++) {
		CHECK(is_filled(kept[i]->data, (uint64_t)i, 700000));
		vrb_buf_put(kept[i]);
	}
	ev = want_event(e, VRB_EV_MESSAGE);
	CHECK(is_filled(ev.buf->data, 4, 700000));
	vrb_buf_put(ev.buf);
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

static void feeds(struct end *e)
{
	char *mem = malloc(700000);
	struct vrb_region *r;

	CHECK(!vrb_register(e->d, mem, 700000, VRB_REMOTE_READ, &r));
	for (uint64_t i = 0; i < 5; i++) {
		struct vrb_send_options o = {.cookie = mem};
		struct iovec iov = {mem, 700000};

		fill(mem, i, 700000);
		UNTIL_ROOM(e, vrb_sendv(e->ch, &iov, 1, &o));
		CHECK(want_event(e, VRB_EV_SENT).outcome == VRB_DONE);
	}
	CHECK(!vrb_unregister(r));
	free(mem);
}

/* ---- a pool that can never hold it: the sender is told, whichever end it is */

static void is_small(struct end *e)
{
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
	CHECK(vrb_error_count("send_no_room") == 1);
}

static void asks_too_much(struct end *e)
{
	size_t len = 3 * MIB;
	char *mem = calloc(1, len);
	struct vrb_send_options o = {.cookie = mem};
	struct iovec iov = {mem, len};
	struct vrb_region *r;

	CHECK(vrb_send(e->ch, mem, len, NULL) == -EMSGSIZE);
	CHECK(!strcmp(vrb_error_name(), "send_no_room"));
	CHECK(!vrb_register(e->d, mem, len, VRB_REMOTE_READ, &r));
	UNTIL_ROOM(e, vrb_sendv(e->ch, &iov, 1, &o));
	CHECK(want_event(e, VRB_EV_SENT).outcome == VRB_REFUSED);
	CHECK(!vrb_unregister(r));
	free(mem);
}

/* ---- room is memory here */

static void hoards(struct end *e)
{
	static struct vrb_buf *all[4096];
	static char mem[3000];
	struct vrb_event ev;
	uint64_t until;
	int n = 0, room = 0;

	while (n < 4096 && !vrb_buf_get(e->d, sizeof(mem), &all[n]))
		n++;
	CHECK(n && n < 4096);
	CHECK(vrb_send(e->ch, mem, sizeof(mem), NULL) == -EAGAIN);
	for (until = now_ns() + 30 * MS; now_ns() < until;)
		CHECK(!vrb_poll(e->ch, &ev, 1, 0));
	while (n)
		vrb_buf_put(all[--n]);
	CHECK(want_event(e, VRB_EV_ROOM).kind == VRB_EV_ROOM);
	CHECK(!vrb_send(e->ch, mem, sizeof(mem), NULL));
	for (until = now_ns() + 30 * MS; now_ns() < until;)
		room += vrb_poll(e->ch, &ev, 1, 0) > 0;
	CHECK(!room); /* once */
}

static void gets_one(struct end *e)
{
	vrb_buf_put(want_event(e, VRB_EV_MESSAGE).buf);
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

int main(void)
{
	struct vrb_domain_options wide = {.pool_bytes = 90 * MIB, .grow_bytes = SIZE_MAX},
				  grows = {.pool_bytes = 2 * MIB, .grow_bytes = 2 * MIB},
				  small = {.pool_bytes = 2 * MIB, .grow_bytes = SIZE_MAX};
	struct vrb_channel_options large = {.qps = 1, .recv_size = 65536, .send_depth = 64},
				   few = {.qps = 1, .recv_depth = 8};

	run_pair(&(struct pair){&wide, &large, &large}, pongs, pings);
	run_pair(&(struct pair){&grows, &few, &few}, keeps, feeds);
	run_pair(&(struct pair){&small, &few, &few}, is_small, asks_too_much);
	run_pair(&(struct pair){&small, &few, &few}, gets_one, hoards);
	puts("4 passed, 0 failed, 0 skipped");
	return 0;
}
