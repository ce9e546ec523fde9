/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 of the engine under fuzzing: messages that are almost right, and what must hold of those
 * that are taken (they are messages, and ours) and of those that answer (only refusals do).
 */
#include "base/bytes.h"
#include "fuzz/wire_kit.h"
#include "hca/gsi_parts.h"

#include <string.h>

#define SERVICE 0x0000000001060007ull /* is claimed */

static void on_mad(void *arg, const struct vrb_gsi_mad *mad)
{
	uint8_t again[VRB_MAD_LEN];

	(void)arg;
	FZ_CHECK(mad->cm.data + mad->cm.data_len == mad->bytes + VRB_MAD_LEN);
	FZ_CHECK(!memcmp(&mad->dst, &wk.self, sizeof(wk.self)));
	if (vrb_cm_asks(mad->cm.kind))
		FZ_CHECK(mad->cm.service_id == SERVICE);
	else
		FZ_CHECK(mad->cm.remote_id >> 24 == wk_engine()->slot);
	FZ_CHECK(vrb_cm_emit(&mad->cm, again));
}

void wk_gsi_begin(void)
{
	FZ_CHECK(vrb_gsi_get(wk_engine()));
	wk_engine()->gsi->on = on_mad;
	FZ_CHECK(!vrb_gsi_claim(wk.node.ctx, SERVICE));
}

bool wk_gsi_sent(const struct vrb_pkt *pkt)
{
	struct vrb_cm cm;

	if (pkt->dqpn != VRB_GSI_QPN)
		return false;
	FZ_CHECK(pkt->op.v == (VRB_TP_UD | VRB_OP_SEND_ONLY) && pkt->qkey == VRB_GSI_QKEY);
	FZ_CHECK(pkt->sqpn == VRB_GSI_QPN);
	FZ_CHECK(vrb_cm_parse(pkt->payload, pkt->len, &cm, NULL) == VRB_OK);
	FZ_CHECK((cm.kind == VRB_CM_REJ && cm.reason == VRB_CM_REJ_SERVICE_ID) ||
		 (cm.kind == VRB_CM_SIDR_REP && cm.status == VRB_CM_SIDR_NO_SERVICE));
	return true;
}

static uint32_t draw_id(struct fz *f)
{
	uint32_t id = fz_u32(f);

	return id >> 31 ? id & 0xffffff : wk_engine()->slot << 24 | (id & 0xffffff);
}

/* Lies: 1 opcode, 2 Q_Key, 4 source, 8 P_Key, 16 length, 32 bytes anywhere. */
uint32_t wk_gsi_invent(struct fz *f, uint8_t *at)
{
	uint8_t lie = fz_u8(f);
	struct vrb_cm cm = {.kind = VRB_CM_REQ + fz_u8(f) % 11,
			    .local_id = draw_id(f),
			    .remote_id = draw_id(f),
			    .service_id = SERVICE + (lie & 64 ? fz_u8(f) : 0)};
	struct vrb_pkt p = {.op.v = VRB_TP_UD | VRB_OP_SEND_ONLY,
			    .pkey = lie & 8 ? 0x8001 : 0xffff,
			    .dqpn = VRB_GSI_QPN,
			    .qkey = VRB_GSI_QKEY ^ (lie & 2),
			    .sqpn = lie & 4 ? 2 : VRB_GSI_QPN,
			    .len = lie & 16 ? fz_u8(f) : VRB_MAD_LEN};
	uint32_t n;

	if (lie & 1)
		p.op.v = VRB_TP_UD | VRB_OP_SEND_ONLY_IMM;
	n = (uint32_t)vrb_pkt_emit_headers(&p, at);
	FZ_CHECK(vrb_cm_emit(&cm, at + n));
	for (uint32_t i = fz_u8(f) % 16u; lie & 32 && i; i--)
		at[n + fz_u8(f)] = fz_u8(f);
	memset(at + n + p.len, 0, 3);
	return n + p.len + vrb_pkt_pad(p.len);
}
