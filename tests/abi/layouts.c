/* SPDX-License-Identifier: BSD-2-Clause */
/* The installed headers lay out every public struct as the table says that programs were built. */
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdio.h>

static const struct {
	const char *name;
	size_t offset, size, want_offset, want_size;
} rows[] = {
#include "layout_rows.h"
};

int main(void)
{
	size_t n = sizeof(rows) / sizeof(rows[0]), wrong = 0;

	for (size_t i = 0; i < n; i++) {
		if (rows[i].offset == rows[i].want_offset && rows[i].size == rows[i].want_size)
			continue;
		wrong++;
		printf("%s: offset %zu size %zu, the table has %zu and %zu\n", rows[i].name,
		       rows[i].offset, rows[i].size, rows[i].want_offset, rows[i].want_size);
	}
	printf("%zu layouts checked, %zu differ\n", n, wrong);
	return wrong != 0;
}
