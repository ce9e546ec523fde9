/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/claims.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BETTER	   0.05
#define ROUNDS_MIN 4 /* with fewer there are no quartiles */

/* clang-format off */
const struct perf_claim vrb_perf_claims[] = {
	{.name = "inline", .sentence = "256 bytes inline are faster than gathered from registered memory",
	 .mode = PERF_LAT, .size = 256, .figure = FIGURE_P50, .less_is_better = true, .claimed = 1,
	 .variant = {{"gathered", "inline=0", NULL}, {"inline", "inline=256", NULL}}},
	{.name = "prefetch", .sentence = "fetching work requests ahead lowers the jitter",
	 .mode = PERF_RATE, .size = 64, .figure = FIGURE_JITTER, .less_is_better = true, .claimed = 3,
	 .variable = "VERBENA_WQE_PREFETCH", .device = "verbena",
	 .variant = {{"0 ahead", "", "0"}, {"1 ahead", "", "1"}, {"4 ahead", "", "4"}, {"8 ahead", "", "8"}}},
	{.name = "events", .sentence = "at 100,000 messages/s events save CPU against polling",
	 .mode = PERF_LAT, .size = 64, .figure = FIGURE_SERVER_CPU, .less_is_better = true, .claimed = 1,
	 .common = "pace=100000",
	 .variant = {{"poll", "engine=poll", NULL}, {"event", "engine=event", NULL}, {"adaptive", "engine=adaptive", NULL}}},
	{.name = "polling", .sentence = "at 100,000 messages/s polling is faster than events",
	 .mode = PERF_LAT, .size = 64, .figure = FIGURE_P50, .less_is_better = true, .claimed = 1,
	 .common = "pace=100000",
	 .variant = {{"event", "engine=event", NULL}, {"poll", "engine=poll", NULL}, {"adaptive", "engine=adaptive", NULL}}},
	{.name = "moderation", .sentence = "CQ moderation makes fewer events of as many messages",
	 .mode = PERF_BW, .size = 64, .figure = FIGURE_EVENTS, .less_is_better = true, .claimed = 2,
	 .common = "engine=event",
	 .variant = {{"1", "", NULL}, {"8", "mod-count=8 mod-us=16", NULL}, {"32", "mod-count=32 mod-us=16", NULL}}},
	{.name = "signaling", .sentence = "selective signaling raises the message rate",
	 .mode = PERF_RATE, .size = 64, .figure = FIGURE_RATE, .claimed = 2, .common = "batch=1",
	 .variant = {{"each", "signal=1", NULL}, {"1 in 8", "signal=8", NULL}, {"1 in 64", "signal=64", NULL}}},
	{.name = "batch", .sentence = "posting lists raises the message rate",
	 .mode = PERF_RATE, .size = 64, .figure = FIGURE_RATE, .claimed = 2,
	 .variant = {{"1", "batch=1", NULL}, {"10", "batch=10", NULL}, {"32", "batch=32", NULL}}},
	{.name = "qps", .sentence = "more queue pairs raise the message rate",
	 .mode = PERF_RATE, .size = 64, .figure = FIGURE_RATE, .claimed = 4, .common = "recv-depth=1024",
	 .variant = {{"1", "qps=1", NULL}, {"2", "qps=2", NULL}, {"4", "qps=4", NULL}, {"8", "qps=8", NULL}, {"16", "qps=16", NULL}}},
	{.name = "alignment", .sentence = "buffers aligned to 4 KiB are faster than to 64 bytes",
	 .mode = PERF_LAT, .size = 4096, .figure = FIGURE_P50, .less_is_better = true, .claimed = 1,
	 .variant = {{"64 B", "align=64", NULL}, {"4 KiB", "align=4096", NULL}}},
	{.name = "registration", .sentence = "buffers of a registered slab are faster than malloc and registration for each message",
	 .mode = PERF_LAT, .size = 4096, .figure = FIGURE_P50, .less_is_better = true, .claimed = 1, .common = "api=send",
	 .variant = {{"for each", "register-each=1", NULL}, {"slab", "", NULL}}},
	{.name = "huge-pages", .sentence = "messages from all over 128 MiB are faster out of huge pages",
	 .mode = PERF_RATE, .size = 1024, .figure = FIGURE_RATE, .claimed = 1, .common = "span=128m",
	 .variant = {{"4 KiB pages", "pages=small", NULL}, {"huge pages", "pages=huge", NULL}}},
	{.name = "numa", .sentence = "two ends on one NUMA node are faster than on two",
	 .mode = PERF_LAT, .size = 4096, .figure = FIGURE_P50, .less_is_better = true, .claimed = 1, .by_node = true,
	 .variant = {{"two nodes", "", NULL}, {"one node", "", NULL}}},
};
/* clang-format on */
const unsigned vrb_perf_n_claims = sizeof(vrb_perf_claims) / sizeof(vrb_perf_claims[0]);

unsigned vrb_perf_n_variants(const struct perf_claim *c)
{
	unsigned n = 0;

	while (n < PERF_VARIANTS_MAX && c->variant[n].label)
		n++;
	return n;
}

static bool set_one(struct perf_params *p, const char *name, const char *value,
		    char why[PERF_WHY_BYTES])
{
	for (unsigned i = 0; i < vrb_perf_n_fields; i++)
		if (!strcmp(vrb_perf_fields[i].name, name))
			return vrb_perf_field_parse(&vrb_perf_fields[i], value, p, why);
	snprintf(why, PERF_WHY_BYTES, "there is no parameter %.64s", name);
	return false;
}

static bool set_all(struct perf_params *p, const char *options, char why[PERF_WHY_BYTES])
{
	char text[128], *word, *rest = text, *value;
	bool ok = true;

	snprintf(text, sizeof(text), "%s", options ? options : "");
	while (ok && (word = strsep(&rest, " "))) {
		value = strchr(word, '=');
		if (!value)
			continue;
		*value++ = '\0';
		ok = set_one(p, word, value, why);
	}
	return ok;
}

bool vrb_perf_variant_params(const struct perf_claim *c, unsigned variant, struct perf_params *p,
			     char why[PERF_WHY_BYTES])
{
	p->mode = c->mode;
	p->size = c->size;
	return set_all(p, c->common, why) && set_all(p, c->variant[variant].options, why) &&
	       vrb_perf_settle(p, why);
}

double vrb_perf_figure(const struct perf_result *r, enum perf_figure figure)
{
	double p50 = (double)vrb_histogram_percentile(&r->lat, 50);
	const struct perf_side *s = &r->server, *cl = &r->client;

	switch (figure) {
	case FIGURE_P50:
		return p50;
	case FIGURE_JITTER:
		return (double)vrb_histogram_percentile(&r->lat, 99) - p50;
	case FIGURE_RATE:
		/* the median of windows: others take the CPUs now and then */
		return r->rate.count > 3 ? (double)vrb_histogram_percentile(&r->rate, 50)
					 : vrb_perf_rate(r);
	case FIGURE_SERVER_CPU:
		return s->elapsed_ns ? 100.0 * (double)s->process_ns / (double)s->elapsed_ns : 0;
	case FIGURE_EVENTS:
		return s->messages ? (double)s->events / (double)s->messages : 0;
	case FIGURE_CLIENT_CPU:
		return cl->elapsed_ns ? 100.0 * (double)cl->process_ns / (double)cl->elapsed_ns : 0;
	case PERF_FIGURES:
		break;
	}
	return 0;
}

const char *vrb_perf_figure_name(enum perf_figure figure)
{
	static const char *const name[PERF_FIGURES] = {"p50 ns",	 "p99-p50 ns",
						       "messages/s",	 "server CPU %",
						       "events/message", "client CPU %"};

	return figure < PERF_FIGURES ? name[figure] : "?";
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct perf_quartiles vrb_perf_quartiles(const double *values, unsigned n)
{
	double sorted[PERF_ROUNDS_MAX];

	if (!n)
		return (struct perf_quartiles){NAN, NAN, NAN};
	if (n > PERF_ROUNDS_MAX)
		n = PERF_ROUNDS_MAX;
	memcpy(sorted, values, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare);
	return (struct perf_quartiles){
		.low = sorted[(n - 1) / 4],
		.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
		.high = sorted[n - 1 - (n - 1) / 4],
	};
}

enum perf_verdict vrb_perf_judge(const struct perf_quartiles *q, unsigned n, bool less_is_better)
{
	bool less = q->median < 1 - BETTER && q->high < 1;
	bool more = q->median > 1 + BETTER && q->low > 1;

	if (n < ROUNDS_MIN || isnan(q->median))
		return VERDICT_UNKNOWN;
	if (less || more)
		return less == less_is_better ? VERDICT_HOLDS : VERDICT_OPPOSITE;
	return VERDICT_SAME;
}

const char *vrb_perf_verdict_text(enum perf_verdict v)
{
	static const char *const text[] = {"holds here", "makes no difference here",
					   "the opposite is true here", "cannot be told"};

	return text[v];
}
