/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/result.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const double vrb_perf_percent[PERF_PERCENTILES] = {50, 90, 99, 99.9, 99.99};
const char *const vrb_perf_percent_name[PERF_PERCENTILES] = {"p50", "p90", "p99", "p99.9",
							     "p99.99"};

static const struct count {
	const char *name;
	size_t offset;
} counts[] = {
#define COUNT(field)                                                                               \
	{                                                                                          \
#field, offsetof(struct perf_side, field)                                          \
	}
	COUNT(elapsed_ns), COUNT(process_ns),  COUNT(thread_ns),   COUNT(messages),
	COUNT(posted),	   COUNT(completed),   COUNT(completions), COUNT(events),
	COUNT(polls),	   COUNT(empty_polls), COUNT(retries),	   COUNT(rnr_naks),
#undef COUNT
};
#define N_COUNTS (sizeof(counts) / sizeof(counts[0]))

const char *vrb_perf_lat_meaning(const struct perf_params *p)
{
	if (p->mode != PERF_LAT || p->verb == PERF_READ)
		return "from post to completion";
	return "half of a round trip";
}

static bool doubt(char why[PERF_WHY_BYTES], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool doubt(char why[PERF_WHY_BYTES], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, PERF_WHY_BYTES, fmt, ap);
	va_end(ap);
	return false;
}

bool vrb_perf_is_plausible(const struct perf_result *r, char why[PERF_WHY_BYTES])
{
	const struct perf_side *c = &r->client, *s = &r->server;

	if (r->clock_back)
		return doubt(why, "the clock went back during the run");
	if (!c->messages)
		return doubt(why, "no message was measured: the run ended within its warm-up");
	if (!c->elapsed_ns)
		return doubt(why, "%" PRIu64 " messages took no time", c->messages);
	if (c->completed < c->posted)
		return doubt(why, "%" PRIu64 " of %" PRIu64 " posted messages never completed",
			     c->posted - c->completed, c->posted);
	if (c->completed > c->posted)
		return doubt(why, "%" PRIu64 " messages completed, only %" PRIu64 " were posted",
			     c->completed, c->posted);
	if (r->server_known && r->params.verb == PERF_SEND && s->completed != c->completed)
		return doubt(why, "%" PRIu64 " messages were sent, but %" PRIu64 " were received",
			     c->completed, s->completed);
	if (r->params.mode == PERF_LAT && r->lat.count != c->messages)
		return doubt(why, "%" PRIu64 " latencies of %" PRIu64 " messages", r->lat.count,
			     c->messages);
	if (r->params.mode == PERF_LAT && !r->lat.min)
		return doubt(why, "a message took no time");
	if (r->params.mode == PERF_LAT && r->lat.max > c->elapsed_ns)
		return doubt(why, "one message took %" PRIu64 " ns of a run of %" PRIu64 " ns",
			     r->lat.max, c->elapsed_ns);
	return true;
}

double vrb_perf_rate(const struct perf_result *r)
{
	return r->client.elapsed_ns
		       ? (double)r->client.messages * 1e9 / (double)r->client.elapsed_ns
		       : 0;
}

double vrb_perf_mbps(const struct perf_result *r)
{
	return vrb_perf_rate(r) * r->params.size / 1e6;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

bool vrb_perf_is_short_of_cpu(const struct perf_result *r)
{
	return r->params.engine == PERF_POLL &&
	       100 * ratio(r->client.process_ns, r->client.elapsed_ns) < PERF_CPU_SHORT;
}

json_t *vrb_perf_side_json(const struct perf_side *s)
{
	json_t *o = json_object();

	for (size_t i = 0; i < N_COUNTS; i++) {
		int64_t v = *(const int64_t *)(const void *)((const char *)s + counts[i].offset);

		json_object_set_new(o, counts[i].name, v < 0 ? json_null() : json_integer(v));
	}
	json_object_set_new(o, "cpu_percent", json_real(100 * ratio(s->process_ns, s->elapsed_ns)));
	json_object_set_new(o, "cpu_ns_per_message", json_real(ratio(s->process_ns, s->messages)));
	json_object_set_new(o, "completions_per_event",
			    s->events ? json_real(ratio(s->completions, s->events)) : json_null());
	return o;
}

void vrb_perf_side_read(struct perf_side *s, const json_t *from)
{
	for (size_t i = 0; i < N_COUNTS; i++) {
		const json_t *v = json_object_get(from, counts[i].name);

		*(int64_t *)(void *)((char *)s + counts[i].offset) =
			json_is_integer(v) ? json_integer_value(v) : -1;
	}
}

static json_t *latency_json(const struct vrb_histogram *h, const char *meaning)
{
	json_t *o = json_object();

	json_object_set_new(o, "of", json_string(meaning));
	json_object_set_new(o, "samples", json_integer((json_int_t)h->count));
	if (!h->count)
		return o;
	json_object_set_new(o, "min", json_integer((json_int_t)h->min));
	for (int i = 0; i < PERF_PERCENTILES; i++)
		json_object_set_new(
			o, vrb_perf_percent_name[i],
			json_integer((json_int_t)vrb_histogram_percentile(h, vrb_perf_percent[i])));
	json_object_set_new(o, "max", json_integer((json_int_t)h->max));
	json_object_set_new(o, "mean", json_real(ratio(h->sum, h->count)));
	return o;
}

/* [[lowest value, highest value, samples], ...] of the buckets that have any. */
static json_t *histogram_json(const struct vrb_histogram *h)
{
	json_t *a = json_array();
	uint64_t low, high;

	for (unsigned i = 0; i < VRB_HISTOGRAM_BUCKETS; i++) {
		if (!h->bucket[i])
			continue;
		vrb_histogram_range(i, &low, &high);
		json_array_append_new(a, json_pack("[I, I, I]", (json_int_t)low, (json_int_t)high,
						   (json_int_t)h->bucket[i]));
	}
	return a;
}

json_t *vrb_perf_result_json(const struct perf_result *r, bool with_histogram)
{
	json_t *o = json_object();

	json_object_set_new(o, "parameters", vrb_perf_params_json(&r->params, true));
	json_object_set_new(o, "messages", json_integer((json_int_t)r->client.messages));
	json_object_set_new(o, "seconds", json_real((double)r->client.elapsed_ns / 1e9));
	json_object_set_new(o, "messages_per_s", json_real(vrb_perf_rate(r)));
	json_object_set_new(o, "MB_per_s", json_real(vrb_perf_mbps(r)));
	if (r->rate.count)
		json_object_set_new(o, "messages_per_s_of_windows",
				    json_pack("{s:I, s:I, s:I, s:I}", "windows",
					      (json_int_t)r->rate.count, "min",
					      (json_int_t)r->rate.min, "median",
					      (json_int_t)vrb_histogram_percentile(&r->rate, 50),
					      "max", (json_int_t)r->rate.max));
	json_object_set_new(o, "latency_ns",
			    latency_json(&r->lat, vrb_perf_lat_meaning(&r->params)));
	if (with_histogram)
		json_object_set_new(o, "histogram_ns", histogram_json(&r->lat));
	json_object_set_new(o, "client", vrb_perf_side_json(&r->client));
	json_object_set_new(o, "server",
			    r->server_known ? vrb_perf_side_json(&r->server) : json_null());
	json_object_set_new(o, "short_of_cpu", json_boolean(vrb_perf_is_short_of_cpu(r)));
	json_object_set_new(o, "interrupted", json_boolean(r->interrupted));
	if (r->note[0])
		json_object_set_new(o, "note", json_string(r->note));
	return o;
}
