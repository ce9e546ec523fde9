/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter's port with a protection domain, the pool, and the table of everything that is
 * registered. Shared by all threads: what changes after vrb_open is the table (lock-free for
 * readers) and the counts, both below.
 */
#ifndef VRB_SEND_DOMAIN_H
#define VRB_SEND_DOMAIN_H

#include <infiniband/verbs.h>

#include "send/async.h"
#include "send/gid.h"
#include "send/keep.h"
#include "send/pool.h"
#include "send/regions.h"

#define VRB_GIDS_MAX 256u

struct vrb_region {
	struct vrb_region *next;
	struct vrb_domain *domain;
	struct ibv_mr *mr;
	uint64_t addr, len, since_ns;
	unsigned access;
	const void *where;
};

struct vrb_grown {
	void *mem;
	size_t len;
	struct ibv_mr *mr;
};

struct vrb_domain {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint8_t port_num;
	bool has_want, want_huge, huge_pages, locked, remote_read;
	int numa_node; /* of the pool, or -1 */
	uint64_t huge_refused;
	int pool_access;
	struct vrb_gid want; /* the address that was asked for */
	struct ibv_mr *pool_mr;
	void *pool_mem;
	size_t pool_len;
	struct vrb_pool pool;
	struct vrb_grown grown[VRB_SEGMENTS]; /* under the pool's grow_lock */
	uint32_t n_grown;
	struct vrb_regions regions;
	struct vrb_keep keep;
	pthread_mutex_t lock; /* regions as a list, and the counts */
	struct vrb_region *list;
	uint32_t n_regions, n_users;
	struct vrb_async async;
};

/* Channels and listeners hold the domain. */
void vrb_domain_hold(struct vrb_domain *d);
void vrb_domain_release(struct vrb_domain *d);

/* The GID for a connection whose local address is want. 0, or -EADDRNOTAVAIL with the reason. */
int vrb_domain_gid(const struct vrb_domain *d, const struct vrb_gid *want,
		   struct vrb_gid_entry *out);

/* The pool's memory, mapped and registered; undone by vrb_memory_fini. */
int vrb_memory_init(struct vrb_domain *d, const struct vrb_domain_options *o);
void vrb_memory_fini(struct vrb_domain *d);

/* The first line of the leak report; empty when there is none. */
void vrb_memory_first_leak(struct vrb_domain *d, char *line, size_t size);

#endif
