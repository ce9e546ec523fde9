/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key table. A key is index << 8 | tag; the tag changes whenever an index is used again, so an
 * old key is never valid by accident (IBA 10.6.3). A region has two entries, one for its lkey and
 * one for its rkey: the two numbers differ, and a mix-up is found by the kind of the entry. Windows
 * have one. Free indices are reused oldest first. The entries' memory is the caller's: vrb_mr_grow
 * hands in a larger array. The caller holds the engine's lock.
 */
#ifndef VRB_CORE_MR_H
#define VRB_CORE_MR_H

#include "base/verdict.h"
#include "core/wqe.h"

enum { /* numbers of ibv_access_flags */
       VRB_ACC_LOCAL_WRITE = 1,
       VRB_ACC_REMOTE_WRITE = 2,
       VRB_ACC_REMOTE_READ = 4,
       VRB_ACC_REMOTE_ATOMIC = 8,
       VRB_ACC_MW_BIND = 16,
       VRB_ACC_ZERO_BASED = 32,
};

enum vrb_key_kind { VRB_KEY_FREE, VRB_KEY_LOCAL, VRB_KEY_REMOTE, VRB_KEY_MW1, VRB_KEY_MW2 };

struct vrb_key {
	uint64_t base; /* iova of the first byte (0 for zero-based) */
	uint64_t len;
	uint64_t host; /* host address of the first byte */
	uint32_t key;  /* current value */
	uint32_t pd;
	uint32_t access;
	uint32_t mate; /* LOCAL: index of the REMOTE entry and back; windows: index of the region's
			  REMOTE entry while bound */
	uint32_t qpn;  /* MW2: the QP that bound it */
	uint32_t n_windows; /* REMOTE: windows bound to it */
	uint8_t kind;
	bool valid; /* windows: bound */
	uint32_t next_free;
	uint32_t n_uses; /* tags this index has had, the current one included: tells stale keys from
			    made-up ones */
};

struct vrb_keytab {
	struct vrb_key *ent;
	uint32_t n;		       /* entries of memory */
	uint32_t free_head, free_tail; /* FIFO of free indices, VRB_KEY_NONE when empty */
	uint32_t n_free;
	uint64_t seed; /* for tags; given by the caller */
};
#define VRB_KEY_NONE   UINT32_MAX
#define VRB_KEYTAB_MAX (1u << 24)

void vrb_keytab_init(struct vrb_keytab *t, uint64_t seed);

/* ent holds n entries, the first t->n of them copied from the old array by the caller; index 0 is
 * never given out. */
void vrb_keytab_grow(struct vrb_keytab *t, struct vrb_key *ent, uint32_t n);

/* Needs two free entries (n_free). Returns the keys through lkey and rkey. */
void vrb_mr_add(struct vrb_keytab *t, const struct vrb_key *region, uint32_t *lkey, uint32_t *rkey);

/* Frees both entries of the region. False: windows are bound to it, nothing changed. */
bool vrb_mr_del(struct vrb_keytab *t, uint32_t lkey);

/* Another PD or other rights, keys unchanged. False: windows are bound to it, nothing changed. */
bool vrb_mr_change(struct vrb_keytab *t, uint32_t lkey, uint32_t pd, uint32_t access);

/* Windows: add needs one free entry and returns the first rkey (unbound). Binding is a work request
 * (core/mw.c); del unbinds. */
uint32_t vrb_mw_add(struct vrb_keytab *t, uint32_t pd, enum vrb_key_kind kind);
bool vrb_mw_del(struct vrb_keytab *t, uint32_t rkey);

/*
 * VRB_OK and the host address, or the reason with r's verdict and values filled in (not r->qpn).
 * need: VRB_ACC_LOCAL_WRITE or 0. Length 0 is always good and gives host 0.
 */
enum vrb_verdict vrb_key_check_local(const struct vrb_keytab *t, const struct vrb_sge *sge,
				     uint32_t sge_index, uint32_t pd, uint32_t need, uint64_t *host,
				     struct vrb_report *r);

/* The same for a remote access of len bytes at va. qpn is for type 2 windows. */
enum vrb_verdict vrb_key_check_remote(const struct vrb_keytab *t, uint32_t rkey, uint64_t va,
				      uint64_t len, uint32_t pd, uint32_t need, vrb_qpn qpn,
				      uint64_t *host, struct vrb_report *r);

#endif
