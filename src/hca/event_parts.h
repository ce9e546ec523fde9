/* SPDX-License-Identifier: BSD-2-Clause */
/* What event.c and event_wait.c share. */
#ifndef VRB_HCA_EVENT_PARTS_H
#define VRB_HCA_EVENT_PARTS_H

#include "hca/engine.h"

struct vrb_hchan {
	struct vrb_hctx *ctx;
	int fd;
	uint32_t refs;
	uint32_t n_written; /* events whose arrival was written to fd */
	_Atomic uint32_t n_events;
	uint32_t n_waiters;  /* threads in vrb_hchan_get */
	struct vrb_list cqs; /* with events, oldest first */
};

/* Drives the engine until c has an event; -EINTR as read() would. Called and returns with the lock
 * held. */
int vrb_event_wait(struct vrb_engine *e, struct vrb_hchan *c);

/* Events whose arrival nobody was told of, since somebody waited: the last to leave tells
 * poll()ers. Lock held. */
void vrb_event_tell_pollers(struct vrb_hchan *c);

#endif
