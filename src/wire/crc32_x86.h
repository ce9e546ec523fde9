/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32 by carry-less multiplication (crc32_x86.c); for crc32.c only. dst NULL: no copy. At least
 * VRB_CRC32_FOLD_MIN bytes. The CRC register goes in and out, without the inversions. */
#ifndef VRB_WIRE_CRC32_X86_H
#define VRB_WIRE_CRC32_X86_H

#include <stddef.h>
#include <stdint.h>

#define VRB_CRC32_FOLD_MIN 16u

enum vrb_crc32_x86 { VRB_CRC32_NONE, VRB_CRC32_128, VRB_CRC32_256, VRB_CRC32_512 };

/* The widest that CPU and system can do. */
enum vrb_crc32_x86 vrb_crc32_x86_level(void);

uint32_t vrb_crc32_fold128(uint32_t reg, uint8_t *dst, const uint8_t *src, size_t len);
uint32_t vrb_crc32_fold256(uint32_t reg, uint8_t *dst, const uint8_t *src, size_t len);
uint32_t vrb_crc32_fold512(uint32_t reg, uint8_t *dst, const uint8_t *src, size_t len);

#endif
