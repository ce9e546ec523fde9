/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How processes of one user in one network namespace meet: slot n of user u is the abstract Unix
 * SEQPACKET name "verbena.<u>.<n>" (with a leading NUL). Whoever has it bound owns the slot; the
 * kernel frees it when the owner ends. A client connects, sends one hello and, by its type, passes
 * a ring (one memfd), asks for the counters page (gets one memfd back), or asks for something else.
 * A service id of the connection manager (hca/gsi.h) is claimed in the same way, by a name of its
 * own to which requests for it are brought.
 */
#ifndef VRB_BASE_MEET_H
#define VRB_BASE_MEET_H

#include "base/types.h"

#define VRB_MEET_NAME	 "verbena.%u.%u"	 /* uid, slot */
#define VRB_MEET_CLAIM	 "verbena.%u.cm.%016llx" /* uid, service id */
#define VRB_MEET_MAGIC	 0x56524231u
#define VRB_MEET_VERSION 1u
#define VRB_SLOTS	 255u /* slots 1..255 of the upper 8 bits of a QPN; 0 is for QP0, QP1 */

enum vrb_meet_type {
	VRB_MEET_RING = 1,  /* client to owner, with the ring's memfd and the client's doorbell fds:
			       frames will come */
	VRB_MEET_STATS = 2, /* client to owner: asks; owner to client: with the memfd of struct
			       vrb_stats_page, read-only */
	VRB_MEET_CAPTURE = 3, /* client to owner: record packets into this file, which is open for
				 appending, until the connection ends; owner to client: begun, or
				 not, or ended */
	VRB_MEET_STORY = 4, /* client to owner: what happened to queue pair `arg` (0: to all)? owner
			       to client: with a memfd of JSON, a line each */
	VRB_MEET_ASK = 5, /* client to owner: what is with queue pair `arg`, asks reserved[0]; owner
			     to client: wire/ask.h */
	VRB_MEET_ROWS = 6, /* client to owner: which objects have you, queue pairs from `arg` on;
			      owner to client: with the memfds of struct vrb_rows and of STATS */
	VRB_MEET_MAD = 7,  /* client to the owner of a claim: a packet to QP 1 follows the hello, as
			      one of another's does a frame of shared memory (hca/wire_io.c) */
};

struct vrb_meet_hello {
	uint32_t magic, version, type;
	uint32_t slot; /* of the sender; 0 when it owns none */
	uint32_t pid;
	uint32_t arg; /* RING: the capture file that the sender records into (hca/tap.h), 0 none;
			 CAPTURE, client: bytes of payload kept of a packet, 0 all; owner: errno;
			 STORY: a QPN */
	uint32_t reserved[2];
};

#endif
