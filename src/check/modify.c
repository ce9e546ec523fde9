/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp: all that is wrong with a call, before the device sees it, with the attributes it
 * sets and what each may be; and what is legal but will hurt: a GID of type RoCE v1 beside one of
 * type v2, a path MTU that the port or the other end does not have.
 */
#include "check/check.h"
#include "lang/lang.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"

#define FAULTS_MAX 8

static uint8_t byte_of(unsigned int v)
{
	return v > 255 ? 255 : (uint8_t)v;
}

static void attr_from(struct vrb_qp_attr *out, const struct ibv_qp_attr *in, uint32_t mask)
{
	*out = (struct vrb_qp_attr){
		.state = byte_of(in->qp_state),
		.cur_state = byte_of(in->cur_qp_state),
		.path_mtu = byte_of(in->path_mtu),
		.port = in->port_num,
		.timeout = in->timeout,
		.retry_cnt = in->retry_cnt,
		.rnr_retry = in->rnr_retry,
		.min_rnr_timer = in->min_rnr_timer,
		.max_rd_atomic = in->max_rd_atomic,
		.max_dest_rd_atomic = in->max_dest_rd_atomic,
		.pkey_index = in->pkey_index,
		.access = in->qp_access_flags,
		.dest_qpn = in->dest_qp_num,
		.rq_psn = in->rq_psn,
		.sq_psn = in->sq_psn,
	};
	if (!(mask & IBV_QP_AV))
		return;
	out->is_global = in->ah_attr.is_global;
	out->sgid_index = in->ah_attr.grh.sgid_index;
	out->av_port = in->ah_attr.port_num;
	memcpy(out->dgid.raw, in->ah_attr.grh.dgid.raw, sizeof(out->dgid.raw));
}

/* "path_mtu 5 (1 to 3) <--", for each number that is set. */
static void detail_of(char *out, size_t size, const struct vrb_rules_modify *m)
{
	struct vrb_rules_range range[VRB_RULES_RANGES];
	uint32_t n = vrb_rules_modify_ranges(m, range);
	size_t len = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < n && len < size; i++) {
		const struct vrb_rules_range *g = &range[i];
		char name[64];
		struct vrb_text t;

		vrb_text_init(&t, name, sizeof(name));
		vrb_name_put(&t, 'm', g->bit);
		len += (size_t)snprintf(
			out + len, size - len, vrb_tr("verbena:   value: %s = %u (%u to %u)%s\n"),
			name, g->value, g->min, g->max,
			g->value < g->min || g->value > g->max ? vrb_tr("  <-- out of range") : "");
	}
}

static uint32_t check(struct vrb_chk_qp *q, const struct vrb_rules_modify *m)
{
	struct vrb_report r[FAULTS_MAX];
	uint32_t n = vrb_rules_modify_all(m, r, FAULTS_MAX);
	char detail[1500];

	if (n)
		detail_of(detail, sizeof(detail), m);
	for (uint32_t i = 0; i < n; i++) {
		struct vrb_chk_finding f = {.r = r[i],
					    .call = "ibv_modify_qp",
					    .made = &q->obj.site,
					    .made_what = VRB_TR("QP made"),
					    .detail = i + 1 == n ? detail : NULL};

		f.r.qpn = q->qpn;
		vrb_chk_report(&f);
	}
	return n;
}

static bool is_own_gid(struct vrb_chk_ctx *c, const struct vrb_gid *g, uint8_t port)
{
	struct ibv_gid_entry e;

	for (uint32_t i = 0; i < VRB_RULES_GIDS_MAX; i++)
		if (!VRB_REAL(_ibv_query_gid_ex)(c->ibv, port, i, &e, 0, sizeof(e)) &&
		    !memcmp(e.gid.raw, g->raw, sizeof(e.gid.raw)))
			return true;
	return false;
}

/* The other end, when it is in this process and points back; else NULL. */
static struct vrb_chk_qp *other_end(struct vrb_chk_qp *q)
{
	struct vrb_chk_ref *ref;
	struct vrb_chk_qp *o;

	if (!q->mtu || !is_own_gid(q->ctx, &q->dgid, q->port))
		return NULL;
	ref = vrb_chk_find(&vrb_chk_qpns, vrb_chk_key(q->ctx->id, q->dest_qpn));
	o = ref ? ref->to : NULL;
	return o && o != q && o->mtu && o->dest_qpn == q->qpn ? o : NULL;
}

/* What is legal, or at most this device's to refuse; returns how many were told. */
static uint32_t note_legal(struct vrb_chk_qp *q, const struct vrb_rules_modify *m,
			   uint32_t active_mtu)
{
	const struct vrb_qp_attr *a = m->attr;
	int better = -1;
	uint32_t n = 0;

	if (m->mask & VRB_QPA_AV && a->is_global && !m->port->infiniband)
		better = vrb_chk_better_gid(q->ctx, a->av_port, a->sgid_index);
	if (better >= 0) {
		VRB_CHK_NOTE("ibv_modify_qp", q->qpn, VRB_V_GID_V1, a->sgid_index,
			     (uint64_t)better);
		n++;
	}
	if (m->mask & VRB_QPA_PATH_MTU && active_mtu && a->path_mtu > active_mtu) {
		VRB_CHK_NOTE("ibv_modify_qp", q->qpn, VRB_V_MTU_ACTIVE, a->path_mtu, active_mtu);
		n++;
	}
	return n;
}

/* What the path is, once the device has taken it. */
static void note_path(struct vrb_chk_qp *q, const struct vrb_qp_attr *a)
{
	struct vrb_chk_qp *o;

	q->mtu = a->path_mtu;
	q->dest_qpn = a->dest_qpn;
	q->port = a->av_port;
	q->dgid = a->dgid;
	q->sgid_index = a->sgid_index;
	o = other_end(q);
	atomic_store(&q->other, o);
	if (o)
		atomic_store(&o->other, q);
	if (o && o->mtu != q->mtu)
		VRB_CHK_NOTE("ibv_modify_qp", q->qpn, VRB_V_MTU_UNMATCHED, q->mtu, o->mtu, o->qpn);
}

static void done(struct vrb_chk_qp *q, const struct vrb_rules_modify *m)
{
	uint32_t to = vrb_rules_modify_target(m);

	if (m->mask & VRB_QPA_AV && m->mask & VRB_QPA_PATH_MTU)
		note_path(q, m->attr);
	if (!(m->mask & VRB_QPA_STATE))
		return;
	vrb_chk_lock(&q->lock);
	atomic_store(&q->state, to);
	if (to == VRB_QPS_RESET) {
		vrb_chk_ring_clear(&q->sq);
		vrb_chk_ring_clear(&q->rq);
		q->mtu = 0;
	}
	vrb_chk_unlock(&q->lock);
}

static int modify(struct vrb_chk_qp *q, struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vrb_rules_port port;
	struct vrb_qp_attr a;
	struct vrb_rules_modify m = {.type = q->type,
				     .cur = atomic_load(&q->state),
				     .attr = &a,
				     .mask = (uint32_t)attr_mask,
				     .port = &port};
	uint32_t mtu, n;
	int err;

	attr_from(&a, attr, m.mask);
	vrb_chk_port(q->ctx, m.mask & IBV_QP_AV ? a.av_port : 1, a.sgid_index, &port, &mtu);
	n = check(q, &m);
	if (!n)
		n = note_legal(q, &m, mtu);
	err = VRB_REAL(ibv_modify_qp)(qp, attr, attr_mask);
	if (!err)
		done(q, &m);
	else if (!n && (err == EHOSTUNREACH || err == ENETUNREACH || err == ETIMEDOUT))
		VRB_CHK_NOTE("ibv_modify_qp", q->qpn, VRB_V_MODIFY_UNREACHABLE, (uint64_t)err, 0,
			     0);
	else if (!n)
		vrb_chk_refused("ibv_modify_qp", q->qpn, err);
	return err;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vrb_chk_qp *q = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_qps, qp);
	int err;

	if (!q || q->ctx->iwarp)
		return VRB_REAL(ibv_modify_qp)(qp, attr, attr_mask);
	vrb_chk_depth++;
	err = modify(q, qp, attr, attr_mask);
	vrb_chk_depth--;
	return err;
}
