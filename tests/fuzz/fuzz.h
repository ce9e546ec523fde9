/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzz targets share: the entry point that libFuzzer (or replay.c) calls, a reader of
 * input bytes that gives zeros behind the end, and a check that ends the program.
 */
#ifndef VRB_TESTS_FUZZ_H
#define VRB_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FZ_CHECK(e)                                                                                \
	do {                                                                                       \
		if (!(e)) {                                                                        \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #e);          \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct fz {
	const uint8_t *p;
	size_t n;
};

static inline uint8_t fz_u8(struct fz *f)
{
	if (!f->n)
		return 0;
	f->n--;
	return *f->p++;
}

static inline uint32_t fz_u32(struct fz *f)
{
	uint32_t v = fz_u8(f);

	v = v << 8 | fz_u8(f);
	v = v << 8 | fz_u8(f);
	return v << 8 | fz_u8(f);
}

#endif
