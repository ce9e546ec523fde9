/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets: bytes to values and back, from the BTH to the pad. Which headers follow comes from the
 * opcode table only; parse and emit walk it in the same order. Everything read is bounded by the
 * length that arrived: the headers are read only after their sum has been checked against it.
 */
#include "wire/pkt.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/roce.h"

enum { /* BTH */
       BTH_SE = 0x80,
       BTH_MIGREQ = 0x40,
       BTH_PAD_SHIFT = 4,
       BTH_PAD_MASK = 3,
       BTH_TVER_MASK = 0x0f,
       BTH_FECN = 0x80,
       BTH_BECN = 0x40,
       BTH_ACKREQ = 0x80,
};

static enum vrb_verdict refuse(struct vrb_report *why, enum vrb_verdict v, uint64_t a, uint64_t b)
{
	if (why) {
		why->verdict = v;
		why->qpn = 0;
		why->val[0] = a;
		why->val[1] = b;
	}
	return v;
}

static void parse_bth(const uint8_t *b, struct vrb_pkt *p)
{
	p->op.v = b[0];
	p->flags = (uint8_t)((b[1] & BTH_SE ? VRB_PKT_SE : 0) |
			     (b[1] & BTH_MIGREQ ? VRB_PKT_MIGREQ : 0) |
			     (b[4] & BTH_FECN ? VRB_PKT_FECN : 0) |
			     (b[4] & BTH_BECN ? VRB_PKT_BECN : 0) |
			     (b[8] & BTH_ACKREQ ? VRB_PKT_ACKREQ : 0));
	p->pad = (b[1] >> BTH_PAD_SHIFT) & BTH_PAD_MASK;
	p->pkey = vrb_get_be16(b + 2);
	p->dqpn = vrb_get_be24(b + 5);
	p->psn = vrb_psn(vrb_get_be24(b + 9));
}

/* The headers that say where the data goes or what became of it. */
static const uint8_t *parse_addresses(const uint8_t *b, uint32_t flags, struct vrb_pkt *p)
{
	if (flags & (VRB_OPF_RETH | VRB_OPF_ATOMICETH)) {
		p->va = vrb_get_be64(b);
		p->rkey = vrb_get_be32(b + 8);
	}
	if (flags & VRB_OPF_RETH) {
		p->dma_len = vrb_get_be32(b + 12);
		b += VRB_RETH_LEN;
	}
	if (flags & VRB_OPF_ATOMICETH) {
		p->swap_add = vrb_get_be64(b + 12);
		p->compare = vrb_get_be64(b + 20);
		b += VRB_ATOMICETH_LEN;
	}
	if (flags & VRB_OPF_AETH) {
		p->syndrome = b[0];
		p->msn = vrb_get_be24(b + 1);
		b += VRB_AETH_LEN;
	}
	if (flags & VRB_OPF_DETH) {
		p->qkey = vrb_get_be32(b);
		p->sqpn = vrb_get_be24(b + 5);
		b += VRB_DETH_LEN;
	}
	return b;
}

/* The headers that carry data themselves. */
static const uint8_t *parse_values(const uint8_t *b, uint32_t flags, struct vrb_pkt *p)
{
	if (flags & VRB_OPF_ATOMICACK) {
		p->atomic_orig = vrb_get_be64(b);
		b += VRB_ATOMICACKETH_LEN;
	}
	if (flags & VRB_OPF_IMM) {
		memcpy(&p->imm, b, sizeof(p->imm));
		b += VRB_IMMDT_LEN;
	}
	if (flags & VRB_OPF_INV) {
		p->inv_rkey = vrb_get_be32(b);
		b += VRB_IETH_LEN;
	}
	return b;
}

enum vrb_verdict vrb_pkt_parse(const uint8_t *bytes, size_t len, struct vrb_pkt *out,
			       struct vrb_report *why)
{
	const struct vrb_opcode_info *info;
	size_t rest;

	if (len < VRB_BTH_LEN)
		return refuse(why, VRB_V_DROP_SHORT, len, len ? bytes[0] : 0);
	if (len > VRB_ROCE_PACKET_MAX)
		return refuse(why, VRB_V_DROP_LONG, len, VRB_ROCE_PACKET_MAX);
	/* IBA C9-6: another transport version is dropped */
	if (bytes[1] & BTH_TVER_MASK)
		return refuse(why, VRB_V_DROP_TVER, bytes[1] & BTH_TVER_MASK, 0);
	info = &vrb_opcode_table[bytes[0]];
	if (!info->flags)
		return refuse(why, VRB_V_DROP_OPCODE, bytes[0], 0);
	if (len < (size_t)VRB_BTH_LEN + info->header_len)
		return refuse(why, VRB_V_DROP_SHORT, len, bytes[0]);

	memset(out, 0, sizeof(*out));
	parse_bth(bytes, out);
	rest = len - VRB_BTH_LEN - info->header_len;
	/* IBA 9.2.3: payload and pad make whole words */
	if ((rest & 3) || out->pad > rest)
		return refuse(why, VRB_V_DROP_PADCNT, out->pad, rest);
	bytes = parse_addresses(bytes + VRB_BTH_LEN, info->flags, out);
	out->payload = parse_values(bytes, info->flags, out);
	out->len = (uint32_t)(rest - out->pad);
	return VRB_OK;
}

static uint8_t *emit_addresses(const struct vrb_pkt *p, uint32_t flags, uint8_t *b)
{
	if (flags & (VRB_OPF_RETH | VRB_OPF_ATOMICETH)) {
		vrb_put_be64(b, p->va);
		vrb_put_be32(b + 8, p->rkey);
	}
	if (flags & VRB_OPF_RETH) {
		vrb_put_be32(b + 12, p->dma_len);
		b += VRB_RETH_LEN;
	}
	if (flags & VRB_OPF_ATOMICETH) {
		vrb_put_be64(b + 12, p->swap_add);
		vrb_put_be64(b + 20, p->compare);
		b += VRB_ATOMICETH_LEN;
	}
	if (flags & VRB_OPF_AETH) {
		b[0] = p->syndrome;
		vrb_put_be24(b + 1, p->msn);
		b += VRB_AETH_LEN;
	}
	if (flags & VRB_OPF_DETH) {
		vrb_put_be32(b, p->qkey);
		b[4] = 0;
		vrb_put_be24(b + 5, p->sqpn);
		b += VRB_DETH_LEN;
	}
	return b;
}

static uint8_t *emit_values(const struct vrb_pkt *p, uint32_t flags, uint8_t *b)
{
	if (flags & VRB_OPF_ATOMICACK) {
		vrb_put_be64(b, p->atomic_orig);
		b += VRB_ATOMICACKETH_LEN;
	}
	if (flags & VRB_OPF_IMM) {
		memcpy(b, &p->imm, sizeof(p->imm));
		b += VRB_IMMDT_LEN;
	}
	if (flags & VRB_OPF_INV) {
		vrb_put_be32(b, p->inv_rkey);
		b += VRB_IETH_LEN;
	}
	return b;
}

size_t vrb_pkt_emit_headers(const struct vrb_pkt *pkt, uint8_t *out)
{
	uint32_t flags = vrb_op_flags(pkt->op), pad = vrb_pkt_pad(pkt->len);
	uint8_t *b;

	out[0] = pkt->op.v;
	out[1] = (uint8_t)((pkt->flags & VRB_PKT_SE ? BTH_SE : 0) |
			   (pkt->flags & VRB_PKT_MIGREQ ? BTH_MIGREQ : 0) | pad << BTH_PAD_SHIFT);
	vrb_put_be16(out + 2, pkt->pkey);
	out[4] = (uint8_t)((pkt->flags & VRB_PKT_FECN ? BTH_FECN : 0) |
			   (pkt->flags & VRB_PKT_BECN ? BTH_BECN : 0));
	vrb_put_be24(out + 5, pkt->dqpn);
	out[8] = pkt->flags & VRB_PKT_ACKREQ ? BTH_ACKREQ : 0;
	vrb_put_be24(out + 9, pkt->psn.v);
	b = emit_addresses(pkt, flags, out + VRB_BTH_LEN);
	return (size_t)(emit_values(pkt, flags, b) - out);
}
