/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/storm.h"

#define AREA   (1u << 16)
#define N_WAYS 8u
#define SHARED (AREA / 2) /* of the area, for the peer */

struct account {
	bool taken, over, timed_out, released;
};

struct run {
	struct end *e;
	const struct storm *s;
	struct books *b;
	struct account *account;
	char *area;
	struct vrb_remote remote; /* the peer's area */
	bool ended, said_end, end_is_there, heard_end;
	uint32_t messages_done, expected;
};

/* The last message: how many of those before it were to come. */
struct last_word {
	uint32_t done, posted;
};

/* Whether the peer gets a message of the i-th way. */
static bool is_message(uint32_t i)
{
	return i % N_WAYS < 6;
}

static int by_buffer(struct run *r, const struct vrb_send_options *o)
{
	struct vrb_buf *b;
	int err = vrb_buf_get(r->e->d, 4000, &b);

	if (err)
		return -EAGAIN;
	b->len = 4000;
	err = vrb_send_buf(r->e->ch, b, o);
	if (err)
		vrb_buf_put(b);
	return err;
}

static int post(struct run *r, uint32_t i)
{
	struct vrb_send_options o = {.cookie = &r->account[i],
				     .flow = i * 7919,
				     .timeout_ns = r->s->timeout_ns,
				     .flags = i % 3 ? 0 : VRB_MORE};
	char *own = r->area + SHARED;
	struct iovec three[] = {{own, 1000}, {own + 5000, 500}, {own + 9000, 1500}};
	struct iovec large = {own, 20000};
	struct vrb_channel *ch = r->e->ch;

	switch (i % N_WAYS) {
	case 0:
		return vrb_send(ch, own, 40, &o);
	case 1:
		return vrb_send(ch, own, 2000, &o);
	case 2:
		return vrb_send(ch, own, 9000, &o);
	case 3:
		return by_buffer(r, &o);
	case 4:
		return vrb_sendv(ch, three, 3, &o);
	case 5:
		return vrb_sendv(ch, &large, 1, &o);
	case 6:
		return vrb_write(ch, three, 3, &r->remote, &o);
	default:
		return vrb_read(ch, three, 3, &r->remote, &o);
	}
}

static void ends(struct run *r, const struct vrb_event *ev)
{
	struct account *a = ev->cookie;

	if (ev->cookie == r) { /* the last word; again, if its lane failed under it */
		r->end_is_there = ev->outcome == VRB_DONE;
		r->said_end = r->end_is_there;
		return;
	}
	CHECK(a >= r->account && a < r->account + r->s->n);
	CHECK(a->taken && !a->over);
	a->over = true;
	a->timed_out = ev->outcome == VRB_TIMED_OUT;
	r->b->ended++;
	r->b->done += ev->outcome == VRB_DONE;
	r->messages_done += ev->outcome == VRB_DONE && is_message((uint32_t)(a - r->account));
	r->b->timed_out += ev->outcome == VRB_TIMED_OUT;
	r->b->failed += ev->outcome == VRB_FAILED;
	r->b->flushed += ev->outcome == VRB_FLUSHED;
	if (r->s->trouble && r->b->ended == r->s->trouble_at)
		r->s->trouble(r->e);
}

static void take_message(struct run *r, struct vrb_buf *b)
{
	struct last_word w;

	if (b->len == sizeof(w)) {
		memcpy(&w, b->data, sizeof(w));
		CHECK(r->b->received >= w.done && r->b->received <= w.posted);
		r->heard_end = true;
	} else if (b->len == sizeof(r->remote)) {
		memcpy(&r->remote, b->data, sizeof(r->remote));
	} else {
		r->b->received++;
	}
	vrb_buf_put(b);
}

static void take(struct run *r, const struct vrb_event *ev)
{
	struct account *a = ev->cookie;

	CHECK(!r->ended);
	switch (ev->kind) {
	case VRB_EV_MESSAGE:
		take_message(r, ev->buf);
		break;
	case VRB_EV_SENT:
		ends(r, ev);
		break;
	case VRB_EV_RELEASED:
		CHECK(a->timed_out && !a->released);
		a->released = true;
		break;
	case VRB_EV_BROKEN:
		snprintf(r->b->why, sizeof(r->b->why), "%s", ev->text);
		if (!r->s->may_end)
			fprintf(stderr, "broken: %s\n", ev->text);
		r->ended = true;
		break;
	case VRB_EV_CLOSED:
		r->ended = true;
		break;
	case VRB_EV_LANE:
		r->b->lanes_down += ev->outcome == VRB_FAILED;
		r->b->lanes_up += ev->outcome == VRB_DONE;
		r->b->lost += ev->outcome == VRB_FAILED ? ev->total : 0;
		break;
	case VRB_EV_AWAY:
		snprintf(r->b->why, sizeof(r->b->why), "%s", ev->text);
		r->b->away++;
		break;
	case VRB_EV_BACK:
		r->b->back++;
		break;
	case VRB_EV_PORT:
		r->b->ports++;
		break;
	case VRB_EV_ROOM:
		break;
	case VRB_EV_FILE:
	case VRB_EV_FILE_END:
		CHECK(!"a file");
	}
}

static void poll_once(struct run *r, int64_t timeout_ns)
{
	struct vrb_event ev[16];
	int k = vrb_poll(r->e->ch, ev, 16, timeout_ns);

	CHECK(k >= 0 || (k == -ENOTCONN && r->ended));
	for (int i = 0; i < k; i++)
		take(r, &ev[i]);
}

/* Says the last word once all has ended. True: so has the peer. */
static bool is_through(struct run *r)
{
	struct last_word w = {.done = r->messages_done, .posted = r->expected};
	struct vrb_send_options o = {.cookie = r};

	if (r->b->ended == r->s->n && !r->said_end)
		r->said_end = !vrb_send(r->e->ch, &w, sizeof(w), &o);
	return r->end_is_there && r->heard_end && r->b->lanes_up == r->b->lanes_down;
}

static void send_all_ways(struct run *r)
{
	uint64_t quiet = now_ns();
	int err = 0;

	while (!r->ended && !is_through(r)) {
		uint32_t ended = r->b->ended, received = r->b->received, i = r->b->posted;

		if (i < r->s->n) {
			r->account[i].taken = true;
			err = post(r, i);
			r->b->posted += !err;
			if (err)
				r->account[i].taken = false;
			while (err && err != -EAGAIN && !r->s->may_end && !r->ended)
				poll_once(r, S); /* says why */
			CHECK(!err || err == -EAGAIN || r->s->may_end);
		}
		poll_once(r, err || i == r->s->n ? MS : 0);
		if (r->b->ended + r->b->received != ended + received)
			quiet = now_ns();
		CHECK(now_ns() - quiet < (uint64_t)WAIT);
	}
}

static void balance(const struct run *r)
{
	struct vrb_pool_stats st;

	for (uint32_t i = 0; i < r->s->n; i++)
		CHECK(r->account[i].taken == r->account[i].over);
	CHECK(r->b->ended == r->b->posted);
	CHECK(r->s->may_end || r->s->may_lose || r->b->received == r->expected);
	vrb_pool_stats(r->e->d, &st);
	CHECK(st.outside == 0);
}

/* The peer has all of ours when it leaves, and we wait for that. */
static void leave(struct run *r)
{
	int err;

	if (!r->ended && child_pid)
		while (!r->ended)
			poll_once(r, WAIT);
	err = vrb_disconnect(r->e->ch, r->ended ? 0 : WAIT);
	CHECK(r->s->may_end || !err);
	r->e->ch = NULL;
}

/* Each tells the other of its area. What the peer sends by another lane may overtake that. */
static void meet(struct run *r, const struct vrb_region *region)
{
	struct vrb_remote mine;

	CHECK(!vrb_export(region, &mine));
	mine.len = SHARED;
	send_all(r->e, &mine, sizeof(mine), NULL);
	while (!r->remote.len && !r->ended) {
		struct vrb_event ev = next_event(r->e);

		take(r, &ev);
	}
	CHECK(!r->ended || r->s->may_end);
}

void storm(struct end *e, const struct storm *s, struct books *b)
{
	struct run r = {.e = e, .s = s, .b = b, .area = aligned_alloc(4096, AREA)};
	struct vrb_region *region;

	memset(b, 0, sizeof(*b));
	memset(r.area, 7, AREA);
	r.account = calloc(s->n, sizeof(*r.account));
	CHECK(r.area && r.account);
	for (uint32_t i = 0; i < s->n; i++)
		r.expected += is_message(i);
	CHECK(!vrb_register(e->d, r.area, AREA, VRB_REMOTE_READ | VRB_REMOTE_WRITE, &region));
	meet(&r, region);
	send_all_ways(&r);
	leave(&r);
	balance(&r);
	CHECK(!vrb_unregister(region));
	free(r.account);
	free(r.area);
}
