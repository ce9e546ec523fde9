/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITE to and READ from a region that the peer has exported. A list that needs more SGEs than a
 * work request has becomes several; the last one is signaled and ends them all, because a queue
 * pair completes in order. They are posted together when the queue has room, else nothing is. A
 * list that is longer than the queue is copied and posted as it drains, and until then its lane
 * takes nothing else, so that order holds.
 */
#include <errno.h>
#include <stdlib.h>

#include "send/channel.h"
#include "send/fail.h"
#include "send/lease.h"
#include "send/send.h"
#include "send/sgl.h"

struct op {
	enum ibv_wr_opcode opcode;
	struct vrb_remote remote;
	uint64_t at, len;
	unsigned flags;
	struct vrb_sent end; /* what becomes of the whole */
	bool handed_over;    /* the queue has it, and reports it whatever happens */
	struct vrb_sgl_walk w;
};

/* A long one: what the walk points at comes along. */
struct vrb_rdma {
	struct op op;
	int left; /* work requests to be posted */
	struct vrb_hit own[VRB_LEASE_MAX];
	struct iovec iov[];
};

/* How many work requests the list takes, or -errno: nothing is posted before all is known to be
 * good. */
static int count_wrs(struct vrb_channel *ch, struct vrb_sgl_walk w, uint64_t len)
{
	struct ibv_sge sge[VRB_SGES_MAX];
	struct vrb_report why;
	int n = 0, k;

	while ((k = vrb_sgl_next(&w, sge, (int)ch->sges, len, &why)) > 0)
		n++;
	if (k < 0)
		return vrb_fail_report(EFAULT, &why);
	return n ? n : 1;
}

static int post_part(struct vrb_lane *l, struct op *op, bool last)
{
	const struct vrb_sent part = {.kind = VRB_SENT_PART};
	struct vrb_slot *s = vrb_lane_slot(l);
	struct ibv_send_wr *wr = &l->batch[l->n_batch];
	struct vrb_report why;
	int k = vrb_sgl_next(&op->w, s->sge, (int)l->ch->sges, op->len, &why);

	if (k < 0)
		return vrb_fail_report(EFAULT, &why);
	wr->opcode = op->opcode;
	wr->num_sge = k;
	wr->wr.rdma.remote_addr = op->remote.addr + op->at;
	wr->wr.rdma.rkey = op->remote.rkey;
	for (int i = 0; i < k; i++)
		op->at += s->sge[i].length;
	op->handed_over = last;
	return vrb_lane_commit(l, wr, last ? &op->end : &part,
			       (op->flags & VRB_FENCE) | (last ? op->flags & VRB_MORE : VRB_MORE));
}

/* As much as the queue takes. What cannot be posted any more (memory that was unregistered in
 * breach of the contract, an adapter that refuses) ends the channel, for a part is under way. */
void vrb_rdma_move(struct vrb_lane *l)
{
	struct vrb_rdma *g = l->rdma;
	int r = 0;

	while (g->left && vrb_sq_room(&l->sq) && !r) {
		r = post_part(l, &g->op, g->left == 1);
		g->left--;
	}
	if (g->op.handed_over) {
		l->rdma = NULL;
		l->mark = l->sq.tail;
		free(g);
		return;
	}
	if (r) {
		vrb_channel_break(l->ch, VRB_V_SEND_POST, (uint64_t)-r, 0, 0);
		return; /* vrb_rdma_settle ends it */
	}
	(void)vrb_lane_flush(l);
	vrb_lane_prompt(l); /* so that room comes */
}

void vrb_rdma_settle(struct vrb_lane *l)
{
	struct vrb_rdma *g = l->rdma;

	if (!g)
		return;
	l->rdma = NULL;
	g->op.end.deadline_ns = 0; /* counted with the last work request, which was not posted */
	vrb_sent_over(l, &g->op.end, VRB_FLUSHED);
	free(g);
}

static int begin_long(struct vrb_lane *l, const struct op *op, int wrs)
{
	struct vrb_rdma *g = malloc(sizeof(*g) + (size_t)op->w.n * sizeof(g->iov[0]));

	if (!g)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*g), ENOMEM, 0);
	g->op = *op;
	g->left = wrs;
	memcpy(g->iov, op->w.iov, (size_t)op->w.n * sizeof(g->iov[0]));
	g->op.w.iov = g->iov;
	if (op->w.own) {
		memcpy(g->own, op->w.own, sizeof(g->own));
		g->op.w.own = g->own;
	}
	l->rdma = g;
	vrb_rdma_move(l);
	return 0;
}

static int run_leased(struct vrb_lane *l, struct op *op)
{
	int wrs = count_wrs(l->ch, op->w, op->len), r = 0;

	if (wrs < 0)
		return wrs;
	if ((uint32_t)wrs > l->sq.depth)
		return begin_long(l, op, wrs);
	if ((uint32_t)wrs > vrb_sq_room(&l->sq))
		return vrb_again_for(l, &l->ch->st.again_queue,
				     &(struct vrb_want){.wrs = (uint32_t)wrs});
	for (int i = 0; i < wrs && !r; i++)
		r = post_part(l, op, i + 1 == wrs);
	return op->handed_over ? 0 : r;
}

static int run(struct vrb_channel *ch, const struct iovec *iov, int n, struct op *op,
	       const struct vrb_send_options *o)
{
	static const struct vrb_send_options none;
	struct vrb_lease lease;
	struct vrb_lane *l;
	int r;

	o = o ? o : &none;
	op->at = o->remote_offset;
	op->flags = o->flags;
	l = vrb_lane_of(ch, o);
	if (!vrb_lane_is_up(l) || l->resting)
		return vrb_lane_down(l);
	if (!vrb_sgl_total(iov, n, 1u << 31, &op->len))
		return vrb_fail(EMSGSIZE, VRB_V_SEND_TOO_LONG, UINT64_MAX, 1u << 31, 0);
	if (op->at > op->remote.len || op->len > op->remote.len - op->at)
		return vrb_fail(ERANGE, VRB_V_SEND_REMOTE_RANGE, op->at, op->len, op->remote.len);
	if (l->rdma)
		return vrb_again_for(l, &ch->st.again_queue, &(struct vrb_want){.wrs = 1});
	op->w = (struct vrb_sgl_walk){.regions = &ch->d->regions, .iov = iov, .n = n};
	if (op->opcode == IBV_WR_RDMA_READ)
		op->w.access = IBV_ACCESS_LOCAL_WRITE;
	r = vrb_lease_get(l, iov, n, op->w.access, &lease);
	if (r)
		return r;
	op->w.own = lease.walk;
	op->end = vrb_sent_make(ch, o, VRB_SENT_RDMA);
	op->end.flags |= VRB_SENT_REPORT | VRB_SENT_USERS;
	op->end.buf = lease.buf;
	r = run_leased(l, op);
	if (r)
		vrb_lease_drop(ch, &lease);
	return r;
}

int vrb_write(struct vrb_channel *ch, const struct iovec *iov, int n,
	      const struct vrb_remote *remote, const struct vrb_send_options *o)
{
	struct op op = {.opcode = IBV_WR_RDMA_WRITE, .remote = *remote};

	return run(ch, iov, n, &op, o);
}

int vrb_read(struct vrb_channel *ch, const struct iovec *iov, int n,
	     const struct vrb_remote *remote, const struct vrb_send_options *o)
{
	struct op op = {.opcode = IBV_WR_RDMA_READ, .remote = *remote};

	return run(ch, iov, n, &op, o);
}
