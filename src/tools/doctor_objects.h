/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs, CQs and regions that are alive, by process. The kernel tells of its devices by RDMA
 * netlink; kept as lines of rdma/DEVICE (rdma/error: the errno, where there is no such netlink):
 *
 *   qp 17 type 2 state 3 pid 1234     numbers as ibv_qp_type and ibv_qp_state have them
 *   cq 5 pid 1234
 *   mr 3 bytes 65536 pid 1234
 *   qp 1 type 1 state 3 kernel ib_core
 *   limits qp 65536 cq 65536 mr 524288
 */
#ifndef VRB_TOOLS_DOCTOR_OBJECTS_H
#define VRB_TOOLS_DOCTOR_OBJECTS_H

#include <stdio.h>

#include "tools/doctor_netlink.h"
#include "tools/doctor_read.h"

#define VRB_OWNERS 256

/* Of one process, or of one user inside the kernel. */
struct vrb_owner {
	long long pid; /* 0: the kernel */
	char name[32];
	unsigned long long qps, cqs, mrs, bytes;
	unsigned long long failed, failed_qpn;	 /* in ERR or SQE, and the first of them */
	unsigned long long waiting, waiting_qpn; /* in RESET or INIT */
};

struct vrb_objects {
	unsigned n;
	struct vrb_owner owner[VRB_OWNERS];
	unsigned long long qps, cqs, mrs;
	unsigned long long max_qp, max_cq, max_mr; /* 0 unknown */
};

/* An answer of RDMA netlink to RES_QP_GET, RES_CQ_GET or RES_MR_GET as lines. */
void vrb_objects_to_text(FILE *out, struct vrb_nl_part body);
/* The lines of a device, to be freed; NULL when nothing is known, and why is in *err (an errno, or
 * 0). */
char *vrb_doc_objects_text(const struct vrb_doc *d, const char *device, int *err);
/* The line of limits, asked of the system's libibverbs by a process of its own. */
void vrb_doc_limits_text(FILE *out, const char *device);
void vrb_objects_parse(struct vrb_objects *out, char *text);
/* What the software adapter's processes of this user say of themselves, for the device of a name;
 * this machine only. */
void vrb_objects_of_software(struct vrb_objects *out, const char *device);

#endif
