/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows for `verbena top` and `verbena metrics`. Nothing is kept for them on the way of a message:
 * they are read off the objects when somebody asks, VRB_ROWS_MAX of a kind under one hold of the
 * lock, so that the program does not stand still for long however much it has.
 */
#include "hca/rows.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/peer.h"
#include "hca/story.h"
#include "hca/tap.h"
#include "hca/wire.h"

/* The rows under way; lock held. */
static struct {
	struct vrb_rows head;
	struct vrb_row_qp qp[VRB_ROWS_MAX];
	struct vrb_row_cq cq[VRB_ROWS_MAX];
	struct vrb_row_mr mr[VRB_ROWS_MAX];
} rows;

static uint8_t device_of(const struct vrb_engine *e, const struct vrb_hctx *ctx)
{
	return (uint8_t)(ctx->stats - e->stats->device);
}

/* ---- queue pairs */

static void put_story(struct vrb_row_qp *r, struct vrb_story *s)
{
	const struct vrb_event *last = NULL;

	vrb_story_lock(s);
	r->events = s->n;
	r->made_ns = s->made;
	if (s->ended)
		last = &s->end;
	for (uint32_t i = 1; !last && i <= VRB_STORY_EVENTS && i <= s->n; i++) {
		const struct vrb_event *ev = &s->event[(s->n - i) % VRB_STORY_EVENTS];

		if (ev->report.verdict != VRB_V_QP_MOVED)
			last = ev;
	}
	if (last) {
		r->verdict_ns = last->last;
		strncpy(r->verdict, vrb_verdict_info(last->report.verdict)->counter,
			sizeof(r->verdict));
	}
	vrb_story_unlock(s);
}

static void put_path(struct vrb_row_qp *r, const struct vrb_hqp *q)
{
	const struct vrb_qp *c = &q->core;

	r->in_flight = (c->next_psn.v - c->una_psn.v) & VRB_PSN_MASK;
	r->window = c->window_max;
	if (q->wire.addr) {
		r->link = VRB_ROW_WIRE;
		memcpy(r->peer_gid, q->wire.dst.raw, sizeof(r->peer_gid));
		r->rtt_ns = q->wire.window.rtt;
	} else if (q->peer) {
		r->link = VRB_ROW_SAME_HOST;
		r->peer_pid = q->peer->self ? (uint32_t)getpid() : (uint32_t)q->peer->owner;
	}
	if (c->type == VRB_QPT_RC)
		return;
	/* nothing of it is acknowledged but what goes by the wire (hca/wire_flow.c) */
	r->in_flight = q->flow.out;
	r->window = q->flow.window;
}

static void put_qp(struct vrb_engine *e, struct vrb_hqp *q)
{
	struct vrb_row_qp *r = &rows.qp[rows.head.n_qps++];
	const struct vrb_hqp_counts *n = &q->count;
	const struct vrb_qp *c = &q->core;
	const struct vrb_wq *rq = c->srq ? &c->srq->wq : &c->rq;

	vrb_stats_tally(q);
	*r = (struct vrb_row_qp){
		.qpn = c->qpn,
		.peer_qpn = c->type == VRB_QPT_UD ? 0 : c->dqpn,
		.type = c->type,
		.state = c->state,
		.device = device_of(e, q->ctx),
		.pd = c->pd,
		.send_cq = q->caps.scq->number,
		.recv_cq = q->caps.rcq->number,
		.srq_used = c->srq != NULL,
		.sent = q->tally.sent,
		.taken = c->type == VRB_QPT_UD ? n->rx_packets : q->tally.taken,
		.tx_packets = n->tx_packets,
		.tx_bytes = n->tx_bytes,
		.rx_packets = n->rx_packets,
		.rx_bytes = n->rx_bytes,
		.retransmits = n->retransmits,
		.timeouts = c->n_timeouts,
		.rnr_naks_sent = n->rnr_sent,
		.rnr_naks_received = n->rnr_got,
		.naks_received = n->naks_got,
		.outstanding = c->sq.tail - c->sq_una,
		.send_used = vrb_qp_sq_used(c),
		.send_room = c->sq.cap,
		.recv_used = rq->tail - rq->head,
		.recv_room = rq->cap,
		.reads = c->n_rd_out,
	};
	put_path(r, q);
	put_story(r, q->story);
}

static void put_listed_qps(struct vrb_engine *e, const struct vrb_hctx *ctx)
{
	for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next)
		put_qp(e, vrb_list_entry(n, struct vrb_hqp, ctx_node));
}

/* By number, for one that has many: where the next question goes on. */
static void put_numbered_qps(struct vrb_engine *e, uint32_t from)
{
	for (uint32_t i = from; i <= VRB_QPN_INDEX_MASK; i++) {
		if (!e->qp[i])
			continue;
		if (rows.head.n_qps == VRB_ROWS_MAX) {
			rows.head.next = i;
			return;
		}
		put_qp(e, e->qp[i]);
	}
}

/* ---- CQs and regions */

static void put_cqs(struct vrb_engine *e, const struct vrb_hctx *ctx)
{
	for (struct vrb_list *n = ctx->cqs.next; n != &ctx->cqs && rows.head.n_cqs < VRB_ROWS_MAX;
	     n = n->next) {
		const struct vrb_hcq *q = vrb_list_entry(n, struct vrb_hcq, node);

		rows.cq[rows.head.n_cqs++] = (struct vrb_row_cq){
			.number = q->number,
			.used = q->core.tail - q->core.head,
			.room = q->core.cap,
			.refs = q->refs,
			.pushed = q->core.n_pushed,
			.device = device_of(e, ctx),
			.is_armed = q->core.armed != VRB_CQ_UNARMED,
			.is_dead = q->core.dead,
			.has_channel = q->chan != NULL,
		};
	}
}

static void put_mrs(struct vrb_engine *e, const struct vrb_hctx *ctx)
{
	for (struct vrb_list *n = ctx->mrs.prev; n != &ctx->mrs && rows.head.n_mrs < VRB_ROWS_MAX;
	     n = n->prev) {
		const struct vrb_hmr *m = vrb_list_entry(n, struct vrb_hmr, node);

		rows.mr[rows.head.n_mrs++] = (struct vrb_row_mr){
			.lkey = m->lkey,
			.rkey = m->rkey,
			.access = m->access,
			.pd = m->pd->id,
			.addr = m->addr,
			.iova = m->iova,
			.length = m->len,
			.made_ns = m->made,
			.caller = vrb_peek(&m->caller),
			.device = device_of(e, ctx),
		};
	}
}

/* ---- the answer */

static void fill(struct vrb_engine *e, uint32_t from)
{
	bool by_number = from || e->n_qps > VRB_ROWS_MAX;

	rows.head = (struct vrb_rows){.magic = VRB_ROWS_MAGIC,
				      .size = sizeof(rows.head),
				      .qp_size = sizeof(rows.qp[0]),
				      .cq_size = sizeof(rows.cq[0]),
				      .mr_size = sizeof(rows.mr[0]),
				      .pid = (uint32_t)getpid(),
				      .slot = e->slot,
				      .now_ns = vrb_clock_now(),
				      .registered_bytes = e->pinned};
	strncpy(rows.head.version, VRB_VERSION, sizeof(rows.head.version));
	if (by_number)
		put_numbered_qps(e, from);
	for (struct vrb_list *c = e->contexts.next; !from && c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);

		if (!by_number)
			put_listed_qps(e, ctx);
		put_cqs(e, ctx);
		put_mrs(e, ctx);
	}
}

static bool write_all(int fd, const void *bytes, size_t n)
{
	return !n || vrb_tap_append(fd, bytes, n) == (long)n;
}

void vrb_rows_tell(struct vrb_engine *e, int sock, uint32_t from)
{
	const struct vrb_meet_hello h = {.magic = VRB_MEET_MAGIC,
					 .version = VRB_MEET_VERSION,
					 .type = VRB_MEET_ROWS,
					 .slot = e->slot,
					 .pid = (uint32_t)getpid()};
	int fd[] = {memfd_create("verbena-rows", MFD_CLOEXEC), e->stats_fd};
	const struct vrb_rows *head = &rows.head;

	if (fd[0] < 0)
		return;
	fill(e, from);
	vrb_stats_fold(e);
	if (write_all(fd[0], head, sizeof(*head)) &&
	    write_all(fd[0], rows.qp, head->n_qps * sizeof(rows.qp[0])) &&
	    write_all(fd[0], rows.cq, head->n_cqs * sizeof(rows.cq[0])) &&
	    write_all(fd[0], rows.mr, head->n_mrs * sizeof(rows.mr[0])))
		(void)vrb_meet_send(sock, &h, fd, 2);
	close(fd[0]);
}
