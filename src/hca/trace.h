/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of each work request, recorded into a file of this process (base/trace.h) when
 * VERBENA_TRACE says where: posted, fetched, packets out and in, acknowledged, completed, polled.
 * While e->trace is set every queue pair is tapped and every CQ traced, so that nothing takes the
 * straight line, and polls take the detour of a foreign engine's; without it the straight line has
 * no branch more. Records wait in memory until it is full, the helper ticks, or the engine ends. A
 * file that cannot be written, or has as many records as it may, ends the recording, never the
 * program. Everything under the engine's lock.
 */
#ifndef VRB_HCA_TRACE_H
#define VRB_HCA_TRACE_H

#include "base/trace.h"
#include "hca/engine.h"

#define VRB_TRACE_ROOM 4096u /* records in memory */

struct vrb_trace {
	int fd;
	int err; /* the file cannot be written */
	bool is_told;
	uint64_t n_written, n_max;
	struct vrb_trace_head head;
	bool head_due;
	/* between the two calls around a step of the core */
	vrb_ns fetched_at;
	uint32_t fetch_from, una, una_end;
	struct vrb_psn sent;
	uint32_t n; /* in rec */
	struct vrb_trace_rec rec[VRB_TRACE_ROOM];
};

/* trace.c */
void vrb_trace_open(struct vrb_engine *e); /* when VERBENA_TRACE is set; no queue pair is there */
void vrb_trace_flush(struct vrb_engine *e);
void vrb_trace_close(struct vrb_engine *e);
void vrb_trace_disown(struct vrb_engine *e); /* in a forked child */
void vrb_trace_put(struct vrb_trace *t, const struct vrb_trace_rec *r);
/* A new one of this process, PREFIX.PID.N; or -errno. */
int vrb_trace_new_file(const char *prefix, int pid);

/* trace_record.c; all with e->trace set */
void vrb_trace_qp(struct vrb_engine *e, const struct vrb_hqp *q);
void vrb_trace_verdict(struct vrb_engine *e, const struct vrb_report *r);
/* The n entries behind the tail are posted next. */
void vrb_trace_post(struct vrb_engine *e, const struct vrb_hqp *q, uint32_t n);
void vrb_trace_post_recv(struct vrb_engine *e, const struct vrb_hqp *q, uint32_t n);
/* Those from this index to the tail have been. */
void vrb_trace_post_srq(struct vrb_engine *e, const struct vrb_hsrq *s, uint32_t from);
/* Around the core's making of a request; made: e->tx holds a packet. Before its completions are
 * told. */
void vrb_trace_before_request(struct vrb_engine *e, const struct vrb_hqp *q);
void vrb_trace_request(struct vrb_engine *e, const struct vrb_hqp *q, bool made, bool by_shm);
/* e->tx, which answers, or an acknowledgement that rides along. */
void vrb_trace_answer(struct vrb_engine *e, const struct vrb_hqp *q, bool by_shm);
void vrb_trace_ack_along(struct vrb_engine *e, const struct vrb_hqp *q, struct vrb_psn psn);
/* Around the core's taking of a packet. */
void vrb_trace_before_packet(struct vrb_engine *e, const struct vrb_hqp *q,
			     const struct vrb_pkt *pkt);
void vrb_trace_packet(struct vrb_engine *e, const struct vrb_hqp *q, const struct vrb_pkt *pkt);
/* Completions have been pushed. */
void vrb_trace_cq(struct vrb_engine *e, struct vrb_hcq *cq);
/* The n completions from this index on have been polled; the ring has them still. */
void vrb_trace_poll(struct vrb_engine *e, const struct vrb_hcq *cq, uint32_t from, uint32_t n);

#endif
