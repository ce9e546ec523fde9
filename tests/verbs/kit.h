/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs of one process that talk to each other, on CQs that a test brings along. Failures
 * end the process (support/end.h).
 */
#ifndef TESTS_VERBS_KIT_H
#define TESTS_VERBS_KIT_H

#include "support/cases.h"
#include "support/end.h"

struct pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *buf;
	struct ibv_qp *qp[2];
	struct ibv_ah *ah; /* UD: to the other one */
	uint32_t imm;	   /* sent along when it is not 0 */
};
#define PAIR_LEN 65536
#define PAIR_WR	 64

void pair_open(struct pair *p); /* all but the QPs */
/* qp[0] and qp[1] on these CQs, connected. */
void pair_connect(struct pair *p, enum ibv_qp_type type, struct ibv_cq *const cq[2]);
void pair_close(struct pair *p); /* the QPs too; CQs are to be destroyed before the context */
void pair_close_qps(struct pair *p);

void pair_recv(struct pair *p, int to, uint64_t id);
/* From qp[from]: len bytes; flags as in ibv_send_wr. */
void pair_send(struct pair *p, int from, uint64_t id, uint32_t len, unsigned int flags);

uint64_t clock_ns(int clock);
void sleep_ms(unsigned int ms);

#endif
