/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_CHECK_OTHER_H
#define TESTS_CHECK_OTHER_H

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>

extern int other_fork; /* an ibv_fork_status, or -1 for the real one */
extern int other_mtu;  /* an ibv_mtu, or 0 */
#pragma GCC visibility pop

#endif
