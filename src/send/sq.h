/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts of a send queue with selective signaling. Work requests are numbered in the order of
 * posting; a completion of number k proves that all up to k have been executed, so that their
 * places and buffers are free. Among any `period` neighbours one is signaled, and period is at most
 * half of the depth: a full queue always has a completion to come.
 */
#ifndef VRB_SEND_SQ_H
#define VRB_SEND_SQ_H

#include "base/types.h"

struct vrb_sq {
	uint32_t depth, period;
	uint32_t head, tail; /* numbers of the oldest one under way and of the next one */
	uint32_t unsignaled; /* since the last signaled one */
};

static inline void vrb_sq_init(struct vrb_sq *q, uint32_t depth, uint32_t period)
{
	uint32_t most = depth > 1 ? depth / 2 : 1;

	*q = (struct vrb_sq){.depth = depth, .period = !period || period > most ? most : period};
}

static inline uint32_t vrb_sq_room(const struct vrb_sq *q)
{
	return q->depth - (q->tail - q->head);
}

/* Takes the place of number q->tail; room was there. Returns whether it must be signaled. */
static inline bool vrb_sq_push(struct vrb_sq *q, bool wanted)
{
	q->tail++;
	if (wanted || ++q->unsignaled >= q->period) {
		q->unsignaled = 0;
		return true;
	}
	return false;
}

/* Number k has completed. False: it is not under way. */
static inline bool vrb_sq_retire(struct vrb_sq *q, uint32_t k)
{
	if (k - q->head >= q->tail - q->head)
		return false;
	q->head = k + 1;
	return true;
}

#endif
