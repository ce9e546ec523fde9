/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 24-bit packet sequence numbers as a type of their own, so that `psn + 1` and `psn < other` do not
 * compile. Comparison is serial: the sign of the difference modulo 2^24 (IBA 9.7.1).
 */
#ifndef VRB_BASE_PSN_H
#define VRB_BASE_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define VRB_PSN_MASK 0xffffffu
/* IBA 9.7.2: at most 2^23 - 1 PSNs are unacknowledged. */
#define VRB_PSN_WINDOW_MAX 0x7fffffu

struct vrb_psn {
	uint32_t v;
};

static inline struct vrb_psn vrb_psn(uint32_t v)
{
	return (struct vrb_psn){v & VRB_PSN_MASK};
}

static inline struct vrb_psn vrb_psn_add(struct vrb_psn a, uint32_t n)
{
	return (struct vrb_psn){(a.v + n) & VRB_PSN_MASK};
}

static inline struct vrb_psn vrb_psn_sub(struct vrb_psn a, uint32_t n)
{
	return (struct vrb_psn){(a.v - n) & VRB_PSN_MASK};
}

/* a - b, between -2^23 and 2^23 - 1 */
static inline int32_t vrb_psn_diff(struct vrb_psn a, struct vrb_psn b)
{
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool vrb_psn_eq(struct vrb_psn a, struct vrb_psn b)
{
	return a.v == b.v;
}

#endif
