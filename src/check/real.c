/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions behind us: the next in line, or, when libibverbs came with a library that was
 * opened late, that library's. The checker does not link it: a program without verbs shall not load
 * it.
 */
#include "check/check.h"

#include <dlfcn.h>
#include <errno.h>

__thread int vrb_chk_depth;
_Atomic bool vrb_chk_in_child;

void *vrb_chk_real(_Atomic(void *) *cached, const char *name)
{
	void *f = atomic_load_explicit(cached, memory_order_acquire);
	void *lib;

	if (vrb_likely(f))
		return f;
	vrb_chk_depth++;
	f = dlsym(RTLD_NEXT, name);
	if (!f) {
		lib = dlopen("libibverbs.so.1", RTLD_LAZY);
		f = lib ? dlsym(lib, name) : NULL;
	}
	vrb_chk_depth--;
	if (f)
		atomic_store_explicit(cached, f, memory_order_release);
	else
		errno = ENOSYS;
	return f;
}
