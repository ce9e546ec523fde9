/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VRB_ASSERT is for our own bugs only: never for input, never for what a peer or a caller does. The
 * hook is supplied by whoever links the layers (hca prints and aborts; tests report).
 */
#ifndef VRB_BASE_CHECKS_H
#define VRB_BASE_CHECKS_H

__attribute__((noreturn)) void vrb_assert_failed(const char *expr, const char *file, int line);

#define VRB_ASSERT(e)		   ((e) ? (void)0 : vrb_assert_failed(#e, __FILE__, __LINE__))
#define VRB_STATIC_ASSERT(e, what) _Static_assert(e, what)

#endif
