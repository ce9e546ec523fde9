/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows. A type 1 window is bound by ibv_bind_mw, which posts a BIND_MW request with the
 * next rkey and shows the new rkey at once (ibv_bind_mw(3)); a type 2 window is bound by a request
 * of the program's own. The bind is checked when it is posted and done by the core.
 */
#include "verbs/verbs.h"

#include "hca/qp.h"
#include "rules/post.h"
#include "verbs/ret.h"

#include <stdlib.h>

struct ibv_mw *vv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vv_mw *w;
	struct vrb_report r = {.verdict = VRB_V_CREATE_INVALID, .val = {VRB_OA_MW_TYPE, type}};
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return vv_null(vv_reason(&r));
	w = calloc(1, sizeof(*w));
	if (!w)
		return vv_null(ENOMEM);
	err = vrb_hmw_alloc(vv_pd(pd)->h, type, &w->h);
	if (err) {
		free(w);
		return vv_null(err);
	}
	w->mw.context = pd->context;
	w->mw.pd = pd;
	w->mw.rkey = w->h->rkey;
	w->mw.handle = w->h->rkey >> 8;
	w->mw.type = type;
	return &w->mw;
}

enum vrb_verdict vv_bind_fill(const struct vv_qp *qp, struct vrb_swqe *w, struct ibv_mw *ibmw,
			      const struct ibv_mw_bind_info *info, struct vrb_report *r)
{
	const struct vv_mw *mw = vv_mw(ibmw);
	const struct vrb_hmr *mr = info->mr ? vv_mr(info->mr)->h : NULL;
	struct vrb_post_bind b = {.window_pd = mw->h->pd->id,
				  .qp_pd = qp->h->core.pd,
				  .window_type = mw->h->type,
				  .wanted_type = mw->by_verb ? 1 : 2,
				  .has_region = mr,
				  .addr = info->addr,
				  .len = info->length,
				  .access = info->mw_access_flags};

	if (mr) {
		b.region_pd = mr->pd->id;
		b.region_access = mr->access;
		b.region_addr = mr->iova;
		b.region_len = mr->len;
	}
	w->va = info->addr;
	w->bind.len = info->length;
	w->bind.access = info->mw_access_flags;
	w->bind.mr_lkey = mr ? mr->lkey : 0;
	return vrb_post_mw_bind(&b, r);
}

int vv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct vv_mw *w = vv_mw(mw);
	struct ibv_send_wr *bad, wr = {
					 .wr_id = bind->wr_id,
					 .opcode = IBV_WR_BIND_MW,
					 .send_flags = bind->send_flags,
				 };
	int err;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	w->by_verb = true;
	err = vv_post_send(qp, &wr, &bad);
	w->by_verb = false;
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

int vv_dealloc_mw(struct ibv_mw *mw)
{
	struct vv_mw *w = vv_mw(mw);
	bool foreign = vrb_hctx_is_foreign(vv_context(mw->context)->h);
	int err = vrb_hmw_dealloc(w->h);

	if (err && !foreign)
		return vv_ret(err);
	free(w);
	return 0;
}
