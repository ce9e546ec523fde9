/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena env`: the environment of `verbena run` as text, for a shell, a Containerfile or a CI
 * job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/launch.h"
#include "tools/tools.h"

enum form { FORM_SH, FORM_DOCKER, FORM_GITHUB };

/* A word in single quotes for a POSIX shell. */
static void print_quoted(const char *s)
{
	putchar('\'');
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*s);
	}
	putchar('\'');
}

static void print_list(enum form form, const char *name, const char *value)
{
	switch (form) {
	case FORM_SH:
		printf("export %s=", name);
		print_quoted(value);
		printf("\"${%s:+:$%s}\"\n", name, name);
		break;
	case FORM_DOCKER:
		printf("ENV %s=%s\n", name, value);
		break;
	case FORM_GITHUB: {
		const char *old = getenv(name);

		printf("%s=%s%s%s\n", name, value, old && *old ? ":" : "", old ? old : "");
		break;
	}
	}
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {{"sh", no_argument, NULL, 's'},
					      {"docker", no_argument, NULL, 'd'},
					      {"github", no_argument, NULL, 'g'},
					      {"no-explain", no_argument, NULL, 'E'},
					      {"no-sysfs", no_argument, NULL, 'S'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	enum form form = FORM_SH;
	bool with_preload = true, explain = true;
	struct vrb_launch l;
	int opt;

	while ((opt = vrb_opt_next(&vrb_cmd_env, argc, argv, "h", longs)) != -1) {
		switch (opt) {
		case 's':
			form = FORM_SH;
			break;
		case 'd':
			form = FORM_DOCKER;
			break;
		case 'g':
			form = FORM_GITHUB;
			break;
		case 'E':
			explain = false;
			break;
		case 'S':
			with_preload = false;
			break;
		default:
			return vrb_opt_exit(opt);
		}
	}
	if (optind < argc) {
		vrb_complain("`verbena env` takes no arguments, only options");
		return VRB_EXIT_USAGE;
	}
	if (!vrb_launch_find(&l, with_preload))
		return VRB_EXIT_OURS;
	print_list(form, "LD_LIBRARY_PATH", l.lib_dir);
	if (l.preload[0])
		print_list(form, "LD_PRELOAD", l.preload);
	printf("%sVERBENA_EXPLAIN=%s\n",
	       form == FORM_SH	     ? "export "
	       : form == FORM_DOCKER ? "ENV "
				     : "",
	       explain ? l.explain : "0");
	return VRB_EXIT_OK;
}

const struct vrb_command vrb_cmd_env = {
	.name = "env",
	.summary = "print what `run` sets, for a shell, a Containerfile or a CI job",
	.usage = "[--sh | --docker | --github] [--no-explain] [--no-sysfs]\n\n"
		 "  --sh          export lines for a shell (default): eval \"$(verbena env)\"\n"
		 "  --docker      ENV lines for a Containerfile\n"
		 "  --github      lines for $GITHUB_ENV\n"
		 "  --no-explain  refused calls and failed work requests are not explained\n"
		 "  --no-sysfs    without the view of /sys/class/infiniband and /dev/infiniband\n",
	.run = run,
};
