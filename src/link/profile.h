/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile that a name or a file stands for (base/profile.h). The library, the sysfs view and
 * the tools all compile this file, so that they agree.
 */
#ifndef VRB_LINK_PROFILE_H
#define VRB_LINK_PROFILE_H

#include "base/profile.h"

struct vrb_profile_error {
	char text[512];	       /* a sentence */
	uint32_t line, column; /* 0: not in the text */
};

/* value: a built-in profile's name, else the path of a file; NULL or empty: plain. 0, or -errno
 * with err filled in and *out plain. */
int vrb_profile_load(const char *value, struct vrb_profile *out, struct vrb_profile_error *err);

#endif
