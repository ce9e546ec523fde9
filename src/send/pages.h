/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which pages of the pool are free: runs of exactly the length that is asked for, cut from the
 * smallest free run that holds them, long ones from its upper end. A run that comes back merges
 * with its free neighbours, so that buffers that live long among others that come and go leave no
 * dust between them. Works on page numbers only, in memory that the caller gives.
 */
#ifndef VRB_SEND_PAGES_H
#define VRB_SEND_PAGES_H

#include "base/types.h"

#define VRB_PAGES_MAX  (1u << 30) /* 4 TiB */
#define VRB_PAGES_NONE UINT32_MAX
#define VRB_PAGES_BINS                                                                             \
	256u /* of free runs: up to 16 pages one each, then eight for each power of two */
#define VRB_PAGES_LONG 64u /* a run of so many pages is cut from the upper end */

struct vrb_page {
	uint32_t next, prev; /* in the list of a bin; first pages only */
	uint32_t len;	     /* of the free run that begins or ends here, else 0 */
};

struct vrb_pages {
	struct vrb_page *page;
	uint32_t n, n_free;
	uint32_t head[VRB_PAGES_BINS];
	uint64_t used[VRB_PAGES_BINS / 64]; /* bins that are not empty */
};

/* page: n entries that outlive p. All pages are free. */
void vrb_pages_init(struct vrb_pages *p, struct vrb_page *page, uint32_t n);

/* The first of n consecutive pages, or VRB_PAGES_NONE: there is no such run. */
uint32_t vrb_pages_get(struct vrb_pages *p, uint32_t n);

/* Whether vrb_pages_get would find n pages. */
bool vrb_pages_has(const struct vrb_pages *p, uint32_t n);

/* Any part of a run may come back on its own. */
void vrb_pages_put(struct vrb_pages *p, uint32_t first, uint32_t n);

#endif
