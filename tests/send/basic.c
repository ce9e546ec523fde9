/* SPDX-License-Identifier: BSD-2-Clause */
/* One message each way, of every length around the borders, by every way to send. */
#include "send/kit.h"

static const size_t lengths[] = {0,    1,    51,    52,	     204,     205, 4095,
				 4096, 4097, 65536, 1 << 20, 3000001, 1,   8 << 20};
#define N (sizeof(lengths) / sizeof(lengths[0]))

static void echo(struct end *e)
{
	for (size_t i = 0; i < 3 * N; i++) {
		struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);
		struct vrb_send_options o = {.flow = ev.flow,
					     .immediate = ev.immediate + 1,
					     .flags = ev.has_immediate ? VRB_IMMEDIATE : 0};

		UNTIL_ROOM(e, vrb_send_buf(e->ch, ev.buf, &o));
	}
	CHECK(want_event(e, VRB_EV_CLOSED).kind == VRB_EV_CLOSED);
}

static void expect(struct end *e, uint64_t seed, size_t len, const struct vrb_send_options *o)
{
	struct vrb_event ev;

	do
		ev = next_event(e);
	while (ev.kind != VRB_EV_MESSAGE);
	CHECK(ev.buf->len == len && is_filled(ev.buf->data, seed, len));
	CHECK(ev.flow == o->flow && ev.has_immediate && ev.immediate == o->immediate + 1);
	vrb_buf_put(ev.buf);
}

/* From where it lies, when there are SGEs enough for the pieces and the frame. */
static void send_pieces(struct end *e, const struct iovec *iov, const struct vrb_send_options *o)
{
	struct vrb_channel_stats before, after;
	struct vrb_channel_info info;

	vrb_channel_info(e->ch, &info);
	vrb_channel_stats(e->ch, &before);
	UNTIL_ROOM(e, vrb_sendv(e->ch, iov, 3, o));
	vrb_channel_stats(e->ch, &after);
	CHECK(info.sges < 4 || after.copied == before.copied);
}

static void all_ways(struct end *e)
{
	uint8_t *mem = malloc(16 << 20);
	struct vrb_region *region;

	CHECK(!vrb_register(e->d, mem, 16 << 20, VRB_REMOTE_READ, &region));
	for (size_t i = 0; i < N; i++) {
		struct vrb_send_options o = {
			.flow = (uint32_t)i, .immediate = 77, .flags = VRB_IMMEDIATE};
		struct iovec iov[3] = {{mem, lengths[i] / 2},
				       {mem + (9 << 20), lengths[i] / 4},
				       {mem + lengths[i] / 2, 0}};
		struct vrb_buf *b;

		iov[2].iov_len = lengths[i] - iov[0].iov_len - iov[1].iov_len;
		fill(mem, i, lengths[i]);
		UNTIL_ROOM(e, vrb_send(e->ch, mem, lengths[i], &o));
		expect(e, i, lengths[i], &o);
		CHECK(!vrb_buf_get(e->d, lengths[i], &b));
		b->len = (uint32_t)lengths[i];
		fill(b->data, i + 1, lengths[i]);
		UNTIL_ROOM(e, vrb_send_buf(e->ch, b, &o));
		expect(e, i + 1, lengths[i], &o);
		memmove(mem + (9 << 20), mem + iov[0].iov_len, iov[1].iov_len);
		memmove(mem + iov[0].iov_len, mem + iov[0].iov_len + iov[1].iov_len,
			iov[2].iov_len);
		send_pieces(e, iov, &o);
		expect(e, i, lengths[i], &o);
	}
	CHECK(!vrb_disconnect(e->ch, WAIT));
	e->ch = NULL;
	CHECK(!vrb_unregister(region));
	free(mem);
}

int main(void)
{
	struct vrb_channel_options three = {.qps = 3}, tiny = {.qps = 1,
							       .send_depth = 4,
							       .recv_depth = 4,
							       .sges = 1,
							       .inline_bytes = UINT32_MAX};

	run_pair(&(struct pair){0}, echo, all_ways);
	run_pair(&(struct pair){.client = &three, .server = &three}, echo, all_ways);
	run_pair(&(struct pair){.client = &tiny}, echo, all_ways);
	run_pair(&(struct pair){.server = &tiny}, echo, all_ways);
	puts("4 passed, 0 failed, 0 skipped");
	return 0;
}
