/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	side 0, namespace A, one address           side 1, namespace B, one address
 *	.--------------------------.               .--------------------------.
 *	| member 0 ... member 3    | == RC, all == | member 0 ... member 3    |
 *	'--------------------------'    to all     '--------------------------'
 *	        ^ kill -9, SIGSTOP                          ^
 *	        '------------------ controller -------------'
 *
 * Every member has one queue pair to each member of the other side and checks every byte that it
 * receives or reads. The controller tells who connects to whom, kills and starts members, and
 * watches: a queue pair may end only when the process behind it was killed, with RETRY_EXC, and
 * everything else goes on.
 */
#ifndef TESTS_E2E_MESH_H
#define TESTS_E2E_MESH_H

#include "support/end.h"

#define MESH_N 4 /* members of a side */

enum mesh_type {
	MESH_ID,      /* to the controller: a fresh queue pair to member j */
	MESH_CONNECT, /* to the member: here is the other end */
	MESH_READY,   /* it can receive */
	MESH_GO,      /* so can the other end: traffic */
	MESH_RENEW,   /* the other end was killed before the traffic began */
	MESH_LOST,    /* everything was flushed; status: of the first that failed */
	MESH_COUNT,   /* messages and READs that were right so far, by j */
};

struct mesh_msg {
	enum mesh_type type;
	uint32_t j, epoch; /* epoch: counts the member's queue pairs to j */
	uint32_t life;	   /* CONNECT: which life of j it is */
	int status;
	struct end_id id;
	uint64_t count[MESH_N];
};

/* Ends with the process. who: side * MESH_N + number. */
void mesh_member(int sock, uint32_t who, uint32_t life) __attribute__((noreturn));

#endif
