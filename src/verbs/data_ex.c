/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ibv_wr_ builders. Between wr_start and wr_complete requests are written into the send queue
 * behind its tail, without the engine's lock (user code runs in between); wr_complete posts them
 * all or none. A batch lock keeps two threads from building on one queue pair at a time; mixing
 * builders and ibv_post_send from two threads on one queue pair is the application's to avoid.
 */
#include "verbs/verbs.h"

#include "hca/data.h"
#include "rules/post.h"
#include "verbs/ret.h"

static void fail(struct vv_qp *qp, struct vrb_report *r)
{
	r->qpn = qp->h->core.qpn;
	if (!qp->batch.err)
		qp->batch.err = vv_reason(r);
	qp->batch.cur = NULL;
}

static void start(struct ibv_qp_ex *ex)
{
	struct vv_qp *qp = vv_qp_ex(ex);

	while (atomic_exchange_explicit(&qp->batch.lock, 1, memory_order_acquire))
		sched_yield();
	qp->batch.n = 0;
	qp->batch.err = 0;
	qp->batch.cur = NULL;
}

/* The last request built is complete: check what only now is known. */
static void close_request(struct vv_qp *qp)
{
	struct vrb_swqe *w = qp->batch.cur;
	struct vrb_report r;
	uint64_t limit = qp->h->core.type == VRB_QPT_UD ? VRB_UD_MTU : VRB_MAX_MSG;

	if (w && vrb_post_length(w->len, limit, &r) != VRB_OK)
		fail(qp, &r);
	if (w && qp->h->core.type == VRB_QPT_UD && vrb_post_ah(w->ud.av, &r) != VRB_OK)
		fail(qp, &r);
	qp->batch.cur = NULL;
}

static struct vrb_swqe *begin(struct ibv_qp_ex *ex, enum vrb_wr_op op)
{
	struct vv_qp *qp = vv_qp_ex(ex);
	struct vrb_qp *c = &qp->h->core;
	struct vrb_swqe *w;
	struct vrb_report r;
	uint32_t used = vrb_qp_sq_used(c) + qp->batch.n;

	close_request(qp);
	if (qp->batch.err)
		return NULL;
	if (vrb_post_not_foreign(qp->h->e->foreign, &r) != VRB_OK ||
	    vrb_post_send_state(&vv_posting, c->state, &r) != VRB_OK ||
	    vrb_post_sq_room(used, c->sq.cap, c->unsignaled_run, &r) != VRB_OK ||
	    vrb_post_opcode(op, c->type, &r) != VRB_OK) {
		fail(qp, &r);
		return NULL;
	}
	w = vrb_hqp_swqe(qp->h, qp->batch.n++);
	memset(w, 0, VRB_SWQE_HEADER);
	w->wr_id = ex->wr_id;
	w->op = (uint8_t)op;
	w->flags = (uint8_t)((ex->wr_flags & 0x7) | (qp->sig_all ? VRB_WRF_SIGNALED : 0));
	c->unsignaled_run = w->flags & VRB_WRF_SIGNALED ? 0 : c->unsignaled_run + 1;
	qp->batch.cur = w;
	return w;
}

static void set_remote(struct vrb_swqe *w, uint32_t rkey, uint64_t va)
{
	if (!w)
		return;
	w->rkey = rkey;
	w->va = va;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, VRB_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct vrb_swqe *w = begin(ex, VRB_WR_SEND_IMM);

	if (w)
		w->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct vrb_swqe *w = begin(ex, VRB_WR_SEND_INV);

	if (w)
		w->imm = rkey;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va)
{
	set_remote(begin(ex, VRB_WR_WRITE), rkey, va);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va, __be32 imm)
{
	struct vrb_swqe *w = begin(ex, VRB_WR_WRITE_IMM);

	set_remote(w, rkey, va);
	if (w)
		w->imm = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va)
{
	set_remote(begin(ex, VRB_WR_READ), rkey, va);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va, uint64_t compare,
			      uint64_t swap)
{
	struct vrb_swqe *w = begin(ex, VRB_WR_CMP_SWAP);

	set_remote(w, rkey, va);
	if (w) {
		w->atomic.compare = compare;
		w->atomic.swap_add = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va, uint64_t add)
{
	struct vrb_swqe *w = begin(ex, VRB_WR_FETCH_ADD);

	set_remote(w, rkey, va);
	if (w)
		w->atomic.swap_add = add;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct vrb_swqe *w = begin(ex, VRB_WR_LOCAL_INV);

	if (w)
		w->imm = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *ibmw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct vv_qp *qp = vv_qp_ex(ex);
	struct vrb_swqe *w = begin(ex, VRB_WR_BIND_MW);
	struct vrb_report r;

	if (!w)
		return;
	w->rkey = rkey;
	if (vv_bind_fill(qp, w, ibmw, info, &r) != VRB_OK)
		fail(qp, &r);
}

static void set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct vrb_swqe *w = vv_qp_ex(ex)->batch.cur;

	if (!w)
		return;
	w->n_sge = 1;
	w->len = length;
	w->sge[0] = (struct vrb_sge){.addr = addr, .len = length, .lkey = lkey};
}

static void set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct vv_qp *qp = vv_qp_ex(ex);
	struct vrb_swqe *w = qp->batch.cur;
	struct vrb_report r;
	uint64_t len = 0;

	if (!w)
		return;
	if (vrb_post_num_sge(n > INT32_MAX ? INT32_MAX : (int)n, qp->h->core.sq.max_sge, &r) !=
	    VRB_OK) {
		fail(qp, &r);
		return;
	}
	for (size_t i = 0; i < n; i++)
		len += list[i].length;
	if (vrb_post_length(len, VRB_MAX_MSG, &r) != VRB_OK) {
		fail(qp, &r);
		return;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(&w->sge[i], &list[i], sizeof(*list));
	w->n_sge = (uint8_t)n;
	w->len = (uint32_t)len;
}

static void set_inline_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct vv_qp *qp = vv_qp_ex(ex);
	struct vrb_swqe *w = qp->batch.cur;
	struct vrb_report r;
	uint64_t len = 0;

	if (!w)
		return;
	for (size_t i = 0; i < n; i++)
		len += list[i].length;
	if (vrb_post_inline(w->op, len, qp->h->core.max_inline, &r) != VRB_OK) {
		fail(qp, &r);
		return;
	}
	w->flags |= VRB_WRF_INLINE;
	w->n_sge = 0;
	w->len = 0;
	for (size_t i = 0; i < n; i++) {
		memcpy(w->data + w->len, list[i].addr, list[i].length);
		w->len += (uint32_t)list[i].length;
	}
}

static void set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf one = {.addr = addr, .length = length};

	set_inline_list(ex, 1, &one);
}

static void set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct vv_qp *qp = vv_qp_ex(ex);
	struct vrb_swqe *w = qp->batch.cur;

	if (!w)
		return;
	w->ud.av = ah && vv_ah(ah)->av.pd == qp->h->core.pd ? &vv_ah(ah)->av : NULL;
	w->ud.qpn = qpn;
	w->ud.qkey = qkey;
}

static int complete(struct ibv_qp_ex *ex)
{
	struct vv_qp *qp = vv_qp_ex(ex);
	int err;

	close_request(qp);
	err = qp->batch.err;
	if (!err && qp->batch.n) {
		vrb_engine_lock(qp->h->e);
		vrb_hqp_commit(qp->h, qp->batch.n);
		vrb_engine_unlock(qp->h->e);
	}
	qp->batch.n = 0;
	atomic_store_explicit(&qp->batch.lock, 0, memory_order_release);
	return err;
}

static void abort_batch(struct ibv_qp_ex *ex)
{
	struct vv_qp *qp = vv_qp_ex(ex);

	qp->batch.n = 0;
	qp->batch.cur = NULL;
	atomic_store_explicit(&qp->batch.lock, 0, memory_order_release);
}

void vv_qp_ex_init(struct vv_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_start = start;
	ex->wr_complete = complete;
	ex->wr_abort = abort_batch;
	ex->wr_set_sge = set_sge;
	ex->wr_set_sge_list = set_sge_list;
	ex->wr_set_inline_data = set_inline;
	ex->wr_set_inline_data_list = set_inline_list;
	ex->wr_set_ud_addr = set_ud_addr;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
}
