/* SPDX-License-Identifier: BSD-2-Clause */
/* See profile.h. Files are small and read whole; a pipe gives its text in parts. */
#include "link/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The length, or -errno. */
static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	ssize_t n = fd < 0 ? -1 : 1;
	size_t len = 0;

	while (n > 0 && len < size) {
		n = read(fd, buf + len, size - len);
		len += n > 0 ? (size_t)n : 0;
	}
	err = errno;
	if (fd >= 0)
		close(fd);
	return n < 0 ? -err : (ssize_t)len;
}

static int cannot_read(const char *path, int err, struct vrb_profile_error *e)
{
	int n = snprintf(e->text, sizeof(e->text), "%.200s: %s", path, strerror(-err));

	if (err == -ENOENT && !strchr(path, '/')) {
		n += snprintf(e->text + n, sizeof(e->text) - (size_t)n,
			      ", and no profile has that name; there are:");
		for (uint32_t i = 0; i < vrb_profile_n_builtins; i++)
			n += snprintf(e->text + n, sizeof(e->text) - (size_t)n, " %s",
				      vrb_profile_builtins[i].name);
	}
	return err;
}

static void set_name(struct vrb_profile *p, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(p->name, sizeof(p->name), "%s", slash ? slash + 1 : path);
}

int vrb_profile_load(const char *value, struct vrb_profile *out, struct vrb_profile_error *err)
{
	const struct vrb_profile_builtin *b =
		vrb_profile_builtin(value && *value ? value : "plain");
	char file[VRB_PROFILE_TEXT_MAX + 1];
	const char *text = b ? b->text : file;
	struct vrb_words_error wrong;
	ssize_t len;

	*err = (struct vrb_profile_error){.line = 0};
	vrb_profile_plain(out);
	len = b ? (ssize_t)strlen(text) : read_file(value, file, sizeof(file));
	if (len < 0)
		return cannot_read(value, (int)len, err);
	if (len > (ssize_t)VRB_PROFILE_TEXT_MAX) {
		snprintf(err->text, sizeof(err->text), "%.200s: more than %u bytes", value,
			 VRB_PROFILE_TEXT_MAX);
		return -EFBIG;
	}
	if (vrb_profile_parse(text, (size_t)len, out, &wrong)) {
		set_name(out, b ? b->name : value);
		return 0;
	}
	vrb_profile_plain(out);
	len = snprintf(err->text, sizeof(err->text), "%.200s: ", value);
	vrb_words_error_format(err->text + len, sizeof(err->text) - (size_t)len, &wrong);
	err->line = wrong.line;
	err->column = wrong.column;
	return -EINVAL;
}
