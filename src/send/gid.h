/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which entry of a port's GID table to use: never by its index, which differs from host to host and
 * from container to container, always by type and address.
 */
#ifndef VRB_SEND_GID_H
#define VRB_SEND_GID_H

#include "base/types.h"

enum vrb_gid_type { VRB_GID_IB, VRB_GID_ROCE1, VRB_GID_ROCE2 };

struct vrb_gid_entry {
	struct vrb_gid gid;
	uint32_t index;
	enum vrb_gid_type type;
};

/* An IPv4 address as a GID carries it. */
void vrb_gid_from_ipv4(struct vrb_gid *gid, uint32_t addr_be);

/*
 * The entry for an Ethernet port: RoCEv2 with exactly this address; where want is NULL or loopback:
 * IPv4 before routable IPv6 before link-local. On an InfiniBand port the first one. NULL: none.
 */
const struct vrb_gid_entry *vrb_gid_choose(const struct vrb_gid_entry *e, uint32_t n, bool ethernet,
					   const struct vrb_gid *want);

#endif
