/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The story of a queue pair: the last events that were worth a verdict (what was refused, which NAK
 * left or came, timeouts, changes of state) and what ended it. Nothing on the way of success writes
 * here. It goes as a line of JSON to whoever asks (VRB_MEET_STORY) and, when VERBENA_STORY names a
 * file, to its end, so that it outlives the process (story_write.c).
 */
#ifndef VRB_HCA_STORY_H
#define VRB_HCA_STORY_H

#include "hca/peer.h"

#define VRB_STORY_EVENTS 32u /* kept; what goes on and on takes one place */
#define VRB_STORY_AFTER	 8u  /* of them at most after the end */

struct vrb_event {
	vrb_ns first, last; /* when it happened; n times */
	uint64_t n;
	struct vrb_report report; /* as of the last time */
};

struct vrb_story {
	_Atomic uint32_t lock; /* refused posts come without the engine's */
	uint32_t n, n_after;   /* events ever; after the end */
	vrb_qpn qpn, dqpn;     /* of a queue pair that is no more: as they were */
	uint8_t type, state;
	bool ended, refused; /* something ended it; something was refused */
	bool to_write;	     /* that the file does not have */
	vrb_ns made;
	struct vrb_event end;
	struct vrb_event event[VRB_STORY_EVENTS];
};

static inline void vrb_story_lock(struct vrb_story *s)
{
	while (atomic_exchange_explicit(&s->lock, 1, memory_order_acquire))
		sched_yield();
}

static inline void vrb_story_unlock(struct vrb_story *s)
{
	atomic_store_explicit(&s->lock, 0, memory_order_release);
}

/* A verdict about queue pair r->qpn. Without the engine's lock only for kind CALL. */
void vrb_story_add(struct vrb_engine *e, const struct vrb_report *r);
/* NULL: no memory. */
struct vrb_story *vrb_story_create(vrb_qpn qpn, uint8_t type);
/* The queue pair is destroyed; lock held. */
void vrb_story_bury(struct vrb_engine *e, struct vrb_hqp *q);
/* It begins a new life: RESET. */
void vrb_story_forget(struct vrb_story *s);

/* story_write.c; lock held */
void vrb_story_open(struct vrb_engine *e); /* the file, if one is named */
bool vrb_story_is_kept(const struct vrb_engine *e);
/* What the file does not have yet; all: at the end of the process, with refusals that ended
 * nothing. */
void vrb_story_flush(struct vrb_engine *e, bool all);
/* A tool asks for the story of a queue pair, or of all (0). */
void vrb_story_tell(struct vrb_engine *e, int sock, vrb_qpn qpn);
void vrb_story_close(struct vrb_engine *e);

#endif
