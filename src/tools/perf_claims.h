/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VRB_TOOLS_PERF_CLAIMS_H
#define VRB_TOOLS_PERF_CLAIMS_H

#include <jansson.h>
#include <signal.h>

#include "tools/perf/params.h"

struct perf_claims_job {
	const struct perf_params *params; /* device, port, GID index; the time of one sample */
	const char *only;		  /* the name of one claim; NULL: all */
	const int *cpu;
	unsigned rounds;
	volatile sig_atomic_t *stop;
	bool progress;
};

/* Runs all variants of all claims once a round, so that what changes on the machine changes for all
 * of them. An array of claims with their variants, figures and verdicts; NULL: no such claim. */
json_t *vrb_perf_claims_run(const struct perf_claims_job *j);

void vrb_perf_claims_print(FILE *f, const json_t *claims);

#endif
