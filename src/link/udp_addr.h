/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses of GIDs, for the files of the UDP link. */
#ifndef VRB_LINK_UDP_ADDR_H
#define VRB_LINK_UDP_ADDR_H

#include <string.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include "wire/net.h"

union vrb_udp_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Link-local addresses need the interface. */
static inline socklen_t vrb_udp_addr(union vrb_udp_addr *a, const struct vrb_gid *gid,
				     uint32_t ifindex, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (vrb_gid_is_ipv4(gid)) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(port);
		memcpy(&a->v4.sin_addr, &gid->raw[12], 4);
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(port);
	memcpy(&a->v6.sin6_addr, gid->raw, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr))
		a->v6.sin6_scope_id = ifindex;
	return sizeof(a->v6);
}

static inline uint16_t vrb_udp_gid(const union vrb_udp_addr *a, struct vrb_gid *gid)
{
	if (a->sa.sa_family == AF_INET) {
		memset(gid, 0, sizeof(*gid));
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(&gid->raw[12], &a->v4.sin_addr, 4);
		return ntohs(a->v4.sin_port);
	}
	memcpy(gid->raw, &a->v6.sin6_addr, 16);
	return ntohs(a->v6.sin6_port);
}

#endif
