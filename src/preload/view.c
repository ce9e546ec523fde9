/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The current tree's path is published through an atomic pointer to a string that is never freed: a
 * process sees a new one only when its interfaces change. The interfaces are looked at again at
 * most once a second, and only when one of our paths is asked for. No lock is held anywhere, so a
 * fork or a signal handler in the middle does no harm: two threads at once make the same tree.
 */
#include "preload/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>

#include "preload/counters.h"
#include "preload/tree.h"

#define LOOK_AGAIN_NS VRB_NS_PER_S

struct root {
	uid_t uid;
	size_t len;
	char path[];
};

/* what is shown, and where it stands in the tree */
static const struct {
	const char *shown, *inside;
} places[] = {
	{"/sys/class/infiniband_verbs", "/class/infiniband_verbs"},
	{"/sys/class/infiniband", "/class/infiniband"},
	{"/dev/infiniband", "/dev/infiniband"},
};
#define N_PLACES (sizeof(places) / sizeof(places[0]))

static _Atomic(struct root *) current;
static _Atomic uint64_t looked_ns;

static vrb_ns now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (vrb_ns)t.tv_sec * VRB_NS_PER_S + (vrb_ns)t.tv_nsec;
}

static struct root *find_root(void)
{
	struct root *r = atomic_load(&current), *fresh;
	vrb_ns now = now_ns();
	char path[PATH_MAX];
	uid_t uid = geteuid();
	size_t len;

	if (r && r->uid == uid && now - atomic_load(&looked_ns) < LOOK_AGAIN_NS)
		return r;
	if (!vrb_tree_make(path))
		return r && r->uid == uid ? r : NULL;
	atomic_store(&looked_ns, now);
	if (r && r->uid == uid && !strcmp(r->path, path))
		return r;
	len = strlen(path);
	fresh = malloc(sizeof(*fresh) + len + 1);
	if (!fresh)
		return r;
	fresh->uid = uid;
	fresh->len = len;
	memcpy(fresh->path, path, len + 1);
	/* the old string stays: another thread may be reading it */
	atomic_store(&current, fresh);
	return fresh;
}

/* What follows prefix in path, several slashes counting as one; NULL when it does not match up to
 * the end of a name. */
static const char *rest_after(const char *path, const char *prefix)
{
	while (*prefix) {
		if (*path++ != *prefix)
			return NULL;
		if (*prefix++ == '/')
			path += strspn(path, "/");
	}
	return *path == '\0' || *path == '/' ? path : NULL;
}

const char *vrb_view_redirect(const char *path, char buf[PATH_MAX])
{
	int saved = errno;
	const struct root *r;
	const char *rest = NULL;
	size_t i;

	for (i = 0; i < N_PLACES && !rest; i++)
		rest = rest_after(path, places[i].shown);
	if (!rest)
		return path;
	r = find_root();
	errno = saved;
	if (!r ||
	    snprintf(buf, PATH_MAX, "%s%s%s", r->path, places[i - 1].inside, rest) >= PATH_MAX)
		return path;
	return buf;
}

void vrb_view_restore(char *path)
{
	const struct root *r = atomic_load(&current);

	if (!r || strncmp(path, r->path, r->len))
		return;
	for (size_t i = 0; i < N_PLACES; i++) {
		const char *rest = rest_after(path + r->len, places[i].inside);

		if (!rest)
			continue;
		memmove(path + strlen(places[i].shown), rest, strlen(rest) + 1);
		memcpy(path, places[i].shown, strlen(places[i].shown));
		return;
	}
}

/* The absolute path of name below dirfd; false when it is not below our tree. */
static bool absolute(const struct root *r, int dirfd, const char *name, char out[PATH_MAX])
{
	char link[32];
	ssize_t n;

	if (name[0] == '/')
		return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX &&
		       !strncmp(out, r->path, r->len);
	if (dirfd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/self/cwd");
	else
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n < (ssize_t)r->len || strncmp(out, r->path, r->len))
		return false;
	return snprintf(out + n, PATH_MAX - (size_t)n, "/%s", name) < PATH_MAX - (int)n;
}

/* path is that of the tree: .../class/infiniband/DEVICE/ports/1/DIR/NAME */
static const struct vrb_counter *parse(const struct root *r, const char *path, char device[16])
{
	const char *p = rest_after(path + r->len, "/class/infiniband"), *dir;
	size_t len;

	if (!p || *p != '/')
		return NULL;
	p += strspn(p, "/");
	len = strcspn(p, "/");
	if (len >= 16)
		return NULL;
	memcpy(device, p, len);
	device[len] = '\0';
	dir = rest_after(p + len, "/ports/1");
	if (!dir)
		return NULL;
	dir += strspn(dir, "/");
	len = strcspn(dir, "/");
	return vrb_counter_find(dir, len, dir + len + strspn(dir + len, "/"));
}

int vrb_view_open_counter(int dirfd, const char *path, int flags)
{
	const struct root *r = atomic_load(&current);
	const struct vrb_counter *c;
	char full[PATH_MAX], device[16];
	int fd = -1, saved = errno;

	if (vrb_likely(!r || (flags & (O_ACCMODE | O_CREAT | O_DIRECTORY | O_PATH)) != O_RDONLY))
		return -1;
	if (path[0] == '/' ? strncmp(path, r->path, r->len) != 0 : strchr(path, '.') != NULL)
		return -1;
	if (absolute(r, dirfd, path, full) && (c = parse(r, full, device))) {
		fd = memfd_create(c->name, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
		if (fd >= 0 &&
		    (dprintf(fd, "%llu\n", (unsigned long long)vrb_counter_read(c, device)) < 0 ||
		     lseek(fd, 0, SEEK_SET))) {
			close(fd);
			fd = -1;
		}
	}
	errno = saved;
	return fd;
}
