/* SPDX-License-Identifier: BSD-2-Clause */
/* Delays frames and keeps their order: a frame never becomes due before the one in front of it. */
#include <errno.h>

#include "link/hold.h"

static void judge(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns now)
{
	vrb_ns due = now + h->delay_ns;

	if (vrb_hold_strikes(h, now))
		due += vrb_prng_below(&h->rng, h->spread_ns + 1);
	if (due < h->last_due)
		due = h->last_due;
	h->last_due = due;
	vrb_hold_put(h, bytes, len, due);
}

int vrb_delay_open(struct vrb_link *inner, const struct vrb_fault_conf *conf, uint32_t delay_ns,
		   uint32_t spread_ns, struct vrb_link **out)
{
	struct vrb_hold *h = vrb_hold_create(inner, conf, judge);

	if (!h)
		return -ENOMEM;
	h->delay_ns = delay_ns;
	h->spread_ns = spread_ns;
	*out = &h->link;
	return 0;
}
