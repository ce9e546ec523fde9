/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which way this CPU goes is found out at the first call. The answer is the same for every thread,
 * so that several may find it at once. Short pieces and the CPUs without carry-less multiplication
 * use the library.
 */
#include "wire/crc32.h"

#include <stdatomic.h>
#include <string.h>

#include <libdeflate.h>

#include "wire/crc32_x86.h"

static uint32_t by_library(uint32_t crc, const void *bytes, size_t len)
{
	/* it takes a NULL buffer as "start anew" */
	return len ? libdeflate_crc32(crc, bytes, len) : crc;
}

static uint32_t copy_by_library(uint32_t crc, void *dst, const void *src, size_t len)
{
	if (len)
		memcpy(dst, src, len);
	return by_library(crc, dst, len);
}

#ifdef __x86_64__

#define WAY(width)                                                                                 \
	static uint32_t by_##width(uint32_t crc, const void *bytes, size_t len)                    \
	{                                                                                          \
		if (len < VRB_CRC32_FOLD_MIN)                                                      \
			return by_library(crc, bytes, len);                                        \
		return ~vrb_crc32_fold##width(~crc, NULL, bytes, len);                             \
	}                                                                                          \
	static uint32_t copy_by_##width(uint32_t crc, void *dst, const void *src, size_t len)      \
	{                                                                                          \
		if (len < VRB_CRC32_FOLD_MIN)                                                      \
			return copy_by_library(crc, dst, src, len);                                \
		return ~vrb_crc32_fold##width(~crc, dst, src, len);                                \
	}

WAY(128)
WAY(256)
WAY(512)

static const struct vrb_crc32_way ways[] = {
	{"library", by_library, copy_by_library},
	{"128 bits", by_128, copy_by_128},
	{"256 bits", by_256, copy_by_256},
	{"512 bits", by_512, copy_by_512},
};

static size_t n_ways(void)
{
	return 1 + (size_t)vrb_crc32_x86_level();
}

#else

static const struct vrb_crc32_way ways[] = {{"library", by_library, copy_by_library}};

static size_t n_ways(void)
{
	return 1;
}

#endif

static const struct vrb_crc32_way *best(void)
{
	static _Atomic size_t n; /* 0: not known yet */
	size_t known = atomic_load_explicit(&n, memory_order_relaxed);

	if (!known) {
		known = n_ways();
		atomic_store_explicit(&n, known, memory_order_relaxed);
	}
	return &ways[known - 1];
}

uint32_t vrb_crc32(uint32_t crc, const void *bytes, size_t len)
{
	return best()->crc(crc, bytes, len);
}

uint32_t vrb_crc32_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	return best()->copy(crc, dst, src, len);
}

size_t vrb_crc32_ways(struct vrb_crc32_way out[VRB_CRC32_WAYS_MAX])
{
	size_t n = n_ways();

	memcpy(out, ways, n * sizeof(*out));
	return n;
}
