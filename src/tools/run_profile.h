/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile of the program that `verbena run` starts, or one run of it with each of several. */
#ifndef VRB_TOOLS_RUN_PROFILE_H
#define VRB_TOOLS_RUN_PROFILE_H

#include <stdbool.h>

struct vrb_profile_opt {
	const char *one;  /* --profile, as given; NULL */
	const char *many; /* --profiles */
};

/* Reads and checks; -1 to go on, or the exit status. */
int vrb_run_profile_load(const struct vrb_profile_opt *o);
/* Puts --profile into the environment; false when it has said why not. */
bool vrb_run_profile_apply(const struct vrb_profile_opt *o);
/* Runs the command with each profile of --profiles in turn, and prints how each ended. */
int vrb_run_profiles(const struct vrb_profile_opt *o, char **argv);

#endif
