/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Learns when memory of this process is unmapped, moved or given back (munmap, mmap over it,
 * mremap, brk, madvise), from the kernel: a userfaultfd that asks for these events and for nothing
 * else (registered for write protection, and nothing is ever protected). Such a call waits until
 * its event has been read, so who looks after it has returned, and waits while the reader is at
 * work, sees it.
 *
 * The reader takes no lock and allocates nothing: the call that it holds up may be free(), under
 * whatever lock.
 */
#ifndef VRB_SEND_WATCH_H
#define VRB_SEND_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is watched: written by the owner, base last and to 0 first; the reader sets gone. */
struct vrb_watched {
	_Atomic uint64_t base, len; /* base 0: nothing */
	_Atomic bool gone;
};

struct vrb_watch {
	int fd, stop; /* fd -1: the kernel does not let us */
	pthread_t thread;
	_Atomic uint64_t turn; /* odd: the reader has taken events and not yet marked all */
	_Atomic uint64_t events;
	struct vrb_watched *at;
	size_t stride; /* of the array of structs that begin with one of these */
	uint32_t n;
};

/* -errno when the kernel or the container does not have it; then w->fd is -1. */
int vrb_watch_init(struct vrb_watch *w, struct vrb_watched *at, size_t stride, uint32_t n);
void vrb_watch_fini(struct vrb_watch *w);

/* False: memory that cannot be watched (of a file, shared, not all mapped). at was written before.
 */
bool vrb_watch_add(struct vrb_watch *w, const struct vrb_watched *at);
/* The pages of `at` that no other one has. */
void vrb_watch_remove(struct vrb_watch *w, const struct vrb_watched *at);

/* After this, gone is true of whatever went before. */
void vrb_watch_wait(const struct vrb_watch *w);

#endif
