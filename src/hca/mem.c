/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, memory regions and windows. Registering touches the pages as a NIC's pinning
 * would: memory that does not exist, or cannot be written with LOCAL_WRITE, is refused here and not
 * found by a fault later. Removing a key happens under the engine's lock, and so does every access
 * through it: after dereg returned there is none.
 */
#include "hca/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEYS_FIRST    256u
#define POPULATE_STEP (1ull << 30)

void vrb_place_copy(void *dst, const void *src, size_t len)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (!len)
		return;
	/*
	 * Programs that wait for the last byte of a WRITE rely on it being stored last; one memcpy
	 * may store a misaligned tail early.
	 */
	memcpy(d, s, len - 1);
	atomic_signal_fence(memory_order_seq_cst);
	((volatile uint8_t *)d)[len - 1] = s[len - 1];
}

int vrb_hpd_alloc(struct vrb_hctx *ctx, struct vrb_hpd **out)
{
	struct vrb_hpd *pd;

	if (ctx->e->foreign)
		return -EIO;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	pd->ctx = ctx;
	vrb_engine_lock(ctx->e);
	pd->id = ++ctx->e->next_pd;
	vrb_engine_unlock(ctx->e);
	*out = pd;
	return 0;
}

int vrb_hpd_dealloc(struct vrb_hpd *pd)
{
	if (pd->refs && !pd->ctx->e->foreign)
		return -EBUSY;
	free(pd);
	return 0;
}

/* EINVAL of the populating calls means a kernel before 5.14, or memory without the permission: told
 * apart by trying a page of the stack. */
static bool can_populate(uint64_t page)
{
	return !madvise((void *)((uintptr_t)&page & ~(uintptr_t)(page - 1)), page,
			MADV_POPULATE_READ);
}

/* 0, or -EFAULT when a page is missing or not as accessible as asked. */
static int touch(uint64_t addr, uint64_t len, bool write)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = addr & ~(page - 1);
	uint64_t end = (addr + len + page - 1) & ~(page - 1);

	while (at < end) {
		uint64_t n = end - at < POPULATE_STEP ? end - at : POPULATE_STEP;

		if (madvise((void *)(uintptr_t)at, n,
			    write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ)) {
			if (errno == EINVAL && !can_populate(page))
				return 0;
			if (errno == EINTR || errno == EAGAIN)
				continue;
			return -EFAULT;
		}
		at += n;
	}
	return 0;
}

/*
 * At least n free entries; may allocate, so only at registration. The table lies in the exported
 * memory until it outgrows it. Lock held.
 */
static int need_keys(struct vrb_engine *e, uint32_t n)
{
	uint32_t size = e->keys.n ? e->keys.n * 2 : KEYS_FIRST;
	struct vrb_key *ent = e->export->key;

	if (e->keys.n_free >= n)
		return 0;
	if (size > VRB_KEYTAB_MAX)
		return -ENOMEM;
	if (size > VRB_EXPORT_KEYS) {
		ent = malloc(size * sizeof(*ent));
		if (!ent)
			return -ENOMEM;
		memcpy(ent, e->keys.ent, e->keys.n * sizeof(*ent));
		vrb_keys_close(e);
		vrb_keytab_grow(&e->keys, ent, size);
		return 0;
	}
	vrb_keytab_grow(&e->keys, ent, size);
	atomic_store_explicit(&e->export->n_keys, size, memory_order_release);
	return 0;
}

void vrb_keys_close(struct vrb_engine *e)
{
	if (e->export && e->keys.ent == e->export->key)
		atomic_store_explicit(&e->export->n_keys, 0, memory_order_release);
	else
		free(e->keys.ent);
}

/* Lock held. */
static int add_keys(struct vrb_hmr *mr)
{
	struct vrb_engine *e = mr->pd->ctx->e;
	struct vrb_key region = {.base = mr->iova,
				 .len = mr->len,
				 .host = mr->addr,
				 .pd = mr->pd->id,
				 .access = mr->access};
	uint64_t bytes = vrb_hca_pinned_bytes(mr->addr, mr->len);
	int err;

	if (!vrb_hca_may_pin(e, bytes))
		return -ENOMEM;
	err = need_keys(e, 2);
	if (err)
		return err;
	vrb_mr_add(&e->keys, &region, &mr->lkey, &mr->rkey);
	mr->pd->refs++;
	e->pinned += bytes;
	return 0;
}

int vrb_hmr_reg(struct vrb_hpd *pd, void *addr, uint64_t len, uint64_t iova, uint32_t access,
		struct vrb_hmr **out)
{
	struct vrb_engine *e = pd->ctx->e;
	struct vrb_hmr *mr;
	int err;

	if (e->foreign)
		return -EIO;
	err = touch((uintptr_t)addr, len, access & VRB_ACC_LOCAL_WRITE);
	if (err)
		return err;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	*mr = (struct vrb_hmr){.pd = pd,
			       .addr = (uintptr_t)addr,
			       .iova = access & VRB_ACC_ZERO_BASED ? 0 : iova,
			       .len = len,
			       .access = access};
	vrb_engine_lock(e);
	err = add_keys(mr);
	if (!err) {
		mr->made = vrb_clock_now();
		vrb_list_add_tail(&pd->ctx->mrs, &mr->node);
		pd->ctx->stats->mrs++;
	}
	vrb_engine_unlock(e);
	if (err) {
		free(mr);
		return err;
	}
	*out = mr;
	return 0;
}

int vrb_hmr_dereg(struct vrb_hmr *mr)
{
	struct vrb_engine *e = mr->pd->ctx->e;
	bool ok = true;

	if (!e->foreign) {
		vrb_engine_lock(e);
		ok = vrb_mr_del(&e->keys, mr->lkey);
		if (ok) {
			vrb_direct_wait(e);
			mr->pd->refs--;
			mr->pd->ctx->stats->mrs--;
			vrb_list_del(&mr->node);
			e->pinned -= vrb_hca_pinned_bytes(mr->addr, mr->len);
		}
		vrb_engine_unlock(e);
		if (!ok)
			return -EBUSY;
	}
	free(mr);
	return 0;
}

static bool may_repin(struct vrb_engine *e, const struct vrb_hmr *old, const struct vrb_hmr *new)
{
	uint64_t had = vrb_hca_pinned_bytes(old->addr, old->len);
	bool ok;

	e->pinned -= had;
	ok = vrb_hca_may_pin(e, vrb_hca_pinned_bytes(new->addr, new->len));
	e->pinned += had;
	return ok;
}

int vrb_hmr_rereg(struct vrb_hmr *mr, struct vrb_hpd *pd, void *addr, uint64_t len, uint32_t access)
{
	struct vrb_engine *e = mr->pd->ctx->e;
	struct vrb_hmr new = *mr;
	bool ok;
	int err;

	if (e->foreign)
		return -EIO;
	if (access != UINT32_MAX)
		new.access = access;
	if (addr) {
		new.addr = new.iova = (uintptr_t)addr;
		new.len = len;
	}
	if (pd)
		new.pd = pd;
	err = touch(new.addr, new.len, new.access &VRB_ACC_LOCAL_WRITE);
	if (err)
		return err;
	vrb_engine_lock(e);
	if (addr && !may_repin(e, mr, &new)) {
		vrb_engine_unlock(e);
		return -EDQUOT;
	}
	if (addr)
		ok = vrb_mr_del(&e->keys, mr->lkey);
	else /* the same memory: peers that hold the rkey may go on */
		ok = vrb_mr_change(&e->keys, mr->lkey, new.pd->id, new.access);
	if (ok) {
		vrb_direct_wait(e);
		mr->pd->refs--;
		if (addr)
			e->pinned -= vrb_hca_pinned_bytes(mr->addr, mr->len);
		new.node = mr->node; /* its neighbours may be others by now */
		*mr = new;
		if (addr)
			err = add_keys(mr); /* there is room: two were given back */
		else
			mr->pd->refs++;
	}
	vrb_engine_unlock(e);
	return ok ? err : -EBUSY;
}

int vrb_hmw_alloc(struct vrb_hpd *pd, uint32_t type, struct vrb_hmw **out)
{
	struct vrb_engine *e = pd->ctx->e;
	struct vrb_hmw *mw;
	int err;

	if (e->foreign)
		return -EIO;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->pd = pd;
	mw->type = type;
	vrb_engine_lock(e);
	err = need_keys(e, 1);
	if (!err) {
		mw->rkey = vrb_mw_add(&e->keys, pd->id, type == 1 ? VRB_KEY_MW1 : VRB_KEY_MW2);
		pd->refs++;
	}
	vrb_engine_unlock(e);
	if (err) {
		free(mw);
		return err;
	}
	*out = mw;
	return 0;
}

int vrb_hmw_dealloc(struct vrb_hmw *mw)
{
	struct vrb_engine *e = mw->pd->ctx->e;

	if (!e->foreign) {
		vrb_engine_lock(e);
		vrb_mw_del(&e->keys, mw->rkey);
		mw->pd->refs--;
		vrb_engine_unlock(e);
	}
	free(mw);
	return 0;
}
