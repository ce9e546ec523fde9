/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VRB_TOOLS_PERF_SYSTEM_H
#define VRB_TOOLS_PERF_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* Starts this program once more on the system's libibverbs (file: on that one); 0 when it runs on
 * it already, -1 when it has said why it cannot. argv is the whole command line. */
int vrb_perf_use_system(const char *file, char **argv);

/* The path of the system's libibverbs. */
bool vrb_perf_find_system(char *out, size_t size);

#endif
