/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cold half of rules/post.h: filling the report of a refused post, and the check of a memory
 * window bind, which is too rare to be inline (IBA 10.6.7).
 */
#include "rules/post.h"
#include "rules/object.h"

enum vrb_verdict vrb_post_refuse(struct vrb_report *r, enum vrb_verdict v, uint64_t a, uint64_t b)
{
	*r = (struct vrb_report){.verdict = v, .val = {a, b}};
	return v;
}

enum vrb_verdict vrb_post_state(uint32_t barred, uint32_t state, struct vrb_report *r)
{
	return barred >> state & 1 ? vrb_post_refuse(r, VRB_V_POST_STATE, state, 0) : VRB_OK;
}

static uint64_t bind_reason(const struct vrb_post_bind *b)
{
	if (b->window_type != b->wanted_type)
		return VRB_MW_BIND_TYPE;
	if (b->window_pd != b->qp_pd)
		return VRB_MW_BIND_OTHER_PD;
	if (b->access & ~VRB_RULES_ACCESS_WINDOW)
		return VRB_MW_BIND_ACCESS;
	if (b->wanted_type == 2 && !b->len) /* type 2 windows are unbound by invalidating them */
		return VRB_MW_BIND_RANGE;
	if (!b->has_region) /* length 0 unbinds */
		return b->len || b->addr ? VRB_MW_BIND_RANGE : 0;
	if (b->region_pd != b->qp_pd)
		return VRB_MW_BIND_OTHER_PD;
	if (!(b->region_access & VRB_RULES_MW_BIND))
		return VRB_MW_BIND_NO_RIGHT;
	if (b->region_access & VRB_RULES_ZERO_BASED)
		return VRB_MW_BIND_ZERO_BASED;
	if (b->access & (VRB_RULES_REMOTE_WRITE | VRB_RULES_REMOTE_ATOMIC) &&
	    !(b->region_access & VRB_RULES_LOCAL_WRITE)) /* IBA C10-55 */
		return VRB_MW_BIND_ACCESS;
	if (b->addr < b->region_addr || b->len > b->region_len ||
	    b->addr - b->region_addr > b->region_len - b->len)
		return VRB_MW_BIND_RANGE;
	return 0;
}

enum vrb_verdict vrb_post_mw_bind(const struct vrb_post_bind *b, struct vrb_report *r)
{
	uint64_t reason = bind_reason(b);

	return reason ? vrb_post_refuse(r, VRB_V_POST_MW_BIND, reason, 0) : VRB_OK;
}
