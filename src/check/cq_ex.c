/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended CQs: ibv_start_poll and its readers go through functions in the CQ itself. There a read
 * of a field that a failed completion does not have can be seen.
 */
#include "check/check.h"

static struct vrb_chk_cq *cq_of(struct ibv_cq_ex *ex)
{
	return vrb_chk_find(&vrb_chk_cqs, ibv_cq_ex_to_cq(ex));
}

static void seen(struct vrb_chk_cq *c, struct ibv_cq_ex *ex)
{
	struct ibv_wc wc = {.wr_id = ex->wr_id, .status = ex->status};

	if (vrb_chk_off() || !c->ex.read_qp_num)
		return;
	vrb_chk_depth++;
	wc.qp_num = c->ex.read_qp_num(ex);
	wc.opcode = c->ex.read_opcode(ex);
	vrb_chk_completion(c, &wc);
	vrb_chk_depth--;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vrb_chk_cq *c = cq_of(ex);
	int err = c->ex.start_poll(ex, attr);

	vrb_chk_cq_polled(c, !err);
	if (!err)
		seen(c, ex);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct vrb_chk_cq *c = cq_of(ex);
	int err = c->ex.next_poll(ex);

	if (!err)
		seen(c, ex);
	return err;
}

enum field { OPCODE, BYTE_LEN, IMM_DATA, SRC_QP, WC_FLAGS, SLID, SL, PATH_BITS };

static struct vrb_chk_cq *reading(struct ibv_cq_ex *ex, enum field f)
{
	if (vrb_unlikely(ex->status != IBV_WC_SUCCESS) && !vrb_chk_off())
		VRB_CHK_NOTE("ibv_wc_read_*", 0, VRB_V_WC_INVALID_FIELD, f, ex->status, 0);
	return cq_of(ex);
}

#define READER(type, name, field)                                                                  \
	static type name(struct ibv_cq_ex *ex)                                                     \
	{                                                                                          \
		return reading(ex, field)->ex.name(ex);                                            \
	}
READER(enum ibv_wc_opcode, read_opcode, OPCODE)
READER(uint32_t, read_byte_len, BYTE_LEN)
READER(__be32, read_imm_data, IMM_DATA)
READER(uint32_t, read_src_qp, SRC_QP)
READER(unsigned int, read_wc_flags, WC_FLAGS)
READER(uint32_t, read_slid, SLID)
READER(uint8_t, read_sl, SL)
READER(uint8_t, read_dlid_path_bits, PATH_BITS)

#define HOOK(slot)                                                                                 \
	do {                                                                                       \
		if (ex->slot)                                                                      \
			ex->slot = slot;                                                           \
	} while (0)

void vrb_chk_cq_ex_hook(struct vrb_chk_cq *c)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)c->ibv;

	c->ex = *ex;
	c->is_ex = true;
	HOOK(start_poll);
	HOOK(next_poll);
	HOOK(read_opcode);
	HOOK(read_byte_len);
	HOOK(read_imm_data);
	HOOK(read_src_qp);
	HOOK(read_wc_flags);
	HOOK(read_slid);
	HOOK(read_sl);
	HOOK(read_dlid_path_bits);
}
