/* SPDX-License-Identifier: BSD-2-Clause */
/* Which GID an end has, what it tells the other, and the way of its queue pairs to RTS. */
#include "tools/perf/raw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define RNR_TIMER 12 /* 0.64 ms; credits make that it never runs */
#define TIMEOUT	  14 /* 67 ms */
#define RETRIES	  7
#define READS_MAX 16
#define HOPS	  64

static bool is_ipv4(const union ibv_gid *g)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(g->raw, prefix, sizeof(prefix));
}

/* RoCEv2 over IPv4, then over routable IPv6, then link-local; by index only when asked to. */
static int rank(const struct ibv_gid_entry *g)
{
	if (g->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 0;
	if (is_ipv4(&g->gid))
		return 3;
	return g->gid.raw[0] == 0xfe && (g->gid.raw[1] & 0xc0) == 0x80 ? 1 : 2;
}

bool vrb_perf_raw_find_gid(struct perf_raw *e)
{
	bool ethernet = e->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	struct ibv_gid_entry g;
	int best = 0;

	if (e->p->gid_index != PERF_AUTO || !ethernet) {
		e->gid_index = ethernet || e->p->gid_index != PERF_AUTO ? e->p->gid_index : 0;
		if (!ibv_query_gid(e->ctx, e->port_num, (int)e->gid_index, &e->gid))
			return true;
		return vrb_perf_fail(e->run, "--gid-index %u: the port has no such GID",
				     e->gid_index);
	}
	for (int i = 0; i < e->port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(e->ctx, e->port_num, (uint32_t)i, &g, 0) || rank(&g) <= best)
			continue;
		best = rank(&g);
		e->gid = g.gid;
		e->gid_index = (uint32_t)i;
	}
	return best || vrb_perf_fail(e->run,
				     "port %u has no GID of RoCEv2: its interface has no "
				     "address",
				     e->port_num);
}

static uint8_t reads(int offered)
{
	return (uint8_t)(offered < 1 ? 1 : offered > READS_MAX ? READS_MAX : offered);
}

json_t *vrb_perf_raw_address(struct perf_raw *e)
{
	json_t *o = json_object(), *qps = json_array();
	char gid[33];

	for (uint32_t i = 0; i < e->n_qps; i++) {
		if (getrandom(&e->qp[i].psn, sizeof(e->qp[i].psn), 0) < 0)
			e->qp[i].psn = (uint32_t)vrb_perf_now();
		e->qp[i].psn &= 0xffffff;
		json_array_append_new(
			qps, json_pack("[i, i]", (int)e->qp[i].qp->qp_num, (int)e->qp[i].psn));
	}
	for (int i = 0; i < 16; i++)
		snprintf(gid + 2 * i, 3, "%02x", e->gid.raw[i]);
	json_object_set_new(o, "qps", qps);
	json_object_set_new(o, "gid", json_string(gid));
	json_object_set_new(o, "lid", json_integer(e->port.lid));
	json_object_set_new(o, "mtu", json_integer(128 << e->port.active_mtu));
	json_object_set_new(o, "reads", json_integer(reads(e->attr.max_qp_rd_atom)));
	json_object_set_new(o, "rkey", json_integer(e->mr->rkey));
	json_object_set_new(o, "addr", json_integer((json_int_t)((uintptr_t)e->mem + e->rx_at)));
	return o;
}

struct far {
	union ibv_gid gid;
	uint32_t qpn, psn, mtu, reads;
	uint16_t lid;
};

static bool read_gid(const char *text, union ibv_gid *gid)
{
	if (!text || strlen(text) != 32)
		return false;
	for (int i = 0; i < 16; i++) {
		unsigned byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		gid->raw[i] = (uint8_t)byte;
	}
	return true;
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	int code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 256u << code <= bytes)
		code++;
	return (enum ibv_mtu)code;
}

static bool modify(struct perf_raw *e, struct perf_qp *q, struct ibv_qp_attr *a, int mask)
{
	static const char *const name[] = {"RESET", "INIT", "RTR", "RTS"};
	int r = ibv_modify_qp(q->qp, a, mask);

	return !r ||
	       vrb_perf_fail(e->run, "ibv_modify_qp to %s: %s", name[a->qp_state & 3], strerror(r));
}

static bool bring_up(struct perf_raw *e, struct perf_qp *q, const struct far *f)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = e->port_num,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = mtu_code(f->mtu),
				  .dest_qp_num = f->qpn,
				  .rq_psn = f->psn,
				  .max_dest_rd_atomic = reads(e->attr.max_qp_rd_atom),
				  .min_rnr_timer = RNR_TIMER,
				  .ah_attr = {.port_num = e->port_num}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .sq_psn = q->psn,
				  .timeout = TIMEOUT,
				  .retry_cnt = RETRIES,
				  .rnr_retry = RETRIES,
				  .max_rd_atomic = reads(e->attr.max_qp_init_rd_atom)};

	if (e->port.link_layer == IBV_LINK_LAYER_ETHERNET || f->lid == 0) {
		rtr.ah_attr.is_global = 1;
		rtr.ah_attr.grh.dgid = f->gid;
		rtr.ah_attr.grh.sgid_index = (uint8_t)e->gid_index;
		rtr.ah_attr.grh.hop_limit = HOPS;
	}
	rtr.ah_attr.dlid = f->lid;
	if (rts.max_rd_atomic > f->reads)
		rts.max_rd_atomic = (uint8_t)f->reads;
	q->missing = e->recv_depth;
	return modify(e, q, &init,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
	       vrb_perf_raw_refill(e, q, true) &&
	       modify(e, q, &rtr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) &&
	       modify(e, q, &rts,
		      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

bool vrb_perf_raw_connect(struct perf_raw *e, const json_t *peer)
{
	json_int_t own = 128 << e->port.active_mtu;
	json_int_t mtu = json_integer_value(json_object_get(peer, "mtu")), addr, rkey;
	json_t *qps = json_object_get(peer, "qps");
	struct far f = {.lid = (uint16_t)json_integer_value(json_object_get(peer, "lid"))};

	mtu = e->p->mtu ? e->p->mtu : mtu < own ? mtu : own;
	f.reads = reads((int)json_integer_value(json_object_get(peer, "reads")));
	f.mtu = mtu < 256 ? 256 : (uint32_t)mtu;
	addr = json_integer_value(json_object_get(peer, "addr"));
	rkey = json_integer_value(json_object_get(peer, "rkey"));
	if (!read_gid(json_string_value(json_object_get(peer, "gid")), &f.gid) ||
	    json_array_size(qps) != e->n_qps)
		return vrb_perf_fail(e->run, "the peer's address makes no sense");
	e->peer_addr = (uint64_t)addr;
	e->peer_rkey = (uint32_t)rkey;
	for (uint32_t i = 0; i < e->n_qps; i++) {
		json_t *q = json_array_get(qps, i);

		f.qpn = (uint32_t)json_integer_value(json_array_get(q, 0));
		f.psn = (uint32_t)json_integer_value(json_array_get(q, 1)) & 0xffffff;
		e->qp[i].credit = e->p->recv_depth;
		if (!bring_up(e, &e->qp[i], &f))
			return false;
	}
	if (e->run->r)
		e->run->r->params.mtu = f.mtu;
	return true;
}
