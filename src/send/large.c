/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages larger than a receive. The sender offers: "READ these pieces"; the receiver fetches them
 * into one buffer of its pool, delivers that where the offer stands in the order of its lane, and
 * answers TAKEN. Until then the memory is the sender's library's. A pool that is used up at the
 * moment delays the fetch; a message is refused where nothing is outside that could come back.
 */
#include <errno.h>

#include "send/channel.h"
#include "send/fail.h"
#include "send/send.h"

#define READ_MAX (1u << 20) /* bytes per READ, so that other messages get their turn */

/* In flags of a buffer in the list of those held back. */
enum { PLAIN, PENDING, READY };

int vrb_offer_send(struct vrb_lane *l, const struct vrb_piece *piece, uint32_t n,
		   const struct vrb_sent *what, struct vrb_frame *f)
{
	uint8_t payload[sizeof(struct vrb_offer) + VRB_PIECES_MAX * sizeof(struct vrb_piece)];
	struct vrb_channel *ch = l->ch;
	const struct vrb_want room = {.wrs = 1, .credit = true, .offer = true};
	struct vrb_offer head = {.n = htole32(n)};
	uint32_t at = 0, len;
	int r;

	while (at < VRB_OFFERS_MAX && l->offered[at].id)
		at++;
	if (at == VRB_OFFERS_MAX)
		return vrb_again_for(l, &ch->st.again_queue, &room);
	l->offer_id += VRB_OFFERS_MAX;
	head.id = htole32(l->offer_id | at);
	memcpy(payload, &head, sizeof(head));
	for (uint32_t i = 0; i < n; i++) {
		struct vrb_piece p = {.addr = htole64(piece[i].addr),
				      .len = htole32(piece[i].len),
				      .rkey = htole32(piece[i].rkey)};

		memcpy(payload + sizeof(head) + i * sizeof(p), &p, sizeof(p));
	}
	len = (uint32_t)(sizeof(head) + n * sizeof(*piece));
	r = vrb_lane_flush(l);
	if (!r)
		r = vrb_post_control(l, f, payload, len);
	if (r)
		return r == -EAGAIN ? vrb_again_for(l, &ch->st.again_queue, &room) : r;
	l->offered[at] = (struct vrb_offered){.cookie = what->cookie,
					      .buf = what->buf,
					      .deadline_ns = what->deadline_ns,
					      .id = l->offer_id | at,
					      .flags = what->flags};
	ch->n_deadlines += what->deadline_ns != 0;
	l->n_offered++;
	ch->st.rendezvous++;
	ch->st.sent++;
	ch->st.sent_bytes += f->len;
	return 0;
}

static void hold(struct vrb_lane *l, struct vrb_buf *b)
{
	b->link = NULL;
	l->n_held++;
	if (l->held_last)
		l->held_last->link = b;
	else
		l->held_first = b;
	l->held_last = b;
}

void vrb_deliver(struct vrb_lane *l, struct vrb_buf *b)
{
	struct vrb_frame f = vrb_frame_parse(vrb_frame_at(b));
	struct vrb_event e = {.kind = VRB_EV_MESSAGE,
			      .buf = b,
			      .flow = f.flow,
			      .immediate = f.immediate,
			      .has_immediate = f.flags & VRB_FRAME_IMMEDIATE};

	b->flags = PLAIN;
	if (vrb_unlikely(l->held_first != NULL)) {
		hold(l, b);
		return;
	}
	vrb_pool_deliver(b);
	l->ch->st.received++;
	l->ch->st.received_bytes += b->len;
	vrb_emit(l->ch, &e);
}

static struct vrb_piece piece_of(const struct vrb_fetch *g, uint32_t i)
{
	struct vrb_piece p;

	memcpy(&p, (uint8_t *)g->offer->data + sizeof(struct vrb_offer) + i * sizeof(p), sizeof(p));
	p.addr = le64toh(p.addr);
	p.len = le32toh(p.len);
	p.rkey = le32toh(p.rkey);
	return p;
}

static void deliver_part(struct vrb_lane *l, struct vrb_buf *b, struct vrb_piece where)
{
	struct vrb_frame f = vrb_frame_parse(vrb_frame_at(b));
	struct vrb_event e = {.kind = VRB_EV_FILE,
			      .buf = b,
			      .flow = f.flow,
			      .offset = where.addr,
			      .total = (uint64_t)where.rkey << 32 | where.len};

	vrb_pool_deliver(b);
	l->ch->st.received++;
	l->ch->st.received_bytes += b->len;
	vrb_emit(l->ch, &e);
}

/* The head of the list, whose message is there (or never will be). The answer goes out only now, so
 * that the peer's table of offers and ours are full at the same time. */
static void deliver_fetched(struct vrb_lane *l, struct vrb_buf *offer)
{
	struct vrb_fetch *g = &l->fetch[offer->aux];
	struct vrb_buf *into = g->into;

	l->answers[l->n_answers++] = g->id;
	l->answers[l->n_answers++] = g->refused;
	if (into && !g->refused) {
		into->len = g->len;
		memcpy(vrb_frame_at(into), vrb_frame_at(offer), sizeof(struct vrb_frame));
		if (g->is_file)
			deliver_part(l, into, piece_of(g, g->n));
		else
			vrb_deliver(l, into);
	} else if (into) {
		vrb_pool_put(into);
	}
	vrb_pool_put(offer);
	*g = (struct vrb_fetch){0};
	l->n_fetching--;
}

void vrb_deliver_held(struct vrb_lane *l)
{
	struct vrb_buf *all = l->held_first;

	/* Taken off as a whole: vrb_deliver looks whether somebody stands in front. */
	while (all && all->flags != PENDING) {
		struct vrb_buf *b = all;

		all = b->link;
		l->n_held--;
		l->held_first = NULL;
		if (b->flags == READY)
			deliver_fetched(l, b);
		else
			vrb_deliver(l, b);
	}
	l->held_first = all;
	if (!all)
		l->held_last = NULL;
}

static void finish(struct vrb_lane *l, struct vrb_fetch *g)
{
	g->offer->flags = READY;
	vrb_deliver_held(l);
}

void vrb_on_fetched(struct vrb_lane *l, uint32_t slot)
{
	struct vrb_fetch *g = &l->fetch[slot];

	if (!--g->under_way && g->piece == g->n)
		finish(l, g);
}

void vrb_on_offer(struct vrb_lane *l, struct vrb_buf *b, const struct vrb_frame *f, uint32_t len)
{
	struct vrb_offer head;
	struct vrb_fetch *g;
	uint64_t sum = 0;
	uint32_t at = 0;

	memcpy(&head, b->data, sizeof(head));
	while (at < VRB_OFFERS_MAX && l->fetch[at].offer)
		at++;
	if (l->n_answers / 2 + l->n_fetching >= VRB_OFFERS_MAX || len < sizeof(head) ||
	    !le32toh(head.n) ||
	    (len - sizeof(head)) / sizeof(struct vrb_piece) != le32toh(head.n)) {
		vrb_pool_put(b);
		vrb_channel_break(l->ch, VRB_V_SEND_PROTOCOL, f->kind, len, 0);
		return;
	}
	g = &l->fetch[at];
	*g = (struct vrb_fetch){.offer = b,
				.id = le32toh(head.id),
				.n = le32toh(head.n),
				.len = f->len,
				.is_file = f->flags & VRB_FRAME_FILE};
	g->n -= g->is_file; /* the last one says where in the file */
	for (uint32_t i = 0; i < g->n; i++)
		sum += piece_of(g, i).len;
	b->aux = at;
	b->flags = PENDING;
	hold(l, b);
	l->n_fetching++;
	if (sum != f->len || !g->n)
		vrb_channel_break(l->ch, VRB_V_SEND_PROTOCOL, f->kind, f->len, 0);
}

static void post_read(struct vrb_lane *l, struct vrb_fetch *g)
{
	struct vrb_sent what = {.kind = VRB_SENT_FETCH, .arg = (uint16_t)(g - l->fetch)};
	struct vrb_piece p = piece_of(g, g->piece);
	struct vrb_slot *s = vrb_lane_slot(l);
	struct ibv_send_wr *wr = &l->batch[l->n_batch];
	uint32_t len = p.len - g->piece_off;

	len = len < READ_MAX ? len : READ_MAX;
	wr->opcode = IBV_WR_RDMA_READ;
	wr->wr.rdma.remote_addr = p.addr + g->piece_off;
	wr->wr.rdma.rkey = p.rkey;
	s->sge[0] = (struct ibv_sge){
		.addr = (uintptr_t)g->into->data + g->filled, .length = len, .lkey = g->into->lkey};
	g->filled += len;
	g->piece_off += len;
	g->under_way++;
	if (g->piece_off == p.len) {
		g->piece++;
		g->piece_off = 0;
	}
	if (g->piece == g->n)
		what.flags = VRB_SENT_REPORT; /* for our own sake */
	(void)vrb_lane_commit(l, wr, &what, 0);
}

/* A place for the message: now, when something comes back to the pool, or never. */
static bool land(struct vrb_lane *l, struct vrb_fetch *g)
{
	struct vrb_pool *pool = &l->ch->d->pool;
	uint64_t freed = vrb_pool_freed(pool) + 1;

	if (g->waits_since == freed)
		return false;
	g->into = vrb_pool_get_grow(pool, g->len, NULL);
	if (g->into) {
		g->into->state = VRB_BUF_TAKEN;
		return true;
	}
	g->waits_since = freed;
	if (vrb_pool_is_hopeless(pool, g->len)) {
		const uint64_t val[3] = {g->len, l->ch->d->pool_len};
		char text[1]; /* the sender is told, here it is counted */

		vrb_fail_text(text, sizeof(text), VRB_V_SEND_NO_ROOM, val);
		g->refused = true;
		finish(l, g);
	}
	return false;
}

/* One step of one fetch; false: it cannot go on now. */
static bool move_fetch(struct vrb_lane *l, struct vrb_fetch *g)
{
	if (!g->offer || g->refused || g->piece == g->n)
		return false;
	if (!g->into && !land(l, g))
		return false;
	/* Half of the queue stays for messages. */
	if (vrb_sq_room(&l->sq) <= l->sq.depth / 2)
		return false;
	post_read(l, g);
	return true;
}

static void send_answers(struct vrb_lane *l)
{
	while (l->n_answers && vrb_credit_can_send(&l->credit) && vrb_sq_room(&l->sq)) {
		struct vrb_taken t = {.id = htole32(l->answers[0]),
				      .refused = htole32(l->answers[1])};
		struct vrb_frame f = {.kind = VRB_FRAME_TAKEN};

		if (vrb_post_control(l, &f, &t, sizeof(t)))
			return;
		l->n_answers -= 2;
		memmove(l->answers, l->answers + 2, l->n_answers * sizeof(l->answers[0]));
	}
}

void vrb_large_move(struct vrb_lane *l)
{
	for (uint32_t i = 0; l->n_fetching && i < VRB_OFFERS_MAX; i++)
		while (vrb_lane_is_up(l) && move_fetch(l, &l->fetch[i]))
			;
	if (vrb_lane_is_up(l))
		send_answers(l);
}

void vrb_on_taken(struct vrb_lane *l, const void *payload, uint32_t len)
{
	struct vrb_offered *o;
	struct vrb_taken t;

	if (len != sizeof(t)) {
		vrb_channel_break(l->ch, VRB_V_SEND_PROTOCOL, VRB_FRAME_TAKEN, len, 0);
		return;
	}
	memcpy(&t, payload, sizeof(t));
	o = &l->offered[le32toh(t.id) % VRB_OFFERS_MAX];
	if (!o->id || o->id != le32toh(t.id)) {
		vrb_channel_break(l->ch, VRB_V_SEND_PROTOCOL, VRB_FRAME_TAKEN, len, 0);
		return;
	}
	l->n_offered--;
	vrb_offer_over(l->ch, o, t.refused ? VRB_REFUSED : VRB_DONE);
}

/* The channel has ended and the adapter is done with the lane: what can still be delivered is. */
void vrb_large_settle(struct vrb_lane *l)
{
	for (uint32_t i = 0; i < VRB_OFFERS_MAX; i++) {
		struct vrb_fetch *g = &l->fetch[i];

		if (g->offer && g->offer->flags == PENDING) {
			g->refused = true;
			g->offer->flags = READY;
		}
		if (l->offered[i].id) {
			l->n_offered--;
			l->lost++;
			vrb_offer_over(l->ch, &l->offered[i], VRB_FLUSHED);
		}
	}
	vrb_deliver_held(l);
}
