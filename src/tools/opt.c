/* SPDX-License-Identifier: BSD-2-Clause */
/* Option parsing and complaints in one form for all commands. */
#include "tools/tools.h"

#include <stdarg.h>
#include <stdio.h>

void vrb_complain(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("verbena: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void vrb_usage(const struct vrb_command *c, bool to_stderr)
{
	fprintf(to_stderr ? stderr : stdout, "usage: verbena %s %s", c->name, c->usage);
}

int vrb_opt_next(const struct vrb_command *c, int argc, char **argv, const char *shorts,
		 const struct option *longs)
{
	int opt = getopt_long(argc, argv, shorts, longs, NULL);

	if (opt == 'h')
		vrb_usage(c, false);
	if (opt == '?')
		fprintf(stderr, "Try `verbena %s --help`.\n", c->name);
	return opt;
}

int vrb_opt_exit(int opt)
{
	return opt == 'h' ? VRB_EXIT_OK : VRB_EXIT_USAGE;
}
