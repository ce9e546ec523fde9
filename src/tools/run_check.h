/* SPDX-License-Identifier: BSD-2-Clause */
/* The checker for the program that `verbena run` starts. */
#ifndef VRB_TOOLS_RUN_CHECK_H
#define VRB_TOOLS_RUN_CHECK_H

#include <limits.h>
#include <stdbool.h>

struct vrb_run_check_opt {
	bool wanted, fatal, data;
	const char *log, *suppress; /* as given; NULL */
	/* after apply */
	char log_path[PATH_MAX];
	bool log_is_ours;
};

/* What stands behind --check=; false when it has said what is wrong. */
bool vrb_run_check_modes(struct vrb_run_check_opt *o, const char *modes);
/* -1 to go on, or the exit status. */
int vrb_run_check_load(const struct vrb_run_check_opt *o);
/* Sets what the checker reads. False when it has said why not. */
bool vrb_run_check_apply(struct vrb_run_check_opt *o);
/* Runs the command to its end; the exit status, VRB_EXIT_FOUND when it succeeded with findings. */
int vrb_run_check_watch(struct vrb_run_check_opt *o, char **argv);

#endif
