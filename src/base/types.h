/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scalars that every layer shares. Times are nanoseconds of a monotonic clock that the caller
 * reads; nothing below hca reads a clock. A QPN is 24 bits: the upper 8 are the slot of the owning
 * process, the lower 16 its index there.
 */
#ifndef VRB_BASE_TYPES_H
#define VRB_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t vrb_ns;
typedef uint32_t vrb_qpn;

#define VRB_NS_NEVER  UINT64_MAX
#define VRB_NS_PER_US 1000ull
#define VRB_NS_PER_MS 1000000ull
#define VRB_NS_PER_S  1000000000ull

#define VRB_QPN_MASK	   0xffffffu
#define VRB_QPN_INDEX_BITS 16
#define VRB_QPN_INDEX_MASK 0xffffu

#define VRB_CACHE_LINE 64

#define vrb_likely(x)			    __builtin_expect(!!(x), 1)
#define vrb_unlikely(x)			    __builtin_expect(!!(x), 0)
#define vrb_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

struct vrb_gid {
	uint8_t raw[16];
};

#endif
