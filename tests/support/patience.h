/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long tests wait. These bounds end what hangs; nothing is measured by them: the machine may be
 * ten times slower than the author's, with ten others busy on it.
 */
#ifndef VRB_TESTS_PATIENCE_H
#define VRB_TESTS_PATIENCE_H

#include <stdbool.h>

#define WAIT_MS	     60000 /* for one thing that must come */
#define CASE_SECONDS 300   /* for a case of a test program; CTest's limits are longer */

/* Whether round i of n is to be played. Where all of them would take too long (every round waits
 * for another process, and the machine is slow or busy) some have to do. */
bool go_on(long i, long n);
extern double enough_s; /* seconds of rounds */

#endif
