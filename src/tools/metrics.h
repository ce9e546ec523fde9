/* SPDX-License-Identifier: BSD-2-Clause */
/* What `verbena metrics` prints and serves. */
#ifndef VRB_TOOLS_METRICS_H
#define VRB_TOOLS_METRICS_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/live.h"

/* The sample in Prometheus' text format, version 0.0.4. objects: queue pairs and CQs, too. */
void vrb_metrics_print(FILE *f, const struct vrb_live *l, bool objects);

/*
 * Answers GET /metrics on a listening socket with what make writes, until *stop. Connections are
 * bounded in number, time and size of the request; the answer is made at most ten times a second.
 * open: the signal mask while it waits. 0, or -errno.
 */
struct vrb_http {
	int fd;
	bool (*make)(FILE *f, void *arg); /* false: there is none now */
	void *arg;
	const volatile sig_atomic_t *stop;
	const sigset_t *open;
};
int vrb_http_serve(const struct vrb_http *h);

#endif
