/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: created with what the adapter grants, taken from RESET to RTS with attributes that
 * fit the link layer, and taken down. Who fails names the attributes.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "send/channel.h"
#include "send/cq.h"
#include "send/fail.h"

#define RNR_TIMER 12 /* 0.64 ms; credits make that it never runs */

enum { OBJ_QP = 8 }; /* a name of the verdict's sentence */

static uint32_t pow2(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

/* Events name queue pairs (async.c): they come and go under the lock. */
static void set_qp(struct vrb_lane *l, struct ibv_qp *qp)
{
	pthread_mutex_lock(&l->ch->d->lock);
	l->qp = qp;
	pthread_mutex_unlock(&l->ch->d->lock);
}

void vrb_lane_drop_qp(struct vrb_lane *l)
{
	struct ibv_qp *qp = l->qp;

	if (!qp)
		return;
	set_qp(l, NULL);
	ibv_destroy_qp(qp);
}

void vrb_lane_free(struct vrb_lane *l)
{
	if (!l)
		return;
	vrb_lane_drop_qp(l);
	vrb_lane_settle(l);
	if (l->control)
		vrb_pool_put(l->control);
	free(l->sent);
	free((void *)l->rq);
	free(l);
}

/* No call says how much inline data a queue pair can have: asks for less until it is granted. */
static int create_qp(struct vrb_lane *l)
{
	struct vrb_channel *ch = l->ch;
	uint32_t try[] = {ch->inline_max, 128, 64, 0};
	struct ibv_qp_init_attr a;
	struct ibv_qp *qp = NULL;

	for (size_t i = 0; i < sizeof(try) / sizeof(try[0]) && !qp; i++) {
		if (try[i] > ch->inline_max || (i && try[i] == try[i - 1]))
			continue;
		a = (struct ibv_qp_init_attr){
			.send_cq = ch->cq,
			.recv_cq = ch->cq,
			.srq = ch->shared ? ch->shared->srq : NULL,
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = ch->opt.send_depth,
				.max_recv_wr = ch->shared ? 0 : ch->lane_depth + VRB_CREDIT_BARE,
				.max_send_sge = ch->sges,
				.max_recv_sge = ch->shared ? 0 : 1,
				.max_inline_data = try[i]}};
		qp = ibv_create_qp(ch->d->pd, &a);
	}
	if (!qp) {
		(void)vrb_fail(errno, VRB_V_SEND_CREATE, OBJ_QP, (uint64_t)errno, 0);
		return vrb_about("max_send_wr %u, max_recv_wr %u, max_send_sge %u, inline %u to 0",
				 ch->opt.send_depth, ch->shared ? 0 : ch->lane_depth, ch->sges,
				 ch->inline_max);
	}
	set_qp(l, qp);
	ch->inline_max = a.cap.max_inline_data < VRB_SCRATCH ? a.cap.max_inline_data : VRB_SCRATCH;
	ch->sges = a.cap.max_send_sge < VRB_SGES_MAX ? a.cap.max_send_sge : VRB_SGES_MAX;
	return 0;
}

static int to_init(struct vrb_lane *l)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = l->ch->d->port_num,
				.qp_access_flags =
					IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
	int r = ibv_modify_qp(l->qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (!r)
		return 0;
	r = vrb_verbs_errno(r);
	(void)vrb_fail(r, VRB_V_SEND_MODIFY, IBV_QPS_INIT, (uint64_t)r, 0);
	return vrb_about("port_num %u, pkey_index 0", a.port_num);
}

/* Everything that the peer may send to is posted before it learns the QP's number. */
static int first_receives(struct vrb_lane *l)
{
	l->credit.depth = l->ch->lane_depth;
	if (!l->ch->shared || !l->has_share)
		l->missing = l->ch->lane_depth + VRB_CREDIT_BARE;
	l->has_share = true;
	if ((l->ch->shared ? vrb_shared_refill(l->ch, true) : vrb_lane_refill(l, true)) < 0)
		return -EIO; /* and the reason is remembered */
	if (!l->missing && !l->bare)
		return 0;
	(void)vrb_fail(ENOMEM, VRB_V_SEND_POOL, l->ch->d->pool_len, ENOMEM, 0);
	return vrb_about("%u receives of %u bytes do not fit the pool", l->credit.depth,
			 l->ch->opt.recv_size);
}

/* A queue pair with its receives posted, whose number the peer may learn. */
static int make_qp(struct vrb_lane *l)
{
	int r;

	vrb_sq_init(&l->sq, l->ch->opt.send_depth, l->ch->opt.signal_every);
	if (getrandom(&l->psn, sizeof(l->psn), 0) != sizeof(l->psn))
		l->psn = (uint32_t)vrb_now();
	l->psn &= 0xffffff;
	r = create_qp(l);
	r = r ? r : to_init(l);
	return r ? r : first_receives(l);
}

/* The lane has been settled: all of its accounts begin anew. */
int vrb_lane_renew(struct vrb_lane *l)
{
	l->credit = (struct vrb_credit){0};
	l->rq_head = l->rq_tail = 0;
	if (!l->ch->shared) /* else the rest of its share is still posted */
		l->missing = l->bare = 0;
	l->last = 0;
	l->n_batch = l->n_answers = l->sent_count = l->got_count = l->mark = 0;
	l->batch_wants = false;
	return make_qp(l);
}

static int lane_create(struct vrb_channel *ch, uint32_t index)
{
	struct vrb_lane *l = calloc(1, sizeof(*l));
	uint32_t sent = pow2(ch->opt.send_depth), rq = pow2(ch->lane_depth + VRB_CREDIT_BARE);

	if (!l)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*l), ENOMEM, 0);
	ch->lane[index] = l;
	ch->n_lanes = index + 1;
	l->ch = ch;
	l->index = index;
	l->sent_mask = sent - 1;
	l->rq_mask = rq - 1;
	l->sent = calloc(sent, sizeof(*l->sent));
	l->rq = calloc(rq, sizeof(*l->rq));
	l->control = vrb_pool_get(&ch->d->pool, VRB_SLAB_MAX, NULL);
	if (!l->sent || !l->rq || !l->control)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*l), ENOMEM, 0);
	l->control->state = VRB_BUF_POSTED;
	return make_qp(l);
}

int vrb_lanes_create(struct vrb_channel *ch, uint32_t n)
{
	uint64_t cqes;
	int r;

	ch->lane_depth = ch->opt.shared_receives ? vrb_shared_share(ch, n) : ch->opt.recv_depth;
	if (!ch->lane_depth)
		return -EOPNOTSUPP;
	cqes = (uint64_t)n * (ch->opt.send_depth + ch->lane_depth + VRB_CREDIT_BARE);
	r = vrb_cq_create(ch, cqes);
	if (r)
		return vrb_about("%llu entries, for all send and receive queues of %u QPs",
				 (unsigned long long)cqes, n);
	if (ch->opt.shared_receives)
		r = vrb_shared_create(ch, n);
	for (uint32_t i = 0; i < n && !r; i++)
		r = lane_create(ch, i);
	return r;
}

static void fill_path(const struct vrb_channel *ch, struct ibv_ah_attr *ah)
{
	*ah = (struct ibv_ah_attr){.port_num = ch->d->port_num};
	if (ch->d->port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		ah->dlid = (uint16_t)ch->peer.lid;
	if (ch->d->port.link_layer == IBV_LINK_LAYER_INFINIBAND &&
	    !memcmp(ch->peer.gid, ch->gid.gid.raw, 8))
		return; /* one subnet: the LID is enough */
	ah->is_global = 1;
	memcpy(ah->grh.dgid.raw, ch->peer.gid, sizeof(ah->grh.dgid.raw));
	ah->grh.sgid_index = (uint8_t)ch->gid.index;
	ah->grh.hop_limit = 64;
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

static uint32_t reads(int offered)
{
	return offered < 1 ? 1 : offered > 16 ? 16 : (uint32_t)offered;
}

static int to_rtr(struct vrb_lane *l)
{
	struct vrb_channel *ch = l->ch;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
				.path_mtu = mtu_code(ch->mtu),
				.dest_qp_num = l->peer_qpn,
				.rq_psn = l->peer_psn,
				.max_dest_rd_atomic = (uint8_t)reads(ch->d->attr.max_qp_rd_atom),
				.min_rnr_timer = RNR_TIMER};
	const uint8_t *g = ch->peer.gid;
	int r;

	fill_path(ch, &a.ah_attr);
	r = ibv_modify_qp(l->qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (!r)
		return 0;
	r = vrb_verbs_errno(r);
	(void)vrb_fail(r, VRB_V_SEND_MODIFY, IBV_QPS_RTR, (uint64_t)r, 0);
	return vrb_about("path_mtu %u, sgid_index %u, dgid %02x%02x:..:%02x%02x:%02x%02x, dlid %u, "
			 "dest_qp_num 0x%x",
			 ch->mtu, ch->gid.index, g[0], g[1], g[12], g[13], g[14], g[15],
			 a.ah_attr.dlid, l->peer_qpn);
}

static uint8_t timeout_code(uint32_t us)
{
	uint8_t code = 1;

	if (!us)
		return 14;
	while (code < 31 && (4096ull << code) < us * VRB_NS_PER_US)
		code++;
	return code;
}

static int to_rts(struct vrb_lane *l)
{
	struct vrb_channel *ch = l->ch;
	uint32_t own = reads(ch->d->attr.max_qp_init_rd_atom);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
				.sq_psn = l->psn,
				.timeout = timeout_code(ch->opt.ack_timeout_us),
				.retry_cnt = (uint8_t)ch->opt.retries,
				.rnr_retry = 7,
				.max_rd_atomic =
					(uint8_t)(own < ch->peer.reads ? own : ch->peer.reads)};
	int r = ibv_modify_qp(l->qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);

	if (!r)
		return 0;
	r = vrb_verbs_errno(r);
	(void)vrb_fail(r, VRB_V_SEND_MODIFY, IBV_QPS_RTS, (uint64_t)r, 0);
	return vrb_about("timeout %u, retry_cnt %u, max_rd_atomic %u", a.timeout, a.retry_cnt,
			 a.max_rd_atomic);
}

/* The peer's hello has come; lanes beyond the peer's number go. */
int vrb_lanes_connect(struct vrb_channel *ch)
{
	int r = 0;

	while (ch->n_lanes > ch->peer.lanes)
		vrb_lane_free(ch->lane[--ch->n_lanes]);
	for (uint32_t i = 0; i < ch->n_lanes && !r; i++)
		r = vrb_lane_connect(ch->lane[i], ch->peer.lane[i].qpn, ch->peer.lane[i].psn);
	return r;
}

int vrb_lane_connect(struct vrb_lane *l, uint32_t qpn, uint32_t psn)
{
	int r;

	l->peer_qpn = qpn;
	l->peer_psn = psn;
	vrb_credit_init(&l->credit, l->ch->lane_depth, l->ch->peer.recv_depth);
	r = to_rtr(l);
	return r ? r : to_rts(l);
}

void vrb_lane_error(struct vrb_lane *l)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	if (l->qp)
		(void)ibv_modify_qp(l->qp, &a, IBV_QP_STATE);
}

void vrb_lanes_error(struct vrb_channel *ch)
{
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		vrb_lane_error(ch->lane[i]);
}
