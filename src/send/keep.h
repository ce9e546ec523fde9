/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations of the caller's memory that outlive the message they were made for, so that the
 * next message from there does not register again. Kept are those whose end is noticed: watched by
 * the kernel (watch.h), or promised by the caller, who calls vrb_forget. Any other one ends with
 * its message. A registration that a message uses stays until that ends, whatever happens to it.
 */
#ifndef VRB_SEND_KEEP_H
#define VRB_SEND_KEEP_H

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <verbena/verbena.h>

#include "send/regions.h"
#include "send/watch.h"

#define VRB_KEEP_ONCE 256u /* registrations beyond those that are kept, for one message each */

struct vrb_kept {
	struct vrb_watched at; /* first: the watch's array */
	struct ibv_mr *mr;
	uint32_t refs, access;
	uint64_t used; /* when: the least is evicted */
	bool in_table; /* else it goes with its last message */
};

struct vrb_keep {
	pthread_mutex_t lock;
	enum vrb_keep_mode mode;
	struct ibv_pd *pd;
	struct vrb_kept *slot;
	uint32_t n_slots, max_regions;
	uint64_t max_bytes, clock;
	struct vrb_regions table; /* id: the slot */
	struct vrb_watch watch;
	struct vrb_keep_stats st;
};

int vrb_keep_init(struct vrb_keep *k, struct ibv_pd *pd, const struct vrb_domain_options *o);
void vrb_keep_fini(struct vrb_keep *k);

/*
 * One for len bytes at addr; what it is goes to hit. 0, -EFAULT (and why is remembered), -EAGAIN:
 * all slots are in use by messages.
 */
int vrb_keep_get(struct vrb_keep *k, uint64_t addr, uint64_t len, uint32_t access,
		 struct vrb_hit *hit);
void vrb_keep_put(struct vrb_keep *k, uint32_t slot);

/* Drops what overlaps; returns how many are still used by messages. */
uint32_t vrb_keep_forget(struct vrb_keep *k, uint64_t addr, uint64_t len, uint32_t *dropped);

#endif
