/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link moves byte frames between two ends, unreliably: it may lose, repeat, delay, reorder or
 * damage them. A frame is an IP packet, from the IP header to the ICRC. Links know nothing of queue
 * pairs. An interposer is a link around a link; whatever wraps another owns it and closes it.
 *
 * Opening is each link's own function (it needs its own parameters); everything after it goes
 * through this table. One thread at a time uses an end.
 */
#ifndef VRB_LINK_LINK_H
#define VRB_LINK_LINK_H

#include "base/iov.h"
#include "base/types.h"

#define VRB_LINK_BURST 32 /* no more frames than this in one call */

struct vrb_link;

struct vrb_link_tx {
	const struct vrb_seg *seg;
	uint32_t n_seg;
};

struct vrb_link_rx {
	const uint8_t *bytes; /* valid until the next recv or close of this end */
	uint32_t len;
};

struct vrb_link_ops {
	const char *name;

	/* Takes the first frames of the n, as many as there is room for, and returns how many.
	 * Fewer than n is back-pressure: call again after a recv or the next deadline. A frame
	 * longer than caps.frame_max counts as taken and is dropped. */
	uint32_t (*send)(struct vrb_link *l, const struct vrb_link_tx *frames, uint32_t n,
			 vrb_ns now);

	/* Up to n frames that have arrived at `now`. */
	uint32_t (*recv)(struct vrb_link *l, struct vrb_link_rx *frames, uint32_t n, vrb_ns now);

	/* When recv will have something that is already on its way; VRB_NS_NEVER when nothing is.
	 * Real links, which cannot know, answer NEVER and have an fd. */
	vrb_ns (*next_deadline)(const struct vrb_link *l);

	/* Readable when frames wait; -1 for links on virtual time. */
	int (*fd)(const struct vrb_link *l);

	/* Frees the end. The other end stays usable: what it sends is lost. */
	void (*close)(struct vrb_link *l);
};

struct vrb_link_caps {
	uint32_t frame_max;
	bool lossless; /* every frame taken arrives, once, undamaged */
	bool in_order;
};

struct vrb_link {
	const struct vrb_link_ops *ops;
	struct vrb_link_caps caps;
	uint64_t n_dropped; /* frames this end dropped by itself */
};

static inline uint32_t vrb_link_send(struct vrb_link *l, const struct vrb_link_tx *frames,
				     uint32_t n, vrb_ns now)
{
	return l->ops->send(l, frames, n, now);
}

static inline uint32_t vrb_link_recv(struct vrb_link *l, struct vrb_link_rx *frames, uint32_t n,
				     vrb_ns now)
{
	return l->ops->recv(l, frames, n, now);
}

static inline vrb_ns vrb_link_next_deadline(const struct vrb_link *l)
{
	return l->ops->next_deadline(l);
}

static inline int vrb_link_fd(const struct vrb_link *l)
{
	return l->ops->fd(l);
}

static inline void vrb_link_close(struct vrb_link *l)
{
	l->ops->close(l);
}

#endif
