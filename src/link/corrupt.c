/* SPDX-License-Identifier: BSD-2-Clause */
/* Inverts one bit of some frames, anywhere from the IP header to the ICRC. */
#include <errno.h>

#include "link/hold.h"

static void judge(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns now)
{
	uint8_t *copy = vrb_hold_put(h, bytes, len, now);

	if (len && vrb_hold_strikes(h, now)) {
		uint32_t bit = vrb_prng_below(&h->rng, len * 8);

		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

int vrb_corrupt_open(struct vrb_link *inner, const struct vrb_fault_conf *conf,
		     struct vrb_link **out)
{
	struct vrb_hold *h = vrb_hold_create(inner, conf, judge);

	if (!h)
		return -ENOMEM;
	h->link.caps.lossless = false;
	*out = &h->link;
	return 0;
}
