/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/pages.h"

#include "base/checks.h"

/* Runs of one bin differ by less than an eighth. */
static uint32_t bin_of(uint32_t len)
{
	uint32_t top;

	if (len <= 16)
		return len - 1;
	top = 31 - (uint32_t)__builtin_clz(len);
	return 16 + (top - 4) * 8 + (len >> (top - 3) & 7);
}

static void push(struct vrb_pages *p, uint32_t at, uint32_t len)
{
	uint32_t bin = bin_of(len);

	p->page[at] = (struct vrb_page){.next = p->head[bin], .prev = VRB_PAGES_NONE, .len = len};
	p->page[at + len - 1].len = len;
	if (p->head[bin] != VRB_PAGES_NONE)
		p->page[p->head[bin]].prev = at;
	p->head[bin] = at;
	p->used[bin / 64] |= 1ull << bin % 64;
}

static void pull(struct vrb_pages *p, uint32_t at)
{
	struct vrb_page *r = &p->page[at];
	uint32_t len = r->len, bin = bin_of(len);

	if (r->next != VRB_PAGES_NONE)
		p->page[r->next].prev = r->prev;
	if (r->prev != VRB_PAGES_NONE)
		p->page[r->prev].next = r->next;
	else
		p->head[bin] = r->next;
	if (p->head[bin] == VRB_PAGES_NONE)
		p->used[bin / 64] &= ~(1ull << bin % 64);
	r->len = 0;
	p->page[at + len - 1].len = 0;
}

void vrb_pages_put(struct vrb_pages *p, uint32_t first, uint32_t n)
{
	VRB_ASSERT(first <= p->n && n <= p->n - first);
	if (!n)
		return;
	p->n_free += n;
	if (first && p->page[first - 1].len) {
		uint32_t before = p->page[first - 1].len;

		pull(p, first - before);
		first -= before;
		n += before;
	}
	if (first + n < p->n && p->page[first + n].len) {
		uint32_t behind = p->page[first + n].len;

		pull(p, first + n);
		n += behind;
	}
	push(p, first, n);
}

void vrb_pages_init(struct vrb_pages *p, struct vrb_page *page, uint32_t n)
{
	*p = (struct vrb_pages){.page = page, .n = n};
	for (uint32_t i = 0; i < VRB_PAGES_BINS; i++)
		p->head[i] = VRB_PAGES_NONE;
	for (uint32_t i = 0; i < n; i++)
		page[i].len = 0;
	vrb_pages_put(p, 0, n);
}

/* The first bin from `from` on that has runs, or VRB_PAGES_BINS. */
static uint32_t next_bin(const struct vrb_pages *p, uint32_t from)
{
	for (uint32_t w = from / 64; w < VRB_PAGES_BINS / 64; w++) {
		uint64_t bits = p->used[w];

		if (w == from / 64)
			bits &= ~0ull << from % 64;
		if (bits)
			return w * 64 + (uint32_t)__builtin_ctzll(bits);
	}
	return VRB_PAGES_BINS;
}

/* The smallest run of n pages or more, to within an eighth. In the bin of n itself some may be
 * shorter. */
static uint32_t find(const struct vrb_pages *p, uint32_t n)
{
	uint32_t bin, at;

	if (!n || n > p->n_free)
		return VRB_PAGES_NONE;
	bin = bin_of(n);
	for (at = p->head[bin]; at != VRB_PAGES_NONE; at = p->page[at].next)
		if (p->page[at].len >= n)
			return at;
	bin = next_bin(p, bin + 1);
	return bin < VRB_PAGES_BINS ? p->head[bin] : VRB_PAGES_NONE;
}

bool vrb_pages_has(const struct vrb_pages *p, uint32_t n)
{
	return find(p, n) != VRB_PAGES_NONE;
}

uint32_t vrb_pages_get(struct vrb_pages *p, uint32_t n)
{
	uint32_t at = find(p, n), len;

	if (at == VRB_PAGES_NONE)
		return at;
	len = p->page[at].len;
	pull(p, at);
	p->n_free -= n;
	if (len == n)
		return at;
	if (n >= VRB_PAGES_LONG) {
		push(p, at, len - n);
		return at + len - n;
	}
	push(p, at + n, len - n);
	return at;
}
