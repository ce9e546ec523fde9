/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ends as processes of one program. */
#ifndef VRB_TOOLS_PERF_ENDS_H
#define VRB_TOOLS_PERF_ENDS_H

#include <sys/types.h>

#include "tools/perf/session.h"

/* Binds the caller to a CPU; negative: to none. False when it has said why not. */
bool vrb_perf_pin(int cpu);

/* Serves one connection of listener to its end; 0, or -1 with a sentence. */
int vrb_perf_serve_one(int listener, const struct perf_params *local, volatile sig_atomic_t *stop,
		       char why[PERF_WHY_BYTES]);

/* Forks a server on loopback, on cpu[1]; this process goes to cpu[0]. Neither may have opened a
 * device. *fd is a connection to it; -1 when it has said why it cannot be. */
pid_t vrb_perf_fork_server(const struct perf_params *local, const int cpu[2],
			   volatile sig_atomic_t *stop, int *fd);

/* Waits for it; when it does not end it is killed. True when it ended well, by itself. */
bool vrb_perf_collect(pid_t pid);

#endif
