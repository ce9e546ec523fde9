/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `doctor --record DIR`: keeps what the checks read, so that the same findings can be had elsewhere
 * with --root DIR. Only what was read is kept, and of the environment only the variables that a
 * check asks for: a report for others must not hold passwords.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/doctor_read.h"
#include "tools/tools.h"

/* Makes the folders of a path. */
static bool make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int failed;

		*slash = '\0';
		failed = mkdir(path, 0755) && errno != EEXIST;
		*slash = '/';
		if (failed)
			return false;
	}
	return true;
}

static bool place(const struct vrb_doc *d, char *out, const char *path)
{
	path += strlen(d->root);
	return (size_t)snprintf(out, PATH_MAX, "%s/%s", d->record, path) < PATH_MAX &&
	       !strstr(path, "/../") && make_folders(out);
}

static int create(const struct vrb_doc *d, const char *path, int flags)
{
	char out[PATH_MAX];

	if (!place(d, out, path))
		return -1;
	return open(out, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
}

void vrb_record_file(const struct vrb_doc *d, const char *path, const char *bytes, size_t n)
{
	size_t len = strlen(path);
	int fd;

	if (!d->record || (len > 8 && !strcmp(path + len - 8, "/environ")))
		return;
	fd = create(d, path, O_TRUNC);
	if (fd < 0)
		return;
	if (write(fd, bytes, n) != (ssize_t)n)
		vrb_complain("--record: %s is not complete: %s", path, strerror(errno));
	close(fd);
}

void vrb_record_link(const struct vrb_doc *d, const char *path, const char *target)
{
	char out[PATH_MAX];

	if (d->record && place(d, out, path))
		(void)!symlink(target, out);
}

void vrb_record_exists(const struct vrb_doc *d, const char *path, bool folder, unsigned mode)
{
	char out[PATH_MAX];
	int fd;

	if (!d->record || !place(d, out, path))
		return;
	if (folder) {
		(void)!mkdir(out, 0755);
		return;
	}
	fd = create(d, path, 0);
	if (fd < 0)
		return;
	if (mode)
		(void)!fchmod(fd, mode);
	close(fd);
}

void vrb_record_env(const struct vrb_doc *d, const char *name, const char *value)
{
	char path[PATH_MAX], line[1200];
	int fd, n;

	if (!d->record)
		return;
	snprintf(path, sizeof(path), "%s/proc/%s/environ", d->root, d->pid);
	fd = create(d, path, O_APPEND);
	n = snprintf(line, sizeof(line), "%s=%s\n", name, value);
	if (fd < 0)
		return;
	(void)!write(fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	close(fd);
}
