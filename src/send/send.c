/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The three ways to send a message. What is short goes inline, what fits one of the peer's receives
 * is sent from registered memory, what is larger is offered and READ by the peer (large.c).
 */
#include <errno.h>
#include <string.h>

#include "send/channel.h"
#include "send/fail.h"
#include "send/lease.h"
#include "send/probes.h"
#include "send/send.h"
#include "send/sgl.h"

#define FRAME ((uint32_t)sizeof(struct vrb_frame))

static const struct vrb_send_options no_options;

static uint32_t hash_flow(const struct vrb_channel *ch, uint32_t flow)
{
	return ch->flow_table[0][flow >> 24] ^ ch->flow_table[1][flow >> 16 & 255] ^
	       ch->flow_table[2][flow >> 8 & 255] ^ ch->flow_table[3][flow & 255];
}

unsigned vrb_flow_qp(const struct vrb_channel *ch, uint32_t flow, unsigned flags)
{
	uint32_t hash = flags & VRB_HASHED ? flow : hash_flow(ch, flow);

	return ch->flow_lane[hash % VRB_FLOWS];
}

struct vrb_lane *vrb_lane_of(struct vrb_channel *ch, const struct vrb_send_options *o)
{
	return ch->lane[ch->n_lanes == 1 ? 0 : vrb_flow_qp(ch, o->flow, o->flags)];
}

/* What the refused call lacked; vrb_poll tells when all of that is there. */
int vrb_again_for(struct vrb_lane *l, uint64_t *why, const struct vrb_want *want)
{
	++*why;
	VRB_PROBE(again, l->ch, l->index, *why);
	l->want = *want;
	l->ch->want_room = true;
	l->ch->freed = false;
	return -EAGAIN;
}

int vrb_again(struct vrb_lane *l, uint64_t *why)
{
	return vrb_again_for(l, why, &(struct vrb_want){.wrs = 1, .credit = true});
}

bool vrb_lane_has_room(struct vrb_lane *l)
{
	const struct vrb_want *w = &l->want;

	if (l->state == VRB_LANE_OUT || l->state == VRB_LANE_BUILDING)
		return vrb_lanes_any_up(l->ch); /* its flows are elsewhere then */
	return w->wrs && vrb_lane_is_up(l) && !l->resting && vrb_sq_room(&l->sq) >= w->wrs &&
	       !l->rdma && !(w->file && l->ch->file) &&
	       (!w->credit || (vrb_credit_can_send(&l->credit) && !l->n_answers)) &&
	       !(w->offer && (l->n_offered == VRB_OFFERS_MAX || l->control_busy)) &&
	       (!w->memory || vrb_pool_has(&l->ch->d->pool, w->bytes));
}

int vrb_lane_down(struct vrb_lane *l)
{
	enum vrb_state state = l->ch->state;

	if (state == VRB_UP || state == VRB_AWAY)
		return vrb_again(l, &l->ch->st.again_lane);
	return vrb_fail(ENOTCONN, VRB_V_SEND_ENDED, 0, 0, 0);
}

/* Whether a message may be posted now. */
static int ready(struct vrb_lane *l)
{
	struct vrb_channel *ch = l->ch;

	if (vrb_unlikely(!vrb_lane_is_up(l) || l->resting))
		return vrb_lane_down(l);
	if (vrb_unlikely(!vrb_credit_can_send(&l->credit) || l->n_answers))
		return vrb_again(l, &ch->st.again_credit);
	if (vrb_unlikely(!vrb_sq_room(&l->sq) || l->rdma))
		return vrb_again(l, &ch->st.again_queue);
	return 0;
}

struct vrb_sent vrb_sent_make(const struct vrb_channel *ch, const struct vrb_send_options *o,
			      enum vrb_sent_kind kind)
{
	bool timed = ch->latency && kind != VRB_SENT_OFFER;
	struct vrb_sent s = {.cookie = o->cookie, .kind = (uint8_t)kind};

	if (o->cookie || o->flags & VRB_REPORT)
		s.flags = VRB_SENT_REPORT;
	if (timed || (o->timeout_ns && s.flags)) {
		uint64_t now = vrb_now();

		s.posted_ns = timed ? now : 0;
		s.deadline_ns = s.flags && o->timeout_ns ? now + o->timeout_ns : 0;
	}
	return s;
}

static struct vrb_frame frame_of(const struct vrb_send_options *o, enum vrb_frame_kind kind,
				 uint64_t len)
{
	struct vrb_frame f = {.kind = (uint8_t)kind, .len = (uint32_t)len, .flow = o->flow};

	if (o->flags & VRB_IMMEDIATE) {
		f.flags = VRB_FRAME_IMMEDIATE;
		f.immediate = o->immediate;
	}
	return f;
}

static void count_sent(struct vrb_channel *ch, uint64_t len)
{
	ch->st.sent++;
	ch->st.sent_bytes += len;
}

static int too_long(const struct vrb_channel *ch, uint64_t len)
{
	return vrb_fail(EMSGSIZE, VRB_V_SEND_TOO_LONG, len, ch->max_message, 0);
}

static int send_inline(struct vrb_lane *l, const struct iovec *iov, int n, uint32_t len,
		       const struct vrb_send_options *o)
{
	struct vrb_sent what = vrb_sent_make(l->ch, o, VRB_SENT_MESSAGE);
	struct vrb_frame f = frame_of(o, VRB_FRAME_MESSAGE, len);
	struct vrb_slot *s = vrb_lane_slot(l);
	uint8_t *to = s->scratch;

	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	vrb_lane_frame(l, to, &f);
	s->sge[0] = (struct ibv_sge){.addr = (uintptr_t)s->scratch, .length = FRAME + len};
	l->batch[l->n_batch].send_flags = IBV_SEND_INLINE;
	l->ch->st.inlined++;
	count_sent(l->ch, len);
	return vrb_lane_commit(l, &l->batch[l->n_batch], &what, o->flags);
}

/* A buffer that is ours: as it is, or offered. Put back at the end by the library. */
static int send_own(struct vrb_lane *l, struct vrb_buf *b, const struct vrb_send_options *o)
{
	struct vrb_channel *ch = l->ch;
	uint32_t len = b->len;
	struct vrb_sent what;
	struct vrb_frame f;
	int r;

	if (len <= ch->peer_recv_size) {
		what = vrb_sent_make(l->ch, o, VRB_SENT_MESSAGE);
		f = frame_of(o, VRB_FRAME_MESSAGE, len);
		what.buf = b;
		b->state = VRB_BUF_TAKEN;
		vrb_lane_frame(l, vrb_frame_at(b), &f);
		count_sent(ch, len);
		return vrb_post_buf(l, b, &what, o->flags);
	}
	what = vrb_sent_make(l->ch, o, VRB_SENT_OFFER);
	f = frame_of(o, VRB_FRAME_OFFER, len);
	what.buf = b;
	if (!vrb_regions_find(&ch->d->regions, (uintptr_t)b->data, &ch->hit))
		return vrb_fail(EFAULT, VRB_V_SEND_NOT_REGISTERED, 0, (uintptr_t)b->data, len);
	r = vrb_offer_send(
		l,
		&(struct vrb_piece){.addr = (uintptr_t)b->data, .len = len, .rkey = ch->hit.rkey},
		1, &what, &f);
	if (!r)
		b->state = VRB_BUF_TAKEN;
	return r;
}

int vrb_again_memory(struct vrb_lane *l, uint64_t bytes)
{
	vrb_lane_prompt(l); /* for the buffers that its completion gives back */
	return vrb_again_for(
		l, &l->ch->st.again_memory,
		&(struct vrb_want){.wrs = 1, .credit = true, .memory = true, .bytes = bytes});
}

/* All pieces copied into one buffer. */
static int send_copy(struct vrb_lane *l, const struct iovec *iov, int n, uint64_t len,
		     const struct vrb_send_options *o)
{
	struct vrb_pool *pool = &l->ch->d->pool;
	struct vrb_buf *b = vrb_pool_get_grow(pool, len, __builtin_return_address(0));
	uint8_t *to;
	int r;

	if (!b && vrb_pool_is_hopeless(pool, len))
		return vrb_fail(EMSGSIZE, VRB_V_SEND_NO_ROOM, len, l->ch->d->pool_len, 0);
	if (!b)
		return vrb_again_memory(l, len);
	to = b->data;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	b->len = (uint32_t)len;
	r = send_own(l, b, o);
	if (r && b->state == VRB_BUF_USED)
		vrb_pool_put(b);
	else
		l->ch->st.copied++;
	return r;
}

int vrb_send(struct vrb_channel *ch, const void *data, size_t len, const struct vrb_send_options *o)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct vrb_lane *l;
	int r;

	o = o ? o : &no_options;
	l = vrb_lane_of(ch, o);
	r = ready(l);
	if (vrb_unlikely(r))
		return r;
	if (vrb_unlikely(len > ch->max_message))
		return too_long(ch, len);
	if (len + FRAME <= ch->inline_max && len <= ch->peer_recv_size)
		return send_inline(l, &iov, 1, (uint32_t)len, o);
	return send_copy(l, &iov, 1, len, o);
}

int vrb_send_buf(struct vrb_channel *ch, struct vrb_buf *b, const struct vrb_send_options *o)
{
	struct vrb_lane *l;
	int r;

	o = o ? o : &no_options;
	l = vrb_lane_of(ch, o);
	if (vrb_unlikely(b->state != VRB_BUF_USED || b->len > b->cap || b->pool != &ch->d->pool))
		return vrb_fail(EINVAL, VRB_V_SEND_BUF, b->len, b->cap, 0);
	r = ready(l);
	if (vrb_unlikely(r))
		return r;
	if (vrb_unlikely(b->len > ch->max_message))
		return too_long(ch, b->len);
	return send_own(l, b, o);
}

/* From where it lies, the frame from a small buffer. 1: it does not fit, copy it. */
static int send_gather(struct vrb_lane *l, const struct iovec *iov, int n, uint32_t len,
		       const struct vrb_send_options *o)
{
	struct vrb_channel *ch = l->ch;
	struct vrb_sgl_walk w = {.regions = &ch->d->regions, .iov = iov, .n = n, .hit = ch->hit};
	struct vrb_sent what = vrb_sent_make(l->ch, o, VRB_SENT_MESSAGE);
	struct vrb_frame f = frame_of(o, VRB_FRAME_MESSAGE, len);
	struct vrb_slot *s = vrb_lane_slot(l);
	struct vrb_report why;
	int k;

	if (ch->sges < 2)
		return 1;
	k = vrb_sgl_next(&w, s->sge, (int)ch->sges - 1, len, &why);
	ch->hit = w.hit;
	if (k < 0 || w.i < w.n)
		return 1;
	what.buf = vrb_pool_get(&ch->d->pool, 0, NULL);
	if (!what.buf)
		return vrb_again_memory(l, 0);
	what.buf->state = VRB_BUF_TAKEN;
	what.flags |= VRB_SENT_REPORT | VRB_SENT_USERS;
	vrb_lane_frame(l, what.buf->data, &f);
	s->sge[k] = (struct ibv_sge){
		.addr = (uintptr_t)what.buf->data, .length = FRAME, .lkey = what.buf->lkey};
	l->batch[l->n_batch].num_sge = k + 1;
	count_sent(ch, len);
	return vrb_lane_commit(l, &l->batch[l->n_batch], &what, o->flags);
}

/* Larger than a receive: the peer READs the pieces where they lie. 1: too many of them. */
static int offer_walk(struct vrb_lane *l, struct vrb_sgl_walk *w, uint64_t len,
		      const struct vrb_send_options *o, struct vrb_buf *lease)
{
	struct vrb_piece piece[VRB_PIECES_MAX];
	struct vrb_sent what = vrb_sent_make(l->ch, o, VRB_SENT_OFFER);
	struct vrb_frame f = frame_of(o, VRB_FRAME_OFFER, len);
	uint32_t most = (l->ch->peer_recv_size - 8) / (uint32_t)sizeof(piece[0]), k = 0;
	struct vrb_report why;
	struct ibv_sge one;
	int got;

	while ((got = vrb_sgl_next(w, &one, 1, len, &why)) > 0) {
		if (k == most || k == VRB_PIECES_MAX)
			return 1;
		piece[k++] = (struct vrb_piece){
			.addr = one.addr, .len = one.length, .rkey = w->hit.rkey};
	}
	if (got < 0)
		return vrb_fail_report(EFAULT, &why);
	what.flags |= VRB_SENT_REPORT | VRB_SENT_USERS;
	what.buf = lease;
	return vrb_offer_send(l, piece, k, &what, &f);
}

static int offer_pieces(struct vrb_lane *l, const struct iovec *iov, int n, uint64_t len,
			const struct vrb_send_options *o)
{
	struct vrb_lease lease;
	struct vrb_sgl_walk w = {.regions = &l->ch->d->regions,
				 .iov = iov,
				 .n = n,
				 .access = IBV_ACCESS_REMOTE_READ};
	int r = vrb_lease_get(l, iov, n, IBV_ACCESS_REMOTE_READ, &lease);

	if (r)
		return r;
	w.own = lease.walk;
	r = offer_walk(l, &w, len, o, lease.buf);
	if (r)
		vrb_lease_drop(l->ch, &lease);
	return r;
}

int vrb_sendv(struct vrb_channel *ch, const struct iovec *iov, int n,
	      const struct vrb_send_options *options)
{
	struct vrb_send_options o = options ? *options : no_options;
	struct vrb_lane *l = vrb_lane_of(ch, &o);
	uint64_t len;
	int r = ready(l);

	if (r)
		return r;
	o.flags |= VRB_REPORT;
	if (!vrb_sgl_total(iov, n, ch->max_message, &len))
		return too_long(ch, UINT64_MAX);
	if (len <= ch->peer_recv_size) {
		if (len + FRAME <= ch->inline_max)
			return send_inline(l, iov, n, (uint32_t)len, &o);
		r = send_gather(l, iov, n, (uint32_t)len, &o);
	} else {
		r = offer_pieces(l, iov, n, len, &o);
	}
	return r == 1 ? send_copy(l, iov, n, len, &o) : r;
}

int vrb_flush(struct vrb_channel *ch)
{
	int r = 0;

	for (uint32_t i = 0; i < ch->n_lanes; i++) {
		int q = vrb_lane_flush(ch->lane[i]);

		r = r ? r : q;
	}
	return r;
}
