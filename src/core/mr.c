/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key table: handing out keys, taking them back, and the two questions "may this local SGE" and
 * "may this remote access" touch memory. A key is right only if its value matches the entry's whole
 * value; when it does not, the entry's history says whether the key was once right (stale) or never
 * (unknown). The order of the checks is that of IBA 10.6.2: key, protection domain, rights, range.
 */
#include <string.h>

#include "core/internal.h"
#include "rules/mem.h"

#define TAG_MASK 0xffu

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

void vrb_keytab_init(struct vrb_keytab *t, uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->seed = seed;
	t->free_head = t->free_tail = VRB_KEY_NONE;
}

void vrb_key_give_back(struct vrb_keytab *t, uint32_t i)
{
	t->ent[i].kind = VRB_KEY_FREE;
	t->ent[i].valid = false;
	t->ent[i].next_free = VRB_KEY_NONE;
	if (t->free_tail == VRB_KEY_NONE)
		t->free_head = i;
	else
		t->ent[t->free_tail].next_free = i;
	t->free_tail = i;
	t->n_free++;
}

void vrb_keytab_grow(struct vrb_keytab *t, struct vrb_key *ent, uint32_t n)
{
	uint32_t old = t->n;

	t->ent = ent;
	t->n = n;
	if (n > old)
		memset(&ent[old], 0, (size_t)(n - old) * sizeof(*ent));
	for (uint32_t i = old; i < n; i++) {
		ent[i].key = i << 8 | (uint32_t)(mix(t->seed ^ i) & TAG_MASK);
		if (i != 0)
			vrb_key_give_back(t, i);
	}
}

/* The oldest free index, with a tag that it has not had for the longest time. */
static struct vrb_key *take(struct vrb_keytab *t, uint32_t *index)
{
	uint32_t i = t->free_head, tag;
	struct vrb_key *e;

	VRB_ASSERT(i != VRB_KEY_NONE);
	e = &t->ent[i];
	t->free_head = e->next_free;
	if (t->free_head == VRB_KEY_NONE)
		t->free_tail = VRB_KEY_NONE;
	t->n_free--;
	tag = (e->key + 1) & TAG_MASK;
	e->key = i << 8 | tag;
	e->n_uses++;
	e->next_free = VRB_KEY_NONE;
	e->n_windows = 0;
	*index = i;
	return e;
}

static void fill(struct vrb_key *e, const struct vrb_key *region, enum vrb_key_kind kind,
		 uint32_t mate)
{
	e->base = region->base;
	e->len = region->len;
	e->host = region->host;
	e->pd = region->pd;
	e->access = region->access;
	e->kind = (uint8_t)kind;
	e->mate = mate;
	e->valid = true;
	e->qpn = 0;
}

void vrb_mr_add(struct vrb_keytab *t, const struct vrb_key *region, uint32_t *lkey, uint32_t *rkey)
{
	uint32_t il, ir;
	struct vrb_key *l = take(t, &il), *r = take(t, &ir);

	fill(l, region, VRB_KEY_LOCAL, ir);
	fill(r, region, VRB_KEY_REMOTE, il);
	*lkey = l->key;
	*rkey = r->key;
}

static struct vrb_key *find(const struct vrb_keytab *t, uint32_t key)
{
	uint32_t i = key >> 8;

	if (i == 0 || i >= t->n || t->ent[i].key != key || t->ent[i].kind == VRB_KEY_FREE)
		return NULL;
	return &t->ent[i];
}

bool vrb_mr_del(struct vrb_keytab *t, uint32_t lkey)
{
	struct vrb_key *l = find(t, lkey);
	uint32_t ir;

	VRB_ASSERT(l && l->kind == VRB_KEY_LOCAL);
	ir = l->mate;
	if (t->ent[ir].n_windows > 0)
		return false;
	vrb_key_give_back(t, lkey >> 8);
	vrb_key_give_back(t, ir);
	return true;
}

bool vrb_mr_change(struct vrb_keytab *t, uint32_t lkey, uint32_t pd, uint32_t access)
{
	struct vrb_key *l = find(t, lkey), *r;

	VRB_ASSERT(l && l->kind == VRB_KEY_LOCAL);
	r = &t->ent[l->mate];
	if (r->n_windows > 0)
		return false;
	l->pd = r->pd = pd;
	l->access = r->access = access;
	return true;
}

uint32_t vrb_mw_add(struct vrb_keytab *t, uint32_t pd, enum vrb_key_kind kind)
{
	uint32_t i;
	struct vrb_key *e = take(t, &i);
	struct vrb_key none = {.pd = pd};

	fill(e, &none, kind, VRB_KEY_NONE);
	e->valid = false;
	return e->key;
}

/* The key was right once: its tag is one of those that the index has had before. */
static bool was_valid(const struct vrb_keytab *t, uint32_t key)
{
	uint32_t i = key >> 8, age;

	if (i == 0 || i >= t->n)
		return false;
	age = (t->ent[i].key - key) & TAG_MASK;
	return age < t->ent[i].n_uses;
}

static struct vrb_mem region_of(const struct vrb_key *e)
{
	return (struct vrb_mem){e->base, e->len, e->pd, e->access};
}

static enum vrb_verdict local_verdict(const struct vrb_keytab *t, const struct vrb_mem_use *u,
				      struct vrb_report *r)
{
	const struct vrb_key *e = find(t, u->key);
	struct vrb_mem m;

	if (!e)
		return vrb_mem_refuse(
			r, was_valid(t, u->key) ? VRB_V_LKEY_STALE : VRB_V_LKEY_UNKNOWN, u);
	if (e->kind != VRB_KEY_LOCAL)
		return vrb_mem_refuse(r, VRB_V_LKEY_IS_RKEY, u);
	m = region_of(e);
	return vrb_mem_local(&m, u, r);
}

enum vrb_verdict vrb_key_check_local(const struct vrb_keytab *t, const struct vrb_sge *sge,
				     uint32_t sge_index, uint32_t pd, uint32_t need, uint64_t *host,
				     struct vrb_report *r)
{
	const struct vrb_key *e = find(t, sge->lkey);

	*host = 0;
	if (sge->len == 0)
		return VRB_OK;
	if (vrb_likely(e && e->kind == VRB_KEY_LOCAL && e->pd == pd && (e->access & need) == need &&
		       sge->addr >= e->base && sge->addr - e->base <= e->len &&
		       sge->len <= e->len - (sge->addr - e->base))) {
		*host = e->host + (sge->addr - e->base);
		return VRB_OK;
	}
	return local_verdict(t,
			     &(struct vrb_mem_use){.addr = sge->addr,
						   .len = sge->len,
						   .key = sge->lkey,
						   .index = sge_index,
						   .pd = pd,
						   .need = need},
			     r);
}

static enum vrb_verdict stale_remote(const struct vrb_keytab *t, uint32_t rkey)
{
	return was_valid(t, rkey) ? VRB_V_RKEY_STALE : VRB_V_RKEY_UNKNOWN;
}

/* What only windows have: bound or not, and the QP of type 2 (IBA 10.6.7.2.4). */
static enum vrb_verdict check_window(const struct vrb_key *e, vrb_qpn qpn)
{
	if (e->kind == VRB_KEY_REMOTE)
		return VRB_OK;
	if (!e->valid)
		return VRB_V_RKEY_STALE;
	if (e->kind == VRB_KEY_MW2 && e->qpn != qpn)
		return VRB_V_RKEY_OTHER_QP;
	return VRB_OK;
}

static enum vrb_verdict remote_verdict(const struct vrb_keytab *t, const struct vrb_key *e,
				       uint32_t pd, uint32_t need, struct vrb_report *r)
{
	struct vrb_mem_remote a = {r->val[1], r->val[2], (uint32_t)r->val[0], pd, need};
	enum vrb_verdict v;
	struct vrb_mem m;

	if (!e)
		return stale_remote(t, a.key);
	if (e->kind == VRB_KEY_LOCAL)
		return VRB_V_RKEY_IS_LKEY;
	m = region_of(e);
	v = vrb_mem_remote_pd(&m, &a, r);
	if (v == VRB_OK)
		v = check_window(e, r->qpn);
	return v == VRB_OK ? vrb_mem_remote(&m, &a, r) : v;
}

enum vrb_verdict vrb_key_check_remote(const struct vrb_keytab *t, uint32_t rkey, uint64_t va,
				      uint64_t len, uint32_t pd, uint32_t need, vrb_qpn qpn,
				      uint64_t *host, struct vrb_report *r)
{
	const struct vrb_key *e = find(t, rkey);

	*host = 0;
	if (len == 0)
		return VRB_OK;
	*r = (struct vrb_report){.qpn = qpn, .val = {rkey, va, len}};
	r->verdict = remote_verdict(t, e, pd, need, r);
	if (r->verdict == VRB_OK)
		*host = e->host + (va - e->base);
	return r->verdict;
}
