/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path between the face and the engine. The face locks, fills entries at the tails with
 * what it has checked, commits and unlocks; polling takes completions and, when there are none,
 * drives the engine.
 */
#ifndef VRB_HCA_DATA_H
#define VRB_HCA_DATA_H

#include "hca/engine.h"

/* The n-th entry behind the tail; room has been checked. */
static inline struct vrb_swqe *vrb_hqp_swqe(struct vrb_hqp *q, uint32_t n)
{
	return vrb_wq_entry(&q->core.sq, q->core.sq.tail + n);
}

/* n entries behind the tail are filled: posts them and lets the packets go. Lock held. */
void vrb_hqp_commit(struct vrb_hqp *q, uint32_t n);
void vrb_hqp_commit_recv(struct vrb_hqp *q, uint32_t n);

/* Takes up to n completions; when there are none, drives the engine for a turn. */
int vrb_hcq_poll(struct vrb_hcq *cq, uint32_t n, struct vrb_wc *wc);
/* The same for one, with its time. */
int vrb_hcq_poll_stamped(struct vrb_hcq *cq, struct vrb_wc *wc, struct vrb_stamp *stamp);

#endif
