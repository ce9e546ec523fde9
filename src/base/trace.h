/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process traces of its work requests: a file of its own, one head and then records of one
 * size in the order of time, in the byte order of the machine. The software HCA writes it
 * (hca/trace.h), `verbena run --trace` merges those of all processes. Only whole records count:
 * what a kill has cut off is none.
 */
#ifndef VRB_BASE_TRACE_H
#define VRB_BASE_TRACE_H

#include "base/types.h"

#define VRB_TRACE_ENV	  "VERBENA_TRACE"     /* the beginning of the files' names: PREFIX.PID.N */
#define VRB_TRACE_ENV_MAX "VERBENA_TRACE_MAX" /* records of one process at most */
#define VRB_TRACE_MAGIC	  0x3145434152544256ull
#define VRB_TRACE_FILES	  1000u /* of one process, one after the other */
#define VRB_TRACE_DEFAULT 1000000u

struct vrb_trace_head {
	uint64_t magic;
	uint32_t rec_size, pid;
	uint64_t wall_ns; /* what is added to a record's time for the wall clock's */
	uint64_t n_lost;  /* records beyond the bound, or that could not be written, so far */
	char comm[16];
};

enum vrb_trace_kind {
	VRB_TRACE_NONE,
	VRB_TRACE_POST,	   /* the program posts: op: enum vrb_wr_op */
	VRB_TRACE_FETCH,   /* the adapter takes the request from its queue */
	VRB_TRACE_SENT,	   /* a packet is given to the link: op: of the BTH, code: AETH syndrome */
	VRB_TRACE_GOT,	   /* a packet has come: the same */
	VRB_TRACE_ACK,	   /* the peer has answered for the request */
	VRB_TRACE_CQE,	   /* its completion is in the CQ: op: of the completion, code: status */
	VRB_TRACE_POLL,	   /* the program has it: the same */
	VRB_TRACE_QP,	   /* created: op: type */
	VRB_TRACE_STATE,   /* op: from, code: to */
	VRB_TRACE_VERDICT, /* arg: which */
};

enum {
	VRB_TRACE_RECV = 1,	/* of a receive queue */
	VRB_TRACE_SHARED = 2,	/* of a shared one */
	VRB_TRACE_SIGNALED = 4, /* POST */
	VRB_TRACE_AGAIN = 8,	/* SENT: not for the first time */
	VRB_TRACE_WIRE = 16,	/* SENT, GOT */
	VRB_TRACE_SHM = 32,	/* SENT, GOT */
	VRB_TRACE_HAS_WR = 64,	/* wr_id is that of a work request */
};
#define VRB_TRACE_NO_INDEX UINT32_MAX

struct vrb_trace_rec {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t wr_id;
	uint32_t qpn;	/* POST to a shared receive queue: 0 */
	uint32_t index; /* of the work request, counted from the queue pair's creation */
	uint32_t len;
	uint32_t psn;
	uint32_t arg; /* SENT: the destination's QPN */
	uint8_t kind, op, flags, code;
};

#endif
