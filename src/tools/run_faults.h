/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults for the program that `verbena run` starts: the plan is checked before, handed over in the
 * environment, and with --faults-strict its record is read afterwards.
 */
#ifndef VRB_TOOLS_RUN_FAULTS_H
#define VRB_TOOLS_RUN_FAULTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/fault_plan.h"

struct vrb_faults_opt {
	const char *plan, *log; /* as given; NULL */
	bool strict;
	/* after load */
	char text[VRB_FAULT_TEXT_MAX + 3]; /* so that too much shows */
	struct vrb_fault_plan parsed;
	char log_path[PATH_MAX];
	bool log_is_ours;
};

/* Reads and checks; -1 to go on, or the exit status. */
int vrb_faults_load(struct vrb_faults_opt *o);
/* False when it has said why not. */
bool vrb_faults_apply(struct vrb_faults_opt *o);
/* Runs the command to its end; the exit status. */
int vrb_faults_watch(struct vrb_faults_opt *o, char **argv);

#endif
