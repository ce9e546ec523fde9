/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/toeplitz.h"

const uint8_t vrb_toeplitz_key[VRB_TOEPLITZ_KEY] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

uint32_t vrb_toeplitz(const uint8_t key[VRB_TOEPLITZ_KEY], uint32_t at, const void *bytes,
		      uint32_t n)
{
	const uint8_t *in = bytes;
	uint32_t hash = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *k = key + at + i;
		uint64_t window = (uint64_t)k[0] << 32 | (uint64_t)k[1] << 24 |
				  (uint64_t)k[2] << 16 | (uint64_t)k[3] << 8 | k[4];

		for (uint32_t bit = 0; bit < 8; bit++)
			if (in[i] & (0x80u >> bit))
				hash ^= (uint32_t)(window >> (8 - bit));
	}
	return hash;
}
