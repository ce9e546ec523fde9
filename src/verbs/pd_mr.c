/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and memory regions. All ways to register (ibv_reg_mr, _iova, _iova2) meet in
 * one function. Optional access flags and on-demand paging are hints here: memory is reached by
 * address in this process, nothing is pinned or mapped for a device.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <stdlib.h>

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	int err = vv_count_in(context, VRB_OBJ_PD);
	struct vv_pd *p = err ? NULL : calloc(1, sizeof(*p));

	if (err)
		return vv_null(err);
	err = p ? vrb_hpd_alloc(vv_context(context)->h, &p->h) : ENOMEM;
	if (err) {
		vv_count_out(context, VRB_OBJ_PD);
		free(p);
		return vv_null(err);
	}
	p->pd.context = context;
	p->pd.handle = p->h->id;
	return &p->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct vv_pd *p = vv_pd(pd);
	bool foreign = vrb_hctx_is_foreign(vv_context(pd->context)->h);
	struct vrb_report r;
	int err;

	if (!foreign && vrb_rules_destroy(VRB_OBJ_PD, p->h->refs, &r) != VRB_OK)
		return vv_refuse(&r);
	err = vrb_hpd_dealloc(p->h);
	if (err && !foreign)
		return vv_ret(err);
	vv_count_out(pd->context, VRB_OBJ_PD);
	free(p);
	return 0;
}

struct reg {
	void *addr;
	size_t length;
	uint64_t iova;
	uint32_t access;
	void *caller; /* where the call returns to */
};

static void show(struct vv_mr *m, struct ibv_pd *pd, const struct reg *a)
{
	m->mr.context = pd->context;
	m->mr.pd = pd;
	m->mr.addr = a->addr;
	m->mr.length = a->length;
	m->mr.handle = m->h->lkey >> 8;
	m->mr.lkey = m->h->lkey;
	m->mr.rkey = m->h->rkey;
}

/* The range or its rights are not there: says so. */
static int refuse_range(const struct reg *a)
{
	struct vrb_report r = {.verdict = VRB_V_REG_RANGE, .val = {(uintptr_t)a->addr, a->length}};

	vrb_hca_refuse(&r);
	return EFAULT;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, const struct reg *a)
{
	struct vv_mr *m;
	struct vrb_report r;
	int err;

	if (vrb_rules_reg_mr((uintptr_t)a->addr, a->length, a->access, &r) != VRB_OK ||
	    vrb_rules_mr_size(a->length, vv_max_mr_size(), &r) != VRB_OK)
		return vv_null(vv_reason(&r));
	err = vv_count_in(pd->context, VRB_OBJ_MR);
	if (err)
		return vv_null(err);
	m = calloc(1, sizeof(*m));
	err = m ? vrb_hmr_reg(vv_pd(pd)->h, a->addr, a->length, a->iova, a->access & 0xff, &m->h)
		: ENOMEM;
	if (err) {
		vv_count_out(pd->context, VRB_OBJ_MR);
		free(m);
		return vv_null(err == -EFAULT ? refuse_range(a) : err);
	}
	vrb_poke(&m->h->caller, (uint64_t)(uintptr_t)a->caller);
	show(m, pd, a);
	return &m->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct reg a = {addr, length, (uintptr_t)addr, (uint32_t)access,
			__builtin_return_address(0)};

	return reg_mr(pd, &a);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	struct reg a = {addr, length, iova, (uint32_t)access, __builtin_return_address(0)};

	return reg_mr(pd, &a);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct reg a = {addr, length, iova, access, __builtin_return_address(0)};

	return reg_mr(pd, &a);
}

/* Which arguments count is said by flags; the new values are checked as at registration. */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct vv_mr *m = vv_mr(mr);
	bool move = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct reg a = {
		.addr = move ? addr : mr->addr,
		.length = move ? length : mr->length,
		.access = flags & IBV_REREG_MR_CHANGE_ACCESS ? (uint32_t)access : m->h->access,
	};
	struct ibv_pd *to = flags & IBV_REREG_MR_CHANGE_PD ? pd : mr->pd;
	struct vrb_report r;
	int err;

	if (vrb_rules_defined(VRB_OA_ATTR_MASK, (uint32_t)flags, IBV_REREG_MR_FLAGS_SUPPORTED,
			      &r) != VRB_OK) {
		errno = vv_reason(&r);
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (!to || to->context != mr->context || (move && (!addr || !length))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (vrb_rules_reg_mr((uintptr_t)a.addr, a.length, a.access, &r) != VRB_OK ||
	    vrb_rules_mr_size(a.length, vv_max_mr_size(), &r) != VRB_OK) {
		errno = vv_reason(&r);
		return IBV_REREG_MR_ERR_INPUT;
	}
	err = vrb_hmr_rereg(m->h, flags & IBV_REREG_MR_CHANGE_PD ? vv_pd(to)->h : NULL,
			    move ? addr : NULL, length,
			    flags & IBV_REREG_MR_CHANGE_ACCESS ? a.access & 0xff : UINT32_MAX);
	if (err) {
		errno = err == -EFAULT ? refuse_range(&a) : err == -EDQUOT ? ENOMEM : -err;
		/* out of keys: the old ones are gone too */
		return err == -ENOMEM ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT;
	}
	show(m, to, &a);
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct vv_mr *m = vv_mr(mr);
	bool foreign = vrb_hctx_is_foreign(vv_context(mr->context)->h);
	struct vrb_report r = {.verdict = VRB_V_BUSY, .val = {VRB_OBJ_MR, 1}};
	int err = vrb_hmr_dereg(m->h);

	if (err == -EBUSY)
		return vv_refuse(&r);
	if (err && !foreign)
		return vv_ret(err);
	vv_count_out(mr->context, VRB_OBJ_MR);
	free(m);
	return 0;
}
