/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose work request a packet belongs to; for those that record packets. Nothing is changed. */
#ifndef VRB_HCA_WHOSE_H
#define VRB_HCA_WHOSE_H

#include "core/qp.h"
#include "wire/pkt.h"

/* The index of the send entry whose packet with this PSN has just been made; false: none. */
bool vrb_whose_made(const struct vrb_qp *c, struct vrb_psn psn, uint32_t *index);
/* The same of the entry that a response with this PSN answers. */
bool vrb_whose_asked(const struct vrb_qp *c, struct vrb_psn psn, uint32_t *index);
/* The receive that a packet takes or goes on with, before the core has seen it, or NULL. index: of
 * its place, or UINT32_MAX. */
const struct vrb_rwqe *vrb_whose_taken(const struct vrb_qp *c, const struct vrb_pkt *pkt,
				       uint32_t *index);

static inline const struct vrb_swqe *vrb_whose_entry(const struct vrb_qp *c, uint32_t index)
{
	return vrb_wq_entry(&c->sq, index);
}

#endif
