/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IPv4 identification out of the ICRC. A UDP socket does not show the ID that the ICRC covers.
 * A CRC is linear: the ICRC on the wire and that of the same packet with ID 0 differ by the ID's
 * two bytes moved through n more zero bytes, n the bytes behind the ID. Moving back, that is
 * multiplying by x^(-8(n + 2)) modulo the polynomial, must leave a number of 16 bits: the ID. A
 * damaged packet leaves one by chance once in 2^15, so callers should also expect the ID to count.
 * The flag "do not fragment" is hidden as well and lies right behind the ID, so the upper half of
 * the same number may differ by that one bit.
 *
 * Polynomials are in the CRC's own reflected form: bit 31 is x^0.
 */
#include <string.h>

#include "wire/icrc.h"
#include "wire/roce.h"

#define POLY	    0xedb88320u
#define ONE	    0x80000000u
#define LENGTH_BITS 16	    /* of a packet's length */
#define DF_BIT	    0x0040u /* "do not fragment" as it lies behind the ID */

static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t p = 0;

	for (unsigned i = 0; i < 32; i++) {
		p ^= (a >> (31 - i) & 1) ? b : 0;
		b = b >> 1 ^ ((b & 1) ? POLY : 0);
	}
	return p;
}

/* x^(-8n) */
static uint32_t back_bytes(uint32_t n)
{
	uint32_t result = ONE, power = ONE;

	for (unsigned i = 0; i < 8; i++)
		power = (power & ONE) ? (power ^ POLY) << 1 | 1 : power << 1;
	for (unsigned i = 0; i < LENGTH_BITS && n; i++, n >>= 1) {
		if (n & 1)
			result = multiply(result, power);
		power = multiply(power, power);
	}
	return result;
}

/* Swaps the bytes of a 16-bit field as it stands in the packet into a number. */
static uint16_t from_wire(uint32_t v)
{
	return (uint16_t)((v & 0xff) << 8 | (v >> 8 & 0xff));
}

enum vrb_verdict vrb_icrc_check_hidden(const uint8_t *net, const uint8_t *packet, size_t len,
				       struct vrb_icrc_back *back, struct vrb_icrc_hidden *out)
{
	const size_t net_len = VRB_IPV4_LEN + VRB_UDP_LEN;
	struct vrb_report r = {.verdict = VRB_V_DROP_ICRC};
	uint32_t behind, diff;
	enum vrb_verdict v = vrb_icrc_check(net, net_len, packet, len, &r);

	out->ip_id = from_wire((uint32_t)net[VRB_IPV4_ID] | (uint32_t)net[VRB_IPV4_ID + 1] << 8);
	out->why = r;
	if (v != VRB_V_DROP_ICRC)
		return v;
	behind = (uint32_t)(net_len - VRB_IPV4_ID + len - VRB_ICRC_LEN);
	if (back->behind != behind || !back->factor) {
		back->behind = behind;
		back->factor = back_bytes(behind);
	}
	/* the difference of four bytes: ID, then flags and fragment offset */
	diff = multiply((uint32_t)r.val[0] ^ (uint32_t)r.val[1], back->factor);
	if (diff >> 16 != 0 && diff >> 16 != DF_BIT)
		return v;
	out->ip_id ^= from_wire(diff);
	return VRB_OK;
}

enum vrb_verdict vrb_icrc_solve_ip_id(const uint8_t *net, const uint8_t *packet, size_t len,
				      uint16_t *ip_id, struct vrb_report *why)
{
	uint8_t zeroed[VRB_IPV4_LEN + VRB_UDP_LEN];
	struct vrb_icrc_back back = {0};
	struct vrb_icrc_hidden h;
	enum vrb_verdict v;

	memcpy(zeroed, net, sizeof(zeroed));
	zeroed[VRB_IPV4_ID] = zeroed[VRB_IPV4_ID + 1] = 0;
	v = vrb_icrc_check_hidden(zeroed, packet, len, &back, &h);
	if (v == VRB_OK)
		*ip_id = h.ip_id;
	else if (why)
		*why = h.why;
	return v;
}
