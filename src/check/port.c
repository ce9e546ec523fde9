/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device says of its port and its GIDs, as src/rules wants it, and address vectors. */
#include "check/check.h"

#include <errno.h>
#include <string.h>

static bool gid_entry(struct vrb_chk_ctx *c, uint8_t port, uint32_t i, struct ibv_gid_entry *e)
{
	__typeof__(&_ibv_query_gid_ex) query = VRB_REAL(_ibv_query_gid_ex);

	memset(e, 0, sizeof(*e));
	return query && !query(c->ibv, port, i, e, 0, sizeof(*e));
}

static bool is_v4(const union ibv_gid *g)
{
	static const uint8_t head[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(g->raw, head, sizeof(head));
}

void vrb_chk_port(struct vrb_chk_ctx *c, uint8_t number, uint32_t index,
		  struct vrb_rules_port *port, uint32_t *active_mtu)
{
	struct ibv_port_attr a;
	struct ibv_gid_entry e;

	memset(&a, 0, sizeof(a));
	*port = (struct vrb_rules_port){.n_ports = c->attr.phys_port_cnt,
					.max_rd_atomic = (uint8_t)c->attr.max_qp_rd_atom};
	*active_mtu = 0;
	if (VRB_REAL(ibv_query_port)(c->ibv, number, (void *)&a))
		VRB_REAL(ibv_query_port)(c->ibv, 1, (void *)&a);
	port->n_gids = (uint32_t)a.gid_tbl_len;
	port->n_pkeys = a.pkey_tbl_len;
	port->max_mtu = (uint8_t)a.max_mtu;
	port->infiniband = a.link_layer == IBV_LINK_LAYER_INFINIBAND;
	*active_mtu = a.active_mtu;
	port->gid_beyond_empty = !gid_entry(c, number, index, &e);
	for (uint32_t i = 0; i < port->n_gids && i < VRB_RULES_GIDS_MAX; i++) {
		if (!gid_entry(c, number, i, &e))
			continue;
		port->gid_valid |= 1ull << i;
		port->gid_v4 |= (uint64_t)is_v4(&e.gid) << i;
	}
}

int vrb_chk_better_gid(struct vrb_chk_ctx *c, uint8_t port, uint32_t index)
{
	struct ibv_gid_entry e, other;

	if (!gid_entry(c, port, index, &e) || e.gid_type != IBV_GID_TYPE_ROCE_V1)
		return -1;
	for (uint32_t i = 0; i < 256; i++)
		if (gid_entry(c, port, i, &other) && other.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(other.gid.raw, e.gid.raw, sizeof(e.gid.raw)))
			return (int)i;
	return -1;
}

void vrb_chk_av(const char *call, struct ibv_context *ctx, const struct ibv_ah_attr *a, bool failed)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(ctx);
	struct vrb_chk_finding f = {.call = call};
	struct vrb_rules_port port;
	struct vrb_qp_attr attr;
	int err = errno, better;
	uint32_t mtu;

	if (!c || c->iwarp)
		return;
	vrb_chk_depth++;
	vrb_chk_port(c, a->port_num, a->grh.sgid_index, &port, &mtu);
	memset(&attr, 0, sizeof(attr));
	attr.is_global = a->is_global;
	attr.sgid_index = a->grh.sgid_index;
	attr.av_port = a->port_num;
	memcpy(attr.dgid.raw, a->grh.dgid.raw, sizeof(attr.dgid.raw));
	better = port.infiniband || !a->is_global
			 ? -1
			 : vrb_chk_better_gid(c, a->port_num, a->grh.sgid_index);
	if (vrb_rules_av(&attr, &port, true, &f.r) != VRB_OK)
		vrb_chk_report(&f);
	else if (better >= 0)
		VRB_CHK_NOTE(call, 0, VRB_V_GID_V1, attr.sgid_index, (uint64_t)better, 0);
	else if (failed)
		vrb_chk_refused(call, 0, err);
	vrb_chk_depth--;
	errno = err;
}
