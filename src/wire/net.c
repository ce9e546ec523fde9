/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4, IPv6 and UDP headers (RFC 791, 8200, 768) as RoCEv2 uses them: no options, no extension
 * headers, no fragments (RoCEv2 A17.3). Checksums of UDP are not verified here: the ICRC is
 * stronger, and kernels verify those that are not 0.
 */
#include "wire/net.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/roce.h"

#define PROTO_UDP     17
#define IPV4_DF	      0x4000u
#define IPV4_FRAGMENT 0x3fffu /* more fragments, or an offset */

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

bool vrb_gid_is_ipv4(const struct vrb_gid *gid)
{
	return memcmp(gid->raw, v4_mapped, sizeof(v4_mapped)) == 0;
}

static uint32_t ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < VRB_IPV4_LEN; i += 2)
		sum += vrb_get_be16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static void emit_udp(const struct vrb_net *n, size_t len, uint8_t *out)
{
	vrb_put_be16(out, n->sport);
	vrb_put_be16(out + 2, n->dport);
	vrb_put_be16(out + 4, (uint32_t)(VRB_UDP_LEN + len));
	vrb_put_be16(out + 6, n->udp_checksum);
}

size_t vrb_net_emit(const struct vrb_net *n, size_t len, uint8_t *out)
{
	if (!vrb_gid_is_ipv4(&n->dst)) {
		vrb_put_be32(out, 6u << 28 | (uint32_t)n->tclass << 20 | (n->flow_label & 0xfffff));
		vrb_put_be16(out + 4, (uint32_t)(VRB_UDP_LEN + len));
		out[6] = PROTO_UDP;
		out[7] = n->ttl;
		memcpy(out + 8, n->src.raw, 16);
		memcpy(out + 24, n->dst.raw, 16);
		emit_udp(n, len, out + VRB_IPV6_LEN);
		return VRB_IPV6_LEN + VRB_UDP_LEN;
	}
	out[0] = 0x45;
	out[1] = n->tclass;
	vrb_put_be16(out + 2, (uint32_t)(VRB_IPV4_LEN + VRB_UDP_LEN + len));
	vrb_put_be16(out + 4, n->ip_id);
	vrb_put_be16(out + 6, n->df ? IPV4_DF : 0);
	out[8] = n->ttl;
	out[9] = PROTO_UDP;
	vrb_put_be16(out + 10, 0);
	memcpy(out + 12, n->src.raw + 12, 4);
	memcpy(out + 16, n->dst.raw + 12, 4);
	vrb_put_be16(out + 10, ipv4_checksum(out));
	emit_udp(n, len, out + VRB_IPV4_LEN);
	return VRB_IPV4_LEN + VRB_UDP_LEN;
}

/* The length of an acceptable IP header at ip, or 0; *total is what IP says it carries with it. */
static size_t parse_ipv4(const uint8_t *ip, size_t len, struct vrb_net *n, size_t *total)
{
	uint32_t frag;

	if (len < VRB_IPV4_LEN || ip[0] != 0x45 || ip[9] != PROTO_UDP)
		return 0;
	frag = vrb_get_be16(ip + 6);
	if ((frag & IPV4_FRAGMENT) || ipv4_checksum(ip) != 0)
		return 0;
	*total = vrb_get_be16(ip + 2);
	n->tclass = ip[1];
	n->ip_id = vrb_get_be16(ip + 4);
	n->df = frag & IPV4_DF;
	n->ttl = ip[8];
	memcpy(n->src.raw, v4_mapped, 12);
	memcpy(n->dst.raw, v4_mapped, 12);
	memcpy(n->src.raw + 12, ip + 12, 4);
	memcpy(n->dst.raw + 12, ip + 16, 4);
	return VRB_IPV4_LEN;
}

static size_t parse_ipv6(const uint8_t *ip, size_t len, struct vrb_net *n, size_t *total)
{
	uint32_t word;

	if (len < VRB_IPV6_LEN || ip[6] != PROTO_UDP)
		return 0;
	word = vrb_get_be32(ip);
	*total = (size_t)VRB_IPV6_LEN + vrb_get_be16(ip + 4);
	n->tclass = (uint8_t)(word >> 20);
	n->flow_label = word & 0xfffff;
	n->ttl = ip[7];
	memcpy(n->src.raw, ip + 8, 16);
	memcpy(n->dst.raw, ip + 24, 16);
	return VRB_IPV6_LEN;
}

enum vrb_verdict vrb_net_parse(const uint8_t *ip, size_t len, struct vrb_net *out,
			       const uint8_t **payload, size_t *payload_len)
{
	size_t ip_len = 0, total = 0, udp_len;
	const uint8_t *udp;

	memset(out, 0, sizeof(*out));
	if (len && ip[0] >> 4 == 4)
		ip_len = parse_ipv4(ip, len, out, &total);
	else if (len && ip[0] >> 4 == 6)
		ip_len = parse_ipv6(ip, len, out, &total);
	if (!ip_len || total > len || total < ip_len + VRB_UDP_LEN)
		return VRB_V_DROP_IP;
	udp = ip + ip_len;
	udp_len = vrb_get_be16(udp + 4);
	if (udp_len != total - ip_len)
		return VRB_V_DROP_IP;
	out->sport = vrb_get_be16(udp);
	out->dport = vrb_get_be16(udp + 2);
	out->udp_checksum = vrb_get_be16(udp + 6);
	*payload = udp + VRB_UDP_LEN;
	*payload_len = udp_len - VRB_UDP_LEN;
	return VRB_OK;
}
