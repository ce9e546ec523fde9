/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one table of every reason to refuse a call, drop a packet, answer NAK or fail a work request.
 * From it come the enum, the counters, the sentences of VERBENA_EXPLAIN and `verbena explain`, and
 * the test that each reason is reached.
 *
 * A row: NAME, counter, kind, sentence, clause, hint. Placeholders in a sentence: {0}..{5} decimal,
 * {0x} hexadecimal, and as names {0s} QP state, {0t} QP type, {0o} opcode of a work request, {0m}
 * attr_mask of ibv_modify_qp, {0b} object, {0a} attribute, {0v} verb, {0w} bind reason, {0q} send
 * or receive, {0n} AETH syndrome, {0r} another verdict, {0f} field of a completion, {0c} connection
 * manager's message (base/names.h).
 * The values are those of struct vrb_report, in the order the comment behind each row names. Kinds:
 * CALL (a verbs call is refused), WORK (a work request fails locally), NAK (we answer NAK), REMOTE
 * (the peer refused or is gone), DROP (a packet is dropped silently), NOTE (worth saying, nothing
 * is refused).
 */
#ifndef VRB_BASE_VERDICT_H
#define VRB_BASE_VERDICT_H

#include "base/catalog.h"
#include "base/types.h"

enum vrb_verdict_kind {
	VRB_KIND_CALL,
	VRB_KIND_WORK,
	VRB_KIND_NAK,
	VRB_KIND_REMOTE,
	VRB_KIND_DROP,
	VRB_KIND_NOTE
};

#include "base/verdict_table.h"

enum vrb_verdict {
	VRB_OK,
#define X(name, counter, kind, sentence, clause, hint) VRB_V_##name,
	VRB_VERDICT_TABLE(X)
#undef X
		VRB_N_VERDICTS
};

struct vrb_verdict_info {
	const char *name, *counter, *sentence, *clause, *hint;
	enum vrb_verdict_kind kind;
};

/* What was refused: the rule, the QP it concerns (0 = none) and the values its sentence names. */
struct vrb_report {
	enum vrb_verdict verdict;
	vrb_qpn qpn;
	uint64_t val[6];
};

/* The row of v; never NULL (VRB_OK and numbers out of range give a row that says so). */
const struct vrb_verdict_info *vrb_verdict_info(enum vrb_verdict v);

/* Writes the sentence with its values into out (always terminated); returns the length without the
 * terminator. */
size_t vrb_verdict_format(char *out, size_t size, const struct vrb_report *r);
/* The same in another language: sentence and names pass through tr. */
size_t vrb_verdict_format_in(char *out, size_t size, const struct vrb_report *r, vrb_translate tr);

#endif
