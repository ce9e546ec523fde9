/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_wr_*: requests that are built between wr_start and wr_complete, by functions in the queue
 * pair itself. The lock is held from the one to the other. A request is whole, and looked at, when
 * its data has been set, or when the next one begins.
 */
#include "check/check.h"

static struct vrb_chk_qp *qp_of(struct ibv_qp_ex *ex)
{
	return vrb_chk_find(&vrb_chk_qps, &ex->qp_base);
}

/* Looks at the request being built, if there is one. */
static void finish(struct vrb_chk_qp *q)
{
	if (!q->batch.is_open)
		return;
	q->batch.is_open = false;
	vrb_chk_send_check(q, "ibv_wr_*", &q->batch.ask, q->batch.n++);
}

static void begin(struct vrb_chk_qp *q, const struct ibv_qp_ex *ex, uint32_t opcode, void *pc)
{
	finish(q);
	q->batch.ask = (struct vrb_chk_ask){.wr_id = ex->wr_id,
					    .opcode = opcode,
					    .is_signaled = ex->wr_flags & IBV_SEND_SIGNALED,
					    .pc = pc};
	q->batch.is_open = true;
}

static void target(struct vrb_chk_qp *q, uint64_t addr, uint32_t rkey)
{
	q->batch.ask.remote_addr = addr;
	q->batch.ask.rkey = rkey;
}

#define PC ((char *)__builtin_return_address(0) - 1)

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vrb_chk_qp *q = qp_of(ex);
	bool off;

	if (!vrb_chk_off())
		vrb_chk_count_post(q, true);
	off = vrb_chk_off();
	vrb_chk_lock(&q->lock);
	q->batch.n = 0;
	q->batch.is_open = false;
	if (!off)
		vrb_chk_check_state("ibv_wr_start", q, true);
	q->ex.wr_start(ex);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct vrb_chk_qp *q = qp_of(ex);
	int err;

	finish(q);
	err = q->ex.wr_complete(ex);
	if (!err)
		vrb_chk_send_commit(q, q->batch.n);
	vrb_chk_unlock(&q->lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct vrb_chk_qp *q = qp_of(ex);

	q->ex.wr_abort(ex);
	q->batch.is_open = false;
	vrb_chk_unlock(&q->lock);
}

/* ---- the operations */

static void wr_send(struct ibv_qp_ex *ex)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_SEND, PC);
	q->ex.wr_send(ex);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_SEND_WITH_IMM, PC);
	q->ex.wr_send_imm(ex, imm);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_SEND_WITH_INV, PC);
	q->ex.wr_send_inv(ex, rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_RDMA_READ, PC);
	target(q, addr, rkey);
	q->ex.wr_rdma_read(ex, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_RDMA_WRITE, PC);
	target(q, addr, rkey);
	q->ex.wr_rdma_write(ex, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_RDMA_WRITE_WITH_IMM, PC);
	target(q, addr, rkey);
	q->ex.wr_rdma_write_imm(ex, rkey, addr, imm);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
			      uint64_t swap)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_ATOMIC_CMP_AND_SWP, PC);
	target(q, addr, rkey);
	q->ex.wr_atomic_cmp_swp(ex, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_ATOMIC_FETCH_AND_ADD, PC);
	target(q, addr, rkey);
	q->ex.wr_atomic_fetch_add(ex, rkey, addr, add);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_BIND_MW, PC);
	q->ex.wr_bind_mw(ex, mw, rkey, info);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct vrb_chk_qp *q = qp_of(ex);

	begin(q, ex, IBV_WR_LOCAL_INV, PC);
	q->ex.wr_local_inv(ex, rkey);
}

/* ---- what the operation carries */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct vrb_chk_qp *q = qp_of(ex);

	q->batch.ask.ah = ah;
	q->ex.wr_set_ud_addr(ex, ah, qpn, qkey);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t len)
{
	struct vrb_chk_qp *q = qp_of(ex);

	q->batch.ask.is_inline = true;
	q->batch.ask.inline_len = len;
	q->ex.wr_set_inline_data(ex, addr, len);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct vrb_chk_qp *q = qp_of(ex);

	q->batch.ask.is_inline = true;
	for (size_t i = 0; i < n; i++)
		q->batch.ask.inline_len += list[i].length;
	q->ex.wr_set_inline_data_list(ex, n, list);
}

/* The list is the caller's for the time of this call only. */
static void set_sges(struct vrb_chk_qp *q, int n, const struct ibv_sge *list)
{
	struct vrb_chk_ask *a = &q->batch.ask;

	if (!q->batch.is_open)
		return;
	a->num_sge = n;
	a->sge = list;
	if (q->type != VRB_QPT_UD || a->ah) { /* a UD request is whole with its handle */
		finish(q);
		return;
	}
	a->num_sge = n < VRB_CHK_BATCH_SGES ? n : VRB_CHK_BATCH_SGES;
	for (int i = 0; i < a->num_sge; i++)
		q->batch.sge[i] = list[i];
	a->sge = q->batch.sge;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t len)
{
	struct vrb_chk_qp *q = qp_of(ex);
	struct ibv_sge s = {addr, len, lkey};

	set_sges(q, 1, &s);
	q->ex.wr_set_sge(ex, lkey, addr, len);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct vrb_chk_qp *q = qp_of(ex);

	set_sges(q, n > INT32_MAX ? INT32_MAX : (int)n, list);
	q->ex.wr_set_sge_list(ex, n, list);
}

#define HOOK(slot)                                                                                 \
	do {                                                                                       \
		if (ex->slot)                                                                      \
			ex->slot = slot;                                                           \
	} while (0)

void vrb_chk_qp_ex_hook(struct vrb_chk_qp *q, struct ibv_qp_ex *ex)
{
	q->ex = *ex;
	HOOK(wr_start);
	HOOK(wr_complete);
	HOOK(wr_abort);
	HOOK(wr_send);
	HOOK(wr_send_imm);
	HOOK(wr_send_inv);
	HOOK(wr_rdma_read);
	HOOK(wr_rdma_write);
	HOOK(wr_rdma_write_imm);
	HOOK(wr_atomic_cmp_swp);
	HOOK(wr_atomic_fetch_add);
	HOOK(wr_bind_mw);
	HOOK(wr_local_inv);
	HOOK(wr_set_ud_addr);
	HOOK(wr_set_inline_data);
	HOOK(wr_set_inline_data_list);
	HOOK(wr_set_sge);
	HOOK(wr_set_sge_list);
}
