/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Status 12 (RETRY_EXC) says only that nobody answered. From what is known of the queue pair and
 * what the peer's process has answered when it was asked aside (wire/ask.h), which of the reasons
 * it was.
 */
#ifndef VRB_CORE_CAUSE_H
#define VRB_CORE_CAUSE_H

#include "base/verdict.h"
#include "wire/ask.h"

enum vrb_way { VRB_WAY_OPEN, VRB_WAY_REFUSED, VRB_WAY_BROKEN };

struct vrb_facts {
	bool by_wire; /* the packets went by it */
	bool by_name; /* asked by the registry of processes, within the host */
	bool heard;   /* the peer has acknowledged something before */
	uint8_t type;
	vrb_qpn qpn, dqpn;
	struct vrb_psn first, una, sent; /* una: what was sent in vain; sent: one past the newest */
	enum vrb_way way;		 /* REFUSED: nobody has the port, or the slot */
	int way_errno;
	uint32_t big; /* bytes of the IP packet of the longer question; 0: none was asked */
	bool answered, big_answered;
	struct vrb_ask answer;
};

/* The reason, in the words of the verdict table. */
struct vrb_report vrb_cause(const struct vrb_facts *f);

#endif
