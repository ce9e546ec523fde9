/* SPDX-License-Identifier: BSD-2-Clause */
/* How results are shown. All forms are made from what vrb_perf_result_json gives. */
#ifndef VRB_TOOLS_PERF_OUT_H
#define VRB_TOOLS_PERF_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/perf/result.h"

/* One line to a size, with a title. */
void vrb_perf_print_table(FILE *f, const json_t *results);
/* All values of all results, one line to a result, the names of the columns first. */
void vrb_perf_print_csv(FILE *f, const json_t *results);
/* A page without anything outside it: tables, histograms and percentile curves. */
bool vrb_perf_print_html(const char *path, const json_t *report);

/* A line on stderr that is written over; the second call takes it away. */
void vrb_perf_progress(const struct perf_result *so_far);
void vrb_perf_progress_end(void);

#endif
