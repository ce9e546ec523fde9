/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking scatter/gather lists: from a byte range of the message to pieces of host memory, each
 * checked against the key table. Only the bytes that are touched must be good; when they are not,
 * the report is about the whole SGE, as the user wrote it. Entries of length 0 are passed over
 * without a look at their key (IBA 10.6.3.1).
 */
#include "core/internal.h"

struct piece {
	struct vrb_sge sge; /* the touched part */
	uint32_t index;
	uint64_t host;
};

/* One step of a walk over [off, off + left): the next piece that is not empty. */
struct walk {
	const struct vrb_sgl *l;
	uint64_t off;
	uint32_t left, i;
};

static bool next_piece(struct walk *w, struct piece *p)
{
	for (; w->left > 0 && w->i < w->l->n; w->i++) {
		const struct vrb_sge *s = &w->l->sge[w->i];
		uint64_t room;

		if (w->off >= s->len) {
			w->off -= s->len;
			continue;
		}
		room = s->len - w->off;
		p->index = w->i++;
		p->sge.addr = s->addr + w->off;
		p->sge.lkey = s->lkey;
		p->sge.len = room < w->left ? (uint32_t)room : w->left;
		w->off = 0;
		w->left -= p->sge.len;
		return true;
	}
	return false;
}

static bool check_piece(const struct vrb_sgl *l, struct piece *p, uint32_t need,
			struct vrb_report *r)
{
	uint64_t host;

	if (vrb_key_check_local(l->keys, &p->sge, p->index, l->pd, need, &p->host, r) == VRB_OK)
		return true;
	(void)vrb_key_check_local(l->keys, &l->sge[p->index], p->index, l->pd, need, &host, r);
	return false;
}

bool vrb_sgl_check(const struct vrb_sgl *l, uint32_t need, struct vrb_report *r)
{
	for (uint32_t i = 0; i < l->n; i++) {
		uint64_t host;

		if (vrb_key_check_local(l->keys, &l->sge[i], i, l->pd, need, &host, r) != VRB_OK)
			return false;
	}
	return true;
}

bool vrb_sgl_gather(const struct vrb_sgl *l, uint32_t off, uint32_t len, struct vrb_tx *tx,
		    struct vrb_report *r)
{
	struct walk w = {.l = l, .off = off, .left = len};
	struct piece p;

	tx->n_seg = 0;
	while (tx->n_seg < VRB_MAX_SGE && next_piece(&w, &p)) {
		if (!check_piece(l, &p, 0, r))
			return false;
		tx->seg[tx->n_seg++] =
			(struct vrb_seg){.base = (const void *)(uintptr_t)p.host, .len = p.sge.len};
	}
	return true;
}

bool vrb_sgl_scatter(const struct vrb_sgl *l, uint32_t off, struct vrb_seg src, struct vrb_fx *fx,
		     struct vrb_report *r)
{
	struct walk w = {.l = l, .off = off, .left = src.len};
	const uint8_t *from = src.base;
	uint32_t before = fx->n_place;
	struct piece p;

	while (next_piece(&w, &p)) {
		if (!check_piece(l, &p, VRB_ACC_LOCAL_WRITE, r)) {
			fx->n_place = before;
			return false;
		}
		(void)vrb_fx_copy(fx, p.host, from, p.sge.len);
		from += p.sge.len;
	}
	return true;
}
