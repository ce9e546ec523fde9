/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fault plan: which packets of a program's real traffic are to be harmed, and how (hca/faults.h
 * does it). Text of one rule a line; a semicolon ends a rule, too, and # begins a comment.
 *
 *	seed NUMBER
 *	[QP] partition [TAIL]
 *	[QP] DIRECTION [PACKETS] FAULT [TAIL]
 *
 *	QP         qp N (the N-th that the process creates) | qpn 0xHEX
 *	DIRECTION  tx | rx | both
 *	PACKETS    CLASS [next | N [packet M | packet last] | packet N]
 *	CLASS      any request response send write read-request read-response atomic
 *	           atomic-response ack nak rnr-nak cnp
 *	FAULT      loss P | drop P | duplicate P | corrupt P | reorder P TIME
 *	           delay [P] TIME [jitter TIME] | blackhole above BYTES
 *	           rnr-nak P | nak sequence|invalid|access|operational P
 *	TAIL       [times N] [from TIME] [for TIME]
 *
 * P is a percentage. A rule with a number (or next) among its PACKETS is exact: it names a packet,
 * has no P and strikes once, or `times N`. Rules are numbered from 1 as they stand; seed is none.
 */
#ifndef VRB_BASE_FAULT_PLAN_H
#define VRB_BASE_FAULT_PLAN_H

#include "base/words.h"

#define VRB_FAULT_RULES_MAX   64u
#define VRB_FAULT_TEXT_MAX    16384u /* bytes of a plan */
#define VRB_FAULT_PPM	      1000000u
#define VRB_FAULT_PACKET_LAST UINT32_MAX
/* What a plan in the environment may ask for; base/fault_plan.c parses it. */
#define VRB_FAULT_ENV	  "VERBENA_FAULTS"
#define VRB_FAULT_ENV_LOG "VERBENA_FAULTS_LOG"

enum vrb_fault_kind {
	VRB_FAULT_DROP,
	VRB_FAULT_DUPLICATE,
	VRB_FAULT_CORRUPT,
	VRB_FAULT_REORDER,
	VRB_FAULT_DELAY,
	VRB_FAULT_BLACKHOLE,
	VRB_FAULT_RNR_NAK,
	VRB_FAULT_NAK,
	VRB_FAULT_PARTITION,
	VRB_FAULT_KINDS,
};

enum vrb_fault_class {
	VRB_FAULT_ANY,
	VRB_FAULT_REQUEST,
	VRB_FAULT_RESPONSE,
	VRB_FAULT_ACKS, /* plain ones */
	VRB_FAULT_NAKS,
	VRB_FAULT_RNR_NAKS,
	VRB_FAULT_CNPS,
	/* from here on packets belong to messages, which can be counted */
	VRB_FAULT_SEND,
	VRB_FAULT_WRITE,
	VRB_FAULT_READ_REQUEST,
	VRB_FAULT_READ_RESPONSE,
	VRB_FAULT_ATOMIC,
	VRB_FAULT_ATOMIC_RESPONSE,
	VRB_FAULT_CLASSES,
};

enum vrb_fault_nak {
	VRB_FAULT_SEQUENCE,
	VRB_FAULT_INVALID,
	VRB_FAULT_ACCESS,
	VRB_FAULT_OPERATIONAL
};

enum { VRB_FAULT_TX = 1, VRB_FAULT_RX = 2 };

struct vrb_fault_rule {
	uint32_t text, text_len; /* where it stands in the plan */
	enum vrb_fault_kind kind;
	enum vrb_fault_class class;
	enum vrb_fault_nak nak;
	uint32_t dirs;	 /* VRB_FAULT_TX, _RX */
	uint32_t qp;	 /* by order of creation; 0: not given so */
	vrb_qpn qpn;	 /* 0: not given so */
	bool exact;	 /* strikes the packet named below, not by chance */
	bool by_packet;	 /* nth counts packets, not messages */
	uint32_t nth;	 /* from 1 */
	uint32_t packet; /* of the message, from 1, or PACKET_LAST */
	uint32_t per_million;
	uint32_t times;	     /* strikes so often at most; 0: no bound */
	uint32_t above;	     /* BLACKHOLE: bytes of the IP packet */
	vrb_ns time, jitter; /* DELAY, REORDER */
	vrb_ns from, until;  /* since the device was opened */
};

struct vrb_fault_plan {
	uint64_t seed;
	uint32_t n;
	struct vrb_fault_rule rule[VRB_FAULT_RULES_MAX];
};

/* True and the plan (rules point into the text by offsets), or false and why. */
bool vrb_fault_plan_parse(const char *text, size_t len, struct vrb_fault_plan *out,
			  struct vrb_words_error *err);

/* A plan is text when it holds a blank or a semicolon or is `partition`, the only rule that is a
 * single word; otherwise it is the name of a file. */
bool vrb_fault_is_text(const char *plan);

const char *vrb_fault_kind_name(enum vrb_fault_kind kind);

#endif
