/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: binding and invalidating, both operations of the send queue (IBA 10.6.7). A type
 * 1 window belongs to its PD and may be bound again while bound; a type 2 window belongs to the QP
 * that binds it and must be free first. The region counts its windows, so it cannot go while one is
 * bound; window and region therefore never disagree. The new rkey has the window's index and
 * another low byte, which the consumer chose.
 */
#include "core/internal.h"

enum bind_reason { /* value of MW_BIND_FAILED */
		   BIND_NO_WINDOW = 1,
		   BIND_NO_REGION,
		   BIND_PD,
		   BIND_KEY,
		   BIND_BOUND,
		   BIND_LENGTH,
		   BIND_REGION_RIGHTS,
		   BIND_ZERO_BASED,
		   BIND_RANGE,
};

static struct vrb_key *window_of(const struct vrb_keytab *t, uint32_t rkey)
{
	uint32_t i = rkey >> 8;

	if (i == 0 || i >= t->n)
		return NULL;
	if (t->ent[i].kind != VRB_KEY_MW1 && t->ent[i].kind != VRB_KEY_MW2)
		return NULL;
	return &t->ent[i];
}

static struct vrb_key *region_of(const struct vrb_keytab *t, uint32_t lkey)
{
	uint32_t i = lkey >> 8;

	if (i == 0 || i >= t->n || t->ent[i].key != lkey || t->ent[i].kind != VRB_KEY_LOCAL)
		return NULL;
	return &t->ent[t->ent[i].mate];
}

static void unbind(struct vrb_keytab *t, struct vrb_key *w)
{
	if (w->valid)
		t->ent[w->mate].n_windows--;
	w->valid = false;
	w->mate = VRB_KEY_NONE;
	w->qpn = 0;
}

static enum bind_reason check_window(const struct vrb_key *w, const struct vrb_swqe *q)
{
	/* The tag must change, or the window's former users could reach the new binding. */
	if (w->key == q->rkey)
		return BIND_KEY;
	if (w->kind == VRB_KEY_MW1)
		return q->bind.access & VRB_ACC_ZERO_BASED ? BIND_ZERO_BASED : 0;
	if (w->valid)
		return BIND_BOUND;
	return q->bind.len == 0 ? BIND_LENGTH : 0;
}

static enum bind_reason check_region(const struct vrb_key *m, const struct vrb_swqe *q)
{
	uint32_t writes = VRB_ACC_REMOTE_WRITE | VRB_ACC_REMOTE_ATOMIC;

	if (!(m->access & VRB_ACC_MW_BIND))
		return BIND_REGION_RIGHTS;
	if ((q->bind.access & writes) && !(m->access & VRB_ACC_LOCAL_WRITE))
		return BIND_REGION_RIGHTS;
	if (m->access & VRB_ACC_ZERO_BASED)
		return BIND_ZERO_BASED;
	if (q->va < m->base || q->va - m->base > m->len || q->bind.len > m->len - (q->va - m->base))
		return BIND_RANGE;
	return 0;
}

/* IBA C10-74 and 10.6.7.2: everything is checked before anything changes. */
bool vrb_mw_bind(struct vrb_keytab *t, const struct vrb_swqe *q, uint32_t pd, vrb_qpn qpn,
		 uint64_t *reason)
{
	struct vrb_key *w = window_of(t, q->rkey), *m = NULL;
	enum bind_reason why = 0;

	if (!w)
		why = BIND_NO_WINDOW;
	else if (w->pd != pd)
		why = BIND_PD;
	else
		why = check_window(w, q);
	if (!why && q->bind.len > 0) {
		m = region_of(t, q->bind.mr_lkey);
		if (!m)
			why = BIND_NO_REGION;
		else
			why = m->pd != pd ? BIND_PD : check_region(m, q);
	}
	*reason = why;
	if (why)
		return false;
	unbind(t, w);
	w->key = q->rkey;
	w->n_uses++;
	if (!m)
		return true;
	w->valid = true;
	w->base = q->bind.access & VRB_ACC_ZERO_BASED ? 0 : q->va;
	w->len = q->bind.len;
	w->host = m->host + (q->va - m->base);
	w->access = q->bind.access;
	w->mate = t->ent[m->mate].mate;
	w->qpn = w->kind == VRB_KEY_MW2 ? qpn : 0;
	m->n_windows++;
	return true;
}

/* Good for a bound type 2 window of this QP only (IBA 10.6.5, C9-97). */
bool vrb_mw_invalidate(struct vrb_keytab *t, uint32_t rkey, uint32_t pd, vrb_qpn qpn)
{
	struct vrb_key *w = window_of(t, rkey);

	if (!w || w->key != rkey || w->kind != VRB_KEY_MW2 || !w->valid)
		return false;
	if (w->pd != pd || w->qpn != qpn)
		return false;
	unbind(t, w);
	return true;
}

bool vrb_mw_del(struct vrb_keytab *t, uint32_t rkey)
{
	struct vrb_key *w = window_of(t, rkey);

	if (!w)
		return false;
	unbind(t, w);
	vrb_key_give_back(t, rkey >> 8);
	return true;
}
