/* SPDX-License-Identifier: BSD-2-Clause */
/* Holds some frames back so that later ones overtake them. */
#include <errno.h>

#include "link/hold.h"

static void judge(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns now)
{
	vrb_ns due = now;

	if (vrb_hold_strikes(h, now))
		due += vrb_prng_below(&h->rng, h->spread_ns + 1);
	vrb_hold_put(h, bytes, len, due);
}

int vrb_reorder_open(struct vrb_link *inner, const struct vrb_fault_conf *conf, uint32_t spread_ns,
		     struct vrb_link **out)
{
	struct vrb_hold *h = vrb_hold_create(inner, conf, judge);

	if (!h)
		return -ENOMEM;
	h->link.caps.in_order = false;
	h->spread_ns = spread_ns;
	*out = &h->link;
	return 0;
}
