/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain verbs, as a careful program uses them: queue pairs on one CQ, one registered buffer, exact
 * accounts of the send queues, receives posted again in lists, credits instead of RNR NAKs. A
 * server's credit is an empty SEND with the number of receives as its immediate; the client's last
 * message on a queue pair is one that says END.
 */
#ifndef VRB_PERF_RAW_H
#define VRB_PERF_RAW_H

#include <infiniband/verbs.h>

#include "tools/perf/session.h"

#define PERF_CREDITS   16u /* receives of a client for the server's credits, and then some */
#define PERF_RECV_LIST 16u /* receives in one post */
#define PERF_END       0xffffffffu /* immediate of the last message */

struct perf_qp {
	struct ibv_qp *qp;
	uint32_t psn, index;
	uint64_t posted, done; /* requests; done: known to be over, by completions */
	uint32_t to_signal;    /* requests until the next one that is signaled */
	uint64_t credit;       /* messages that the peer has receives for, since the beginning */
	uint32_t missing;      /* receives to be posted */
	uint32_t owed;	       /* server: receives posted of which the client has not been told */
	bool ended;
	uint64_t stamp, stamp_ns; /* a signaled request whose time is taken; 0: none */
};

struct perf_raw {
	struct perf_run *run;
	const struct perf_params *p;
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint8_t port_num;
	uint32_t gid_index;
	union ibv_gid gid;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint32_t recv_depth, send_depth, recv_list, inline_max;
	struct perf_qp qp[PERF_QPS_MAX];
	uint32_t n_qps;
	uint8_t *mem;
	size_t mem_len, piece, stride, rx_at;
	struct ibv_mr *mr;
	struct ibv_sge sge[PERF_SGES_MAX], rx;
	/* with --span: where each message of a list lies, one of so many places */
	struct ibv_sge walk[PERF_BATCH_MAX];
	uint32_t places, place;
	size_t place_len;
	uint32_t rx_places, rx_place; /* likewise of receives, one after the other */
	uint64_t peer_addr;
	uint32_t peer_rkey;
	uint32_t unacked;      /* events */
	uint32_t arrived;      /* messages that the face has not looked at yet, and on which */
	struct perf_qp *where; /* queue pair the last one came */
	uint32_t n_ended;
	uint32_t idle; /* empty polls since the last completion */
	uint64_t idle_ns;
	struct ibv_send_wr wr[PERF_BATCH_MAX]; /* a list as it is posted */
	struct ibv_mr *each;		       /* of the message under way, with --register-each */
};

/* raw_open.c */
struct ibv_context *vrb_perf_open_device(const char *name, char why[PERF_WHY_BYTES]);
/* raw_connect.c */
bool vrb_perf_raw_find_gid(struct perf_raw *e);
json_t *vrb_perf_raw_address(struct perf_raw *e);
bool vrb_perf_raw_connect(struct perf_raw *e, const json_t *peer);

/* raw_wait.c */
/* Fills e->wr with what does not change from message to message. */
void vrb_perf_raw_prepare(struct perf_raw *e);
/* The first n of e->wr, as the next n requests of the queue pair, which has room. */
bool vrb_perf_raw_post(struct perf_raw *e, struct perf_qp *q, uint32_t n);
/* Receives that are missing, when there is a list of them (or any at all). */
bool vrb_perf_raw_refill(struct perf_raw *e, struct perf_qp *q, bool all);
/* Takes completions and keeps the accounts; when there are none and it may, waits once as the
 * engine does. How many, or -1 with a sentence. */
int vrb_perf_raw_poll(struct perf_raw *e, bool may_wait);
/* An empty message, signaled. */
bool vrb_perf_raw_note(struct perf_raw *e, struct perf_qp *q, uint32_t imm);
/* Client: until all that was posted is over. imm PERF_END: the server learns that it was all; 0:
 * more will come (once only: it costs one of the server's spare receives). */
bool vrb_perf_raw_drain(struct perf_raw *e, uint32_t imm);

/* raw_lat.c, raw_stream.c */
bool vrb_perf_raw_lat(struct perf_raw *e);
bool vrb_perf_raw_stream(struct perf_raw *e);
bool vrb_perf_raw_sink(struct perf_raw *e);

#endif
