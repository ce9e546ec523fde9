/* SPDX-License-Identifier: BSD-2-Clause */
/* Loses frames: by a script (exhaustive tests) or by chance. */
#include <errno.h>

#include "link/hold.h"

static void judge(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns now)
{
	struct vrb_loss_script *s = h->script;
	bool lost;

	if (s && s->seen < s->n)
		lost = s->mask >> s->seen++ & 1;
	else
		lost = vrb_hold_strikes(h, now);
	if (lost)
		h->link.n_dropped++;
	else
		vrb_hold_put(h, bytes, len, now);
}

int vrb_loss_open(struct vrb_link *inner, const struct vrb_fault_conf *conf,
		  struct vrb_loss_script *script, struct vrb_link **out)
{
	struct vrb_hold *h = vrb_hold_create(inner, conf, judge);

	if (!h)
		return -ENOMEM;
	h->link.caps.lossless = false;
	h->script = script;
	*out = &h->link;
	return 0;
}
