/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands between a program and the software HCA: two shared objects and three environment
 * variables. `run` sets them, `env` prints them.
 */
#ifndef VRB_TOOLS_LAUNCH_H
#define VRB_TOOLS_LAUNCH_H

#include <limits.h>
#include <stdbool.h>

struct vrb_launch {
	char lib_dir[PATH_MAX]; /* holds libibverbs.so.1 */
	char preload[PATH_MAX]; /* libverbena-preload.so; empty when not wanted */
	const char *explain;	/* value of VERBENA_EXPLAIN */
	char check[PATH_MAX];	/* libverbena-check.so; empty when not wanted */
	bool is_system;		/* only the checker, on the system's libibverbs */
};

/* Finds both by the place of this program. False when it has said what is missing. */
bool vrb_launch_find(struct vrb_launch *l, bool with_preload);

/* The checker, too. */
bool vrb_launch_find_check(struct vrb_launch *l);

/* Puts them in front of what the environment of this process holds. */
bool vrb_launch_apply(const struct vrb_launch *l);

#endif
