/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a reliable connection over the public verbs API, for the stress tests and the
 * benchmarks: a context, a PD, one CQ (with a completion channel on request), one region, one QP.
 * Everything that fails ends the process with a message: 77 without a device, else 1.
 */
#ifndef TESTS_SUPPORT_END_H
#define TESTS_SUPPORT_END_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/patience.h"

struct end_opts {			 /* 0 means the value in brackets */
	enum ibv_qp_type type;		 /* [RC] */
	uint32_t send_wr, recv_wr, sges; /* [128, 128, 1] */
	uint32_t inline_max, cqe;	 /* [0, send_wr + recv_wr] */
	size_t len;			 /* of the region [4096] */
	bool channel;			 /* with a completion channel */
	enum ibv_mtu mtu;		 /* [4096] */
	int timeout, retry;		 /* [14, 7] */
	int rnr_retry;			 /* [7]; -1: 0 */
	struct ibv_context *ctx;	 /* use this one [open a new one] */
};

/* What the other end must know; plain bytes, sent as they are. */
struct end_id {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr, len;
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *buf;
	struct end_opts opts;
	struct end_id id;
	bool own_ctx;
};

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2))) __attribute__((noreturn));
#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			die("%s:%d: not true: %s", __FILE__, __LINE__, #cond);                     \
	} while (0)

struct ibv_context *end_device(void);
/* Leaves the QP in INIT, so that receives can be posted. */
void end_open(struct end *e, const struct end_opts *o);
void end_init(struct end *e); /* RESET to INIT */
void end_connect(struct end *e, const struct end_id *peer);
void end_close(struct end *e);

/* Both ways over a stream socket: sends the own id, takes the peer's, connects, and waits until the
 * peer has connected too. False when the peer went away. */
bool end_meet(struct end *e, int sock, struct end_id *peer);
bool put_all(int fd, const void *p, size_t n);
bool get_all(int fd, void *p, size_t n);

/* Posts of one SGE in the own region. They return the errno. */
int end_recv(struct end *e, uint64_t id, size_t off, uint32_t len);
int end_send(struct end *e, uint64_t id, size_t off, uint32_t len, unsigned int flags);
int end_rdma(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t len, uint64_t raddr,
	     uint32_t rkey);
int end_atomic(struct end *e, bool cas, uint64_t raddr, uint32_t rkey, uint64_t add, uint64_t swap);

/* Polls until a completion comes; false after ms. */
bool end_wc(struct end *e, struct ibv_wc *wc, int ms);
/* The same, and it must be a success. */
void end_done(struct end *e, uint64_t id);

double now_s(void);
uint64_t rnd(uint64_t *state); /* xorshift */

#endif
