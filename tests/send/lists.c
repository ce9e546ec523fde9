/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITE and READ with lists that are many times longer than the send queue, with memory that is and
 * is not registered, followed by a message that must not overtake them; a channel that ends in the
 * middle of one; and a region that gets other rights.
 */
#include "send/kit.h"

#include <sys/mman.h>

#define PIECES 300
#define PIECE  40
#define BYTES  ((size_t)PIECES * PIECE)

static char *map(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* ---- the server has the memory */

static void offers(struct end *e)
{
	char *area = map(BYTES);
	struct vrb_region *r;
	struct vrb_remote remote;
	struct vrb_event ev;

	CHECK(!vrb_register(e->d, area, BYTES, 0, &r));
	CHECK(vrb_export(r, &remote) == -EACCES);
	CHECK(vrb_reregister(r, 16) == -EINVAL);
	CHECK(!vrb_reregister(r, VRB_REMOTE_READ | VRB_REMOTE_WRITE));
	CHECK(!vrb_export(r, &remote));
	send_all(e, &remote, sizeof(remote), NULL);
	ev = want_event(e, VRB_EV_MESSAGE); /* behind all WRITEs */
	CHECK(ev.buf->len == 4 && is_filled(area, 1, BYTES));
	vrb_buf_put(ev.buf);
	fill(area, 2, BYTES);
	send_all(e, "read", 4, NULL);
	vrb_buf_put(want_event(e, VRB_EV_MESSAGE).buf);
	CHECK(!vrb_reregister(r, VRB_REMOTE_READ)); /* no more WRITEs */
	CHECK(!vrb_export(r, &remote));
	send_all(e, &remote, sizeof(remote), NULL);
	ev = next_event(e);
	CHECK(ev.kind == VRB_EV_BROKEN || ev.kind == VRB_EV_CLOSED);
	CHECK(is_filled(area, 2, BYTES));
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
	CHECK(!vrb_unregister(r));
	munmap(area, BYTES);
}

/* Pieces that are no neighbours, backwards. */
static char *scatter(struct iovec *iov)
{
	char *p = map(BYTES * 2);

	for (int i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){p + (size_t)(PIECES - 1 - i) * PIECE * 2, PIECE};
	return p;
}

static struct vrb_remote get_remote(struct end *e)
{
	struct vrb_event ev = want_event(e, VRB_EV_MESSAGE);
	struct vrb_remote r;

	memcpy(&r, ev.buf->data, sizeof(r));
	vrb_buf_put(ev.buf);
	return r;
}

static void want_sent(struct end *e, void *cookie)
{
	struct vrb_event ev = want_event(e, VRB_EV_SENT);

	CHECK(ev.cookie == cookie && ev.outcome == VRB_DONE);
}

static void uses(struct end *e)
{
	static struct iovec iov[PIECES];
	char *p = scatter(iov), *flat = malloc(BYTES), *other = map(4096);
	struct vrb_remote remote = get_remote(e);
	struct vrb_send_options o = {.cookie = iov};
	struct vrb_channel_stats st;
	struct vrb_region *r;
	struct iovec one = {other, 4096};
	struct vrb_event ev;

	CHECK(!vrb_register(e->d, p, BYTES * 2, 0, &r));
	fill(flat, 1, BYTES);
	for (int i = 0; i < PIECES; i++)
		memcpy(iov[i].iov_base, flat + (size_t)i * PIECE, PIECE);
	CHECK(!vrb_write(e->ch, iov, PIECES, &remote, &o));
	CHECK(vrb_write(e->ch, iov, 1, &remote, &o) == -EAGAIN); /* it would overtake */
	CHECK(want_event(e, VRB_EV_SENT).cookie == iov);
	UNTIL_ROOM(e, vrb_send(e->ch, "done", 4, NULL));
	vrb_channel_stats(e->ch, &st);
	CHECK(st.work_requests >= PIECES / 16);
	do
		ev = next_event(e);
	while (ev.kind == VRB_EV_ROOM);
	CHECK(ev.kind == VRB_EV_MESSAGE);
	vrb_buf_put(ev.buf);
	UNTIL_ROOM(e, vrb_read(e->ch, iov, PIECES, &remote, &o));
	want_sent(e, iov);
	for (int i = 0; i < PIECES; i++)
		memcpy(flat + (size_t)i * PIECE, iov[i].iov_base, PIECE);
	CHECK(is_filled(flat, 2, BYTES));
	memset(other, 0, 4096); /* not registered: kept, or for this one */
	UNTIL_ROOM(e, vrb_read(e->ch, &one, 1, &remote, &o));
	want_sent(e, iov);
	CHECK(is_filled(other, 2, 4096));
	UNTIL_ROOM(e, vrb_send(e->ch, "over", 4, NULL));
	remote = get_remote(e);
	/* The peer refuses the first of many; all of it ends once. */
	UNTIL_ROOM(e, vrb_write(e->ch, iov, PIECES, &remote, &o));
	ev = want_event(e, VRB_EV_SENT);
	CHECK(ev.cookie == iov && (ev.outcome == VRB_FLUSHED || ev.outcome == VRB_FAILED));
	CHECK(want_event(e, VRB_EV_BROKEN).text);
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
	CHECK(!vrb_unregister(r));
	munmap(p, BYTES * 2);
	munmap(other, 4096);
	free(flat);
}

int main(void)
{
	struct vrb_domain_options keep = {.keep = VRB_KEEP_WATCHED};
	struct vrb_channel_options wide = {.qps = 1, .send_depth = 6},
				   narrow = {.qps = 1,
					     .send_depth = 4,
					     .sges = 1,
					     .recv_depth = 4,
					     .inline_bytes = UINT32_MAX};

	run_pair(&(struct pair){&keep, &wide, &wide}, offers, uses);
	run_pair(&(struct pair){&keep, &narrow, &narrow}, offers, uses);
	puts("2 passed, 0 failed, 0 skipped");
	return 0;
}
