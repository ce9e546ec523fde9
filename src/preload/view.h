/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which paths are ours, and what stands for them. Every call that takes a path asks here first; for
 * any other path the answer costs two comparisons of characters.
 */
#ifndef VRB_PRELOAD_VIEW_H
#define VRB_PRELOAD_VIEW_H

#include <limits.h>

#include "base/types.h"

const char *vrb_view_redirect(const char *path, char buf[PATH_MAX]);

/* The path to use: path itself, or its stand-in written to buf. Keeps errno. */
static inline const char *vrb_view_path(const char *path, char buf[PATH_MAX])
{
	if (vrb_likely(!path || path[0] != '/' || (path[1] != 's' && path[1] != 'd')))
		return path;
	return vrb_view_redirect(path, buf);
}

/* A descriptor with the present value when path (relative to dirfd) is a counter; else -1. */
int vrb_view_open_counter(int dirfd, const char *path, int flags);

/* Turns a path below our tree back into the one it stands for, in place. */
void vrb_view_restore(char *path);

#endif
