/* SPDX-License-Identifier: BSD-2-Clause */
/* The `verbena` binary: finds the command in the table and hands over. */
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

static const struct vrb_command *const commands[] = {
	&vrb_cmd_run,	  &vrb_cmd_env,	    &vrb_cmd_demo,   &vrb_cmd_devinfo, &vrb_cmd_perf,
	&vrb_cmd_capture, &vrb_cmd_explain, &vrb_cmd_doctor, &vrb_cmd_top,     &vrb_cmd_metrics,
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct vrb_command *find(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void print_help(FILE *f)
{
	fputs("usage: verbena COMMAND [ARGUMENTS]\n\n"
	      "A software RDMA adapter: run, test and understand RDMA programs on a machine\n"
	      "without an RDMA NIC.\n\n",
	      f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(f, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("  help       the usage of one command\n\n"
	      "verbena --version prints the version. Manual pages: verbena(1), verbena(7).\n",
	      f);
}

static int unknown(const char *name)
{
	vrb_complain("there is no command `%s`; `verbena --help` lists them", name);
	return VRB_EXIT_USAGE;
}

static int cmd_help(int argc, char **argv)
{
	const struct vrb_command *c;

	if (argc < 2) {
		print_help(stdout);
		return VRB_EXIT_OK;
	}
	c = find(argv[1]);
	if (!c)
		return unknown(argv[1]);
	vrb_usage(c, false);
	return VRB_EXIT_OK;
}

int main(int argc, char **argv)
{
	const struct vrb_command *c;

	if (argc < 2) {
		print_help(stderr);
		return VRB_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("verbena " VRB_VERSION);
		return VRB_EXIT_OK;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cmd_help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "help"))
		return cmd_help(argc - 1, argv + 1);
	c = find(argv[1]);
	return c ? c->run(argc - 1, argv + 1) : unknown(argv[1]);
}
