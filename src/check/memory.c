/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * free() and munmap() of memory that the adapter may yet touch. Nearly all that is freed has never
 * been registered: a filter of 64 KiB chunks says so without a look at any table. The filter only
 * grows.
 */
#include "check/check.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_BITS  16
#define FILTER_BITS (1u << 20)
#define CHUNKS_MAX  (1u << 18) /* regions and blocks beyond 16 GiB are not watched */

static _Atomic uint64_t filter[FILTER_BITS / 64];
static _Atomic bool is_watching;

static uint32_t bit_of(uint64_t chunk)
{
	return (uint32_t)(chunk ^ chunk >> 20) & (FILTER_BITS - 1);
}

void vrb_chk_memory_watch(uint64_t addr, uint64_t len)
{
	uint64_t first = addr >> CHUNK_BITS, last = (addr + len - 1) >> CHUNK_BITS;

	if (!len || addr + len < addr || last - first > CHUNKS_MAX)
		return;
	for (uint64_t c = first; c <= last; c++)
		atomic_fetch_or_explicit(&filter[bit_of(c) / 64], 1ull << bit_of(c) % 64,
					 memory_order_relaxed);
	atomic_store(&is_watching, true);
}

static bool may_be_registered(uint64_t addr, uint64_t len)
{
	uint64_t first = addr >> CHUNK_BITS, last = (addr + len - 1) >> CHUNK_BITS;

	for (uint64_t c = first; len && c <= last && c - first <= CHUNKS_MAX; c++)
		if (atomic_load_explicit(&filter[bit_of(c) / 64], memory_order_relaxed) >>
			    bit_of(c) % 64 &
		    1)
			return true;
	return false;
}

static void going(const char *call, uint64_t addr, uint64_t len)
{
	struct vrb_chk_flight f = {.addr = addr, .len = len};
	struct vrb_chk_finding what = {.call = call};

	vrb_chk_depth++;
	vrb_chk_flight_find(&f);
	if (f.n) {
		what.r = (struct vrb_report){.verdict = VRB_V_BUFFER_FREED,
					     .qpn = f.qpn,
					     .val = {addr, len, f.n, f.wr_id}};
		what.posted = f.pc;
		vrb_chk_report(&what);
	}
	vrb_chk_depth--;
}

static inline bool is_watched(void)
{
	return vrb_unlikely(atomic_load_explicit(&is_watching, memory_order_relaxed)) &&
	       !vrb_chk_off();
}

/* free() is called while its own real function is looked up: what comes then is small and rare,
 * and is not given back. */
static void real_free(void *p)
{
	static void (*_Atomic next)(void *);
	static __thread bool is_looking;
	void (*f)(void *) = atomic_load_explicit(&next, memory_order_relaxed);

	if (vrb_unlikely(!f)) {
		if (is_looking)
			return;
		is_looking = true;
		f = (void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "free");
		is_looking = false;
		atomic_store_explicit(&next, f, memory_order_relaxed);
	}
	f(p);
}

__attribute__((visibility("default"))) void free(void *p)
{
	if (p && is_watched()) {
		size_t len = malloc_usable_size(p);

		if (may_be_registered((uintptr_t)p, len))
			going("free", (uintptr_t)p, len);
	}
	real_free(p);
}

__attribute__((visibility("default"))) int munmap(void *addr, size_t len)
{
	static _Atomic(void *) cached;
	int (*real)(void *, size_t) = vrb_chk_real(&cached, "munmap");

	if (is_watched() && may_be_registered((uintptr_t)addr, len))
		going("munmap", (uintptr_t)addr, len);
	return real(addr, len);
}
