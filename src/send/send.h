/* SPDX-License-Identifier: BSD-2-Clause */
/* What the calls that send, write and read share. */
#ifndef VRB_SEND_SEND_H
#define VRB_SEND_SEND_H

#include "send/channel.h"

#define VRB_PIECES_MAX 64u /* of an offer; a list of more is copied */

/* The lane of the message's flow. */
struct vrb_lane *vrb_lane_of(struct vrb_channel *ch, const struct vrb_send_options *o);

/* Nothing can be posted on the lane now, or ever: -EAGAIN, or the reason. */
int vrb_lane_down(struct vrb_lane *l);

/* Counts; vrb_poll will say when there is what was wanted: room for a message, or else. */
int vrb_again(struct vrb_lane *l, uint64_t *why);
int vrb_again_for(struct vrb_lane *l, uint64_t *why, const struct vrb_want *want);
int vrb_again_memory(struct vrb_lane *l, uint64_t bytes);
bool vrb_lane_has_room(struct vrb_lane *l);

struct vrb_sent vrb_sent_make(const struct vrb_channel *ch, const struct vrb_send_options *o,
			      enum vrb_sent_kind kind);

#endif
