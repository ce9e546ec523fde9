/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of queue pair N? The question that a Verbena which gets no answer asks the process
 * that should give it, as a datagram to port 4791 of its own form (RoCEv2 does not use the opcode,
 * so that other adapters drop it) or over the socket by which processes of a host meet.
 *
 *	byte 0 opcode  1 version  2 'V' 'a'  4 kind  5 QPN asked about  8 nonce
 *	16 QPN of the asker  19 flags or, of an answer, what  20 state  21 type  22 expected PSN
 *	25 name of the verdict that ended it, terminated, to the end
 *
 * The kernel's steering (link/udp_steer.c) finds the QPN where a BTH has it. A question may be
 * longer than this, to see whether the way carries it; an answer is as long when it is asked to be,
 * and never longer than its question.
 */
#ifndef VRB_WIRE_ASK_H
#define VRB_WIRE_ASK_H

#include "base/psn.h"
#include "base/types.h"

#define VRB_ASK_LEN	  64u
#define VRB_ASK_OPCODE	  0xfeu
#define VRB_ASK_NAME	  25u
#define VRB_ASK_NAME_SIZE (VRB_ASK_LEN - VRB_ASK_NAME)

enum { VRB_ASK_LONG_ANSWER = 1 }; /* flags */

enum vrb_ask_what {
	VRB_ASK_NO_OWNER = 1, /* nobody has the QPN's slot */
	VRB_ASK_NO_QP,
	VRB_ASK_OTHER, /* connected to somebody else than the asker, who is told no more */
	VRB_ASK_YOURS, /* connected to the asker, or not connected yet */
};

struct vrb_ask {
	bool is_answer;
	uint8_t flags, what, state, type;
	vrb_qpn qpn, from;
	uint64_t nonce;
	struct vrb_psn epsn;
	char name[VRB_ASK_NAME_SIZE]; /* of a verdict; empty: none */
};

void vrb_ask_emit(const struct vrb_ask *a, uint8_t out[VRB_ASK_LEN]);
/* False: it is none, or of another version. */
bool vrb_ask_parse(const uint8_t *bytes, size_t len, struct vrb_ask *out);

#endif
