/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena run --trace`: where the processes record what, and the one file that is made of it. */
#ifndef VRB_TOOLS_RUN_TRACE_H
#define VRB_TOOLS_RUN_TRACE_H

#include <limits.h>
#include <stdbool.h>

struct vrb_run_trace_opt {
	const char *file, *form, *max; /* as given, or NULL */
	bool json;
	int fd;
	char folder[PATH_MAX];
};

/* -1 to go on, or the exit status. */
int vrb_run_trace_load(struct vrb_run_trace_opt *o);
/* Makes the file, and sets the environment. False: it said why not. */
bool vrb_run_trace_apply(struct vrb_run_trace_opt *o);
/* After the command; status is handed on, unless the file cannot be written. */
int vrb_run_trace_end(struct vrb_run_trace_opt *o, int status);

#endif
