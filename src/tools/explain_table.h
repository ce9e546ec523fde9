/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a completion status or an errno of a verb can mean, and which verdicts lead to it. The
 * verdicts themselves (rule, sentence, hint) stand in base/verdict_table.h.
 */
#ifndef VRB_TOOLS_EXPLAIN_TABLE_H
#define VRB_TOOLS_EXPLAIN_TABLE_H

#define VRB_EXPLAIN_VERDICTS 20

struct vrb_meaning {
	const char *name; /* IBV_WC_LOC_PROT_ERR, EINVAL */
	int number;
	bool is_errno;
	const char *text;
	int verdicts[VRB_EXPLAIN_VERDICTS]; /* enum vrb_verdict, ends with 0 */
};

extern const struct vrb_meaning vrb_meanings[];
extern const unsigned vrb_n_meanings;

#endif
