/* SPDX-License-Identifier: BSD-2-Clause */
/* The hook of VRB_ASSERT in test programs: says where and aborts, so that a debugger stands there.
 * Weak: a program may bring its own. */
#include <stdio.h>
#include <stdlib.h>

#include "base/checks.h"

__attribute__((weak)) void vrb_assert_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
	abort();
}
