/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every operation a queue pair has, checked byte by byte against any verbs peer: `ops serve` obeys
 * lines of text over TCP (ops_serve.c says which), `ops drive` gives them and does the operations
 * (ops_drive.c). Both use nothing but the public verbs API, so either may run on a kernel device;
 * a program without verbs can drive the server as well. This part is what the two share: the
 * device, a region in two halves, queue pairs.
 */
#ifndef TESTS_INTEROP_OPS_H
#define TESTS_INTEROP_OPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPS_HALF  (4u << 20) /* targets of WRITE, READ and atomics, then receives */
#define OPS_QPS	  8
#define OPS_DEPTH 128
#define OPS_QKEY  0x11223344u

struct ops_qp {
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* UD: the way to the other one */
	enum ibv_qp_type type;
	uint32_t psn, mtu, remote_qpn;
	uint32_t recv_size, n_recv, n_done; /* receives posted, completed */
};

struct ops {
	const char *device;
	int gid_index, timeout;
	uint32_t mtu;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	uint8_t *buf;
	union ibv_gid gid;
	struct ops_qp qp[OPS_QPS];
};

/* Prints and ends the process: 77 when there is no device, else 1. */
void ops_die(const char *fmt, ...) __attribute__((format(printf, 1, 2))) __attribute__((noreturn));
#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			ops_die("%s:%d: not true: %s", __FILE__, __LINE__, #cond);                 \
	} while (0)

void ops_open(struct ops *o);
/* A queue pair in INIT; in RTS, towards the other end, after ops_connect (errno, or 0). */
void ops_create(struct ops *o, struct ops_qp *q, enum ibv_qp_type type);
int ops_connect(struct ops *o, struct ops_qp *q, const union ibv_gid *gid, uint32_t qpn,
		uint32_t psn);
void ops_destroy(struct ops_qp *q);

/* n receives of size bytes each, in the second half, round and round. */
int ops_recv(struct ops *o, struct ops_qp *q, uint32_t n, uint32_t size);
/* Where the receive with this wr_id put its data. */
uint8_t *ops_recv_data(const struct ops *o, uint64_t wr_id);

/* One completion within ms, or false. */
bool ops_wc(struct ibv_cq *cq, struct ibv_wc *wc, int ms);

enum ibv_qp_type ops_type(const char *name);
const char *ops_type_name(enum ibv_qp_type type);
bool ops_gid_parse(const char *text, union ibv_gid *gid);
void ops_gid_print(const union ibv_gid *gid, char out[64]);

void ops_fill(uint8_t *p, size_t n, uint32_t seed);
uint32_t ops_crc32(const void *p, size_t n);

int ops_serve(struct ops *o, int port, bool once); /* once: ends with the first driver */
int ops_drive(struct ops *o, const char *host, int port, const char *what);

#endif
