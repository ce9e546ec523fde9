/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs that post work requests of their own: scatter/gather lists from pieces of memory,
 * and a check of a list of work requests before it is posted. Both know the memory that is
 * registered with a domain: its pool and what vrb_register got. Any thread.
 */
#ifndef VERBENA_SGL_H
#define VERBENA_SGL_H

#include <infiniband/verbs.h>
#include <verbena/verbena.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * SGEs for the pieces, in order, with their keys; neighbours within one region become one. Returns
 * how many the list takes; only the first max are written. -EFAULT names the piece that is not
 * registered, or runs out of its region.
 */
int vrb_sgl_build(const struct vrb_domain *domain, const struct iovec *iov, int n,
		  struct ibv_sge *sge, int max);

/* What a queue pair can take. */
struct vrb_wr_limits {
	enum ibv_qp_type qp_type;
	enum ibv_qp_state state;
	uint32_t max_send_wr, max_send_sge, max_inline_data; /* as granted */
	uint32_t used;	      /* entries of the send queue that are taken; only the caller knows */
	uint32_t max_message; /* 0: 2^31, on UD that of the path MTU */
	int sq_sig_all;
};

/* All but used, max_message of UD: from ibv_query_qp. */
int vrb_wr_limits(struct ibv_qp *qp, struct vrb_wr_limits *limits);

/* What the list amounts to, and what would be better otherwise. */
struct vrb_wr_summary {
	uint32_t wrs, sges, signaled, inlined;
	uint64_t bytes;
	uint32_t mergeable;    /* SGEs that continue the one before */
	uint32_t empty;	       /* SGEs of length 0 */
	uint32_t straddling;   /* SGEs of at most 64 bytes that touch two cache lines */
	uint32_t could_inline; /* SENDs and WRITEs short enough to go inline that do not */
};

/*
 * 0: the adapter will take the list and find every key and range good. Else a negative errno, the
 * work request in *bad, and which rule it breaks with the values in vrb_error_text(). Nothing is
 * posted. summary may be NULL; it covers what was looked at.
 */
int vrb_check_send(const struct vrb_domain *domain, const struct vrb_wr_limits *limits,
		   const struct ibv_send_wr *first, const struct ibv_send_wr **bad,
		   struct vrb_wr_summary *summary);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
