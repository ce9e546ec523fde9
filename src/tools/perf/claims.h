/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is said about RDMA performance, as experiments: for each claim the same measurement in some
 * variants that differ in one thing. Which variants, which figure, and when a claim holds: pure.
 */
#ifndef VRB_PERF_CLAIMS_H
#define VRB_PERF_CLAIMS_H

#include "tools/perf/result.h"

#define PERF_VARIANTS_MAX 5
#define PERF_ROUNDS_MAX	  101

enum perf_figure {
	FIGURE_P50,
	FIGURE_JITTER,	   /* p99 - p50 */
	FIGURE_RATE,	   /* messages per second */
	FIGURE_SERVER_CPU, /* per cent of a CPU */
	FIGURE_EVENTS,	   /* of the server, per message */
	FIGURE_CLIENT_CPU, /* per cent of a CPU */
	PERF_FIGURES
};

struct perf_variant {
	const char *label, *options; /* "name=value name=value": fields of params.h */
	const char *environment;     /* the value of the claim's variable; NULL: it has none */
};

struct perf_claim {
	const char *name, *sentence;
	enum perf_mode mode;
	uint32_t size;
	enum perf_figure figure;
	bool less_is_better;
	const char *variable; /* of the environment */
	const char *device;   /* only devices whose name begins so; NULL: all */
	const char *common;   /* options of all variants */
	bool by_node;	      /* the first variant has its ends on two NUMA nodes, others on one */
	unsigned claimed;     /* the variant that is said to be better than the first one */
	struct perf_variant variant[PERF_VARIANTS_MAX]; /* to the first without a label */
};

extern const struct perf_claim vrb_perf_claims[];
extern const unsigned vrb_perf_n_claims;

unsigned vrb_perf_n_variants(const struct perf_claim *c);

/* The settled parameters of one variant; false with a sentence. */
bool vrb_perf_variant_params(const struct perf_claim *c, unsigned variant, struct perf_params *p,
			     char why[PERF_WHY_BYTES]);

double vrb_perf_figure(const struct perf_result *r, enum perf_figure figure);
const char *vrb_perf_figure_name(enum perf_figure figure);

enum perf_verdict { VERDICT_HOLDS, VERDICT_SAME, VERDICT_OPPOSITE, VERDICT_UNKNOWN };

/* Quartiles of the ratios variant to first, of interleaved rounds. */
struct perf_quartiles {
	double low, median, high;
};
struct perf_quartiles vrb_perf_quartiles(const double *values, unsigned n);

/* Holds when the median is better by at least 5 %, and three quarters of the rounds are on its
 * side. */
enum perf_verdict vrb_perf_judge(const struct perf_quartiles *q, unsigned n, bool less_is_better);
/* With the CPUs in the hands of others nothing can be told: a client that never sleeps had less. */
#define PERF_CPU_ENOUGH 70.0
const char *vrb_perf_verdict_text(enum perf_verdict v);

#endif
