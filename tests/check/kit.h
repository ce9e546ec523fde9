/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small programs with faults, under the checker: two queue pairs of one process that talk to each
 * other, and what the checker has said so far. The program is linked with libverbena-check in front
 * of libibverbs, as a preload would stand.
 */
#ifndef TESTS_CHECK_KIT_H
#define TESTS_CHECK_KIT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/end.h"

struct opt {				      /* 0 means the value in brackets */
	enum ibv_qp_type type;		      /* [RC] */
	uint32_t send_wr, recv_wr, sges, inl; /* [16, 16, 2, 64] */
	int cqe;			      /* [64] */
	bool channel, unsignaled;	      /* unsignaled: sq_sig_all is 0 anyway; for send() */
	int stop;			      /* the state where both stay [RTS]; STAY: RESET */
	enum ibv_mtu mtu, mtu_b;	      /* [1024, that of a] */
};
#define STAY 100

struct lab {
	struct opt o;
	struct ibv_context *ctx;
	struct ibv_pd *pd, *pd2;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_qp_cap cap; /* granted */
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_ah_attr path;
	uint8_t *buf;
};
#define LAB_LEN 8192u

void lab_open(struct lab *l, const struct opt *o);
void lab_close(struct lab *l);
/* Both queue pairs anew, on l->cq, connected. */
void lab_qps(struct lab *l);
int lab_to(struct lab *l, int i, enum ibv_qp_state to);
/* The attributes that lab_to uses; returns the mask. */
int lab_attr(struct lab *l, int i, enum ibv_qp_state to, struct ibv_qp_attr *a);

/* Posts on qp[0] (send) or qp[1] (receive); the result of the call. */
int lab_send(struct lab *l, struct ibv_sge *sge, int n, unsigned int flags);
int lab_recv(struct lab *l, struct ibv_sge *sge, int n);
struct ibv_sge lab_sge(struct lab *l);
/* Polls for n completions, whatever their status; dies after some time. */
void lab_poll(struct lab *l, int n, struct ibv_wc *last);

/* ---- what was said. With VRB_TEST_DEAF set nobody listens, and all is as wanted. */
void heard_start(void);
/* The counters so far, in their order, with blanks between. */
const char *heard(void);
const char *heard_text(void);
/* Exactly these counters, since the start or the last want. */
void want(const char *counters);
void want_text(const char *part);

#endif
