/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An SGE against its region: protection domain, rights, range, in the order of IBA 10.6.3, so that
 * the first reason is the one that explains the others.
 */
#include "rules/mem.h"

enum vrb_verdict vrb_mem_range(const struct vrb_mem *m, uint64_t addr, uint64_t len, uint64_t *by)
{
	uint64_t off = addr - m->base;

	if (addr < m->base) {
		*by = m->base - addr;
		return VRB_V_LKEY_RANGE_START;
	}
	if (off > m->len || len > m->len - off) {
		*by = off + len - m->len;
		return VRB_V_LKEY_RANGE_END;
	}
	return VRB_OK;
}

enum vrb_verdict vrb_mem_refuse(struct vrb_report *r, enum vrb_verdict v,
				const struct vrb_mem_use *u)
{
	*r = (struct vrb_report){.verdict = v, .val = {u->index, u->key, u->addr, u->len}};
	return v;
}

enum vrb_verdict vrb_mem_local(const struct vrb_mem *m, const struct vrb_mem_use *u,
			       struct vrb_report *r)
{
	uint64_t by = 0;
	enum vrb_verdict v;

	if (m->pd != u->pd) /* IBA C10-71 */
		return vrb_mem_refuse(r, VRB_V_LKEY_OTHER_PD, u);
	if ((m->access & u->need) != u->need) /* IBA C10-72 */
		return vrb_mem_refuse(r, VRB_V_LKEY_NO_WRITE, u);
	v = vrb_mem_range(m, u->addr, u->len, &by); /* IBA C10-73 */
	if (v == VRB_OK)
		return v;
	vrb_mem_refuse(r, v, u);
	r->val[4] = by;
	r->val[5] = m->len;
	return v;
}

static enum vrb_verdict refuse_remote(struct vrb_report *r, enum vrb_verdict v,
				      const struct vrb_mem_remote *a)
{
	r->verdict = v;
	r->val[0] = a->key;
	r->val[1] = a->va;
	r->val[2] = a->len;
	return v;
}

enum vrb_verdict vrb_mem_remote_pd(const struct vrb_mem *m, const struct vrb_mem_remote *a,
				   struct vrb_report *r)
{
	return m->pd == a->pd ? VRB_OK : refuse_remote(r, VRB_V_RKEY_OTHER_PD, a);
}

enum vrb_verdict vrb_mem_remote(const struct vrb_mem *m, const struct vrb_mem_remote *a,
				struct vrb_report *r)
{
	uint64_t by = 0;
	enum vrb_verdict v;

	if ((m->access & a->need) != a->need) {
		refuse_remote(r, VRB_V_RKEY_RIGHTS, a);
		r->val[1] = m->access;
		r->val[2] = a->need;
		return VRB_V_RKEY_RIGHTS;
	}
	v = vrb_mem_range(m, a->va, a->len, &by);
	if (v == VRB_OK)
		return v;
	r->val[3] = by;
	return refuse_remote(
		r, v == VRB_V_LKEY_RANGE_START ? VRB_V_RKEY_RANGE_START : VRB_V_RKEY_RANGE_END, a);
}

enum vrb_verdict vrb_mem_sge(const struct vrb_mem_use *u, struct vrb_report *r)
{
	if (!u->len)
		return vrb_mem_refuse(r, VRB_V_SGE_EMPTY, u);
	if (u->addr + (u->len - 1) < u->addr)
		return vrb_mem_refuse(r, VRB_V_SGE_WRAPS, u);
	return VRB_OK;
}
