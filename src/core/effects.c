/* SPDX-License-Identifier: BSD-2-Clause */
/* Filling the bounded arrays of an effect. What does not fit is dropped, newest first: the arrays
 * are sized so that one step never needs more (placements) or the first reasons matter most. */
#include "core/internal.h"

void vrb_fx_event(struct vrb_fx *fx, enum vrb_async_kind kind, void *object)
{
	if (fx->n_event < VRB_FX_EVENTS_MAX)
		fx->event[fx->n_event++] = (struct vrb_async){.kind = kind, .object = object};
}

void vrb_fx_report(struct vrb_fx *fx, const struct vrb_report *r)
{
	if (fx->n_report < VRB_FX_REPORTS_MAX)
		fx->report[fx->n_report++] = *r;
}

bool vrb_fx_copy(struct vrb_fx *fx, uint64_t dst, const void *src, uint32_t len)
{
	struct vrb_place *p;

	if (fx->n_place == VRB_MAX_SGE + 1)
		return false;
	p = &fx->place[fx->n_place++];
	p->kind = VRB_PLACE_COPY;
	p->len = len;
	p->src = src;
	p->dst = (void *)(uintptr_t)dst;
	return true;
}
