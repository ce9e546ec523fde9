/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IP and UDP headers around a packet: for links that see them (simulation, captures, packet
 * sockets) and for the ICRC, which covers them. Addresses are GIDs; an IPv4 address is
 * ::ffff:a.b.c.d (RoCEv2 A17.4.5), and both addresses are of one version.
 */
#ifndef VRB_WIRE_NET_H
#define VRB_WIRE_NET_H

#include "base/types.h"
#include "base/verdict.h"

/* Of the traffic class, RFC 3168. */
enum { VRB_ECN_MASK = 3, VRB_ECN_CE = 3 };

struct vrb_net {
	struct vrb_gid src, dst;
	uint8_t tclass;	     /* DSCP and ECN */
	uint8_t ttl;	     /* or hop limit */
	bool df;	     /* IPv4 */
	uint16_t ip_id;	     /* IPv4 */
	uint32_t flow_label; /* IPv6 */
	uint16_t sport, dport;
	uint16_t udp_checksum; /* as on the wire; 0 = none */
};

bool vrb_gid_is_ipv4(const struct vrb_gid *gid);

static inline size_t vrb_net_len(const struct vrb_net *n)
{
	return vrb_gid_is_ipv4(&n->dst) ? 28 : 48;
}

/* Writes both headers (vrb_net_len bytes) for len bytes of UDP payload; returns how many. The IPv4
 * header checksum is computed, the UDP checksum taken as given. */
size_t vrb_net_emit(const struct vrb_net *n, size_t len, uint8_t *out);

/*
 * Reads a packet of len bytes that starts at the IP header. VRB_OK with the place and length of
 * the UDP payload (lengths are the headers', so trailing bytes of a short Ethernet frame are
 * ignored), or why it is refused: no UDP, a fragment, IPv4 options, lengths that disagree.
 */
enum vrb_verdict vrb_net_parse(const uint8_t *ip, size_t len, struct vrb_net *out,
			       const uint8_t **payload, size_t *payload_len);

#endif
