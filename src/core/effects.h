/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a step of the core asks its caller to do, as bounded arrays of data. A step sets counts and
 * never clears arrays; the caller executes the effects in this order before it releases the
 * engine's lock: placements, then what is due for CQs and events, then reports. Completions are not
 * effects: the core pushes them into the CQ's ring itself (core/cq.h), so a caller that lets
 * anybody poll must have executed the placements first.
 */
#ifndef VRB_CORE_EFFECTS_H
#define VRB_CORE_EFFECTS_H

#include "base/iov.h"
#include "base/verdict.h"
#include "core/wqe.h"
#include "wire/pkt.h"

#define VRB_FX_EVENTS_MAX  8
#define VRB_FX_REPORTS_MAX 4

enum vrb_place_kind { VRB_PLACE_COPY, VRB_PLACE_CMP_SWAP, VRB_PLACE_FETCH_ADD };

struct vrb_place {
	enum vrb_place_kind kind;
	uint32_t len;	 /* COPY: bytes, in ascending order, last byte last; atomics: 8 */
	const void *src; /* COPY: in the packet's payload or GRH */
	void *dst;	 /* user memory, key and range already checked */
	uint64_t swap_add, compare; /* atomics: operands in host order */
	uint64_t *result;	    /* atomics: where the old value goes (core state) */
};

enum vrb_async_kind { /* numbers of enum ibv_event_type */
		      VRB_ASYNC_CQ_ERR = 0,
		      VRB_ASYNC_QP_FATAL = 1,
		      VRB_ASYNC_QP_REQ_ERR = 2,
		      VRB_ASYNC_QP_ACCESS_ERR = 3,
		      VRB_ASYNC_COMM_EST = 4,
		      VRB_ASYNC_SQ_DRAINED = 5,
		      VRB_ASYNC_SRQ_ERR = 14,
		      VRB_ASYNC_SRQ_LIMIT = 15,
		      VRB_ASYNC_LAST_WQE = 16,
};

struct vrb_async {
	enum vrb_async_kind kind;
	void *object; /* struct vrb_qp, vrb_cq or vrb_srq, by kind */
};

struct vrb_fx {
	uint32_t n_place, n_event, n_report;
	struct vrb_cq *notify; /* chain by notify_next of CQs with something due (core/cq.h) */
	struct vrb_place place[VRB_MAX_SGE + 1];
	struct vrb_async event[VRB_FX_EVENTS_MAX];
	struct vrb_report report[VRB_FX_REPORTS_MAX];
};

static inline void vrb_fx_reset(struct vrb_fx *fx)
{
	fx->n_place = fx->n_event = fx->n_report = 0;
	fx->notify = NULL;
}

/* Adds to the arrays; when full the newest is dropped (first reasons matter most). */
void vrb_fx_event(struct vrb_fx *fx, enum vrb_async_kind kind, void *object);
void vrb_fx_report(struct vrb_fx *fx, const struct vrb_report *r);

/* A packet to send: header values and the gather list of its payload (user memory, checked). */
struct vrb_tx {
	struct vrb_pkt pkt;
	const struct vrb_av *av; /* UD only */
	uint32_t n_seg;
	struct vrb_seg seg[VRB_MAX_SGE];
};

#endif
