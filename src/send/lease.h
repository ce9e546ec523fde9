/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registrations that a message uses until it ends (keep.h). They are listed in a small buffer
 * of the pool, which takes the place of the message's own and is put back with them.
 */
#ifndef VRB_SEND_LEASE_H
#define VRB_SEND_LEASE_H

#include "send/channel.h"

#define VRB_LEASE_MAX 64u /* pieces of a message that needs some */
#define VRB_BUF_LEASE 8u  /* in flags of the buffer */

struct vrb_lease {
	struct vrb_buf *buf;		   /* NULL: all was registered, or nothing is kept */
	struct vrb_hit own[VRB_LEASE_MAX]; /* for vrb_sgl_walk */
	const struct vrb_hit *walk;	   /* own, or NULL */
};

/* For what is not registered of a list. 0, -EAGAIN, or what registering failed with. */
int vrb_lease_get(struct vrb_lane *l, const struct iovec *iov, int n, uint32_t access,
		  struct vrb_lease *lease);

/* Ends what a message had: a lease or a buffer. */
void vrb_sent_buf_put(struct vrb_channel *ch, struct vrb_buf *b);

/* A lease that no message took. */
static inline void vrb_lease_drop(struct vrb_channel *ch, struct vrb_lease *lease)
{
	if (lease->buf)
		vrb_sent_buf_put(ch, lease->buf);
	lease->buf = NULL;
}

#endif
