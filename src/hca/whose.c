/* SPDX-License-Identifier: BSD-2-Clause */
/* See whose.h. */
#include "hca/whose.h"

static bool holds(const struct vrb_swqe *w, struct vrb_psn psn)
{
	return w->op != VRB_WR_LOCAL_INV && w->op != VRB_WR_BIND_MW &&
	       ((psn.v - w->first.v) & VRB_PSN_MASK) <= ((w->last.v - w->first.v) & VRB_PSN_MASK);
}

/* The newest one that holds it. */
bool vrb_whose_made(const struct vrb_qp *c, struct vrb_psn psn, uint32_t *index)
{
	uint32_t i = c->sq_send + (c->send_off > 0);

	for (uint32_t n = 0; n < c->sq.cap; n++) {
		if (!holds(vrb_wq_entry(&c->sq, --i), psn))
			continue;
		*index = i;
		return true;
	}
	return false;
}

bool vrb_whose_asked(const struct vrb_qp *c, struct vrb_psn psn, uint32_t *index)
{
	uint32_t end = c->rewound ? c->sq_started : c->sq_send + (c->send_off > 0);

	for (uint32_t i = c->sq_una; i != end; i++) {
		if (!holds(vrb_wq_entry(&c->sq, i), psn))
			continue;
		*index = i;
		return true;
	}
	return false;
}

const struct vrb_rwqe *vrb_whose_taken(const struct vrb_qp *c, const struct vrb_pkt *pkt,
				       uint32_t *index)
{
	const struct vrb_wq *wq = c->srq ? &c->srq->wq : &c->rq;

	*index = UINT32_MAX;
	if (!vrb_op_has(pkt->op, VRB_OPF_SEND) && !vrb_op_has(pkt->op, VRB_OPF_WRITE | VRB_OPF_IMM))
		return NULL;
	if (c->type == VRB_QPT_RC && pkt->psn.v != c->epsn.v)
		return NULL;
	if (c->have_rwqe)
		return c->cur_rwqe;
	if (wq->head == wq->tail)
		return NULL;
	*index = wq->head;
	return vrb_wq_entry(wq, wq->head);
}
