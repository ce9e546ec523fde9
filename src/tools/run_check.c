/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See run_check.h. Findings are counted by the log, where each is a line, so that those of all the
 * program's processes count. The program gets whole paths: it may change its folder.
 */
#include "tools/run_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/run_child.h"
#include "tools/tools.h"

bool vrb_run_check_modes(struct vrb_run_check_opt *o, const char *modes)
{
	o->wanted = true;
	while (modes && *modes) {
		size_t n = strcspn(modes, ",");

		if (n == 5 && !strncmp(modes, "fatal", n))
			o->fatal = true;
		else if (n == 4 && !strncmp(modes, "data", n))
			o->data = true;
		else {
			vrb_complain("--check=%s: possible are fatal and data", modes);
			return false;
		}
		modes += n + (modes[n] == ',');
	}
	return true;
}

int vrb_run_check_load(const struct vrb_run_check_opt *o)
{
	if (!o->wanted && (o->log || o->suppress)) {
		vrb_complain("--check-log and --check-suppress need --check");
		return VRB_EXIT_OURS;
	}
	if (o->suppress && access(o->suppress, R_OK)) {
		vrb_complain("%s: %s", o->suppress, strerror(errno));
		return VRB_EXIT_USAGE;
	}
	return -1;
}

bool vrb_run_check_apply(struct vrb_run_check_opt *o)
{
	char *path = NULL;
	bool ok;

	if (!o->wanted)
		return true;
	if ((o->log || o->fatal) &&
	    !vrb_run_log(o->log, "verbena-check", o->log_path, &o->log_is_ours))
		return false;
	if (o->suppress)
		path = realpath(o->suppress, NULL);
	ok = !setenv("VERBENA_CHECK", o->data ? "data" : "1", 1) &&
	     (!path || !setenv("VERBENA_CHECK_SUPPRESS", path, 1)) &&
	     (!o->log_path[0] || !setenv("VERBENA_CHECK_LOG", o->log_path, 1));
	free(path);
	if (!ok)
		vrb_complain("cannot set the environment: %s", strerror(errno));
	return ok;
}

static bool has_findings(const char *path)
{
	FILE *f = fopen(path, "re");
	bool any = f && fgetc(f) != EOF;

	if (f)
		fclose(f);
	return any;
}

int vrb_run_check_watch(struct vrb_run_check_opt *o, char **argv)
{
	int status = vrb_run_child(argv);

	if (!status && has_findings(o->log_path))
		status = VRB_EXIT_FOUND;
	if (o->log_is_ours)
		unlink(o->log_path);
	return status;
}
