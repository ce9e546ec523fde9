/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of names, one per kind. They are what a programmer wrote: words of verbs.h where it has
 * one. */
#include "base/names.h"

#include "base/verdict.h"

struct names {
	char kind;
	uint32_t n;
	const char *const *name;
};

static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

static const char *const types[] = {
	NULL, NULL, "RC", "UC", "UD", NULL, NULL, NULL, "RAW_PACKET", "XRC_SEND", "XRC_RECV",
};

static const char *const opcodes[] = {
	"RDMA_WRITE",
	"RDMA_WRITE_WITH_IMM",
	"SEND",
	"SEND_WITH_IMM",
	"RDMA_READ",
	"ATOMIC_CMP_AND_SWP",
	"ATOMIC_FETCH_AND_ADD",
	"LOCAL_INV",
	"BIND_MW",
	"SEND_WITH_INV",
	"TSO",
	"DRIVER1",
};

static const char *const objects[] = {
	"context",	    "protection domain",    "memory region",
	"memory window",    "address handle",	    "completion channel",
	"completion queue", "shared receive queue", "queue pair",
	"thread",
};

static const char *const attributes[] = {
	"cap.max_send_wr",
	"cap.max_recv_wr",
	"cap.max_send_sge",
	"cap.max_recv_sge",
	"cap.max_inline_data",
	"cqe",
	"comp_vector",
	"max_wr",
	"max_sge",
	"srq_limit",
	"comp_mask",
	"create_flags",
	"send_ops_flags",
	"wc_flags",
	"srq_type",
	"type",
	"attr_mask",
	"length",
};

static const char *const verbs[] = {
	"ibv_import_device",
	"ibv_import_pd",
	"ibv_import_mr",
	"ibv_import_dm",
	"ibv_reg_dmabuf_mr",
	"ibv_set_ece with options",
	"XRC",
	"this option",
};

static const char *const bind_reasons[] = {
	NULL,
	"window, region and QP are not of one protection domain",
	"the region lacks IBV_ACCESS_MW_BIND",
	"ibv_bind_mw takes type 1 windows, a work request type 2",
	"the range is not inside the region, or empty",
	"access that the region does not have, or unknown bits",
	"the region is zero-based",
};

static const char *const queues[] = {"send", "receive"};

static const char *const wc_fields[] = {
	"opcode",
	"byte_len",
	"imm_data",
	"src_qp",
	"wc_flags",
	"slid",
	"sl",
	"dlid_path_bits",
	"completion_ts",
	"cvlan",
	"completion_wallclock",
};

static const char *const mask_bits[] = {
	"IBV_QP_STATE",
	"IBV_QP_CUR_STATE",
	"IBV_QP_EN_SQD_ASYNC_NOTIFY",
	"IBV_QP_ACCESS_FLAGS",
	"IBV_QP_PKEY_INDEX",
	"IBV_QP_PORT",
	"IBV_QP_QKEY",
	"IBV_QP_AV",
	"IBV_QP_PATH_MTU",
	"IBV_QP_TIMEOUT",
	"IBV_QP_RETRY_CNT",
	"IBV_QP_RNR_RETRY",
	"IBV_QP_RQ_PSN",
	"IBV_QP_MAX_QP_RD_ATOMIC",
	"IBV_QP_ALT_PATH",
	"IBV_QP_MIN_RNR_TIMER",
	"IBV_QP_SQ_PSN",
	"IBV_QP_MAX_DEST_RD_ATOMIC",
	"IBV_QP_PATH_MIG_STATE",
	"IBV_QP_CAP",
	"IBV_QP_DEST_QPN",
	[25] = "IBV_QP_RATE_LIMIT",
};

static const char *const naks[] = {
	"NAK: PSN sequence error",	 "NAK: invalid request",    "NAK: remote access error",
	"NAK: remote operational error", "NAK: invalid RD request",
};

/* IBA 12.6: by attribute id */
static const char *const cm_kinds[] = {
	[0x10] = "REQ",	     [0x11] = "MRA",  [0x12] = "REJ",  [0x13] = "REP",
	[0x14] = "RTU",	     [0x15] = "DREQ", [0x16] = "DREP", [0x17] = "SIDR_REQ",
	[0x18] = "SIDR_REP", [0x19] = "LAP",  [0x1a] = "APR",
};

#define N(a) (uint32_t)(sizeof(a) / sizeof((a)[0])), a

static const struct names kinds[] = {
	{'s', N(states)},     {'t', N(types)},	  {'o', N(opcodes)},	  {'b', N(objects)},
	{'a', N(attributes)}, {'v', N(verbs)},	  {'w', N(bind_reasons)}, {'q', N(queues)},
	{'f', N(wc_fields)},  {'c', N(cm_kinds)},
};

static void put_mask(struct vrb_text *t, uint64_t mask, vrb_translate tr)
{
	const char *between = "";

	(void)tr; /* words of verbs.h */
	for (uint32_t i = 0; i < sizeof(mask_bits) / sizeof(mask_bits[0]); i++) {
		if (!(mask >> i & 1) || !mask_bits[i])
			continue;
		vrb_text_str(t, between);
		vrb_text_str(t, mask_bits[i]);
		between = " | ";
		mask &= ~(1ull << i);
	}
	if (!mask && *between)
		return;
	vrb_text_str(t, between);
	vrb_text_hex(t, mask, 1);
}

/* IBA table 44: the upper three bits say which kind, the lower five which one. */
static void put_syndrome(struct vrb_text *t, uint64_t v, vrb_translate tr)
{
	uint64_t code = v & 0x1f;

	if (v >> 5 == 1) {
		vrb_text_str(t, tr(VRB_TR("RNR NAK, timer code ")));
		vrb_text_dec(t, code);
	} else if (v >> 5 == 3 && code < sizeof(naks) / sizeof(naks[0])) {
		vrb_text_str(t, tr(naks[code]));
	} else {
		vrb_text_str(t, tr(VRB_TR("AETH syndrome ")));
		vrb_text_hex(t, v, 1);
	}
}

static void put_verdict(struct vrb_text *t, uint64_t v, vrb_translate tr)
{
	vrb_text_str(t, v && v < VRB_N_VERDICTS ? vrb_verdict_info((enum vrb_verdict)v)->counter
						: tr(VRB_TR("not known here")));
}

bool vrb_name_put_in(struct vrb_text *t, char kind, uint64_t v, vrb_translate tr)
{
	static const struct {
		char kind;
		void (*put)(struct vrb_text *t, uint64_t v, vrb_translate tr);
	} special[] = {{'m', put_mask}, {'n', put_syndrome}, {'r', put_verdict}};

	for (unsigned i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (special[i].kind != kind)
			continue;
		special[i].put(t, v, tr);
		return true;
	}
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].kind != kind)
			continue;
		if (v < kinds[i].n && kinds[i].name[v])
			vrb_text_str(t, tr(kinds[i].name[v]));
		else
			vrb_text_dec(t, v);
		return true;
	}
	return false;
}

bool vrb_name_put(struct vrb_text *t, char kind, uint64_t v)
{
	return vrb_name_put_in(t, kind, v, vrb_translate_none);
}
