/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of files that may shrink. Who touches a page beyond the file's new end gets SIGBUS;
 * within a guarded mapping a handler puts zeros there instead and remembers it. Other faults go to
 * whoever had the signal before.
 */
#ifndef VRB_SEND_GUARD_H
#define VRB_SEND_GUARD_H

#include "base/types.h"

#define VRB_GUARDS_MAX 64u

/* Returns a number for the others, or -1: all are in use, or there is no handler to be had. */
int vrb_guard_add(void *base, size_t len);
/* Whether pages were missing; the mapping is not guarded any more. */
bool vrb_guard_remove(int guard);

#endif
