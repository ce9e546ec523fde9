/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC-32 of the ICRC (IEEE 802.3, reflected, start and end inverted), alone or on the way of a
 * copy. By carry-less multiplication where the CPU has it, else by the library; all give the same.
 */
#ifndef VRB_WIRE_CRC32_H
#define VRB_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* crc: of what came before, 0 at the start. */
uint32_t vrb_crc32(uint32_t crc, const void *bytes, size_t len);

/* Copies too. The CRC is that of the bytes written, even when src changes meanwhile; dst and src do
 * not overlap. */
uint32_t vrb_crc32_copy(uint32_t crc, void *dst, const void *src, size_t len);

/* The ways there are: all that this CPU can go, the best last. For tests and measurements; the
 * number of them, which is at most max. */
struct vrb_crc32_way {
	const char *name;
	uint32_t (*crc)(uint32_t crc, const void *bytes, size_t len);
	uint32_t (*copy)(uint32_t crc, void *dst, const void *src, size_t len);
};
#define VRB_CRC32_WAYS_MAX 4
size_t vrb_crc32_ways(struct vrb_crc32_way out[VRB_CRC32_WAYS_MAX]);

#endif
