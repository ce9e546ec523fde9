/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues: rings of fixed-stride entries in memory that the creator supplies. Indices are
 * absolute 32-bit counters; an entry's place is index & mask. The face fills the entry at tail and
 * commits it (vrb_qp_post, vrb_wq_commit); nothing is allocated on the way. Numeric values of
 * opcodes, flags and statuses are those of verbs.h (static-asserted by the face).
 */
#ifndef VRB_CORE_WQE_H
#define VRB_CORE_WQE_H

#include "base/psn.h"
#include "base/types.h"

#define VRB_MAX_SGE 32
#define VRB_MAX_MSG 0x80000000u /* 2^31, IBA C9-2 */

enum vrb_wr_op {
	VRB_WR_WRITE = 0,
	VRB_WR_WRITE_IMM = 1,
	VRB_WR_SEND = 2,
	VRB_WR_SEND_IMM = 3,
	VRB_WR_READ = 4,
	VRB_WR_CMP_SWAP = 5,
	VRB_WR_FETCH_ADD = 6,
	VRB_WR_LOCAL_INV = 7,
	VRB_WR_BIND_MW = 8,
	VRB_WR_SEND_INV = 9,
};

enum {
	VRB_WRF_FENCE = 1,
	VRB_WRF_SIGNALED = 2, /* the face sets it too when the QP has sq_sig_all */
	VRB_WRF_SOLICITED = 4,
	VRB_WRF_INLINE = 8, /* the bytes lie at data[], n_sge is 0 */
};

struct vrb_sge { /* layout of ibv_sge */
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

/* Where a UD message goes; filled by the face from the address handle, owned by the handle. */
struct vrb_av {
	struct vrb_gid dgid;
	uint8_t sgid_index, hop_limit, traffic_class, port;
	uint32_t flow_label;
	uint32_t pd;
	uint32_t route;	    /* for hca: how the destination is reached */
	uint32_t flow_hash; /* for hca */
	void *dev;	    /* for hca */
};

struct vrb_swqe {
	uint64_t wr_id;
	uint32_t len; /* bytes of the message */
	uint8_t op, flags, n_sge;
	uint8_t failed;		    /* not used by the core (qp.h: failing) */
	struct vrb_psn first, last; /* set when the WQE is started */
	uint32_t imm;		    /* ImmDt, or the rkey to invalidate (SEND_INV, LOCAL_INV) */
	uint32_t rkey;		    /* BIND_MW: the window's new rkey */
	uint64_t va;		    /* BIND_MW: start address */
	union {
		struct {
			uint64_t swap_add, compare;
		} atomic;
		struct {
			const struct vrb_av *av;
			uint32_t qpn, qkey;
		} ud;
		struct {
			uint64_t len;
			uint32_t access, mr_lkey;
		} bind;
	};
	uint64_t reserved;
	union {
		struct vrb_sge sge[1]; /* n_sge of them */
		uint8_t data[1];       /* len bytes when INLINE */
	};
};
#define VRB_SWQE_HEADER offsetof(struct vrb_swqe, sge)

struct vrb_rwqe {
	uint64_t wr_id;
	uint32_t len; /* room of all SGEs together */
	uint32_t n_sge;
	struct vrb_sge sge[1];
};
#define VRB_RWQE_HEADER offsetof(struct vrb_rwqe, sge)

struct vrb_wq {
	uint8_t *ring;	 /* (mask + 1) * stride bytes; NULL when cap is 0 */
	uint32_t stride; /* multiple of 16 */
	uint32_t mask;	 /* power of two - 1, mask + 1 >= cap */
	uint32_t cap;	 /* entries as granted */
	uint32_t max_sge;
	uint32_t head; /* receive queues: next to be taken by the responder */
	uint32_t tail; /* next to be posted */
};

static inline void *vrb_wq_entry(const struct vrb_wq *q, uint32_t i)
{
	return q->ring + (size_t)(i & q->mask) * q->stride;
}

#endif
