/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts: the functions that verbs.h calls through a context's tables are replaced in place,
 * after the device was opened, and looked at again when objects are made, since some providers
 * exchange them later.
 */
#include "check/check.h"

#include <errno.h>
#include <string.h>

struct vrb_chk_table vrb_chk_ctxs = VRB_CHK_TABLE(struct vrb_chk_ctx);
static _Atomic uint32_t next_id = 1;

struct vrb_chk_ctx *vrb_chk_ctx_of(struct ibv_context *ibv)
{
	return vrb_chk_find(&vrb_chk_ctxs, ibv);
}

#define HOOK(table, real, slot, ours)                                                              \
	do {                                                                                       \
		if ((table)->slot && (table)->slot != (ours)) {                                    \
			(real).slot = (table)->slot;                                               \
			(table)->slot = (ours);                                                    \
		}                                                                                  \
	} while (0)

/* Slots of the extended table that are within its size. */
#define HOOK_EXT(c, v, slot, ours)                                                                 \
	do {                                                                                       \
		if ((v)->sz >= sizeof(*(v)) - offsetof(struct verbs_context, slot))                \
			HOOK(v, (c)->ext, slot, ours);                                             \
	} while (0)

static void hook_ext(struct vrb_chk_ctx *c)
{
	struct verbs_context *v = verbs_get_ctx(c->ibv);

	if (!v)
		return;
	HOOK_EXT(c, v, create_cq_ex, vrb_chk_create_cq_ex);
	HOOK_EXT(c, v, create_qp_ex, vrb_chk_create_qp_ex);
	HOOK_EXT(c, v, create_srq_ex, vrb_chk_create_srq_ex);
	HOOK_EXT(c, v, reg_dm_mr, vrb_chk_reg_dm_mr);
	HOOK_EXT(c, v, alloc_null_mr, vrb_chk_alloc_null_mr);
	HOOK_EXT(c, v, alloc_parent_domain, vrb_chk_alloc_parent_domain);
}

void vrb_chk_hook(struct vrb_chk_ctx *c)
{
	struct ibv_context_ops *ops = &c->ibv->ops;

	pthread_mutex_lock(&vrb_chk_ctxs.lock);
	HOOK(ops, c->ops, post_send, vrb_chk_post_send);
	HOOK(ops, c->ops, post_recv, vrb_chk_post_recv);
	HOOK(ops, c->ops, post_srq_recv, vrb_chk_post_srq_recv);
	HOOK(ops, c->ops, bind_mw, vrb_chk_bind_mw);
	HOOK(ops, c->ops, poll_cq, vrb_chk_poll_cq);
	HOOK(ops, c->ops, req_notify_cq, vrb_chk_req_notify_cq);
	hook_ext(c);
	pthread_mutex_unlock(&vrb_chk_ctxs.lock);
}

static void opened(struct ibv_context *ibv)
{
	struct vrb_chk_ctx *c = vrb_chk_take(&vrb_chk_ctxs, ibv);

	if (!c)
		return;
	c->id = atomic_fetch_add(&next_id, 1);
	c->ibv = ibv;
	memset(&c->ops, 0, sizeof(c->ops));
	memset(&c->ext, 0, sizeof(c->ext));
	memset(&c->attr, 0, sizeof(c->attr));
	c->iwarp = ibv->device && ibv->device->transport_type == IBV_TRANSPORT_IWARP;
	VRB_REAL(ibv_query_device)(ibv, &c->attr);
	vrb_chk_site_take(&c->obj.site);
	vrb_chk_publish(c, ibv);
	vrb_chk_hook(c);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *ibv = VRB_REAL(ibv_open_device)(device);

	if (!ibv || vrb_chk_depth)
		return ibv;
	/* A forked child that opens a device anew begins anew. */
	atomic_store(&vrb_chk_in_child, false);
	vrb_chk_depth++;
	opened(ibv);
	vrb_chk_depth--;
	return ibv;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *ibv = VRB_REAL(ibv_import_device)(cmd_fd);

	if (!ibv || vrb_chk_off())
		return ibv;
	vrb_chk_depth++;
	opened(ibv);
	vrb_chk_depth--;
	return ibv;
}

int ibv_close_device(struct ibv_context *context)
{
	struct vrb_chk_ctx *c = vrb_chk_off() ? NULL : vrb_chk_ctx_of(context);
	int err;

	if (c)
		vrb_chk_remove(c);
	vrb_chk_depth++;
	err = VRB_REAL(ibv_close_device)(context);
	vrb_chk_depth--;
	if (err && c)
		vrb_chk_publish(c, context);
	return err;
}

void vrb_chk_refused(const char *call, vrb_qpn qpn, int err)
{
	VRB_CHK_NOTE(call, qpn, VRB_V_REFUSED, (uint64_t)(err < 0 ? errno : err), 0, 0);
}

void vrb_chk_busy(const char *call, enum vrb_object object, uint32_t n,
		  const struct vrb_chk_site *site)
{
	struct vrb_chk_finding f = {
		.call = call, .made = site, .made_what = VRB_TR("one of them made")};

	if (vrb_rules_destroy(object, n, &f.r) != VRB_OK)
		vrb_chk_report(&f);
}
