/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why the last call of a thread failed: a verdict with its values, and what only this call can name
 * (a host, an option, the attributes of a transition). Each failure is counted by its verdict.
 */
#ifndef VRB_SEND_FAIL_H
#define VRB_SEND_FAIL_H

#include <errno.h>

#include "base/verdict.h"

/* Remembers and counts; returns -err. */
int vrb_fail(int err, enum vrb_verdict v, uint64_t a, uint64_t b, uint64_t c);

/* The same with all six values, for the checks of work requests. */
int vrb_fail_report(int err, const struct vrb_report *r);

/* Adds to the failure just remembered what it is about; returns it once more. */
int vrb_about(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What a verbs call returned, as an errno: some providers return -1 and set it. */
static inline int vrb_verbs_errno(int r)
{
	return r < 0 ? errno : r;
}

/* Counts and formats the reason a channel ended, which is no failure of a call. */
void vrb_fail_text(char *out, size_t size, enum vrb_verdict v, const uint64_t val[3]);

#endif
