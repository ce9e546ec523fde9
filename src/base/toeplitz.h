/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Toeplitz hash that network cards spread flows with (receive side scaling): each bit of the
 * input that is set adds the 32 bits of the key that begin at its position. The hash of a whole is
 * therefore the exclusive or of the hashes of its parts, each taken where it stands.
 */
#ifndef VRB_BASE_TOEPLITZ_H
#define VRB_BASE_TOEPLITZ_H

#include "base/types.h"

#define VRB_TOEPLITZ_KEY 40u			 /* bytes */
#define VRB_TOEPLITZ_MAX (VRB_TOEPLITZ_KEY - 4u) /* of input: two IPv6 addresses, two ports */

/* The key of the published test vectors, which most drivers use as well. */
extern const uint8_t vrb_toeplitz_key[VRB_TOEPLITZ_KEY];

/* What n bytes add to the hash of an input in which they begin at byte `at`; at + n is at most
 * VRB_TOEPLITZ_MAX. */
uint32_t vrb_toeplitz(const uint8_t key[VRB_TOEPLITZ_KEY], uint32_t at, const void *bytes,
		      uint32_t n);

#endif
