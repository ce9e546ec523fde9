/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: their keys for the data path, their places for those who misuse a key, and the
 * moment when one goes away while it is in use.
 */
#include "check/check.h"

#include <errno.h>
#include <sys/resource.h>

struct vrb_chk_table vrb_chk_mrs = VRB_CHK_TABLE(struct vrb_chk_mr);
struct vrb_chk_table vrb_chk_regions = VRB_CHK_TABLE(struct vrb_chk_region);
struct vrb_chk_table vrb_chk_stales = VRB_CHK_TABLE(struct vrb_chk_stale);
struct vrb_chk_table vrb_chk_rkeys = VRB_CHK_TABLE(struct vrb_chk_ref);

#define STALES_MAX 65536u /* keys that are remembered */
static _Atomic uint32_t n_stales;

static void region_add(struct vrb_chk_ctx *c, const struct ibv_mr *mr, const struct vrb_mem *mem)
{
	void *key = vrb_chk_key(c->id, mr->lkey);
	struct vrb_chk_region *m = vrb_chk_take(&vrb_chk_regions, key);
	struct vrb_chk_ref *ref = vrb_chk_take(&vrb_chk_rkeys, vrb_chk_key(c->id, mr->rkey));
	struct vrb_chk_stale *old = vrb_chk_find(&vrb_chk_stales, key);

	if (old) {
		vrb_chk_remove(old);
		atomic_fetch_sub(&n_stales, 1);
	}
	if (m) {
		m->mem = *mem;
		m->addr = (uintptr_t)mr->addr;
		m->lkey = mr->lkey;
		m->rkey = mr->rkey;
		m->ctx = c->id;
		vrb_chk_site_take(&m->obj.site);
		vrb_chk_publish(m, key);
		vrb_chk_memory_watch(m->addr, mem->len);
	}
	if (ref) {
		ref->to = m;
		vrb_chk_publish(ref, vrb_chk_key(c->id, mr->rkey));
	}
}

static void region_remove(struct vrb_chk_ctx *c, uint32_t lkey, uint32_t rkey)
{
	void *key = vrb_chk_key(c->id, lkey);
	struct vrb_chk_region *m = vrb_chk_find(&vrb_chk_regions, key);
	struct vrb_chk_ref *ref = vrb_chk_find(&vrb_chk_rkeys, vrb_chk_key(c->id, rkey));
	struct vrb_chk_stale *s = NULL;

	if (atomic_fetch_add(&n_stales, 1) < STALES_MAX)
		s = vrb_chk_take(&vrb_chk_stales, key);
	else
		atomic_fetch_sub(&n_stales, 1);
	if (ref)
		vrb_chk_remove(ref);
	if (s) {
		if (m)
			s->obj.site = m->obj.site;
		vrb_chk_site_take(&s->gone);
		vrb_chk_publish(s, key);
	}
	if (m)
		vrb_chk_remove(m);
}

static void mr_add(struct ibv_mr *mr, const struct vrb_mem *mem)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(mr->context);
	struct vrb_chk_mr *m = c ? vrb_chk_take(&vrb_chk_mrs, mr) : NULL;

	if (!m)
		return;
	m->ctx = c;
	m->lkey = mr->lkey;
	m->rkey = mr->rkey;
	vrb_chk_site_take(&m->obj.site);
	vrb_chk_publish(m, mr);
	region_add(c, mr, mem);
}

/* ---- refused registrations */

static uint64_t registered(void)
{
	struct vrb_chk_each e = {0};
	struct vrb_chk_region *m;
	uint64_t sum = 0;

	while ((m = vrb_chk_next(&vrb_chk_regions, &e)) != NULL)
		sum += m->mem.len;
	return sum;
}

static void reg_refused(const char *call, uint64_t addr, uint64_t len, uint32_t access)
{
	struct vrb_chk_finding f = {.call = call};
	struct rlimit lock = {RLIM_INFINITY, RLIM_INFINITY};
	int err = errno;

	if (vrb_rules_reg_mr(addr, len, access, &f.r) == VRB_OK) {
		getrlimit(RLIMIT_MEMLOCK, &lock);
		f.r = (struct vrb_report){.verdict = VRB_V_REFUSED, .val = {(uint64_t)err}};
		if (err == EFAULT)
			f.r = (struct vrb_report){.verdict = VRB_V_REG_RANGE, .val = {addr, len}};
		else if (err == ENOMEM && lock.rlim_cur != RLIM_INFINITY &&
			 registered() + len > lock.rlim_cur)
			f.r = (struct vrb_report){.verdict = VRB_V_REG_MEMLOCK,
						  .val = {len, registered(), lock.rlim_cur}};
	}
	vrb_chk_report(&f);
	errno = err;
}

struct ask {
	const char *call;
	struct ibv_pd *pd;
	uint64_t addr, len, iova;
	unsigned int access;
};

static struct ibv_mr *reg_done(const struct ask *a, struct ibv_mr *mr)
{
	struct vrb_mem mem = {
		.base = a->access & IBV_ACCESS_ZERO_BASED ? 0 : a->iova,
		.len = a->len,
		.access = a->access,
	};

	if (vrb_chk_off())
		return mr;
	mem.pd = vrb_chk_pd_id(a->pd);
	if (mr)
		mr_add(mr, &mem);
	else
		reg_refused(a->call, a->addr, a->len, a->access);
	return mr;
}

/* The real call is one of ours, or makes one. */
#define REG(call, real, addr, len, iova, access)                                                   \
	({                                                                                         \
		struct ask a_ = {call, pd, (uintptr_t)(addr), len, iova, (unsigned int)(access)};  \
		struct ibv_mr *mr_;                                                                \
                                                                                                   \
		vrb_chk_depth++;                                                                   \
		mr_ = real;                                                                        \
		vrb_chk_depth--;                                                                   \
		reg_done(&a_, mr_);                                                                \
	})

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return REG("ibv_reg_mr", VRB_REAL(ibv_reg_mr)(pd, addr, length, access), addr, length,
		   (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return REG("ibv_reg_mr_iova", VRB_REAL(ibv_reg_mr_iova)(pd, addr, length, iova, access),
		   addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return REG("ibv_reg_mr", VRB_REAL(ibv_reg_mr_iova2)(pd, addr, length, iova, access), addr,
		   length, iova, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	return REG("ibv_reg_dmabuf_mr",
		   VRB_REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access), iova, length,
		   iova, access);
}

struct ibv_mr *vrb_chk_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len,
				 unsigned int access)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(pd->context);

	return REG("ibv_reg_dm_mr", c->ext.reg_dm_mr(pd, dm, off, len, access), 0, len, 0, access);
}

/* Addresses of every kind are good in it. */
struct ibv_mr *vrb_chk_alloc_null_mr(struct ibv_pd *pd)
{
	struct vrb_chk_ctx *c = vrb_chk_ctx_of(pd->context);

	return REG("ibv_alloc_null_mr", c->ext.alloc_null_mr(pd), 0, UINT64_MAX, 0,
		   IBV_ACCESS_LOCAL_WRITE);
}

/* ---- the end of a region, or of what it was */

static void give_up(const char *call, const struct vrb_chk_mr *m)
{
	struct vrb_chk_region *g = vrb_chk_find(&vrb_chk_regions, vrb_chk_key(m->ctx->id, m->lkey));
	struct vrb_chk_flight f = {.lkey = m->lkey, .ctx = m->ctx->id};
	struct vrb_chk_finding what = {.call = call, .made_what = VRB_TR("region registered")};

	vrb_chk_flight_find(&f);
	if (!f.n)
		return;
	what.r = (struct vrb_report){
		.verdict = VRB_V_MR_IN_FLIGHT, .qpn = f.qpn, .val = {m->lkey, f.n, f.wr_id}};
	what.posted = f.pc;
	what.made = g ? &g->obj.site : NULL;
	vrb_chk_report(&what);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct vrb_chk_mr *m = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_mrs, mr);
	int err;

	if (!m)
		return VRB_REAL(ibv_dereg_mr)(mr);
	give_up("ibv_dereg_mr", m);
	/* Before the call: the keys may be another thread's region's right after it. */
	region_remove(m->ctx, m->lkey, m->rkey);
	vrb_chk_remove(m);
	vrb_chk_depth++;
	err = VRB_REAL(ibv_dereg_mr)(mr);
	vrb_chk_depth--;
	if (err)
		vrb_chk_refused("ibv_dereg_mr", 0, err);
	return err;
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct vrb_chk_mr *m = vrb_chk_off() ? NULL : vrb_chk_find(&vrb_chk_mrs, mr);
	struct vrb_chk_region *g =
		m ? vrb_chk_find(&vrb_chk_regions, vrb_chk_key(m->ctx->id, m->lkey)) : NULL;
	struct vrb_mem mem;
	int err;

	if (!g)
		return VRB_REAL(ibv_rereg_mr)(mr, flags, pd, addr, length, access);
	give_up("ibv_rereg_mr", m);
	mem = g->mem;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mem.base = (uintptr_t)addr;
		mem.len = length;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		mem.pd = vrb_chk_pd_id(pd);
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mem.access = (uint32_t)access;
	vrb_chk_depth++;
	err = VRB_REAL(ibv_rereg_mr)(mr, flags, pd, addr, length, access);
	vrb_chk_depth--;
	if (err)
		return err;
	region_remove(m->ctx, m->lkey, m->rkey);
	m->lkey = mr->lkey;
	m->rkey = mr->rkey;
	region_add(m->ctx, mr, &mem);
	return 0;
}
