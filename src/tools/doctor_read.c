/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only place of the doctor that touches files. Nothing here follows what a file says to another
 * file, except for symbolic links, which sysfs makes relative; a recorded tree has plain folders.
 */
#include "tools/doctor_read.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLURP_BYTES (1 << 20)
#define LINE_BYTES  4096
#define FOLDER_MAX  65536

static bool full_path(const struct vrb_doc *d, char *out, const char *fmt, va_list ap)
{
	int n = snprintf(out, PATH_MAX, "%s", d->root), m;

	if (n < 0 || n >= PATH_MAX)
		return false;
	m = vsnprintf(out + n, (size_t)(PATH_MAX - n), fmt, ap);
	return m >= 0 && m < PATH_MAX - n;
}

#define PATH_OF(path, d, fmt)                                                                      \
	do {                                                                                       \
		va_list ap_;                                                                       \
		bool ok_;                                                                          \
		va_start(ap_, fmt);                                                                \
		ok_ = full_path(d, path, fmt, ap_);                                                \
		va_end(ap_);                                                                       \
		if (!ok_)                                                                          \
			(path)[0] = '\0';                                                          \
	} while (0)

/* Reads what is there now; a file that waits (a pipe, a device) is not opened. */
static ssize_t read_some(const char *path, char *out, size_t size)
{
	size_t n = 0;
	struct stat st;
	ssize_t got;
	int fd;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	while (n < size && (got = read(fd, out + n, size - n)) > 0)
		n += (size_t)got;
	close(fd);
	return (ssize_t)n;
}

bool vrb_doc_exists(const struct vrb_doc *d, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct stat st;

	PATH_OF(path, d, fmt);
	if (!path[0] || stat(path, &st))
		return false;
	vrb_record_exists(d, path, S_ISDIR(st.st_mode), 0);
	return true;
}

static bool read_line(const struct vrb_doc *d, const char *path, char *out, size_t size)
{
	char buf[LINE_BYTES];
	ssize_t n = read_some(path, buf, sizeof(buf) - 1);
	size_t len;

	if (n <= 0)
		return false;
	vrb_record_file(d, path, buf, (size_t)n);
	buf[n] = '\0';
	len = strcspn(buf, "\n");
	while (len && isspace((unsigned char)buf[len - 1]))
		len--;
	if (len >= size)
		len = size - 1;
	memcpy(out, buf, len);
	out[len] = '\0';
	return true;
}

bool vrb_doc_line(const struct vrb_doc *d, char *out, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];

	PATH_OF(path, d, fmt);
	return path[0] && read_line(d, path, out, size);
}

bool vrb_doc_number(const struct vrb_doc *d, long long *out, const char *fmt, ...)
{
	char path[PATH_MAX], line[64], *end;

	PATH_OF(path, d, fmt);
	if (!path[0] || !read_line(d, path, line, sizeof(line)))
		return false;
	*out = strtoll(line, &end, 0);
	return end != line;
}

char *vrb_doc_slurp(const struct vrb_doc *d, const char *fmt, ...)
{
	char path[PATH_MAX], *text, *small;
	ssize_t n;

	PATH_OF(path, d, fmt);
	text = path[0] ? malloc(SLURP_BYTES + 1) : NULL;
	if (!text)
		return NULL;
	n = read_some(path, text, SLURP_BYTES);
	if (n < 0) {
		free(text);
		return NULL;
	}
	vrb_record_file(d, path, text, (size_t)n);
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = '\n';
	text[n] = '\0';
	small = realloc(text, (size_t)n + 1);
	return small ? small : text;
}

bool vrb_doc_link(const struct vrb_doc *d, char *out, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	ssize_t n;

	PATH_OF(path, d, fmt);
	n = path[0] ? readlink(path, out, size - 1) : -1;
	if (n < 0)
		return false;
	out[n] = '\0';
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strverscmp(a, b);
}

static void record_name(const struct vrb_doc *d, char *folder, const char *name)
{
	size_t len = strlen(folder);
	struct stat st;

	if (!d->record || len + strlen(name) + 2 > PATH_MAX || strstr(folder, "/fd"))
		return;
	folder[len] = '/';
	strcpy(folder + len + 1, name);
	if (!stat(folder, &st))
		vrb_record_exists(d, folder, S_ISDIR(st.st_mode), 0);
	folder[len] = '\0';
}

unsigned vrb_doc_names(const struct vrb_doc *d, struct vrb_doc_names *out, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *dir;

	out->n = 0;
	PATH_OF(path, d, fmt);
	dir = path[0] ? opendir(path) : NULL;
	if (!dir)
		return 0;
	for (unsigned i = 0; i < FOLDER_MAX && out->n < VRB_DOC_NAMES; i++) {
		e = readdir(dir);
		if (!e)
			break;
		if (e->d_name[0] == '.' || strlen(e->d_name) >= VRB_DOC_NAME)
			continue;
		strcpy(out->name[out->n++], e->d_name);
		record_name(d, path, e->d_name);
	}
	closedir(dir);
	qsort(out->name, out->n, VRB_DOC_NAME, by_name);
	return out->n;
}

static bool in_group(const struct vrb_doc *d, long long gid)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/status", d->pid), line[1024], *word, *rest = line;
	bool found = false;

	for (int i = 0; text && i < 2; i++) {
		if (!vrb_doc_field(text, i ? "Groups:" : "Gid:", line, sizeof(line)))
			continue;
		rest = line;
		while ((word = strsep(&rest, " \t")))
			found = found || (*word && atoll(word) == gid);
	}
	free(text);
	return found;
}

bool vrb_doc_access(const struct vrb_doc *d, unsigned *mode, bool *may, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct stat st;
	unsigned need = 6;

	PATH_OF(path, d, fmt);
	if (!path[0] || stat(path, &st))
		return false;
	*mode = st.st_mode & 07777;
	vrb_record_exists(d, path, false, *mode);
	if (d->uid == (long long)st.st_uid)
		need = 0600;
	else if (in_group(d, st.st_gid))
		need = 060;
	*may = d->uid <= 0 || (*mode & need) == need;
	return true;
}

char *vrb_doc_next_line(char **cursor)
{
	char *line = *cursor, *end;

	if (!line || !*line)
		return NULL;
	end = strchr(line, '\n');
	*cursor = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return line;
}

bool vrb_doc_field(const char *text, const char *key, char *out, size_t size)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line;) {
		const char *end = strchr(line, '\n');

		if (!strncmp(line, key, len)) {
			size_t n = end ? (size_t)(end - line) : strlen(line);

			line += len;
			n -= len;
			while (n && isspace((unsigned char)*line))
				line++, n--;
			snprintf(out, size, "%.*s", (int)n, line);
			return true;
		}
		line = end ? end + 1 : NULL;
	}
	return false;
}

bool vrb_doc_env(const struct vrb_doc *d, const char *name, char *out, size_t size)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/environ", d->pid), key[64];
	bool found;

	if (!text)
		return false;
	snprintf(key, sizeof(key), "%s=", name);
	found = vrb_doc_field(text, key, out, size);
	if (found)
		vrb_record_env(d, name, out);
	free(text);
	return found;
}

static long long limit_value(const char *word)
{
	return strcmp(word, "unlimited") ? atoll(word) : -1;
}

bool vrb_doc_limit(const struct vrb_doc *d, const char *row, long long *soft, long long *hard)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/limits", d->pid), line[128], a[32], b[32];
	bool found = text && vrb_doc_field(text, row, line, sizeof(line)) &&
		     sscanf(line, "%31s %31s", a, b) == 2;

	free(text);
	if (!found)
		return false;
	*soft = limit_value(a);
	*hard = limit_value(b);
	return true;
}

void vrb_doc_each_pid(const struct vrb_doc *d,
		      bool (*f)(const struct vrb_doc *d, const char *pid, void *arg), void *arg)
{
	char path[PATH_MAX];
	bool done = false;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", d->root);
	dir = opendir(path);
	for (unsigned i = 0; dir && !done && i < FOLDER_MAX && (e = readdir(dir)); i++)
		done = isdigit((unsigned char)e->d_name[0]) && f(d, e->d_name, arg);
	if (dir)
		closedir(dir);
}

struct comm {
	const char *name;
	bool found;
};

/* Kept of all processes is only the one that was looked for. */
static bool has_comm(const struct vrb_doc *d, const char *pid, void *arg)
{
	struct comm *c = arg;
	char path[PATH_MAX], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/proc/%s/comm", d->root, pid);
	n = read_some(path, name, sizeof(name) - 1);
	if (n <= 0)
		return false;
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	c->found = !strcmp(name, c->name);
	if (c->found)
		vrb_record_file(d, path, name, strlen(name));
	return c->found;
}

bool vrb_doc_running(const struct vrb_doc *d, const char *comm)
{
	struct comm c = {.name = comm};

	vrb_doc_each_pid(d, has_comm, &c);
	return c.found;
}
