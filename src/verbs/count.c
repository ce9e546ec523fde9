/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many objects there are, against what the profile allows. A device has its tables once: they
 * are counted by process, over all of its contexts, and by context, so that what a program leaves
 * behind at ibv_close_device is given back.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <stdatomic.h>

static _Atomic uint32_t all[VRB_N_OBJECTS];

static uint32_t most(enum vrb_object kind)
{
	const struct vrb_profile *p = vrb_hca_profile();
	const uint32_t max[VRB_N_OBJECTS] = {
		[VRB_OBJ_PD] = p->max_pd, [VRB_OBJ_MR] = p->max_mr, [VRB_OBJ_AH] = p->max_ah,
		[VRB_OBJ_CQ] = p->max_cq, [VRB_OBJ_QP] = p->max_qp,
	};

	return max[kind];
}

int vv_count_in(struct ibv_context *ctx, enum vrb_object kind)
{
	uint32_t have = atomic_fetch_add_explicit(&all[kind], 1, memory_order_relaxed);
	struct vrb_report r;

	if (vrb_rules_one_more(have, most(kind), kind, &r) != VRB_OK) {
		atomic_fetch_sub_explicit(&all[kind], 1, memory_order_relaxed);
		return vv_reason(&r);
	}
	atomic_fetch_add_explicit(&vv_context(ctx)->n_objects[kind], 1, memory_order_relaxed);
	return 0;
}

void vv_count_out(struct ibv_context *ctx, enum vrb_object kind)
{
	atomic_fetch_sub_explicit(&vv_context(ctx)->n_objects[kind], 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&all[kind], 1, memory_order_relaxed);
}

void vv_count_close(struct ibv_context *ctx)
{
	for (int kind = 0; kind < VRB_N_OBJECTS; kind++) {
		uint32_t left = atomic_load_explicit(&vv_context(ctx)->n_objects[kind],
						     memory_order_relaxed);

		atomic_fetch_sub_explicit(&all[kind], left, memory_order_relaxed);
	}
}
