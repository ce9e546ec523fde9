/* SPDX-License-Identifier: BSD-2-Clause */
/* Shadow queues. They are as large as what was granted, and grow when a device takes more. */
#include "check/check.h"

#include <stdlib.h>
#include <string.h>

#define RING_MAX (1u << 22)

static bool resize(struct vrb_chk_ring *r, uint32_t size)
{
	struct vrb_chk_wr *wr = calloc(size, sizeof(*wr));
	struct ibv_sge *sge = calloc((size_t)size * r->max_sge, sizeof(*sge));

	if (!wr || !sge) {
		free(wr);
		free(sge);
		return false;
	}
	for (uint32_t i = 0; r->size && i < r->size; i++) { /* what is behind the tail, too */
		uint32_t at = r->head + i;

		wr[at & (size - 1)] = *vrb_chk_ring_at(r, at);
		memcpy(&sge[(size_t)(at & (size - 1)) * r->max_sge], vrb_chk_ring_sges(r, at),
		       r->max_sge * sizeof(*sge));
	}
	free(r->wr);
	free(r->sge);
	r->wr = wr;
	r->sge = sge;
	r->size = size;
	return true;
}

void vrb_chk_ring_init(struct vrb_chk_ring *r, uint32_t cap, uint32_t max_sge)
{
	uint32_t size = 16;

	while (size < cap && size < RING_MAX)
		size *= 2;
	free(r->wr);
	free(r->sge);
	*r = (struct vrb_chk_ring){.cap = cap, .max_sge = max_sge ? max_sge : 1};
	resize(r, size);
}

void vrb_chk_ring_clear(struct vrb_chk_ring *r)
{
	r->head = r->tail;
	r->done = r->unsignaled = 0;
}

struct vrb_chk_wr *vrb_chk_ring_next(struct vrb_chk_ring *r, uint32_t n)
{
	uint32_t used = r->tail - r->head + n;

	if (used >= r->size && (r->size >= RING_MAX || !resize(r, r->size ? r->size * 2 : 16)))
		return NULL;
	return vrb_chk_ring_at(r, r->tail + n);
}
