/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libraries stand in ../lib/verbena of the folder that holds this program, found by
 * /proc/self/exe, so that an installed tree and a build tree may be moved anywhere. The dynamic
 * linker splits LD_LIBRARY_PATH at colons and semicolons and LD_PRELOAD at colons and spaces and
 * knows no quoting: a tree under such a name cannot work and is refused.
 */
#include "tools/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tools.h"

#define LIB_NAME     "libibverbs.so.1"
#define PRELOAD_NAME "libverbena-preload.so"
#define CHECK_NAME   "libverbena-check.so"

static bool find_lib_dir(char *out, size_t size)
{
	char exe[PATH_MAX], path[PATH_MAX + 32];
	char *slash, *real;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0) {
		vrb_complain("cannot find my own place by /proc/self/exe: %s", strerror(errno));
		return false;
	}
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	snprintf(path, sizeof(path), "%s/../lib/verbena", exe);
	real = realpath(path, NULL);
	if (!real) {
		vrb_complain("%s is missing: the installation is not complete", path);
		return false;
	}
	snprintf(out, size, "%s", real);
	free(real);
	return true;
}

static bool check_file(const char *dir, const char *name)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!access(path, R_OK))
		return true;
	vrb_complain("%s: %s", path, strerror(errno));
	return false;
}

bool vrb_launch_find(struct vrb_launch *l, bool with_preload)
{
	memset(l, 0, sizeof(*l));
	l->explain = getenv("VERBENA_EXPLAIN");
	if (!l->explain)
		l->explain = "1";
	if (!find_lib_dir(l->lib_dir, sizeof(l->lib_dir)) || !check_file(l->lib_dir, LIB_NAME))
		return false;
	if (strpbrk(l->lib_dir, ":; $")) {
		vrb_complain("the dynamic linker cannot use a folder with a colon, semicolon, "
			     "dollar or space in its name: %s",
			     l->lib_dir);
		return false;
	}
	if (!with_preload)
		return true;
	if (!check_file(l->lib_dir, PRELOAD_NAME))
		return false;
	return (size_t)snprintf(l->preload, sizeof(l->preload), "%s/%s", l->lib_dir, PRELOAD_NAME) <
	       sizeof(l->preload);
}

bool vrb_launch_find_check(struct vrb_launch *l)
{
	return check_file(l->lib_dir, CHECK_NAME) &&
	       (size_t)snprintf(l->check, sizeof(l->check), "%s/%s", l->lib_dir, CHECK_NAME) <
		       sizeof(l->check);
}

/* Sets name to value[:old]; once is enough when it stands in front already. */
static bool put_in_front(const char *name, const char *value)
{
	const char *old = getenv(name);
	size_t len = strlen(value);
	char *joined;
	int err;

	if (!old || !*old)
		return !setenv(name, value, 1);
	if (!strncmp(old, value, len) && (!old[len] || old[len] == ':'))
		return true;
	if (asprintf(&joined, "%s:%s", value, old) < 0)
		return false;
	err = setenv(name, joined, 1);
	free(joined);
	return !err;
}

bool vrb_launch_apply(const struct vrb_launch *l)
{
	if ((l->is_system || put_in_front("LD_LIBRARY_PATH", l->lib_dir)) &&
	    (!l->preload[0] || put_in_front("LD_PRELOAD", l->preload)) &&
	    (!l->check[0] || put_in_front("LD_PRELOAD", l->check)) &&
	    !setenv("VERBENA_EXPLAIN", l->explain, 1))
		return true;
	vrb_complain("cannot set the environment: %s", strerror(errno));
	return false;
}
