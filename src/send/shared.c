/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/shared.h"

#include <errno.h>
#include <stdlib.h>

#include "send/channel.h"
#include "send/fail.h"

enum { OBJ_SRQ = 7 }; /* a name of the verdict's sentence */

#define FRAME ((uint32_t)sizeof(struct vrb_frame))

uint32_t vrb_shared_share(const struct vrb_channel *ch, uint32_t qps)
{
	uint32_t share = ch->opt.recv_depth / qps, room = 0;

	if (ch->d->attr.max_srq > 0 && ch->d->attr.max_srq_wr > 0)
		room = (uint32_t)ch->d->attr.max_srq_wr / qps;
	if (room <= VRB_CREDIT_BARE) {
		(void)vrb_fail(EOPNOTSUPP, VRB_V_SEND_CREATE, OBJ_SRQ, EOPNOTSUPP, 0);
		(void)vrb_about("the device has %d SRQs of %d entries", ch->d->attr.max_srq,
				ch->d->attr.max_srq_wr);
		return 0;
	}
	room -= VRB_CREDIT_BARE;
	share = share ? share : 1;
	return share < room ? share : room;
}

int vrb_shared_create(struct vrb_channel *ch, uint32_t n)
{
	struct vrb_shared *s = calloc(1, sizeof(*s));
	struct ibv_srq_init_attr a = {.attr = {.max_sge = 1}};

	if (!s)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*s), ENOMEM, 0);
	ch->shared = s;
	s->n = s->n_free = n * (ch->lane_depth + VRB_CREDIT_BARE);
	s->limit = s->n / 4;
	s->posted = calloc(s->n, sizeof(struct vrb_buf *));
	s->free = calloc(s->n, sizeof(*s->free));
	if (!s->posted || !s->free)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, s->n * sizeof(*s->free), ENOMEM, 0);
	for (uint32_t i = 0; i < s->n; i++)
		s->free[i] = s->n - 1 - i;
	a.attr.max_wr = s->n;
	s->srq = ibv_create_srq(ch->d->pd, &a);
	if (s->srq)
		return 0;
	(void)vrb_fail(errno, VRB_V_SEND_CREATE, OBJ_SRQ, (uint64_t)errno, 0);
	return vrb_about("max_wr %u, max_sge 1", s->n);
}

/* All queue pairs are gone. */
void vrb_shared_destroy(struct vrb_channel *ch)
{
	struct vrb_shared *s = ch->shared;

	if (!s)
		return;
	pthread_mutex_lock(&ch->d->lock); /* events name it (async.c) */
	ch->shared = NULL;
	pthread_mutex_unlock(&ch->d->lock);
	if (s->srq)
		ibv_destroy_srq(s->srq);
	for (uint32_t i = 0; s->posted && i < s->n; i++)
		if (s->posted[i])
			vrb_pool_put(s->posted[i]);
	free(s->posted);
	free(s->free);
	free(s);
}

struct vrb_buf *vrb_shared_take(struct vrb_channel *ch, const struct ibv_wc *wc,
				struct vrb_lane **lane)
{
	struct vrb_shared *s = ch->shared;
	uint32_t slot = (uint32_t)(wc->wr_id >> 8);
	struct vrb_buf *b = s->posted[slot];

	s->posted[slot] = NULL;
	s->free[s->n_free++] = slot;
	*lane = NULL;
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i]->qp && ch->lane[i]->qp->qp_num == wc->qp_num)
			*lane = ch->lane[i];
	return b;
}

void vrb_shared_wasted(struct vrb_lane *l, struct vrb_buf *b)
{
	vrb_pool_put(b);
	if (l && l->ch->shared)
		l->missing++; /* of its share */
}

void vrb_shared_polled(struct vrb_channel *ch)
{
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i]->last == VRB_LAST_TAKEN)
			ch->lane[i]->last = VRB_LAST_POLLED;
}

/* ---- posting */

static uint32_t wanted(const struct vrb_lane *l)
{
	return l->bare + (l->n_held < l->credit.depth ? l->missing : 0);
}

/* Up to n of them; how many, or -errno. */
static int post(struct vrb_channel *ch, uint32_t n)
{
	struct ibv_recv_wr wr[VRB_REFILL_MAX], *bad;
	struct vrb_shared *s = ch->shared;
	struct ibv_sge sge[VRB_REFILL_MAX];
	uint32_t k;
	int r;

	for (k = 0; k < n && s->n_free; k++) {
		struct vrb_buf *b = vrb_pool_get_receive(&ch->d->pool, ch->opt.recv_size);
		uint32_t slot;

		if (!b)
			break;
		slot = s->free[--s->n_free];
		s->posted[slot] = b;
		sge[k] = (struct ibv_sge){.addr = (uintptr_t)b->data,
					  .length = FRAME + ch->opt.recv_size,
					  .lkey = b->lkey};
		wr[k] = (struct ibv_recv_wr){.wr_id = (uint64_t)slot << 8,
					     .next = &wr[k + 1],
					     .sg_list = &sge[k],
					     .num_sge = 1};
	}
	if (!k)
		return 0;
	wr[k - 1].next = NULL;
	r = ibv_post_srq_recv(s->srq, wr, &bad);
	if (r) {
		r = vrb_verbs_errno(r);
		vrb_channel_break(ch, VRB_V_SEND_POST, (uint64_t)r, 0, 0);
		return vrb_fail(r, VRB_V_SEND_POST, (uint64_t)r, 0, 0);
	}
	ch->st.refills++;
	ch->st.refilled += k;
	return (int)k;
}

/* What was posted counts for the lanes in turn: bare ones first, the peers count on them. */
static uint32_t spread(struct vrb_channel *ch, uint32_t k, bool bare)
{
	for (uint32_t i = 0; i < ch->n_lanes && k; i++) {
		struct vrb_lane *l = ch->lane[i];
		uint32_t want = bare ? l->bare : wanted(l) - l->bare, n = want < k ? want : k;

		*(bare ? &l->bare : &l->missing) -= n;
		vrb_credit_posted(&l->credit, n, bare);
		k -= n;
	}
	return k;
}

static void arm(struct vrb_channel *ch)
{
	struct vrb_shared *s = ch->shared;
	struct ibv_srq_attr a = {.srq_limit = s->limit};

	if (s->armed || !s->limit || s->n - s->n_free < s->limit)
		return;
	s->armed = !ibv_modify_srq(s->srq, &a, IBV_SRQ_LIMIT);
	if (!s->armed)
		s->limit = 0; /* not offered; filling up needs it not */
}

/* The lanes' shares are small: one that has given out a quarter of its credits is worth a call. */
static bool is_worth_it(const struct vrb_channel *ch, uint32_t total)
{
	uint32_t n = ch->shared->n / 8;

	if (total >= (n < VRB_REFILL_MAX ? n : VRB_REFILL_MAX))
		return true;
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		if (ch->lane[i]->bare || (ch->lane[i]->missing &&
					  ch->lane[i]->credit.out * 4 <= ch->lane[i]->credit.depth))
			return true;
	return false;
}

int vrb_shared_refill(struct vrb_channel *ch, bool all)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < ch->n_lanes; i++)
		total += wanted(ch->lane[i]);
	if (!total || (!all && !is_worth_it(ch, total)))
		return 0;
	while (total) {
		int k = post(ch, total < VRB_REFILL_MAX ? total : VRB_REFILL_MAX);

		if (k <= 0)
			return k;
		total -= (uint32_t)k;
		(void)spread(ch, spread(ch, (uint32_t)k, true), false);
	}
	arm(ch);
	return 0;
}

void vrb_shared_on_limit(struct vrb_channel *ch)
{
	ch->st.srq_limits++;
	if (!ch->shared)
		return;
	ch->shared->armed = false;
	if (ch->state == VRB_UP)
		(void)vrb_shared_refill(ch, true);
}

bool vrb_shared_let_go(const struct vrb_lane *l)
{
	return !l->ch->shared || !l->qp || l->last == VRB_LAST_POLLED;
}
