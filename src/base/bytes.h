/* SPDX-License-Identifier: BSD-2-Clause */
/* Big-endian numbers at any address: the wire's order, on hosts of either order. */
#ifndef VRB_BASE_BYTES_H
#define VRB_BASE_BYTES_H

#include "base/types.h"

static inline uint16_t vrb_get_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t vrb_get_be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t vrb_get_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | vrb_get_be24(p + 1);
}

static inline uint64_t vrb_get_be64(const uint8_t *p)
{
	return (uint64_t)vrb_get_be32(p) << 32 | vrb_get_be32(p + 4);
}

static inline void vrb_put_be16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void vrb_put_be24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	vrb_put_be16(p + 1, v);
}

static inline void vrb_put_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	vrb_put_be24(p + 1, v);
}

static inline void vrb_put_be64(uint8_t *p, uint64_t v)
{
	vrb_put_be32(p, (uint32_t)(v >> 32));
	vrb_put_be32(p + 4, (uint32_t)v);
}

#endif
