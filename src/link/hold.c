/* SPDX-License-Identifier: BSD-2-Clause */
/* The common part of interposers; see link/hold.h. When the store is full nothing more is taken
 * from the inner link, so its back-pressure reaches the sender. */
#include "link/hold.h"

#include <stdlib.h>
#include <string.h>

static struct vrb_hold *hold_of(struct vrb_link *l)
{
	return vrb_container_of(l, struct vrb_hold, link);
}

static uint32_t hold_send(struct vrb_link *l, const struct vrb_link_tx *frames, uint32_t n,
			  vrb_ns now)
{
	return vrb_link_send(hold_of(l)->inner, frames, n, now);
}

/* Removes the first `given` frames: their slots go behind the rest, for reuse. */
static void release(struct vrb_hold *h)
{
	struct vrb_held freed[VRB_LINK_BURST];
	uint32_t given = h->given;

	if (!given)
		return;
	memcpy(freed, h->held, given * sizeof(freed[0]));
	memmove(h->held, h->held + given, (h->n - given) * sizeof(freed[0]));
	memcpy(h->held + h->n - given, freed, given * sizeof(freed[0]));
	h->n -= given;
	h->given = 0;
}

static void take_arrived(struct vrb_hold *h, vrb_ns now)
{
	struct vrb_link_rx rx[VRB_LINK_BURST];

	for (;;) {
		uint32_t room = (VRB_HOLD_MAX - h->n) / VRB_HOLD_COPIES, n;

		if (!room)
			return;
		n = vrb_link_recv(h->inner, rx, room < VRB_LINK_BURST ? room : VRB_LINK_BURST, now);
		if (!n)
			return;
		for (uint32_t i = 0; i < n; i++)
			h->judge(h, rx[i].bytes, rx[i].len, now);
	}
}

static uint32_t hold_recv(struct vrb_link *l, struct vrb_link_rx *frames, uint32_t n, vrb_ns now)
{
	struct vrb_hold *h = hold_of(l);
	uint32_t i;

	release(h);
	take_arrived(h, now);
	for (i = 0; i < n && i < VRB_LINK_BURST && i < h->n && h->held[i].due <= now; i++) {
		frames[i].bytes = h->held[i].bytes;
		frames[i].len = h->held[i].len;
	}
	h->given = i;
	return i;
}

static vrb_ns hold_next_deadline(const struct vrb_link *l)
{
	const struct vrb_hold *h = vrb_container_of(l, struct vrb_hold, link);
	vrb_ns inner = vrb_link_next_deadline(h->inner);

	if (h->given == h->n)
		return inner;
	/* what waits inside while the store is full becomes due with what is in the store */
	if (VRB_HOLD_MAX - (h->n - h->given) < VRB_HOLD_COPIES)
		return h->held[h->given].due;
	return h->held[h->given].due < inner ? h->held[h->given].due : inner;
}

static int hold_fd(const struct vrb_link *l)
{
	return vrb_link_fd(vrb_container_of(l, struct vrb_hold, link)->inner);
}

static void hold_close(struct vrb_link *l)
{
	struct vrb_hold *h = hold_of(l);

	vrb_link_close(h->inner);
	free(h->memory);
	free(h);
}

uint8_t *vrb_hold_put(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns due)
{
	struct vrb_held slot = h->held[h->n];
	uint32_t at = h->n;

	while (at > 0 && h->held[at - 1].due > due) {
		h->held[at] = h->held[at - 1];
		at--;
	}
	slot.due = due;
	slot.len = len;
	memcpy(slot.bytes, bytes, len);
	h->held[at] = slot;
	h->n++;
	return slot.bytes;
}

bool vrb_hold_strikes(struct vrb_hold *h, vrb_ns now)
{
	return now < h->conf.until && vrb_prng_chance(&h->rng, h->conf.per_million);
}

static const struct vrb_link_ops hold_ops = {
	.name = "interposer",
	.send = hold_send,
	.recv = hold_recv,
	.next_deadline = hold_next_deadline,
	.fd = hold_fd,
	.close = hold_close,
};

struct vrb_hold *vrb_hold_create(struct vrb_link *inner, const struct vrb_fault_conf *conf,
				 vrb_judge *judge)
{
	struct vrb_hold *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->memory = malloc((size_t)VRB_HOLD_MAX * inner->caps.frame_max);
	if (!h->memory) {
		free(h);
		return NULL;
	}
	for (uint32_t i = 0; i < VRB_HOLD_MAX; i++)
		h->held[i].bytes = h->memory + (size_t)i * inner->caps.frame_max;
	h->link.ops = &hold_ops;
	h->link.caps = inner->caps;
	h->inner = inner;
	h->judge = judge;
	h->conf = *conf;
	h->rng = vrb_prng_seed(conf->seed);
	return h;
}
