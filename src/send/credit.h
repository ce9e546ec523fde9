/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credits: how many receives the peer has posted for us, and how many of ours it knows of. Each
 * message takes one, and says how many came back, so that no message meets an empty receive queue.
 *
 * A bare message, which has nothing to say but that, takes its receive from a few that both ends
 * post in addition. Those come back silently, with the next message that has something else to say:
 * else two idle ends would thank each other for ever. They cannot run out while the peer waits: it
 * waits after it has spent what the last bare message gave, and what it spent it on brought all of
 * them back.
 */
#ifndef VRB_SEND_CREDIT_H
#define VRB_SEND_CREDIT_H

#include "base/types.h"

#define VRB_CREDIT_BARE 4u /* receives for bare messages */

struct vrb_credit {
	uint32_t have;		  /* messages we may still send */
	uint32_t bare;		  /* bare messages we may still send */
	uint32_t out;		  /* messages the peer may still send, as far as it knows */
	uint32_t owed, owed_bare; /* receives posted since we last told */
	uint32_t depth;		  /* of our receive queue, without those for bare messages */
};

/* depth receives are posted here, peer_depth there. */
static inline void vrb_credit_init(struct vrb_credit *c, uint32_t depth, uint32_t peer_depth)
{
	*c = (struct vrb_credit){
		.have = peer_depth, .bare = VRB_CREDIT_BARE, .out = depth, .depth = depth};
}

static inline bool vrb_credit_can_send(const struct vrb_credit *c)
{
	return c->have > 0;
}

/* A message is posted; the credits that it carries. */
static inline uint16_t vrb_credit_take(struct vrb_credit *c, bool bare, uint8_t *bare_credits)
{
	uint32_t give = c->owed > UINT16_MAX ? UINT16_MAX : c->owed;

	if (bare)
		c->bare--;
	else
		c->have--;
	*bare_credits = bare ? 0 : (uint8_t)c->owed_bare;
	c->owed_bare -= *bare_credits;
	c->owed -= give;
	c->out += give;
	return (uint16_t)give;
}

/* A message came with credits. False: the peer breaks the rules. */
static inline bool vrb_credit_on_message(struct vrb_credit *c, bool bare, uint16_t credits,
					 uint8_t bare_credits)
{
	if (!bare && !c->out--)
		return false;
	c->have += credits;
	c->bare += bare_credits;
	return c->bare <= VRB_CREDIT_BARE;
}

/* n receives were posted again. */
static inline void vrb_credit_posted(struct vrb_credit *c, uint32_t n, bool bare)
{
	if (bare)
		c->owed_bare += n;
	else
		c->owed += n;
}

/* Whether it is time to give credits back by a message of its own. */
static inline bool vrb_credit_must_tell(const struct vrb_credit *c)
{
	return c->owed && c->bare && (c->owed * 2 >= c->depth || !c->out);
}

#endif
