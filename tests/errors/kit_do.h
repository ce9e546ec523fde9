/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests between a case and an end; see kit.h. */
#ifndef TESTS_ERRORS_KIT_DO_H
#define TESTS_ERRORS_KIT_DO_H

#include "kit.h"

enum k_op {
	K_OPEN,
	K_CONNECT,
	K_REG,
	K_DEREG,
	K_SEND,
	K_RECV,
	K_MODIFY,
	K_STATE,
	K_POKE,
	K_PEEK,
	K_POLL,
	K_EVENT,
	K_SAID,
	K_DESTROY_QP
};

struct k_req {
	enum k_op op;
	int i, ms, access;
	uint32_t off, len;
	uint64_t addr64;
	struct k_opts opts;
	struct k_addr addr;
	struct k_wr wr;
	uint8_t data[256];
	char text[64], text2[64];
};

struct k_rep {
	int err;
	int64_t value;
	struct k_addr addr;
	struct k_mr mr;
	struct ibv_wc wc;
	uint8_t data[256];
	char text[64];
};

/* Carries out q on an end of this process. */
void k_do(struct k_end *e, const struct k_req *q, struct k_rep *r);
/* Looks for a line of this process's stderr that holds both texts, for at most ms. */
bool k_log_has(const char *text, const char *text2, int ms);

#endif
