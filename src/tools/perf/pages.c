/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/pages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES (2u << 20)
#define PAGE	   4096u
#define LINE_BYTES 256
#define MODE	   (PROT_READ | PROT_WRITE)
#define KIND	   (MAP_PRIVATE | MAP_ANONYMOUS)

/* How much of the mapping that begins at mem the kernel has made of huge pages. */
static size_t huge_bytes(const void *mem)
{
	unsigned long long begin, end, kb;
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[LINE_BYTES];
	bool inside = false;
	size_t found = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
			inside = (uintptr_t)mem >= begin && (uintptr_t)mem < end;
		else if (inside && sscanf(line, "AnonHugePages: %llu kB", &kb) == 1)
			found = (size_t)kb * 1024;
	}
	if (f)
		fclose(f);
	return found;
}

/* A mapping that begins on a border of huge pages. */
static uint8_t *map_aligned(size_t len)
{
	uint8_t *all = mmap(NULL, len + HUGE_BYTES, MODE, KIND, -1, 0), *mem;
	size_t front;

	if (all == MAP_FAILED)
		return NULL;
	front = HUGE_BYTES - (uintptr_t)all % HUGE_BYTES;
	mem = all + front;
	munmap(all, front);
	if (front < HUGE_BYTES)
		munmap(mem + len, HUGE_BYTES - front);
	return mem;
}

static void *map_huge(size_t len, char why[PERF_WHY_BYTES])
{
	uint8_t *mem = mmap(NULL, len, MODE, KIND | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	size_t got = 0;

	if (mem != MAP_FAILED) {
		memset(mem, 1, len);
		return mem;
	}
	mem = map_aligned(len);
	if (mem && !madvise(mem, len, MADV_HUGEPAGE)) {
		memset(mem, 1, len);
		got = huge_bytes(mem);
	}
	if (got >= len)
		return mem;
	snprintf(why, PERF_WHY_BYTES,
		 "huge pages: the kernel has made %zu of %zu bytes of them (vm.nr_hugepages, or "
		 "/sys/kernel/mm/transparent_hugepage/enabled)",
		 got, len);
	if (mem)
		munmap(mem, len);
	return NULL;
}

void *vrb_perf_pages_map(size_t *len, enum perf_pages kind, char why[PERF_WHY_BYTES])
{
	size_t unit = kind == PERF_HUGE_PAGES ? HUGE_BYTES : PAGE;
	uint8_t *mem;

	*len = (*len + unit - 1) / unit * unit;
	if (kind == PERF_HUGE_PAGES)
		return map_huge(*len, why);
	mem = mmap(NULL, *len, MODE, KIND, -1, 0);
	if (mem == MAP_FAILED) {
		snprintf(why, PERF_WHY_BYTES, "%zu bytes of memory: %s", *len, strerror(errno));
		return NULL;
	}
	if (kind == PERF_SMALL_PAGES)
		(void)madvise(mem, *len, MADV_NOHUGEPAGE); /* a kernel without them refuses */
	memset(mem, 1, *len);				   /* not the zero page */
	return mem;
}
