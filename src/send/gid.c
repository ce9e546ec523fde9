/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/gid.h"

#include <string.h>

static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void vrb_gid_from_ipv4(struct vrb_gid *gid, uint32_t addr_be)
{
	memcpy(gid->raw, v4_prefix, sizeof(v4_prefix));
	memcpy(gid->raw + 12, &addr_be, 4);
}

static bool is_v4(const struct vrb_gid *g)
{
	return !memcmp(g->raw, v4_prefix, sizeof(v4_prefix));
}

static bool is_loopback(const struct vrb_gid *g)
{
	static const struct vrb_gid one = {.raw = {[15] = 1}};

	return (is_v4(g) && g->raw[12] == 127) || !memcmp(g, &one, sizeof(one));
}

/* Larger is better; 0: not usable without being asked for by name. */
static int rank(const struct vrb_gid_entry *e)
{
	if (e->type != VRB_GID_ROCE2)
		return 0;
	if (is_v4(&e->gid))
		return 3;
	return e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80 ? 1 : 2;
}

const struct vrb_gid_entry *vrb_gid_choose(const struct vrb_gid_entry *e, uint32_t n, bool ethernet,
					   const struct vrb_gid *want)
{
	const struct vrb_gid_entry *best = NULL;

	if (!ethernet)
		return n ? &e[0] : NULL;
	for (uint32_t i = 0; i < n; i++) {
		if (want && !is_loopback(want)) {
			if (e[i].type == VRB_GID_ROCE2 && !memcmp(&e[i].gid, want, sizeof(*want)))
				return &e[i];
		} else if (rank(&e[i]) > (best ? rank(best) : 0)) {
			best = &e[i];
		}
	}
	return best;
}
