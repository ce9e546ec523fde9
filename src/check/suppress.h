/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What shall not be told: lines `COUNTER` or `COUNTER PATTERN`, # begins a comment. COUNTER is the
 * name of a verdict or *; PATTERN is a glob(7) pattern for an object file or function of the call
 * or of the place where the object was made.
 */
#ifndef VRB_CHECK_SUPPRESS_H
#define VRB_CHECK_SUPPRESS_H

#include <stdbool.h>

#include "check/site.h"

/* sites: up to n; NULL ones are passed over. */
bool vrb_chk_suppressed(const char *counter, const struct vrb_chk_site *const *sites, int n);

#endif
