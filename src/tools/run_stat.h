/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena run --stat`: what the processes of the command have done, when it has ended. */
#ifndef VRB_TOOLS_RUN_STAT_H
#define VRB_TOOLS_RUN_STAT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct vrb_run_stat_opt {
	bool wanted;
	const char *form, *file; /* as given, or NULL */
	bool json;
	FILE *out; /* of file, or NULL */
	char folder[PATH_MAX];
};

/* form: what stands behind --stat=, or NULL */
void vrb_run_stat_take(struct vrb_run_stat_opt *o, const char *form);
/* -1 to go on, or the exit status. */
int vrb_run_stat_load(struct vrb_run_stat_opt *o);
/* Makes the folder for the parts, and sets the environment. False: it said why not. */
bool vrb_run_stat_apply(struct vrb_run_stat_opt *o);
/* After the command; status is handed on, unless nothing can be read or written. */
int vrb_run_stat_end(struct vrb_run_stat_opt *o, char **command, int status);

#endif
