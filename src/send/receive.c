/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What arrives, and the receives for what comes next. A message is handed out in the buffer that it
 * arrived in; another one from the pool takes its place, many by one call. Where the pool has none,
 * the peer gets no credit: memory is bounded by the pool.
 */
#include <errno.h>

#include "send/channel.h"
#include "send/fail.h"

#define FRAME ((uint32_t)sizeof(struct vrb_frame))

static void broken_rules(struct vrb_lane *l, struct vrb_buf *b, const struct vrb_frame *f,
			 uint32_t len)
{
	vrb_pool_put(b);
	vrb_channel_break(l->ch, VRB_V_SEND_PROTOCOL, f->kind, len, 0);
}

/* It is behind all parts: they were answered before the peer sent it. False: it is none. */
static bool on_file_end(struct vrb_lane *l, struct vrb_buf *b, const struct vrb_frame *f)
{
	struct vrb_event e = {.kind = VRB_EV_FILE_END, .flow = f->flow};
	uint32_t word[3];

	memcpy(word, b->data, sizeof(word));
	if (f->len != sizeof(word) || le32toh(word[2]) > VRB_SHRUNK)
		return false;
	e.total = (uint64_t)le32toh(word[1]) << 32 | le32toh(word[0]);
	e.outcome = (enum vrb_outcome)le32toh(word[2]);
	vrb_pool_put(b);
	vrb_emit(l->ch, &e);
	return true;
}

void vrb_on_receive(struct vrb_lane *l, struct vrb_buf *b, uint32_t len)
{
	struct vrb_frame f = {0};

	b->len = len < FRAME ? 0 : len - FRAME;
	if (vrb_likely(len >= FRAME))
		f = vrb_frame_parse(vrb_frame_at(b));
	l->got_count++;
	l->ch->heard = true;
	l->ch->freed |= f.credits != 0;
	if (vrb_unlikely(len < FRAME ||
			 !vrb_credit_on_message(&l->credit, f.kind == VRB_FRAME_CREDITS, f.credits,
						f.flags >> VRB_FRAME_BARE_SHIFT))) {
		broken_rules(l, b, &f, len);
		return;
	}
	len -= FRAME;
	l->missing++;
	switch (f.kind) {
	case VRB_FRAME_MESSAGE:
		if (f.len != len)
			break;
		if (vrb_unlikely(f.flags & VRB_FRAME_FILE)) {
			if (on_file_end(l, b, &f))
				return;
			break;
		}
		vrb_deliver(l, b);
		return;
	case VRB_FRAME_OFFER:
		vrb_on_offer(l, b, &f, len);
		return;
	case VRB_FRAME_TAKEN:
		vrb_on_taken(l, b->data, len);
		vrb_pool_put(b);
		return;
	case VRB_FRAME_CREDITS:
		l->missing--;
		l->bare++;
		vrb_pool_put(b);
		return;
	default:
		break;
	}
	broken_rules(l, b, &f, len);
}

static int post_receives(struct vrb_lane *l, uint32_t n)
{
	struct ibv_recv_wr wr[VRB_REFILL_MAX], *bad;
	struct ibv_sge sge[VRB_REFILL_MAX];
	struct vrb_channel *ch = l->ch;
	uint32_t k;
	int r;

	for (k = 0; k < n; k++) {
		struct vrb_buf *b = vrb_pool_get_receive(&ch->d->pool, ch->opt.recv_size);

		if (!b)
			break;
		sge[k] = (struct ibv_sge){.addr = (uintptr_t)b->data,
					  .length = FRAME + ch->opt.recv_size,
					  .lkey = b->lkey};
		wr[k] = (struct ibv_recv_wr){.wr_id = (uint64_t)l->index << 1,
					     .next = &wr[k + 1],
					     .sg_list = &sge[k],
					     .num_sge = 1};
		l->rq[(l->rq_tail + k) & l->rq_mask] = b;
	}
	if (!k)
		return 0;
	wr[k - 1].next = NULL;
	l->rq_tail += k;
	r = ibv_post_recv(l->qp, wr, &bad);
	if (r) {
		r = vrb_verbs_errno(r);
		k -= bad >= wr && bad < wr + k ? (uint32_t)(bad - wr) : 0;
		for (; k; k--)
			vrb_pool_put(l->rq[--l->rq_tail & l->rq_mask]);
		vrb_lane_break(l, VRB_V_SEND_POST, (uint64_t)r, 0, 0);
		return vrb_fail(r, VRB_V_SEND_POST, (uint64_t)r, 0, 0);
	}
	ch->st.refills++;
	ch->st.refilled += k;
	return (int)k;
}

/*
 * Posts what is missing once that is worth a call, or all of it. Those of bare messages come first,
 * and at once: the peer counts on them (send/credit.h). While many messages wait behind a large one
 * none is posted for more.
 */
int vrb_lane_refill(struct vrb_lane *l, bool all)
{
	uint32_t batch = l->credit.depth / 8 < 16 ? l->credit.depth / 8 : 16;

	if (!all && !l->bare && l->missing < batch && l->credit.out * 4 > l->credit.depth)
		return 0;
	for (;;) {
		uint32_t n = l->bare + (l->n_held < l->credit.depth ? l->missing : 0), bare;
		int k = n ? post_receives(l, n < VRB_REFILL_MAX ? n : VRB_REFILL_MAX) : 0;

		if (k <= 0)
			return k;
		bare = l->bare < (uint32_t)k ? l->bare : (uint32_t)k;
		l->bare -= bare;
		l->missing -= (uint32_t)k - bare;
		vrb_credit_posted(&l->credit, bare, true);
		vrb_credit_posted(&l->credit, (uint32_t)k - bare, false);
	}
	return 0;
}

static void send_credits(struct vrb_lane *l)
{
	struct vrb_frame f = {.kind = VRB_FRAME_CREDITS};

	if (vrb_lane_flush(l) || !vrb_sq_room(&l->sq))
		return;
	if (!vrb_post_control(l, &f, NULL, 0))
		l->ch->st.credit_messages++;
}

void vrb_lane_tell(struct vrb_lane *l)
{
	if (vrb_credit_must_tell(&l->credit))
		send_credits(l);
}

/* Asks the peer's adapter for an answer: a WRITE of nothing takes no receive and looks at no key
 * (IBA C9-88). */
void vrb_lane_probe(struct vrb_lane *l)
{
	const struct vrb_sent what = {.kind = VRB_SENT_CONTROL, .flags = VRB_SENT_REPORT};
	struct ibv_send_wr *wr;

	if (!vrb_lane_is_up(l) || vrb_lane_flush(l) || !vrb_sq_room(&l->sq))
		return;
	(void)vrb_lane_slot(l);
	wr = &l->batch[l->n_batch];
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->num_sge = 0;
	wr->wr.rdma.remote_addr = 0;
	wr->wr.rdma.rkey = 0;
	(void)vrb_lane_commit(l, wr, &what, 0);
}

/* Makes the unsignaled tail of the queue end soon. */
void vrb_lane_prompt(struct vrb_lane *l)
{
	if (l->sq.unsignaled)
		vrb_lane_probe(l);
}
