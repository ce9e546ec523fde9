/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define PAGE 4096u

static struct {
	_Atomic uintptr_t base; /* 0: free */
	_Atomic size_t len;
	_Atomic bool hit;
} spans[VRB_GUARDS_MAX];

static struct sigaction before;
static bool installed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The file has shrunk: from here to the end of the mapping there is nothing. */
static bool patch(uintptr_t at)
{
	for (uint32_t i = 0; i < VRB_GUARDS_MAX; i++) {
		uintptr_t base = atomic_load(&spans[i].base), page = at & ~(uintptr_t)(PAGE - 1);
		size_t len = atomic_load(&spans[i].len);

		if (!base || at - base >= len)
			continue;
		atomic_store(&spans[i].hit, true);
		return mmap((void *)page, base + len - page, PROT_READ,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
	}
	return false;
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
	bool patched = patch((uintptr_t)info->si_addr);

	if (patched)
		return;
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(sig);
	else
		sigaction(SIGBUS, &before, NULL); /* and the fault comes again */
}

static void install(void)
{
	struct sigaction a = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigemptyset(&a.sa_mask);
	installed = !sigaction(SIGBUS, &a, &before);
}

int vrb_guard_add(void *base, size_t len)
{
	pthread_once(&once, install);
	for (uint32_t i = 0; installed && i < VRB_GUARDS_MAX; i++) {
		uintptr_t none = 0;

		/* The length first is not possible: a span of length 0 holds nothing. */
		if (!atomic_compare_exchange_strong(&spans[i].base, &none, (uintptr_t)base))
			continue;
		atomic_store(&spans[i].hit, false);
		atomic_store(&spans[i].len, (len + PAGE - 1) & ~(size_t)(PAGE - 1));
		return (int)i;
	}
	return -1;
}

bool vrb_guard_remove(int guard)
{
	bool hit = atomic_load(&spans[guard].hit);

	atomic_store(&spans[guard].len, 0);
	atomic_store(&spans[guard].base, 0);
	return hit;
}
