/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the connection manager: bytes to values and back. The length is checked once, it is
 * the same for all; every place that is read or written lies within it. What is reserved is not
 * looked at, and written as 0.
 */
#include "wire/mad.h"

#include <string.h>

#include "base/bytes.h"

enum { BASE_VERSION = 1, CLASS = 7, CLASS_VERSION = 2, METHOD_SEND = 3 };
enum { AT_METHOD = 3, AT_TID = 8 };
enum { PATH_ALTERNATE = 96, PATH = 52, INFO = 12, INFO_MAX = 72 };

/* From the end of the header: where private data lies, to the end. */
static const struct kind {
	uint8_t data_at;
	bool is_known;
} kinds[] = {
	[VRB_CM_REQ] = {140, true}, [VRB_CM_MRA] = {10, true},	    [VRB_CM_REJ] = {84, true},
	[VRB_CM_REP] = {36, true},  [VRB_CM_RTU] = {8, true},	    [VRB_CM_DREQ] = {12, true},
	[VRB_CM_DREP] = {8, true},  [VRB_CM_SIDR_REQ] = {16, true}, [VRB_CM_SIDR_REP] = {96, true},
	[VRB_CM_LAP] = {8, true},   [VRB_CM_APR] = {8, true},
};

uint32_t vrb_cm_data_max(uint32_t kind)
{
	if (kind >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[kind].is_known)
		return 0;
	return VRB_MAD_LEN - VRB_MAD_HEADER_LEN - kinds[kind].data_at;
}

/* ---- parse */

static void parse_path(const uint8_t *b, struct vrb_cm_path *p)
{
	p->local_lid = vrb_get_be16(b);
	p->remote_lid = vrb_get_be16(b + 2);
	memcpy(p->local.raw, b + 4, sizeof(p->local.raw));
	memcpy(p->remote.raw, b + 20, sizeof(p->remote.raw));
	p->flow_label = vrb_get_be24(b + 36) >> 4;
	p->rate = b[39] & 0x3f;
	p->tclass = b[40];
	p->hop_limit = b[41];
	p->sl = b[42] >> 4;
	p->subnet_local = b[42] >> 3 & 1;
	p->ack_timeout = b[43] >> 3;
}

static void parse_req(const uint8_t *b, struct vrb_cm *c)
{
	c->service_id = vrb_get_be64(b + 8);
	c->guid = vrb_get_be64(b + 16);
	c->qkey = vrb_get_be32(b + 28);
	c->qpn = vrb_get_be24(b + 32);
	c->resources = b[35];
	c->depth = b[39];
	c->remote_timeout = b[43] >> 3;
	c->transport = b[43] >> 1 & 3;
	c->flow_control = b[43] & 1;
	c->psn = vrb_psn(vrb_get_be24(b + 44));
	c->local_timeout = b[47] >> 3;
	c->retry = b[47] & 7;
	c->pkey = vrb_get_be16(b + 48);
	c->mtu = b[50] >> 4;
	c->rnr_retry = b[50] & 7;
	c->max_retries = b[51] >> 4;
	c->srq = b[51] >> 3 & 1;
	c->ext_transport = b[51] & 7;
	parse_path(b + PATH, &c->path);
	parse_path(b + PATH_ALTERNATE, &c->alternate);
}

static void parse_rep(const uint8_t *b, struct vrb_cm *c)
{
	c->qkey = vrb_get_be32(b + 8);
	c->qpn = vrb_get_be24(b + 12);
	c->psn = vrb_psn(vrb_get_be24(b + 20));
	c->resources = b[24];
	c->depth = b[25];
	c->ack_delay = b[26] >> 3;
	c->failover = b[26] >> 1 & 3;
	c->flow_control = b[26] & 1;
	c->rnr_retry = b[27] >> 5;
	c->srq = b[27] >> 4 & 1;
	c->guid = vrb_get_be64(b + 28);
}

static void parse_sidr_rep(const uint8_t *b, struct vrb_cm *c)
{
	c->remote_id = c->local_id;
	c->local_id = 0;
	c->status = b[4];
	c->info_len = b[5];
	c->info = b + 24;
	c->qpn = vrb_get_be24(b + 8);
	c->service_id = vrb_get_be64(b + 12);
	c->qkey = vrb_get_be32(b + 20);
}

/* What the kind has beyond ids and private data; b: behind the header. */
static void parse_body(const uint8_t *b, struct vrb_cm *c)
{
	switch (c->kind) {
	case VRB_CM_REQ:
		parse_req(b, c);
		break;
	case VRB_CM_REP:
		parse_rep(b, c);
		break;
	case VRB_CM_MRA:
		c->about = b[8] >> 6;
		c->service_timeout = b[9] >> 3;
		break;
	case VRB_CM_REJ:
		c->about = b[8] >> 6;
		c->info_len = b[9] >> 1;
		c->info = b + INFO;
		c->reason = vrb_get_be16(b + 10);
		break;
	case VRB_CM_DREQ:
		c->qpn = vrb_get_be24(b + 8);
		break;
	case VRB_CM_SIDR_REQ:
		c->pkey = vrb_get_be16(b + 4);
		c->service_id = vrb_get_be64(b + 8);
		break;
	case VRB_CM_SIDR_REP:
		parse_sidr_rep(b, c);
		break;
	case VRB_CM_RTU:
	case VRB_CM_DREP:
	case VRB_CM_LAP:
	case VRB_CM_APR:
		break;
	}
	/* a peer may say more than there is */
	if (c->info_len > INFO_MAX)
		c->info_len = INFO_MAX;
}

static enum vrb_verdict refuse(const uint8_t *b, size_t len, enum vrb_verdict v,
			       struct vrb_report *why)
{
	if (!why)
		return v;
	*why = (struct vrb_report){.verdict = v, .val = {len}};
	if (v == VRB_V_DROP_CM_KIND)
		why->val[0] = vrb_get_be16(b + VRB_MAD_AT_ATTRIBUTE);
	for (size_t i = 0; v == VRB_V_DROP_MAD && i <= AT_METHOD && i < len; i++)
		why->val[1 + i] = b[i];
	return v;
}

enum vrb_verdict vrb_cm_parse(const uint8_t *bytes, size_t len, struct vrb_cm *out,
			      struct vrb_report *why)
{
	const uint8_t *body = bytes + VRB_MAD_HEADER_LEN;
	uint32_t kind, room;

	if (len != VRB_MAD_LEN || bytes[0] != BASE_VERSION || bytes[1] != CLASS ||
	    bytes[2] != CLASS_VERSION || bytes[AT_METHOD] != METHOD_SEND)
		return refuse(bytes, len, VRB_V_DROP_MAD, why);
	kind = vrb_get_be16(bytes + VRB_MAD_AT_ATTRIBUTE);
	room = vrb_cm_data_max(kind);
	if (!room)
		return refuse(bytes, len, VRB_V_DROP_CM_KIND, why);
	memset(out, 0, sizeof(*out));
	out->kind = (enum vrb_cm_kind)kind;
	out->tid = vrb_get_be64(bytes + AT_TID);
	out->local_id = vrb_get_be32(body);
	if (!vrb_cm_asks(out->kind))
		out->remote_id = vrb_get_be32(body + 4);
	out->data = body + kinds[kind].data_at;
	out->data_len = room;
	parse_body(body, out);
	return VRB_OK;
}

/* ---- emit */

static void emit_path(const struct vrb_cm_path *p, uint8_t *b)
{
	vrb_put_be16(b, p->local_lid);
	vrb_put_be16(b + 2, p->remote_lid);
	memcpy(b + 4, p->local.raw, sizeof(p->local.raw));
	memcpy(b + 20, p->remote.raw, sizeof(p->remote.raw));
	vrb_put_be24(b + 36, p->flow_label << 4);
	b[39] = p->rate & 0x3f;
	b[40] = p->tclass;
	b[41] = p->hop_limit;
	b[42] = (uint8_t)(p->sl << 4 | p->subnet_local << 3);
	b[43] = (uint8_t)(p->ack_timeout << 3);
}

static void emit_req(const struct vrb_cm *c, uint8_t *b)
{
	vrb_put_be64(b + 8, c->service_id);
	vrb_put_be64(b + 16, c->guid);
	vrb_put_be32(b + 28, c->qkey);
	vrb_put_be24(b + 32, c->qpn);
	b[35] = c->resources;
	b[39] = c->depth;
	b[43] = (uint8_t)(c->remote_timeout << 3 | (c->transport & 3) << 1 | c->flow_control);
	vrb_put_be24(b + 44, c->psn.v);
	b[47] = (uint8_t)(c->local_timeout << 3 | (c->retry & 7));
	vrb_put_be16(b + 48, c->pkey);
	b[50] = (uint8_t)(c->mtu << 4 | (c->rnr_retry & 7));
	b[51] = (uint8_t)(c->max_retries << 4 | c->srq << 3 | (c->ext_transport & 7));
	emit_path(&c->path, b + PATH);
	emit_path(&c->alternate, b + PATH_ALTERNATE);
}

static void emit_rep(const struct vrb_cm *c, uint8_t *b)
{
	vrb_put_be32(b + 8, c->qkey);
	vrb_put_be24(b + 12, c->qpn);
	vrb_put_be24(b + 20, c->psn.v);
	b[24] = c->resources;
	b[25] = c->depth;
	b[26] = (uint8_t)(c->ack_delay << 3 | (c->failover & 3) << 1 | c->flow_control);
	b[27] = (uint8_t)(c->rnr_retry << 5 | c->srq << 4);
	vrb_put_be64(b + 28, c->guid);
}

static void emit_sidr_rep(const struct vrb_cm *c, uint8_t *b)
{
	b[4] = c->status;
	b[5] = c->info_len;
	vrb_put_be24(b + 8, c->qpn);
	vrb_put_be64(b + 12, c->service_id);
	vrb_put_be32(b + 20, c->qkey);
	if (c->info_len)
		memcpy(b + 24, c->info, c->info_len);
}

static void emit_rej(const struct vrb_cm *c, uint8_t *b)
{
	b[8] = (uint8_t)(c->about << 6);
	b[9] = (uint8_t)(c->info_len << 1);
	vrb_put_be16(b + 10, c->reason);
	if (c->info_len)
		memcpy(b + INFO, c->info, c->info_len);
}

static void emit_body(const struct vrb_cm *c, uint8_t *b)
{
	vrb_put_be32(b, c->kind == VRB_CM_SIDR_REP ? c->remote_id : c->local_id);
	if (!vrb_cm_asks(c->kind) && c->kind != VRB_CM_SIDR_REP)
		vrb_put_be32(b + 4, c->remote_id);
	switch (c->kind) {
	case VRB_CM_REQ:
		emit_req(c, b);
		break;
	case VRB_CM_REP:
		emit_rep(c, b);
		break;
	case VRB_CM_MRA:
		b[8] = (uint8_t)(c->about << 6);
		b[9] = (uint8_t)(c->service_timeout << 3);
		break;
	case VRB_CM_REJ:
		emit_rej(c, b);
		break;
	case VRB_CM_DREQ:
		vrb_put_be24(b + 8, c->qpn);
		break;
	case VRB_CM_SIDR_REQ:
		vrb_put_be16(b + 4, c->pkey);
		vrb_put_be64(b + 8, c->service_id);
		break;
	case VRB_CM_SIDR_REP:
		emit_sidr_rep(c, b);
		break;
	case VRB_CM_RTU:
	case VRB_CM_DREP:
	case VRB_CM_LAP:
	case VRB_CM_APR:
		break;
	}
}

bool vrb_cm_emit(const struct vrb_cm *cm, uint8_t out[VRB_MAD_LEN])
{
	uint8_t *body = out + VRB_MAD_HEADER_LEN;
	uint32_t room = vrb_cm_data_max(cm->kind);

	if (!room || cm->data_len > room || cm->info_len > INFO_MAX)
		return false;
	memset(out, 0, VRB_MAD_LEN);
	out[0] = BASE_VERSION;
	out[1] = CLASS;
	out[2] = CLASS_VERSION;
	out[AT_METHOD] = METHOD_SEND;
	vrb_put_be64(out + AT_TID, cm->tid);
	vrb_put_be16(out + VRB_MAD_AT_ATTRIBUTE, cm->kind);
	emit_body(cm, body);
	if (cm->data_len)
		memcpy(body + kinds[cm->kind].data_at, cm->data, cm->data_len);
	return true;
}

/* ---- answers */

bool vrb_cm_refuse_service(const struct vrb_cm *cm, struct vrb_cm *answer)
{
	*answer = (struct vrb_cm){.tid = cm->tid, .remote_id = cm->local_id};
	if (cm->kind == VRB_CM_REQ) {
		/* IBA 12.6.7: who has made no connection has no communication id */
		answer->kind = VRB_CM_REJ;
		answer->about = VRB_CM_ABOUT_REQ;
		answer->reason = VRB_CM_REJ_SERVICE_ID;
		return true;
	}
	/* IBA 12.11 */
	answer->kind = VRB_CM_SIDR_REP;
	answer->status = VRB_CM_SIDR_NO_SERVICE;
	answer->service_id = cm->service_id;
	return cm->kind == VRB_CM_SIDR_REQ;
}
