/* SPDX-License-Identifier: BSD-2-Clause */
/* Results as a table, as CSV, and as a line that moves. */
#include "tools/perf_out.h"

#include <string.h>

#include "tools/out.h"

static bool moved;

static json_t *at(const json_t *o, const char *a, const char *b)
{
	json_t *v = json_object_get(json_object_get(o, a), b);

	return v ? json_incref(v) : json_null();
}

static const char *text(const json_t *o, const char *a, const char *b)
{
	const char *s = json_string_value(json_object_get(json_object_get(o, a), b));

	return s ? s : "?";
}

static json_t *rounded(const json_t *v)
{
	return json_is_number(v) ? json_integer((json_int_t)(json_number_value(v) + 0.5))
				 : json_null();
}

static void add_percentiles(json_t *row, const json_t *r, bool all)
{
	json_object_set_new(row, "min", at(r, "latency_ns", "min"));
	for (int i = 0; i < PERF_PERCENTILES; i++)
		if (all || i != 1)
			json_object_set_new(row, vrb_perf_percent_name[i],
					    at(r, "latency_ns", vrb_perf_percent_name[i]));
	json_object_set_new(row, "max", at(r, "latency_ns", "max"));
}

static json_t *row_of(const json_t *r, bool lat)
{
	json_t *row = json_object(), *cpu;

	json_object_set_new(row, "bytes", at(r, "parameters", "size"));
	json_object_set_new(row, "messages", json_incref(json_object_get(r, "messages")));
	if (!lat) {
		json_object_set_new(row, "MB/s", json_incref(json_object_get(r, "MB_per_s")));
		json_object_set_new(row, "messages/s",
				    rounded(json_object_get(r, "messages_per_s")));
	}
	add_percentiles(row, r, lat);
	cpu = at(r, "client", "cpu_percent");
	json_object_set_new(row, "CPU %", rounded(cpu));
	json_decref(cpu);
	cpu = at(r, "server", "cpu_percent");
	json_object_set_new(row, "server", rounded(cpu));
	json_decref(cpu);
	json_object_set_new(row, "per event", at(r, "server", "completions_per_event"));
	json_object_set_new(row, "retries", at(r, "client", "retries"));
	return row;
}

void vrb_perf_print_table(FILE *f, const json_t *results)
{
	const json_t *first = json_array_get(results, 0), *r;
	const char *mode = text(first, "parameters", "mode");
	bool lat = !strcmp(mode, "lat");
	json_t *rows = json_array();
	unsigned short_of_cpu = 0;
	size_t i;

	fprintf(f, "%s of %s, api %s, engine %s, %s; latency in ns, %s\n",
		lat		      ? "Latency"
		: !strcmp(mode, "bw") ? "Bandwidth"
				      : "Rate",
		text(first, "parameters", "verb"), text(first, "parameters", "api"),
		text(first, "parameters", "engine"), text(first, "parameters", "device"),
		text(first, "latency_ns", "of"));
	json_array_foreach(results, i, r)
	{
		json_array_append_new(rows, row_of(r, lat));
	}
	vrb_out_table(f, rows);
	json_decref(rows);
	json_array_foreach(results, i, r)
	{
		const char *note = json_string_value(json_object_get(r, "note"));
		json_t *size = json_object_get(json_object_get(r, "parameters"), "size");

		if (note)
			fprintf(f, "%lld bytes: %s\n", (long long)json_integer_value(size), note);
		short_of_cpu += json_is_true(json_object_get(r, "short_of_cpu"));
	}
	if (short_of_cpu)
		fprintf(f,
			"Others had the CPUs: a client that spins got less than %.0f %% of one.\n",
			PERF_CPU_SHORT);
}

/* ---- CSV */

static void put_cell(FILE *f, const char *prefix, const char *key, const json_t *value)
{
	const char *s = json_string_value(value);

	if (!value)
		fprintf(f, "%s%s%s", prefix, *prefix ? "." : "", key);
	else if (json_is_integer(value))
		fprintf(f, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		fprintf(f, "%.6g", json_real_value(value));
	else if (json_is_boolean(value))
		fprintf(f, "%d", json_is_true(value));
	else if (s) {
		fputc('"', f);
		for (; *s; s++) {
			if (*s == '"')
				fputc('"', f);
			fputc(*s, f);
		}
		fputc('"', f);
	}
}

/* Names or values of all that is not an array, one level of objects deep. */
static void put_line(FILE *f, const json_t *result, const json_t *shape, bool names)
{
	const char *key, *inner, *comma = "";
	json_t *v, *w;

	json_object_foreach((json_t *)shape, key, v)
	{
		if (json_is_array(v) || json_is_null(v))
			continue;
		if (!json_is_object(v)) {
			fputs(comma, f);
			comma = ",";
			put_cell(f, "", key, names ? NULL : json_object_get(result, key));
			continue;
		}
		json_object_foreach(v, inner, w)
		{
			const json_t *o = json_object_get(result, key);
			const json_t *cell = json_object_get(o, inner);

			fputs(comma, f);
			comma = ",";
			if (names || cell)
				put_cell(f, key, inner, names ? NULL : cell);
		}
	}
	fputc('\n', f);
}

void vrb_perf_print_csv(FILE *f, const json_t *results)
{
	const json_t *shape = json_array_get(results, 0), *r;
	size_t i;

	put_line(f, shape, shape, true);
	json_array_foreach(results, i, r)
	{
		put_line(f, r, shape, false);
	}
}

/* ---- progress */

void vrb_perf_progress(const struct perf_result *r)
{
	moved = true;
	fprintf(stderr,
		"\r\033[K%u B: %.1f s, %llu messages, %.0f/s, %.1f MB/s, p50 %llu ns, p99 %llu ns",
		r->params.size, (double)r->client.elapsed_ns / 1e9,
		(unsigned long long)r->client.messages, vrb_perf_rate(r), vrb_perf_mbps(r),
		(unsigned long long)vrb_histogram_percentile(&r->lat, 50),
		(unsigned long long)vrb_histogram_percentile(&r->lat, 99));
	fflush(stderr);
}

void vrb_perf_progress_end(void)
{
	if (moved)
		fputs("\r\033[K", stderr);
	moved = false;
}
