/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/lease.h"

#include <errno.h>

#include "send/send.h"

struct list {
	uint32_t n, slot[VRB_LEASE_MAX];
};

void vrb_sent_buf_put(struct vrb_channel *ch, struct vrb_buf *b)
{
	if (vrb_unlikely(b->flags == VRB_BUF_LEASE)) {
		const struct list *t = b->data;

		for (uint32_t i = 0; i < t->n; i++)
			vrb_keep_put(&ch->d->keep, t->slot[i]);
		b->flags = 0;
	}
	vrb_pool_put(b);
}

static int one_more(struct vrb_lane *l, const struct iovec *v, uint32_t access,
		    struct vrb_lease *lease, struct vrb_hit *own)
{
	struct vrb_channel *ch = l->ch;
	struct list *t;
	int r;

	if (!lease->buf) {
		lease->buf = vrb_pool_get(&ch->d->pool, sizeof(*t), NULL);
		if (!lease->buf)
			return vrb_again_memory(l, sizeof(*t));
		lease->buf->state = VRB_BUF_TAKEN;
		lease->buf->flags = VRB_BUF_LEASE;
		lease->walk = lease->own;
		((struct list *)lease->buf->data)->n = 0;
	}
	r = vrb_keep_get(&ch->d->keep, (uintptr_t)v->iov_base, v->iov_len, access, own);
	if (r == -EAGAIN)
		return vrb_again(l, &ch->st.again_memory);
	if (r)
		return r;
	t = lease->buf->data;
	t->slot[t->n++] = own->id;
	return 0;
}

int vrb_lease_get(struct vrb_lane *l, const struct iovec *iov, int n, uint32_t access,
		  struct vrb_lease *lease)
{
	struct vrb_channel *ch = l->ch;
	int r = 0;

	lease->buf = NULL;
	lease->walk = NULL;
	if (ch->d->keep.mode == VRB_KEEP_NOTHING || n > (int)VRB_LEASE_MAX)
		return 0; /* the walk will say what is missing */
	for (int i = 0; i < n && !r; i++) {
		lease->own[i].len = 0;
		if (iov[i].iov_len &&
		    !vrb_regions_find(&ch->d->regions, (uintptr_t)iov[i].iov_base, &ch->hit))
			r = one_more(l, &iov[i], access, lease, &lease->own[i]);
	}
	if (r)
		vrb_lease_drop(ch, lease);
	return r;
}
