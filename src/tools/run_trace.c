/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See run_trace.h. Each process writes a file of its own into a folder beside FILE, on the same
 * file system, so that what does not fit there is not noticed elsewhere; the folder goes when FILE
 * is written. FILE is opened before the command starts: it may be a pipe, or a name that the
 * command's end of the world does not have any more.
 */
#include "tools/run_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/run_child.h"
#include "tools/tools.h"
#include "tools/trace_read.h"

static bool is_number(const char *s)
{
	return *s && strlen(s) <= 18 && strspn(s, "0123456789") == strlen(s);
}

int vrb_run_trace_load(struct vrb_run_trace_opt *o)
{
	size_t n = o->file ? strlen(o->file) : 0;

	if (!o->file && (o->form || o->max)) {
		vrb_complain("--trace-form and --trace-max need --trace FILE");
		return VRB_EXIT_USAGE;
	}
	if (o->form && strcmp(o->form, "text") && strcmp(o->form, "json")) {
		vrb_complain("--trace-form %s: possible are text and json", o->form);
		return VRB_EXIT_USAGE;
	}
	if (o->max && !is_number(o->max)) {
		vrb_complain("--trace-max %s: a number of records, 0 for no bound", o->max);
		return VRB_EXIT_USAGE;
	}
	o->json = o->form ? !strcmp(o->form, "json") : n >= 5 && !strcmp(o->file + n - 5, ".json");
	return -1;
}

/* Beside FILE; where that is no place for files (a device, a pipe), with the temporary ones. */
static bool make_folder(struct vrb_run_trace_opt *o)
{
	const char *tmp = getenv("TMPDIR");
	char cwd[PATH_MAX] = "";

	if (o->file[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return false;
	if (snprintf(o->folder, sizeof(o->folder), "%s%s%s.parts-XXXXXX", cwd, *cwd ? "/" : "",
		     o->file) < (int)sizeof(o->folder) &&
	    strncmp(o->folder, "/dev/", 5) && strncmp(o->folder, "/proc/", 6) && mkdtemp(o->folder))
		return true;
	snprintf(o->folder, sizeof(o->folder), "%s/verbena-trace-XXXXXX",
		 tmp && *tmp == '/' ? tmp : "/tmp");
	return mkdtemp(o->folder);
}

bool vrb_run_trace_apply(struct vrb_run_trace_opt *o)
{
	char prefix[PATH_MAX + 8];

	if (!o->file)
		return true;
	/* a pipe that nobody reads is an error, not a wait */
	o->fd = open(o->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	if (o->fd < 0 || fcntl(o->fd, F_SETFL, 0)) {
		vrb_complain("%s: %s", o->file, strerror(errno));
		return false;
	}
	if (!make_folder(o)) {
		vrb_complain("%s: no folder for its parts: %s", o->file, strerror(errno));
		o->folder[0] = '\0';
		return false;
	}
	snprintf(prefix, sizeof(prefix), "%s/part", o->folder);
	if (!setenv(VRB_TRACE_ENV, prefix, 1) && (!o->max || !setenv(VRB_TRACE_ENV_MAX, o->max, 1)))
		return true;
	vrb_complain("cannot set the environment: %s", strerror(errno));
	return false;
}

static bool write_file(struct vrb_run_trace_opt *o, struct vrb_trace_set *s)
{
	FILE *f = fdopen(o->fd, "w");
	bool good;

	if (!f)
		return false;
	setvbuf(f, NULL, _IOFBF, 1u << 20);
	if (o->json)
		vrb_trace_write_json(s, f);
	else
		vrb_trace_write_text(s, f);
	good = !ferror(f);
	return !fclose(f) && good;
}

int vrb_run_trace_end(struct vrb_run_trace_opt *o, int status)
{
	struct vrb_trace_set s;
	bool good;

	if (!o->file)
		return status;
	good = vrb_trace_read(&s, o->folder);
	if (good && !write_file(o, &s)) {
		vrb_complain("%s: %s", o->file, strerror(errno));
		good = false;
	}
	if (good && !s.n_parts)
		vrb_complain("%s is empty: no process of the command has opened a device", o->file);
	else if (good)
		fprintf(stderr, "verbena: %" PRIu64 " records of %zu process%s are in %s\n",
			s.n_records, s.n_parts, s.n_parts == 1 ? "" : "es", o->file);
	if (s.n_lost)
		vrb_complain("%" PRIu64 " more were lost: --trace-max raises the bound of %u for "
			     "each process, if that is why",
			     s.n_lost, VRB_TRACE_DEFAULT);
	vrb_trace_free(&s);
	vrb_run_drop_folder(o->folder);
	return good || status ? status : VRB_EXIT_OURS;
}
