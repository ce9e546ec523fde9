/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles. On RoCE every handle is global: its GRH names the source GID by index and the
 * destination by GID. A handle can be made for answering a completion: the 40 bytes in front of a
 * UD payload are an IPv6 header, or 20 bytes of nothing and an IPv4 header (RoCEv2 A17.4.5.2).
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

void vv_av_from_ibv(struct vrb_qp_attr *out, const struct ibv_ah_attr *in)
{
	memcpy(out->dgid.raw, in->grh.dgid.raw, sizeof(out->dgid.raw));
	out->is_global = in->is_global != 0;
	out->sgid_index = in->grh.sgid_index;
	out->hop_limit = in->grh.hop_limit;
	out->traffic_class = in->grh.traffic_class;
	out->flow_label = in->grh.flow_label & IB_GRH_FLOWLABEL_MASK;
	out->sl = in->sl;
	out->static_rate = in->static_rate;
	out->src_path_bits = in->src_path_bits;
	out->av_port = in->port_num;
	out->dlid = in->dlid;
}

void vv_av_to_ibv(struct ibv_ah_attr *out, const struct vrb_qp_attr *in)
{
	*out = (struct ibv_ah_attr){
		.grh = {.flow_label = in->flow_label,
			.sgid_index = in->sgid_index,
			.hop_limit = in->hop_limit,
			.traffic_class = in->traffic_class},
		.dlid = in->dlid,
		.sl = in->sl,
		.src_path_bits = in->src_path_bits,
		.static_rate = in->static_rate,
		.is_global = in->is_global,
		.port_num = in->av_port,
	};
	memcpy(out->grh.dgid.raw, in->dgid.raw, sizeof(in->dgid.raw));
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct vrb_qp_attr a = {0};
	struct vrb_rules_port port;
	struct vrb_report r;
	struct vv_ah *h;
	int err;

	vv_av_from_ibv(&a, attr);
	vv_rules_port(vv_context(pd->context)->dev, &port);
	if (vrb_rules_av(&a, &port, true, &r) != VRB_OK)
		return vv_null(vv_reason(&r));
	err = vv_count_in(pd->context, VRB_OBJ_AH);
	if (err)
		return vv_null(err);
	h = calloc(1, sizeof(*h));
	if (!h) {
		vv_count_out(pd->context, VRB_OBJ_AH);
		return vv_null(ENOMEM);
	}
	h->av = (struct vrb_av){
		.dgid = a.dgid,
		.sgid_index = a.sgid_index,
		.hop_limit = a.hop_limit,
		.traffic_class = a.traffic_class,
		.port = a.av_port,
		.flow_label = a.flow_label,
		.pd = vv_pd(pd)->h->id,
	};
	err = vrb_hah_create(vv_pd(pd)->h, &h->av);
	if (err) {
		vv_count_out(pd->context, VRB_OBJ_AH);
		free(h);
		r = (struct vrb_report){.verdict = VRB_V_MODIFY_UNREACHABLE};
		return vv_null(err == -EHOSTUNREACH || err == -ENETUNREACH ? vv_reason(&r) : err);
	}
	h->ah.context = pd->context;
	h->ah.pd = pd;
	return &h->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	struct vv_ah *h = vv_ah(ah);

	vrb_hah_destroy(vv_pd(ah->pd)->h, &h->av);
	vv_count_out(ah->context, VRB_OBJ_AH);
	free(h);
	return 0;
}

#define IPV4_AT	 20 /* where the IPv4 header stands in the 40 bytes */
#define IPV4_LEN 20

/* RFC 791: version 4, no options, and the sum of all words is all ones. */
static bool is_ipv4(const uint8_t *grh)
{
	const uint8_t *h = grh + IPV4_AT;
	uint32_t sum = 0;

	if (h[0] != 0x45)
		return false;
	for (unsigned i = 0; i < IPV4_LEN; i += 2)
		sum += (uint32_t)h[i] << 8 | h[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static void map_ipv4(union ibv_gid *gid, const uint8_t *addr)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, addr, 4);
}

/* The entry with this GID. For a multicast group, whose address is nobody's: the first entry of its
 * IP version. */
static int sgid_index(const struct vrb_hdev *dev, const union ibv_gid *gid)
{
	bool v4 = !memcmp(gid->raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	bool is_group = v4 ? (gid->raw[12] & 0xf0) == 0xe0 : gid->raw[0] == 0xff;

	for (uint32_t i = 0; i < dev->n_gids && i < VRB_GIDS_MAX; i++) {
		const struct vrb_gid_entry *e = &dev->gid[i];

		if (!e->valid || e->is_v1)
			continue;
		if (is_group ? e->is_v4 == v4 : !memcmp(e->gid.raw, gid->raw, 16))
			return (int)i;
	}
	return -1;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	const uint8_t *raw = (const uint8_t *)grh;
	uint32_t word;
	union ibv_gid local;
	int index;

	memset(ah_attr, 0, sizeof(*ah_attr));
	ah_attr->dlid = wc->slid;
	ah_attr->sl = wc->sl;
	ah_attr->src_path_bits = wc->dlid_path_bits;
	ah_attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0; /* create_ah will say what is missing */
	ah_attr->is_global = 1;
	ah_attr->grh.hop_limit = 0xff;
	if (is_ipv4(raw)) {
		map_ipv4(&ah_attr->grh.dgid, raw + IPV4_AT + 12);
		map_ipv4(&local, raw + IPV4_AT + 16);
		ah_attr->grh.traffic_class = raw[IPV4_AT + 1];
	} else {
		ah_attr->grh.dgid = grh->sgid;
		local = grh->dgid;
		word = ntohl(grh->version_tclass_flow);
		ah_attr->grh.flow_label = word & IB_GRH_FLOWLABEL_MASK;
		ah_attr->grh.traffic_class = word >> 20 & 0xff;
	}
	index = sgid_index(vv_context(context)->dev, &local);
	if (index < 0) {
		errno = ENOENT;
		return -1;
	}
	ah_attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
