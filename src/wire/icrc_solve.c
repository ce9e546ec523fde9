/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IPv4 identification out of the ICRC. A UDP socket does not show the ID that the ICRC covers.
 * A CRC is linear: the ICRC on the wire and that of the same packet with ID 0 differ by the ID's
 * two bytes moved through n more zero bytes, n the bytes behind the ID. Moving back, that is
 * multiplying by x^(-8(n + 2)) modulo the polynomial, must leave a number of 16 bits: the ID. A
 * damaged packet leaves one by chance once in 2^16, so callers should also expect the ID to count.
 *
 * Polynomials are in the CRC's own reflected form: bit 31 is x^0.
 */
#include <string.h>

#include "wire/icrc.h"
#include "wire/roce.h"

#define POLY	    0xedb88320u
#define ONE	    0x80000000u
#define ID_OFFSET   4u /* in the IPv4 header */
#define LENGTH_BITS 16 /* of a packet's length */

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

enum vrb_verdict vrb_icrc_solve_ip_id(const uint8_t *net, const uint8_t *packet, size_t len,
				      uint16_t *ip_id, struct vrb_report *why)
{
	const size_t net_len = VRB_IPV4_LEN + VRB_UDP_LEN;
	uint8_t zeroed[VRB_IPV4_LEN + VRB_UDP_LEN];
	struct vrb_report r = {.verdict = VRB_V_DROP_ICRC};
	uint32_t got, want, id;

	memcpy(zeroed, net, net_len);
	zeroed[ID_OFFSET] = zeroed[ID_OFFSET + 1] = 0;
	if (vrb_icrc_check(zeroed, net_len, packet, len, &r) == VRB_OK) {
		*ip_id = 0;
		return VRB_OK;
	}
	got = (uint32_t)r.val[0];
	want = (uint32_t)r.val[1];
	if (r.verdict == VRB_V_DROP_ICRC) {
		id = multiply(got ^ want,
			      back_bytes((uint32_t)(net_len - ID_OFFSET + len - VRB_ICRC_LEN)));
		if (id <= 0xffff) {
			*ip_id = (uint16_t)((id & 0xff) << 8 | id >> 8);
			return VRB_OK;
		}
	}
	if (why)
		*why = r;
	return r.verdict;
}
