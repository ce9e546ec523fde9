/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of the duty cycle (work.c, out.c, in.c, progress.c); lock held everywhere. */
#ifndef VRB_HCA_WORK_H
#define VRB_HCA_WORK_H

#include "hca/engine.h"

#define VRB_MULTICAST_QPN 0xffffffu

/* The lists changed: n_work follows. */
void vrb_work_count(struct vrb_engine *e);
void vrb_work_drop_active(struct vrb_hqp *q);
void vrb_work_drop_acks(struct vrb_hqp *q);

/* Answers of one queue pair, or of all that owe some. plain: ACKs too, not only what is urgent. */
void vrb_engine_respond(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now, bool plain);
void vrb_engine_respond_all(struct vrb_engine *e, vrb_ns now, bool plain);

/* Frames of one peer in, at most VRB_TURN_FRAMES; returns how many. */
uint32_t vrb_engine_drain(struct vrb_engine *e, struct vrb_peer *p, vrb_ns now);

#endif
