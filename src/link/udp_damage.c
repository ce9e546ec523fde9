/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet damaged on purpose, after its ICRC. The bit is one that the receiver can tell: ICRC does
 * not cover all, and over IPv4, where it has to find the identification, one damage in 2^15 looks
 * like another identification. On a real wire the UDP checksum catches that; here the kernel makes
 * it from the damaged bytes.
 */
#include "link/udp.h"

#define TRIES 8u

static bool is_seen(const struct vrb_udp_batch *b, const uint8_t *packet, uint32_t len)
{
	const struct vrb_net n = {.src = b->udp->gid,
				  .dst = b->flow.dst,
				  .df = true,
				  .ip_id = (uint16_t)(b->n - 1),
				  .sport = b->udp->lane[b->flow.lane].port,
				  .dport = VRB_ROCE_PORT};
	uint8_t net[VRB_NET_MAX];
	size_t net_len = vrb_net_emit(&n, len, net);
	uint16_t id;

	if (b->udp->v4)
		return vrb_icrc_solve_ip_id(net, packet, len, &id, NULL) != VRB_OK;
	return vrb_icrc_check(net, net_len, packet, len, NULL) != VRB_OK;
}

void vrb_udp_damage(struct vrb_udp_batch *b, uint64_t random)
{
	uint32_t len = b->n ? b->len - (b->n - 1) * b->seg_len : 0;
	uint8_t *packet = b->bytes + b->len - len;

	for (uint32_t i = 0; len && i < TRIES; i++) {
		uint32_t bit = (uint32_t)((random + i) % (len * 8));

		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (is_seen(b, packet, len))
			return;
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
