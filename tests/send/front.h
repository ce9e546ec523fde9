/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Some calls of libibverbs with the test in front: it sees the queue pairs that the library makes,
 * can make CQs too short, and reports what no software adapter reports.
 */
#ifndef VRB_TESTS_SEND_FRONT_H
#define VRB_TESTS_SEND_FRONT_H

#include <infiniband/verbs.h>

#define FRONT_QPS 256

extern struct ibv_qp *front_qp[FRONT_QPS]; /* NULL: destroyed since */
extern int front_n_qps;
extern int front_tiny_cq;	  /* 0: as asked for */
extern int front_no_srq;	  /* the device says that it has none */
extern struct ibv_srq *front_srq; /* the last one made */

/* The next asynchronous event that is read. */
void front_report(enum ibv_event_type type, struct ibv_qp *qp, int port);

void front_report_srq(enum ibv_event_type type, struct ibv_srq *srq);

void front_qp_to_error(struct ibv_qp *qp);

#endif
