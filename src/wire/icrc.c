/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The masked head (IP, UDP, first bytes of the BTH) is copied and masked on the stack; everything
 * behind is read in place, or goes along when there is little of it. The eight leading bytes of
 * ones are a constant: their CRC is the seed.
 */
#include "wire/icrc.h"

#include <string.h>

#include "wire/crc32.h"
#include "wire/pkt.h"
#include "wire/roce.h"

/* CRC-32 of eight bytes 0xff */
#define SEED 0x2144df1cu
/* A packet up to this long is copied whole: one run is quicker than two. */
#define SHORT 96u

static void mask(uint8_t *head, size_t ip_len)
{
	uint8_t *udp = head + ip_len;

	if (ip_len == VRB_IPV4_LEN) {
		head[1] = 0xff;		    /* type of service */
		head[8] = 0xff;		    /* TTL */
		head[10] = head[11] = 0xff; /* header checksum */
	} else {
		head[0] |= 0x0f; /* traffic class and flow label */
		head[1] = head[2] = head[3] = 0xff;
		head[7] = 0xff; /* hop limit */
	}
	udp[6] = udp[7] = 0xff;	     /* UDP checksum */
	udp[VRB_UDP_LEN + 4] = 0xff; /* BTH: FECN, BECN, reserved */
}

uint32_t vrb_icrc_start(const uint8_t *net, size_t net_len, const uint8_t *headers, size_t len)
{
	uint8_t head[VRB_NET_MAX + SHORT];
	size_t n = len <= SHORT ? len : VRB_BTH_LEN;
	uint32_t crc;

	memcpy(head, net, net_len);
	memcpy(head + net_len, headers, n);
	mask(head, net_len - VRB_UDP_LEN);
	crc = vrb_crc32(SEED, head, net_len + n);
	return vrb_crc32(crc, headers + n, len - n);
}

uint32_t vrb_icrc_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	return vrb_crc32_copy(crc, dst, src, len);
}

uint32_t vrb_icrc_add_payload(uint32_t crc, const struct vrb_seg *seg, uint32_t n, uint32_t len)
{
	static const uint8_t zeros[3];

	for (uint32_t i = 0; i < n; i++)
		crc = vrb_crc32(crc, seg[i].base, seg[i].len);
	return vrb_crc32(crc, zeros, vrb_pkt_pad(len));
}

void vrb_icrc_store(uint32_t crc, uint8_t out[4])
{
	out[0] = (uint8_t)crc;
	out[1] = (uint8_t)(crc >> 8);
	out[2] = (uint8_t)(crc >> 16);
	out[3] = (uint8_t)(crc >> 24);
}

uint32_t vrb_icrc_load(const uint8_t bytes[4])
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

enum vrb_verdict vrb_icrc_check(const uint8_t *net, size_t net_len, const uint8_t *packet,
				size_t len, struct vrb_report *why)
{
	struct vrb_report r = {0};
	uint32_t got, want;

	if (len < VRB_BTH_LEN + VRB_ICRC_LEN) {
		r.verdict = VRB_V_DROP_SHORT;
		r.val[0] = len;
		r.val[1] = len ? packet[0] : 0;
	} else {
		want = vrb_icrc_start(net, net_len, packet, len - VRB_ICRC_LEN);
		got = vrb_icrc_load(packet + len - VRB_ICRC_LEN);
		r.verdict = got == want ? VRB_OK : VRB_V_DROP_ICRC;
		r.val[0] = got;
		r.val[1] = want;
	}
	if (why && r.verdict != VRB_OK)
		*why = r;
	return r.verdict;
}
