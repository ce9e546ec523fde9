/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared receive queue. Entries are taken in the order posted, whichever QP needs one (IBA
 * 10.2.9.4), and copied out, because the slot may be posted anew while the message still arrives.
 * The limit is a one-shot low-water mark: it fires when fewer than `limit` are posted.
 */
#include <string.h>

#include "core/internal.h"
#include "core/srq.h"

static void check_limit(struct vrb_srq *s, struct vrb_fx *fx)
{
	if (s->limit == 0 || vrb_srq_posted(s) >= s->limit)
		return;
	s->limit = 0;
	vrb_fx_event(fx, VRB_ASYNC_SRQ_LIMIT, s);
}

bool vrb_srq_take(struct vrb_srq *s, struct vrb_rwqe *out, struct vrb_fx *fx)
{
	const struct vrb_rwqe *w;

	if (s->wq.head == s->wq.tail)
		return false;
	w = vrb_wq_entry(&s->wq, s->wq.head);
	memcpy(out, w, VRB_RWQE_HEADER + w->n_sge * sizeof(w->sge[0]));
	s->wq.head++;
	check_limit(s, fx);
	return true;
}

void vrb_srq_arm(struct vrb_srq *s, uint32_t limit, struct vrb_fx *fx)
{
	s->limit = limit;
	check_limit(s, fx);
}
