/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libverbena-preload.so: the calls of libc that take a path. Each asks the view for the path's
 * stand-in and hands over to the next library in line; nothing else happens here. The next function
 * is looked up at its first use, not at load.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "preload/view.h"

#define EXPORT	  __attribute__((visibility("default")))
#define NO_DIRFD  AT_FDCWD
#define MODE_NONE 0

/* The next definition of name behind us, looked up once. */
static void *lookup(_Atomic(void *) *cached, const char *name)
{
	void *next = atomic_load_explicit(cached, memory_order_relaxed);

	if (vrb_unlikely(!next)) {
		next = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(cached, next, memory_order_relaxed);
	}
	if (vrb_unlikely(!next))
		errno = ENOSYS;
	return next;
}

/*
 * Declares and defines ret name params; body may use next (a pointer to the next definition) and
 * P(path) (the path or its stand-in); fail is returned when there is no next.
 */
#define WRAP(ret, fail, name, params, body)                                                        \
	EXPORT ret name params;                                                                    \
	EXPORT ret name params                                                                     \
	{                                                                                          \
		static _Atomic(void *) cached;                                                     \
		ret(*next) params = lookup(&cached, #name);                                        \
		char buf[PATH_MAX];                                                                \
                                                                                                   \
		(void)buf;                                                                         \
		if (vrb_unlikely(!next))                                                           \
			return fail;                                                               \
		body                                                                               \
	}
#define P(path) vrb_view_path(path, buf)

/* Device nodes are links to /dev/null in the tree, but an lstat must see a character device. */
static bool is_device(const char *path, const char *used)
{
	return used != path && path[1] == 'd';
}

static int no_follow(const char *path, const char *used, int flags)
{
	return is_device(path, used) ? flags & ~AT_SYMLINK_NOFOLLOW : flags;
}

/* ---- open: a counter is answered with a descriptor of its own */

static int counter(int dirfd, const char *path, int flags)
{
	return path ? vrb_view_open_counter(dirfd, path, flags) : -1;
}

#define OPEN_BODY(dirfd, call)                                                                     \
	const char *used = P(path);                                                                \
	int fd = counter(dirfd, used, flags);                                                      \
                                                                                                   \
	return fd >= 0 ? fd : call;

#define TAKE_MODE                                                                                  \
	mode_t mode = MODE_NONE;                                                                   \
	va_list ap;                                                                                \
                                                                                                   \
	if (flags & (O_CREAT | __O_TMPFILE)) {                                                     \
		va_start(ap, flags);                                                               \
		mode = va_arg(ap, mode_t);                                                         \
		va_end(ap);                                                                        \
	}

#define WRAP_OPEN(name)                                                                            \
	WRAP(int, -1, name, (const char *path, int flags, ...),                                    \
	     TAKE_MODE OPEN_BODY(NO_DIRFD, next(used, flags, mode)))
#define WRAP_OPENAT(name)                                                                          \
	WRAP(int, -1, name, (int dirfd, const char *path, int flags, ...),                         \
	     TAKE_MODE OPEN_BODY(dirfd, next(dirfd, used, flags, mode)))

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
WRAP(int, -1, __open_2, (const char *path, int flags), OPEN_BODY(NO_DIRFD, next(used, flags)))
WRAP(int, -1, __open64_2, (const char *path, int flags), OPEN_BODY(NO_DIRFD, next(used, flags)))
WRAP(int, -1, __openat_2, (int dirfd, const char *path, int flags),
     OPEN_BODY(dirfd, next(dirfd, used, flags)))
WRAP(int, -1, __openat64_2, (int dirfd, const char *path, int flags),
     OPEN_BODY(dirfd, next(dirfd, used, flags)))

#define WRAP_FOPEN(name)                                                                           \
	WRAP(FILE *, NULL, name, (const char *path, const char *mode), {                           \
		const char *used = P(path);                                                        \
		bool reads = mode && mode[0] == 'r' && !strchr(mode, '+');                         \
		int fd = reads ? counter(NO_DIRFD, used, O_RDONLY) : -1;                           \
                                                                                                   \
		return fd >= 0 ? fdopen(fd, mode) : next(used, mode);                              \
	})
WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)

/* ---- folders */

typedef int (*dir_filter)(const struct dirent *);
typedef int (*dir_compare)(const struct dirent **, const struct dirent **);
typedef int (*dir_filter64)(const struct dirent64 *);
typedef int (*dir_compare64)(const struct dirent64 **, const struct dirent64 **);

WRAP(DIR *, NULL, opendir, (const char *path), return next(P(path));)
WRAP(int, -1, scandir,
     (const char *path, struct dirent ***list, dir_filter filter, dir_compare compare),
     return next(P(path), list, filter, compare);)
WRAP(int, -1, scandir64,
     (const char *path, struct dirent64 ***list, dir_filter64 filter, dir_compare64 compare),
     return next(P(path), list, filter, compare);)
WRAP(int, -1, chdir, (const char *path), return next(P(path));)

/* ---- stat in all its spellings */

#define WRAP_STAT(name, type)                                                                      \
	WRAP(int, -1, name, (const char *path, struct type *st), return next(P(path), st);)
#define WRAP_LSTAT(name, follow, type)                                                             \
	WRAP(int, -1, name, (const char *path, struct type *st), {                                 \
		const char *used = P(path);                                                        \
                                                                                                   \
		return is_device(path, used) ? follow(used, st) : next(used, st);                  \
	})
#define WRAP_FSTATAT(name, type)                                                                   \
	WRAP(int, -1, name, (int dirfd, const char *path, struct type *st, int flags), {           \
		const char *used = P(path);                                                        \
                                                                                                   \
		return next(dirfd, used, st, no_follow(path, used, flags));                        \
	})
/* what programs linked against a glibc before 2.33 call */
#define WRAP_XSTAT(name, type)                                                                     \
	WRAP(int, -1, name, (int version, const char *path, struct type *st),                      \
	     return next(version, P(path), st);)
#define WRAP_FXSTATAT(name, type)                                                                  \
	WRAP(int, -1, name,                                                                        \
	     (int version, int dirfd, const char *path, struct type *st, int flags), {             \
		     const char *used = P(path);                                                   \
                                                                                                   \
		     return next(version, dirfd, used, st, no_follow(path, used, flags));          \
	     })

WRAP_STAT(stat, stat)
WRAP_STAT(stat64, stat64)
WRAP_LSTAT(lstat, stat, stat)
WRAP_LSTAT(lstat64, stat64, stat64)
WRAP_FSTATAT(fstatat, stat)
WRAP_FSTATAT(fstatat64, stat64)
WRAP_XSTAT(__xstat, stat)
WRAP_XSTAT(__xstat64, stat64)
WRAP_XSTAT(__lxstat, stat)
WRAP_XSTAT(__lxstat64, stat64)
WRAP_FXSTATAT(__fxstatat, stat)
WRAP_FXSTATAT(__fxstatat64, stat64)
WRAP(int, -1, statx,
     (int dirfd, const char *restrict path, int flags, unsigned mask, struct statx *restrict st), {
	     const char *used = P(path);

	     return next(dirfd, used, no_follow(path, used, flags), mask, st);
     })

/* ---- may I? */

WRAP(int, -1, access, (const char *path, int mode), return next(P(path), mode);)
WRAP(int, -1, eaccess, (const char *path, int mode), return next(P(path), mode);)
WRAP(int, -1, euidaccess, (const char *path, int mode), return next(P(path), mode);)
WRAP(int, -1, faccessat, (int dirfd, const char *path, int mode, int flags), {
	const char *used = P(path);

	return next(dirfd, used, mode, no_follow(path, used, flags));
})

/* ---- links and names */

WRAP(ssize_t, -1, readlink, (const char *restrict path, char *restrict out, size_t size),
     return next(P(path), out, size);)
WRAP(ssize_t, -1, readlinkat,
     (int dirfd, const char *restrict path, char *restrict out, size_t size),
     return next(dirfd, P(path), out, size);)
WRAP(ssize_t, -1, __readlink_chk, (const char *path, char *out, size_t size, size_t room),
     return next(P(path), out, size, room);)
WRAP(ssize_t, -1, __readlinkat_chk,
     (int dirfd, const char *path, char *out, size_t size, size_t room),
     return next(dirfd, P(path), out, size, room);)

#define REALPATH_BODY(call)                                                                        \
	const char *used = P(path);                                                                \
	char *real = call;                                                                         \
                                                                                                   \
	if (real && used != path)                                                                  \
		vrb_view_restore(real);                                                            \
	return real;
WRAP(char *, NULL, realpath, (const char *restrict path, char *restrict out),
     REALPATH_BODY(next(used, out)))
WRAP(char *, NULL, __realpath_chk, (const char *path, char *out, size_t room),
     REALPATH_BODY(next(used, out, room)))
WRAP(char *, NULL, canonicalize_file_name, (const char *path), REALPATH_BODY(next(used)))

/* ---- ls -l asks for extended attributes */

WRAP(ssize_t, -1, getxattr, (const char *path, const char *name, void *value, size_t size),
     return next(P(path), name, value, size);)
WRAP(ssize_t, -1, lgetxattr, (const char *path, const char *name, void *value, size_t size),
     return next(P(path), name, value, size);)
WRAP(ssize_t, -1, listxattr, (const char *path, char *list, size_t size),
     return next(P(path), list, size);)
WRAP(ssize_t, -1, llistxattr, (const char *path, char *list, size_t size),
     return next(P(path), list, size);)
