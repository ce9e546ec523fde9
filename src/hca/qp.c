/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs and address handles: memory, numbers, and where the peer is. */
#include "hca/direct.h"
#include "hca/faults.h"
#include "hca/peer.h"
#include "hca/story.h"
#include "hca/trace.h"
#include "hca/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* One block: send ring, receive ring, the receive WQE in progress. */
static int alloc_rings(struct vrb_hqp *q, const struct vrb_hqp_init *init, struct vrb_qp_conf *conf)
{
	uint32_t srq_sge = init->srq ? init->srq->core.wq.max_sge : 0;
	uint32_t payload =
		max_u32(max_u32(init->max_send_sge, 1) * (uint32_t)sizeof(struct vrb_sge),
			init->max_inline);
	size_t sq, rq, cur = vrb_rwqe_bytes(max_u32(init->max_recv_sge, srq_sge));

	sq = vrb_wq_shape(&conf->sq, init->max_send_wr, init->max_send_sge,
			  (uint32_t)VRB_SWQE_HEADER + payload);
	rq = vrb_wq_shape(&conf->rq, init->srq ? 0 : init->max_recv_wr, init->max_recv_sge,
			  vrb_rwqe_bytes(init->max_recv_sge));
	q->mem_size = sq + rq + cur;
	q->mem = aligned_alloc(64, (q->mem_size + 63) & ~(size_t)63);
	if (!q->mem)
		return -ENOMEM;
	memset(q->mem, 0, q->mem_size);
	conf->sq.ring = q->mem;
	conf->rq.ring = (uint8_t *)q->mem + sq;
	conf->cur_rwqe = (struct vrb_rwqe *)(void *)((uint8_t *)q->mem + sq + rq);
	return 0;
}

/* A free QPN index, or 0. */
static uint32_t take_index(struct vrb_engine *e)
{
	for (uint32_t n = 0; n <= VRB_QPN_INDEX_MASK; n++) {
		uint32_t i = ++e->qp_cursor & VRB_QPN_INDEX_MASK;

		/* 0 and 1 are QP0 and QP1, the last is the multicast number */
		if (i > 1 && i < VRB_QPN_INDEX_MASK && !e->qp[i])
			return i;
	}
	return 0;
}

static int publish_qp(struct vrb_hqp *q, struct vrb_qp_conf *conf)
{
	struct vrb_engine *e = q->e;
	uint32_t index;

	vrb_engine_lock(e);
	index = take_index(e);
	conf->qpn = e->slot << VRB_QPN_INDEX_BITS | index;
	q->story = index ? vrb_story_create(conf->qpn, (uint8_t)conf->type) : NULL;
	if (q->story) {
		vrb_qp_init(&q->core, conf);
		vrb_list_init(&q->core.active_node);
		vrb_list_init(&q->core.timer_node);
		vrb_list_init(&q->core.ack_node);
		vrb_qp_tap(&q->core, e->tap || e->trace);
		e->qp[index] = q;
		e->n_qps++;
		vrb_list_add_tail(&q->ctx->qps, &q->ctx_node);
		q->pd->refs++;
		q->caps.scq->refs++;
		q->caps.rcq->refs++;
		if (q->caps.srq)
			q->caps.srq->refs++;
		q->stats->qps++;
		if (e->faults)
			vrb_faults_name(e->faults, q);
		if (e->trace)
			vrb_trace_qp(e, q);
	}
	vrb_engine_unlock(e);
	return q->story ? 0 : -ENOMEM;
}

int vrb_hqp_create(struct vrb_hpd *pd, const struct vrb_hqp_init *init, struct vrb_hqp **out)
{
	struct vrb_engine *e = pd->ctx->e;
	struct vrb_qp_conf conf = {.type = init->type,
				   .pd = pd->id,
				   .sig_all = init->sig_all,
				   .scq = &init->scq->core,
				   .rcq = &init->rcq->core,
				   .srq = init->srq ? &init->srq->core : NULL,
				   .keys = &e->keys,
				   .max_inline = init->max_inline,
				   .prefetch = e->prefetch};
	struct vrb_hqp *q;
	int err;

	if (e->foreign)
		return -EIO;
	q = aligned_alloc(64, (sizeof(*q) + 63) & ~(size_t)63);
	if (!q)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->e = e;
	q->ctx = pd->ctx;
	q->pd = pd;
	q->stats = pd->ctx->stats;
	q->user = init->user;
	q->caps = *init;
	vrb_list_init(&q->peer_node);
	vrb_list_init(&q->stall_node);
	vrb_list_init(&q->kept.list);
	vrb_list_init(&q->kept.node);
	conf.owner = q;
	err = alloc_rings(q, init, &conf);
	if (!err)
		err = publish_qp(q, &conf);
	if (err) {
		free(q->mem);
		free(q);
		return err;
	}
	*out = q;
	return 0;
}

int vrb_hqp_destroy(struct vrb_hqp *q)
{
	struct vrb_engine *e = q->e;

	if (q->n_mcast)
		return -EBUSY;
	if (!e->foreign) {
		vrb_engine_lock(e);
		/* Acknowledgements that are owed go out: the peer's work was done. */
		vrb_engine_flush_acks(e, vrb_peek(&e->now), false);
		vrb_engine_last_ack(e, q, vrb_peek(&e->now));
		vrb_engine_ring_bells(e);
		vrb_engine_forget(e, q);
		q->peer = NULL;
		vrb_wire_disconnect(q);
		vrb_direct_update(e, q);
		vrb_qp_fini(&q->core);
		vrb_event_purge_async(q->ctx, q->user);
		vrb_story_bury(e, q);
		vrb_stats_bury(e, q);
		e->qp[q->core.qpn & VRB_QPN_INDEX_MASK] = NULL;
		e->n_qps--;
		vrb_list_del(&q->ctx_node);
		q->pd->refs--;
		q->caps.scq->refs--;
		q->caps.rcq->refs--;
		if (q->caps.srq)
			q->caps.srq->refs--;
		q->stats->qps--;
		vrb_engine_unlock(e);
	}
	free(q->story); /* in a forked child */
	free(q->mcast);
	free(q->core.rd_more);
	free(q->mem);
	free(q);
	return 0;
}

/* Finds the peer's process; without one, or with one that takes no connections, the frames vanish,
 * as on a wire, and retries run out. Only trouble of our own is an error. */
static int connect_peer(struct vrb_hqp *q, vrb_qpn dqpn)
{
	struct vrb_report r = {.verdict = VRB_V_LINK_SYSTEM, .qpn = q->core.qpn};
	struct vrb_peer *p = NULL;
	int err = vrb_peer_bind(q->e, dqpn >> VRB_QPN_INDEX_BITS, &p);

	if (err && err != -ECONNREFUSED && err != -EAGAIN) {
		r.val[0] = (uint64_t)-err;
		vrb_hca_refuse(&r);
		return err;
	}
	vrb_list_del(&q->peer_node);
	vrb_engine_unstall(q->e, q);
	q->gone_at = 0;
	q->peer = p;
	if (p)
		vrb_list_add_tail(&p->qps, &q->peer_node);
	return 0;
}

/* Shared memory between the processes of a user on this host, the wire to everybody else (or when
 * it is asked for). */
static int connect_path(struct vrb_hqp *q, const struct vrb_qp_attr *attr, uint32_t mask)
{
	uint32_t code = mask & VRB_QPA_PATH_MTU ? attr->path_mtu : q->core.attr.path_mtu;
	vrb_qpn dqpn = mask & VRB_QPA_DEST_QPN ? attr->dest_qpn : q->core.dqpn;
	const struct vrb_report absent = {
		.verdict = VRB_V_PEER_ABSENT, .qpn = q->core.qpn, .val = {dqpn}};
	int err;

	if (vrb_gid_is_local(&attr->dgid) && !vrb_wire_is_forced()) {
		vrb_wire_disconnect(q);
		err = connect_peer(q, dqpn);
		if (err || q->peer)
			return err;
		if (!vrb_slot_is_of_others(dqpn >> VRB_QPN_INDEX_BITS)) {
			vrb_hca_refuse(&absent);
			return 0;
		}
	}
	vrb_list_del(&q->peer_node);
	vrb_engine_unstall(q->e, q);
	q->peer = NULL;
	return vrb_wire_connect(q, attr, 128u << code);
}

/* What the link bears: payload of a packet, and packets in flight (0: as it is). */
static uint32_t link_mtu(const struct vrb_hqp *q)
{
	if (q->core.type == VRB_QPT_UD)
		return VRB_UD_MTU;
	return q->wire.addr ? q->wire.mtu : VRB_SHM_FRAME_MAX;
}

static uint32_t link_window(const struct vrb_hqp *q, bool connect)
{
	if (!q->wire.addr)
		return VRB_PSN_WINDOW_MAX;
	return connect ? vrb_wire_read_chunk(q->wire.mtu) * 4 : 0;
}

static void after_modify(struct vrb_hqp *q, uint8_t state)
{
	struct vrb_engine *e = q->e;

	if (state == VRB_QPS_RESET) {
		vrb_story_forget(q->story);
		vrb_engine_forget(e, q);
		q->peer = NULL;
		vrb_wire_disconnect(q);
		q->acks_owed = 0;
		q->traced_recvs = q->core.rq.head;
		q->direct_n = 0;
		q->gone_at = 0;
	}
	vrb_direct_update(e, q);
	if (vrb_qp_can_send(&q->core, vrb_peek(&e->now)))
		vrb_engine_activate(e, q);
	vrb_engine_timer(e, q);
	vrb_engine_pump(e, q, vrb_peek(&e->now), false);
	vrb_engine_ring_bells(e);
}

/* The core keeps room for a few READs and atomics of the peer only. */
static int make_rd_room(struct vrb_hqp *q, const struct vrb_qp_attr *attr, uint32_t mask)
{
	struct vrb_rd_res *mem;

	if (!(mask & VRB_QPA_MAX_DEST_RD_ATOMIC) ||
	    attr->max_dest_rd_atomic <= vrb_qp_rd_max(&q->core))
		return 0;
	mem = calloc(VRB_RD_ATOMIC_MAX, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	vrb_qp_give_rd(&q->core, mem);
	return 0;
}

static void note_move(const struct vrb_hqp *q, const struct vrb_report *moved)
{
	vrb_hca_refuse(moved);
	if (vrb_unlikely(q->e->trace))
		vrb_trace_verdict(q->e, moved);
}

int vrb_hqp_modify(struct vrb_hqp *q, const struct vrb_qp_attr *attr, uint32_t mask)
{
	struct vrb_engine *e = q->e;
	bool ud = q->core.type == VRB_QPT_UD;
	bool connect = !ud && (mask & VRB_QPA_AV);
	struct vrb_report moved;
	struct vrb_wire_addr *a;
	int err, old;

	if (e->foreign)
		return -EIO;
	old = vrb_cancel_off();
	vrb_engine_lock(e);
	vrb_poke(&e->now, vrb_clock_now());
	err = make_rd_room(q, attr, mask);
	if (!err && connect)
		err = connect_path(q, attr, mask);
	else if (ud && (mask & VRB_QPA_STATE) && attr->state == VRB_QPS_RTR)
		vrb_wire_listen(e, q->ctx->dev);
	if (!err) {
		moved = (struct vrb_report){.verdict = VRB_V_QP_MOVED,
					    .qpn = q->core.qpn,
					    .val = {q->core.state, attr->state}};
		if (mask & VRB_QPA_STATE &&
		    (attr->state == VRB_QPS_RESET || attr->state == VRB_QPS_ERR))
			vrb_engine_last_ack(e, q, vrb_peek(&e->now));
		vrb_stats_tally(q);
		vrb_qp_modify(&q->core, attr, mask, link_mtu(q), link_window(q, connect), &e->fx);
		if (mask & VRB_QPA_STATE && attr->state < VRB_QPS_RTS)
			vrb_stats_tally_from(q);
		if (q->wire.addr)
			vrb_wire_modified(q, mask);
		if (mask & VRB_QPA_STATE)
			note_move(q, &moved);
		vrb_engine_apply(e);
		after_modify(q, q->core.state);
	}
	a = connect && !err ? q->wire.addr : NULL;
	vrb_engine_unlock(e);
	if (a)
		vrb_wire_settle(e, a);
	vrb_cancel_restore(old);
	return err;
}

void vrb_hqp_query(struct vrb_hqp *q, struct vrb_qp_attr *attr)
{
	vrb_engine_lock(q->e);
	vrb_qp_query(&q->core, attr);
	vrb_engine_unlock(q->e);
}

enum vrb_qp_state vrb_hqp_state(const struct vrb_hqp *q)
{
	enum vrb_qp_state state;

	vrb_engine_lock(q->e);
	state = q->core.state;
	vrb_engine_unlock(q->e);
	return state;
}

vrb_qpn vrb_hqp_qpn(const struct vrb_hqp *q)
{
	return q->core.qpn;
}

void vrb_hqp_set_user(struct vrb_hqp *q, void *user)
{
	q->user = user;
}

/* ---- multicast membership */

int vrb_hqp_attach(struct vrb_hqp *q, const struct vrb_gid *mgid)
{
	struct vrb_gid *m;
	int err = 0;

	if (q->e->foreign)
		return -EIO;
	vrb_engine_lock(q->e);
	for (uint32_t i = 0; i < q->n_mcast; i++)
		if (!memcmp(&q->mcast[i], mgid, sizeof(*mgid)))
			goto out;
	m = realloc(q->mcast, (q->n_mcast + 1) * sizeof(*m));
	if (m) {
		q->mcast = m;
		m[q->n_mcast++] = *mgid;
	} else {
		err = -ENOMEM;
	}
out:
	vrb_engine_unlock(q->e);
	return err;
}

int vrb_hqp_detach(struct vrb_hqp *q, const struct vrb_gid *mgid)
{
	int err = -EINVAL;

	if (q->e->foreign)
		return -EIO;
	vrb_engine_lock(q->e);
	for (uint32_t i = 0; i < q->n_mcast; i++) {
		if (memcmp(&q->mcast[i], mgid, sizeof(*mgid)))
			continue;
		q->mcast[i] = q->mcast[--q->n_mcast];
		err = 0;
		break;
	}
	vrb_engine_unlock(q->e);
	return err;
}

/* ---- address handles */

int vrb_hah_create(struct vrb_hpd *pd, struct vrb_av *av)
{
	struct vrb_engine *e = pd->ctx->e;
	bool group = av->dgid.raw[0] == 0xff || vrb_grh_is_v4_group(&av->dgid);
	int err = 0, old;

	if (e->foreign)
		return -EIO;
	av->pd = pd->id;
	av->dev = NULL;
	av->route = VRB_ROUTE_LOCAL;
	old = vrb_cancel_off();
	vrb_engine_lock(e);
	if (group)
		vrb_peer_all(e);
	else if (!vrb_gid_is_local(&av->dgid) || vrb_wire_is_forced())
		err = vrb_wire_route_ah(e, pd->ctx->dev, av);
	if (!err)
		pd->refs++;
	vrb_engine_unlock(e);
	vrb_cancel_restore(old);
	return err;
}

/* What still waits to be sent by this handle fails, and does not look at it any more. */
static void forget_av(struct vrb_hctx *ctx, const struct vrb_av *av)
{
	for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next) {
		struct vrb_qp *c = &vrb_list_entry(n, struct vrb_hqp, ctx_node)->core;

		for (uint32_t i = c->sq_send; c->type == VRB_QPT_UD && i != c->sq.tail; i++) {
			struct vrb_swqe *w = vrb_wq_entry(&c->sq, i);

			if (w->ud.av == av)
				w->ud.av = NULL;
		}
	}
}

void vrb_hah_destroy(struct vrb_hpd *pd, struct vrb_av *av)
{
	struct vrb_engine *e = pd->ctx->e;

	if (e->foreign)
		return;
	vrb_engine_lock(e);
	if (av->route == VRB_ROUTE_WIRE)
		vrb_wire_put_ah(av);
	forget_av(pd->ctx, av);
	pd->refs--;
	vrb_engine_unlock(e);
}
