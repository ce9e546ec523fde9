/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line of text for a packet: opcode, addressing, then only the fields that its opcode carries.
 * Traces, simulations and failing tests print packets with it.
 */
#include "base/names.h"
#include "base/text.h"
#include "wire/mad.h"
#include "wire/pkt.h"

static void field_dec(struct vrb_text *t, const char *name, uint64_t v)
{
	vrb_text_char(t, ' ');
	vrb_text_str(t, name);
	vrb_text_char(t, '=');
	vrb_text_dec(t, v);
}

static void field_hex(struct vrb_text *t, const char *name, uint64_t v)
{
	vrb_text_char(t, ' ');
	vrb_text_str(t, name);
	vrb_text_char(t, '=');
	vrb_text_hex(t, v, 1);
}

static void syndrome(struct vrb_text *t, uint8_t s)
{
	static const char *const nak[] = {" NAK:psn-sequence", " NAK:invalid-request",
					  " NAK:remote-access", " NAK:operational"};
	unsigned value = s & VRB_AETH_VALUE_MASK;

	switch (s & VRB_AETH_KIND_MASK) {
	case VRB_AETH_ACK:
		return;
	case VRB_AETH_RNR:
		field_dec(t, "RNR-NAK", value);
		return;
	case VRB_AETH_NAK:
		if (value < sizeof(nak) / sizeof(nak[0])) {
			vrb_text_str(t, nak[value]);
			return;
		}
		break;
	default:
		break;
	}
	field_hex(t, "syndrome", s);
}

static void extension(struct vrb_text *t, const struct vrb_pkt *p, uint32_t flags)
{
	if (flags & (VRB_OPF_RETH | VRB_OPF_ATOMICETH)) {
		field_hex(t, "va", p->va);
		field_hex(t, "rkey", p->rkey);
	}
	if (flags & VRB_OPF_RETH)
		field_dec(t, "dma_len", p->dma_len);
	if (flags & VRB_OPF_ATOMICETH) {
		field_hex(t, "swap_add", p->swap_add);
		field_hex(t, "compare", p->compare);
	}
	if (flags & VRB_OPF_AETH) {
		syndrome(t, p->syndrome);
		field_dec(t, "msn", p->msn);
	}
	if (flags & VRB_OPF_DETH) {
		field_hex(t, "qkey", p->qkey);
		field_hex(t, "sqpn", p->sqpn);
	}
	if (flags & VRB_OPF_ATOMICACK)
		field_hex(t, "orig", p->atomic_orig);
	if (flags & VRB_OPF_IMM)
		field_hex(t, "imm", p->imm);
	if (flags & VRB_OPF_INV)
		field_hex(t, "inv_rkey", p->inv_rkey);
}

size_t vrb_cm_dump(char *out, size_t size, const struct vrb_cm *cm)
{
	struct vrb_text t;

	vrb_text_init(&t, out, size);
	vrb_text_str(&t, "CM ");
	(void)vrb_name_put(&t, 'c', cm->kind);
	if (cm->service_id)
		field_hex(&t, "service_id", cm->service_id);
	if (cm->local_id)
		field_hex(&t, "local_id", cm->local_id);
	if (cm->remote_id)
		field_hex(&t, "remote_id", cm->remote_id);
	if (cm->qpn)
		field_hex(&t, "qpn", cm->qpn);
	if (cm->kind == VRB_CM_REJ)
		field_dec(&t, "reason", cm->reason);
	if (cm->kind == VRB_CM_SIDR_REP)
		field_dec(&t, "status", cm->status);
	return t.len;
}

size_t vrb_pkt_dump(char *out, size_t size, const struct vrb_pkt *pkt)
{
	uint32_t flags = vrb_op_flags(pkt->op);
	struct vrb_text t;
	struct vrb_cm cm;

	vrb_text_init(&t, out, size);
	vrb_text_str(&t, vrb_op_name(pkt->op));
	if (!(flags & VRB_OPF_KNOWN))
		field_hex(&t, "op", pkt->op.v);
	field_hex(&t, "qp", pkt->dqpn);
	field_hex(&t, "psn", pkt->psn.v);
	if (flags & VRB_OPF_PAYLOAD || pkt->len)
		field_dec(&t, "len", pkt->len);
	extension(&t, pkt, flags);
	if (pkt->flags & VRB_PKT_ACKREQ)
		vrb_text_str(&t, " ackreq");
	if (pkt->flags & VRB_PKT_SE)
		vrb_text_str(&t, " se");
	if (pkt->dqpn == VRB_GSI_QPN && pkt->payload &&
	    vrb_cm_parse(pkt->payload, pkt->len, &cm, NULL) == VRB_OK) {
		vrb_text_char(&t, ' ');
		t.len += vrb_cm_dump(t.out + t.len, t.size - t.len, &cm);
	}
	return t.len;
}
