/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a record says: the packet from its IP header to its ICRC, when, in which direction, and as
 * comment which queue pair in which role, whose work request, and why it was refused. Bytes are
 * copied before the ICRC is taken, since memory of users and peers may change meanwhile. What is
 * invisible to a socket (the UDP checksum, of IPv6 only) is computed anew.
 */
#include "hca/tap.h"
#include "hca/whose.h"
#include "hca/wire_parts.h"

#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/pcapng.h"
#include "base/text.h"
#include "wire/icrc.h"
#include "wire/mad.h"

struct record {
	struct vrb_net net;
	uint32_t interface;
	bool out;
	const struct vrb_pkt *pkt; /* values and payload; or */
	const struct vrb_seg *seg; /* NULL: at pkt->payload */
	const uint8_t *bytes;	   /* from the BTH on, as they came */
	uint32_t len;
	bool has_icrc; /* bytes end with it */
	char comment[VRB_PCAPNG_COMMENT_MAX];
};

static uint64_t wall_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * VRB_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- bytes */

/* RFC 8200 8.1: with IPv6 it is not left out; 0 is sent as ones. */
static void put_udp6_checksum(uint8_t *ip, size_t len)
{
	uint8_t *udp = ip + VRB_IPV6_LEN;
	size_t n = len - VRB_IPV6_LEN, i;
	uint64_t sum = n + 17;

	vrb_put_be16(udp + 6, 0);
	for (i = 8; i < VRB_IPV6_LEN; i += 2)
		sum += vrb_get_be16(ip + i);
	for (i = 0; i + 1 < n; i += 2)
		sum += vrb_get_be16(udp + i);
	if (i < n)
		sum += (uint32_t)udp[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	vrb_put_be16(udp + 6, sum == 0xffff ? 0xffff : ~(uint32_t)sum & 0xffff);
}

/* BTH to pad at `at`; *headers: of them BTH and extension headers. Returns the length. */
static uint32_t put_packet(const struct record *r, uint8_t *at, uint32_t *headers)
{
	struct vrb_seg own;
	struct vrb_pkt pkt;
	uint32_t n, left;

	if (r->bytes) {
		memcpy(at, r->bytes, r->len);
		n = VRB_BTH_LEN + (r->len ? vrb_opcode_table[at[0]].header_len : 0u);
		*headers = n < r->len ? n : r->len;
		return r->len;
	}
	pkt = *r->pkt;
	pkt.flags |= VRB_PKT_MIGREQ; /* as on the wire */
	own = (struct vrb_seg){pkt.payload, pkt.len};
	n = (uint32_t)vrb_pkt_emit_headers(&pkt, at);
	*headers = n;
	left = pkt.len;
	for (const struct vrb_seg *s = r->seg ? r->seg : &own; left; s++) {
		uint32_t part = s->len < left ? s->len : left;

		memcpy(at + n, s->base, part);
		n += part;
		left -= part;
	}
	memset(at + n, 0, vrb_pkt_pad(pkt.len));
	return n + vrb_pkt_pad(pkt.len);
}

static void add(struct vrb_tap *t, const struct record *r)
{
	uint32_t room = r->bytes ? r->len : VRB_HEADERS_MAX + r->pkt->len + 3, headers, len;
	uint8_t *block = vrb_tap_room(t, VRB_PCAPNG_PACKET_AT + VRB_NET_MAX + room + VRB_ICRC_LEN +
						 VRB_PCAPNG_COMMENT_MAX + 64);
	uint32_t net_len = (uint32_t)vrb_net_len(&r->net);
	struct vrb_pcapng_packet p = {.time_ns = wall_clock(),
				      .interface = r->interface,
				      .out = r->out,
				      .comment = r->comment};
	uint8_t *ip, *bth;

	if (!block)
		return;
	ip = block + VRB_PCAPNG_PACKET_AT;
	bth = ip + net_len;
	len = put_packet(r, bth, &headers);
	if (!r->has_icrc)
		len += VRB_ICRC_LEN;
	(void)vrb_net_emit(&r->net, len, ip);
	if (!r->has_icrc)
		vrb_icrc_store(vrb_icrc_start(ip, net_len, bth, len - VRB_ICRC_LEN),
			       bth + len - VRB_ICRC_LEN);
	p.len = p.kept = net_len + len;
	if (net_len == VRB_IPV6_LEN + VRB_UDP_LEN)
		put_udp6_checksum(ip, p.len);
	if (len - headers > t->kept)
		p.kept = net_len + headers + t->kept;
	t->n += (uint32_t)vrb_pcapng_emit_packet(block, &p);
}

/* ---- words */

static const char *role(const struct vrb_pkt *pkt, bool out)
{
	if (vrb_op_transport(pkt->op) != VRB_TP_RC)
		return out ? "sender" : "receiver";
	return vrb_op_has(pkt->op, VRB_OPF_RESPONSE) == out ? "responder" : "requester";
}

static bool is_nak(const struct vrb_pkt *pkt)
{
	return vrb_op_has(pkt->op, VRB_OPF_AETH) &&
	       (pkt->syndrome & VRB_AETH_KIND_MASK) != VRB_AETH_ACK;
}

static const char *nak_name(uint8_t syndrome)
{
	static const char *const nak[] = {"NAK, PSN sequence error", "NAK, invalid request",
					  "NAK, remote access error",
					  "NAK, remote operational error"};
	uint32_t code = syndrome & VRB_AETH_VALUE_MASK;

	if ((syndrome & VRB_AETH_KIND_MASK) == VRB_AETH_RNR)
		return "RNR NAK";
	return code < sizeof(nak) / sizeof(nak[0]) ? nak[code] : "NAK";
}

/* "requester QP 0x010002 WR 7: RNR NAK: ..."; pkt, wr, why: or NULL */
static void comment(struct record *r, const struct vrb_pkt *pkt, vrb_qpn qpn, const uint64_t *wr,
		    const struct vrb_report *why)
{
	char sentence[512];
	struct vrb_text t;

	vrb_text_init(&t, r->comment, sizeof(r->comment));
	if (pkt) {
		vrb_text_str(&t, role(pkt, r->out));
		vrb_text_str(&t, " QP ");
		vrb_text_hex(&t, qpn, 6);
	}
	if (wr) {
		vrb_text_str(&t, " WR ");
		vrb_text_dec(&t, *wr);
	}
	if (pkt && is_nak(pkt)) {
		vrb_text_str(&t, ": ");
		vrb_text_str(&t, nak_name(pkt->syndrome));
	}
	if (!why)
		return;
	vrb_verdict_format(sentence, sizeof(sentence), why);
	if (t.len)
		vrb_text_str(&t, ": ");
	vrb_text_str(&t, sentence);
}

/* "sender QP 0x000001: CM REJ remote_id=0x1000002 reason=8: ..."; why: or NULL */
static void gsi_comment(struct record *r, const struct vrb_pkt *pkt, const uint8_t *mad,
			const struct vrb_report *why)
{
	char words[200], sentence[512];
	struct vrb_text t;
	struct vrb_cm cm;

	vrb_text_init(&t, r->comment, sizeof(r->comment));
	vrb_text_str(&t, role(pkt, r->out));
	vrb_text_str(&t, " QP 0x000001");
	if (vrb_cm_parse(mad, pkt->len, &cm, NULL) == VRB_OK) {
		(void)vrb_cm_dump(words, sizeof(words), &cm);
		vrb_text_str(&t, ": ");
		vrb_text_str(&t, words);
	}
	if (!why)
		return;
	vrb_verdict_format(sentence, sizeof(sentence), why);
	vrb_text_str(&t, ": ");
	vrb_text_str(&t, sentence);
}

void vrb_tap_note(struct vrb_engine *e, const struct vrb_report *why)
{
	if (vrb_verdict_info(why->verdict)->kind == VRB_KIND_NAK)
		e->tap->why[why->qpn % VRB_TAP_WHYS] = *why;
}

/* Why the NAK leaves that q sends. */
static const struct vrb_report *reason(const struct vrb_engine *e, const struct vrb_hqp *q)
{
	const struct vrb_report *why = &e->tap->why[q->core.qpn % VRB_TAP_WHYS];

	if (e->fx.n_report)
		why = &e->fx.report[0];
	if (why->qpn != q->core.qpn || vrb_verdict_info(why->verdict)->kind != VRB_KIND_NAK)
		return NULL;
	return why;
}

void vrb_tap_before(struct vrb_engine *e, const struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	const struct vrb_qp *c = &q->core;
	struct vrb_tap *t = e->tap;
	uint32_t i;

	if (vrb_op_has(pkt->op, VRB_OPF_RESPONSE)) {
		t->has_wr = vrb_whose_asked(c, pkt->psn, &i);
		t->wr_id = t->has_wr ? vrb_whose_entry(c, i)->wr_id : 0;
	} else {
		const struct vrb_rwqe *w = vrb_whose_taken(c, pkt, &i);

		t->has_wr = w;
		t->wr_id = w ? w->wr_id : 0;
	}
}

/* ---- addresses of frames */

static struct vrb_gid own_gid(const struct vrb_hqp *q, uint32_t index)
{
	return q->ctx->dev->gid[index % VRB_GIDS_MAX].gid;
}

static struct vrb_net net_of(const struct vrb_gid *src, const struct vrb_gid *dst, uint8_t tclass,
			     uint8_t hops)
{
	struct vrb_net n = {.src = *src,
			    .dst = *dst,
			    .tclass = tclass,
			    .ttl = hops > 1 ? hops : VRB_UDP_HOPS,
			    .df = true,
			    .dport = VRB_ROCE_PORT};

	/* within the host an IPv4 and an IPv6 address may meet; a packet has one version */
	if (vrb_gid_is_ipv4(src) != vrb_gid_is_ipv4(dst))
		n.src = *dst;
	return n;
}

/* The source port that the flow would have on the wire. */
static uint16_t port_of(const struct vrb_net *n, vrb_qpn from, vrb_qpn to)
{
	return (uint16_t)(VRB_UDP_PORT_MIN +
			  vrb_wire_lane(vrb_wire_hash_addresses(&n->src, &n->dst),
					vrb_wire_hash_qpns(from, to)));
}

static struct vrb_net frame_net(const struct vrb_hqp *q, const struct vrb_av *av, bool out)
{
	const struct vrb_qp_attr *a = &q->core.attr;
	struct vrb_gid own = own_gid(q, av ? av->sgid_index : a->sgid_index);
	struct vrb_net n;

	if (av)
		n = net_of(&own, &av->dgid, av->traffic_class, av->hop_limit);
	else if (out)
		n = net_of(&own, &a->dgid, a->traffic_class, a->hop_limit);
	else
		n = net_of(&a->dgid, &own, a->traffic_class, a->hop_limit);
	n.sport = port_of(&n, out ? q->core.qpn : q->core.dqpn, out ? q->core.dqpn : q->core.qpn);
	return n;
}

/* ---- out */

static void put_out(struct vrb_engine *e, struct vrb_hqp *q, struct record *r,
		    const struct vrb_report *why)
{
	const struct vrb_pkt *pkt = r->pkt;
	bool request = vrb_op_has(pkt->op, VRB_OPF_REQUEST);
	const uint64_t *wr = NULL;
	uint32_t i;

	if (!why && !request && is_nak(pkt))
		why = reason(e, q);
	r->out = true;
	if (request && vrb_whose_made(&q->core, pkt->psn, &i))
		wr = &vrb_whose_entry(&q->core, i)->wr_id;
	comment(r, pkt, q->core.qpn, wr, why);
	add(e->tap, r);
}

static struct vrb_pkt ack_of(const struct vrb_qp *c, struct vrb_psn psn)
{
	return (struct vrb_pkt){.op = vrb_opcode(VRB_TP_RC, VRB_OP_ACK),
				.syndrome = VRB_AETH_ACK | VRB_AETH_CREDITS_UNLIMITED,
				.pkey = 0xffff,
				.psn = psn,
				.dqpn = c->dqpn,
				.msn = c->msn & VRB_PSN_MASK};
}

void vrb_tap_out(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_psn *ack)
{
	struct record r = {.interface = VRB_PCAPNG_SAME_HOST};
	struct vrb_pkt pkt;

	r.net = frame_net(q, e->tx.av, true);
	if (ack) {
		pkt = ack_of(&q->core, *ack);
		r.pkt = &pkt;
		put_out(e, q, &r, NULL);
	}
	r.pkt = &e->tx.pkt;
	r.seg = e->tx.seg;
	put_out(e, q, &r, NULL);
}

void vrb_tap_wire_out(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_udp *u,
		      const struct vrb_udp_flow *f, const struct vrb_report *why)
{
	struct record r = {.interface = VRB_PCAPNG_WIRE, .pkt = &e->tx.pkt, .seg = e->tx.seg};
	uint32_t n = e->wire->batch.n;

	if (!n && !why)
		return; /* it could not be sent */
	r.net = net_of(&u->gid, &f->dst, f->tclass, f->hop_limit);
	r.net.ip_id = (uint16_t)(n ? n - 1 : 0);
	r.net.sport = u->lane[f->lane].port;
	put_out(e, q, &r, why);
}

void vrb_tap_gsi_out(struct vrb_engine *e, const struct vrb_tap_gsi *out)
{
	struct record r = {
		.interface = VRB_PCAPNG_WIRE, .out = true, .pkt = out->pkt, .seg = out->seg};
	const struct vrb_udp_flow *f = out->flow;

	if (!e->wire->batch.n)
		return; /* it could not be sent */
	r.net = net_of(&out->udp->gid, &f->dst, f->tclass, f->hop_limit);
	r.net.ip_id = (uint16_t)(e->wire->batch.n - 1);
	r.net.sport = out->udp->lane[f->lane].port;
	gsi_comment(&r, out->pkt, out->seg->base, NULL);
	add(e->tap, &r);
}

/* ---- in */

void vrb_tap_frame(struct vrb_engine *e, const struct vrb_peer *p, const struct vrb_shm_frame *f)
{
	e->tap->frame = f;
	e->tap->from = p;
	e->tap->wire = NULL;
	e->tap->has_wr = false;
}

void vrb_tap_arrival(struct vrb_engine *e, const struct vrb_udp_packet *p)
{
	e->tap->frame = NULL;
	e->tap->wire = p;
	e->tap->has_wr = false;
}

static void put_wire(struct vrb_tap *t, struct record *r, bool damaged)
{
	r->interface = VRB_PCAPNG_WIRE;
	r->net = t->wire->net;
	r->bytes = t->wire->bytes;
	r->len = t->wire->len;
	r->has_icrc = damaged || r->len < VRB_BTH_LEN;
	add(t, r);
}

/* Its sender records it into the same file. */
static bool is_recorded(const struct vrb_tap *t)
{
	return t->id && (t->from->self || t->from->tap == t->id);
}

static void put_frame(struct vrb_tap *t, struct record *r, const struct vrb_hqp *q,
		      const struct vrb_pkt *pkt)
{
	const struct vrb_shm_frame *f = t->frame;
	static const struct vrb_gid nowhere = {.raw = {[10] = 0xff, [11] = 0xff}};

	r->interface = VRB_PCAPNG_SAME_HOST;
	if (vrb_op_transport(pkt->op) == VRB_TP_UD) {
		r->net = net_of(&f->sgid, &f->dgid, f->traffic_class, f->hop_limit);
		r->net.sport = port_of(&r->net, pkt->sqpn, 0);
	} else if (q) {
		r->net = frame_net(q, NULL, false);
	} else {
		r->net = net_of(&nowhere, &nowhere, 0, 0);
		r->net.sport = VRB_UDP_PORT_MIN;
	}
	r->pkt = pkt;
	add(t, r);
}

void vrb_tap_in(struct vrb_engine *e, const struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	const struct vrb_report *why = e->fx.n_report ? &e->fx.report[0] : NULL;
	struct vrb_tap *t = e->tap;
	struct record r;

	if (t->frame && !why && is_recorded(t))
		return;
	r = (struct record){0};
	comment(&r, pkt, q->core.qpn, t->has_wr ? &t->wr_id : NULL, why);
	if (t->wire)
		put_wire(t, &r, false);
	else if (t->frame)
		put_frame(t, &r, q, pkt);
}

void vrb_tap_stray(struct vrb_engine *e, const struct vrb_report *why, bool damaged)
{
	struct vrb_tap *t = e->tap;
	struct record r = {0};
	struct vrb_pkt pkt;

	if (t->wire && !damaged &&
	    vrb_pkt_parse(t->wire->bytes, t->wire->len, &pkt, NULL) == VRB_OK &&
	    pkt.dqpn == VRB_GSI_QPN)
		gsi_comment(&r, &pkt, pkt.payload, why);
	else
		comment(&r, NULL, 0, NULL, why);
	if (t->wire)
		put_wire(t, &r, damaged);
	else if (t->frame)
		put_frame(t, &r, NULL, &t->frame->pkt);
}
