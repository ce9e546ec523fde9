/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of a test program, each in a process of its own under a watchdog, so that a crash or a
 * hang is one case's. */
#ifndef VRB_TESTS_CASES_H
#define VRB_TESTS_CASES_H

#include <stddef.h>

#include "support/patience.h"

struct kit_test {
	const char *name;
	void (*run)(void); /* returns, or ends with 77 for a skip, anything else for a failure */
};

/* All, or the one named in argv. The exit status: 0, 1 or 77. */
int kit_main(int argc, char **argv, const struct kit_test *tests, size_t n);

#endif
