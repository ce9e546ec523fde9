/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A channel's completion queue: with timestamps where the adapter has a clock for them, with events
 * held back by the adapter where it can do that, else by the one who sleeps.
 */
#ifndef VRB_SEND_CQ_H
#define VRB_SEND_CQ_H

#include <infiniband/verbs.h>

#include "base/types.h"

struct vrb_channel;

/* The CQ and the channel of its events; undone by vrb_cq_destroy. */
int vrb_cq_create(struct vrb_channel *ch, uint64_t entries);
void vrb_cq_destroy(struct vrb_channel *ch);

/* As ibv_poll_cq; ns is when each completion was made, where there are timestamps. */
int vrb_cq_poll(struct vrb_channel *ch, struct ibv_wc *wc, uint64_t *ns, int n);

/* Hands the options of moderation to the CQ, or keeps them for vrb_cq_nap. */
void vrb_cq_moderate(struct vrb_channel *ch);

/* An event has woken the channel: how long it goes on sleeping so that more comes. */
uint64_t vrb_cq_nap(const struct vrb_channel *ch);
/* So much has come since: the next nap is shorter or longer. */
void vrb_cq_learn(struct vrb_channel *ch);

#endif
