/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From pieces of memory to SGEs: keys are looked up, neighbours of one region become one, ranges
 * and rights are checked. Pure: it sees the table of regions only.
 */
#ifndef VRB_SEND_SGL_H
#define VRB_SEND_SGL_H

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include "base/verdict.h"
#include "send/regions.h"

/* What a list must be good for. */
struct vrb_sgl_want {
	uint32_t access;    /* IBV_ACCESS_ bits that each region must have */
	uint64_t max_bytes; /* of the whole */
};

/* Where a walk through the pieces stands, so that a list of any length fits any number of SGEs. */
struct vrb_sgl_walk {
	const struct vrb_regions *regions;
	const struct iovec *iov;
	int n, i;   /* pieces, and the next one */
	size_t off; /* within it */
	uint32_t access;
	const struct vrb_hit *own; /* NULL, or of each piece: a registration of its own, or len 0 */
	struct vrb_hit hit;
};

/* Bytes of all pieces, or false: more than max. */
bool vrb_sgl_total(const struct iovec *iov, int n, uint64_t max, uint64_t *total);

/*
 * Up to max SGEs of at most max_bytes together; returns how many (0: the walk is at its end), or -1
 * with the reason in r. An SGE never spans two regions. When it has all, i is n.
 */
int vrb_sgl_next(struct vrb_sgl_walk *w, struct ibv_sge *out, int max, uint64_t max_bytes,
		 struct vrb_report *r);

#endif
