/* SPDX-License-Identifier: BSD-2-Clause */
/* Hands out some frames twice, the copy at once or later. */
#include <errno.h>

#include "link/hold.h"

static void judge(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns now)
{
	vrb_hold_put(h, bytes, len, now);
	if (vrb_hold_strikes(h, now))
		vrb_hold_put(h, bytes, len, now + vrb_prng_below(&h->rng, h->spread_ns + 1));
}

int vrb_duplicate_open(struct vrb_link *inner, const struct vrb_fault_conf *conf,
		       uint32_t spread_ns, struct vrb_link **out)
{
	struct vrb_hold *h = vrb_hold_create(inner, conf, judge);

	if (!h)
		return -ENOMEM;
	h->link.caps.lossless = false;
	h->link.caps.in_order = false;
	h->spread_ns = spread_ns;
	*out = &h->link;
	return 0;
}
