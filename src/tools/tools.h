/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the commands of the `verbena` binary share: the table of commands, exit codes, and the few
 * helpers of option parsing. A command gets argv with its own name at argv[0].
 */
#ifndef VRB_TOOLS_TOOLS_H
#define VRB_TOOLS_TOOLS_H

#include <getopt.h>
#include <stdbool.h>

enum {
	VRB_EXIT_OK = 0,
	VRB_EXIT_FAILED = 1,
	VRB_EXIT_USAGE = 2,
	VRB_EXIT_FOUND = 122,
	VRB_EXIT_NOT_STRUCK = 123,
	/* as env(1) and nohup(1) have them */
	VRB_EXIT_OURS = 125,
	VRB_EXIT_NOT_EXECUTABLE = 126,
	VRB_EXIT_NOT_FOUND = 127,
};

struct vrb_command {
	const char *name, *summary;
	const char *usage; /* after "usage: verbena NAME" */
	int (*run)(int argc, char **argv);
};

extern const struct vrb_command vrb_cmd_run, vrb_cmd_env, vrb_cmd_demo, vrb_cmd_devinfo,
	vrb_cmd_perf, vrb_cmd_capture, vrb_cmd_explain, vrb_cmd_doctor, vrb_cmd_top,
	vrb_cmd_metrics;

/* Prints "verbena: " and the sentence to stderr. */
void vrb_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* getopt_long for one command: --help prints the usage and returns 'h'; an unknown option prints
 * where help is and returns '?'. */
int vrb_opt_next(const struct vrb_command *c, int argc, char **argv, const char *shorts,
		 const struct option *longs);

/* The result of a command after vrb_opt_next returned an option that is not its own. */
int vrb_opt_exit(int opt);

/* Says why a command cannot be run, and gives the exit status. */
int vrb_exec_failed(const char *cmd, int err);

void vrb_usage(const struct vrb_command *c, bool to_stderr);

#endif
