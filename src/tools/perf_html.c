/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as one HTML file that refers to nothing outside: the parameters and the environment as
 * tables, and for each size two drawings in SVG. The histogram has latency on a logarithmic axis;
 * the percentile curve has the share of slower messages there, so that each nine has the same
 * width.
 */
#include "tools/perf_out.h"

#include <math.h>
#include <string.h>

#define WIDTH	 460.0
#define HEIGHT	 220.0
#define LEFT	 60.0
#define TOP	 12.0
#define PLOT_W	 (WIDTH - LEFT - 12)
#define PLOT_H	 (HEIGHT - TOP - 34)
#define NINES	 5.0 /* to 99.999 % */
#define BARS	 96
#define TICKS	 12
#define TEXT_MAX 64

static const char style[] =
	"body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}"
	"table{border-collapse:collapse;margin:.6em 0}"
	"td,th{padding:.15em .7em;border-bottom:1px solid #8884;text-align:right}"
	"th,td.t{text-align:left;font-weight:normal;opacity:.75}"
	"svg{margin:.4em .6em .4em 0}svg text{font:11px sans-serif;fill:currentColor}"
	".bar{fill:#3b7dd8}.curve{fill:none;stroke:#d8633b;stroke-width:1.6}"
	".grid{stroke:#8884}:root{color-scheme:light dark}";

static void put_escaped(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '>')
			fputs("&gt;", f);
		else if (*s == '&')
			fputs("&amp;", f);
		else
			fputc(*s, f);
	}
}

static void put_value(FILE *f, const json_t *v)
{
	json_t *item;
	size_t i;

	if (json_is_string(v))
		put_escaped(f, json_string_value(v));
	else if (json_is_integer(v))
		fprintf(f, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		fprintf(f, "%.6g", json_real_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "yes" : "no", f);
	else if (json_is_null(v))
		fputs("-", f);
	json_array_foreach(v, i, item)
	{
		fputs(i ? ", " : "", f);
		put_value(f, item);
	}
}

/* An object as a table of two columns. */
static void put_table(FILE *f, const json_t *o)
{
	const char *key;
	json_t *v;

	fputs("<table>", f);
	json_object_foreach((json_t *)o, key, v)
	{
		/* parts have tables of their own; the histogram is drawn */
		if (json_is_object(v) || json_is_array(json_array_get(v, 0)))
			continue;
		fputs("<tr><td class=\"t\">", f);
		put_escaped(f, key);
		fputs("</td><td>", f);
		put_value(f, v);
		fputs("</td></tr>\n", f);
	}
	fputs("</table>\n", f);
}

static void ns_text(char out[TEXT_MAX], double ns)
{
	if (ns < 1e3)
		snprintf(out, TEXT_MAX, "%.3g ns", ns);
	else if (ns < 1e6)
		snprintf(out, TEXT_MAX, "%.3g us", ns / 1e3);
	else
		snprintf(out, TEXT_MAX, "%.3g ms", ns / 1e6);
}

/* ---- drawings */

struct axis {
	double low, high; /* decades of ns */
};

static double number(const json_t *a, size_t i)
{
	return json_number_value(json_array_get(a, i));
}

static struct axis axis_of(const json_t *buckets)
{
	size_t n = json_array_size(buckets);
	double low = number(json_array_get(buckets, 0), 0);
	double high = number(json_array_get(buckets, n - 1), 1);
	struct axis a = {log10(low < 1 ? 1 : low), log10(high < 2 ? 2 : high)};

	if (a.high - a.low < 0.3)
		a = (struct axis){a.low - 0.15, a.high + 0.15};
	return a;
}

static double place(const struct axis *a, double ns)
{
	return (log10(ns < 1 ? 1 : ns) - a->low) / (a->high - a->low);
}

static void begin_svg(FILE *f, const char *title)
{
	fprintf(f, "<svg width=\"%.0f\" height=\"%.0f\" role=\"img\"><title>%s</title>\n", WIDTH,
		HEIGHT, title);
}

/* An upright line of the grid, with its name below. */
static void put_line(FILE *f, double x, const char *name)
{
	fprintf(f, "<path class=\"grid\" d=\"M%.1f %.1fv%.1f\"/>", x, TOP, PLOT_H);
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x,
		TOP + PLOT_H + 16, name);
}

static void put_level(FILE *f, double y, const char *name)
{
	fprintf(f, "<path class=\"grid\" d=\"M%.1f %.1fh%.1f\"/>", LEFT, y, PLOT_W);
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 5, y + 4,
		name);
}

/* Lines at 1, 2 and 5 of each decade, across the plot or up. */
static void put_latency_grid(FILE *f, const struct axis *a, bool upright)
{
	static const double step[] = {1, 2, 5};
	unsigned every = a->high - a->low > TICKS / 3.0 ? 3 : 1;
	char text[TEXT_MAX];

	for (int d = (int)floor(a->low); d <= (int)ceil(a->high); d++)
		for (unsigned i = 0; i < 3; i += every) {
			double ns = step[i] * pow(10, d), at = place(a, ns);
			double x = LEFT + at * PLOT_W, y = TOP + (1 - at) * PLOT_H;

			if (at < 0 || at > 1)
				continue;
			ns_text(text, ns);
			if (upright)
				put_line(f, x, text);
			else
				put_level(f, y, text);
		}
}

static void put_histogram(FILE *f, const json_t *buckets)
{
	struct axis a = axis_of(buckets);
	double bar[BARS] = {0}, most = 0;
	const json_t *b;
	size_t i;

	begin_svg(f, "histogram of latency");
	put_latency_grid(f, &a, true);
	json_array_foreach(buckets, i, b)
	{
		double at = place(&a, (number(b, 0) + number(b, 1)) / 2) * BARS;
		int k = at < 0 ? 0 : at >= BARS ? BARS - 1 : (int)at;

		bar[k] += number(b, 2);
		most = bar[k] > most ? bar[k] : most;
	}
	for (int k = 0; k < BARS; k++) {
		double h = bar[k] / most * PLOT_H;

		if (bar[k] > 0)
			fprintf(f,
				"<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
				"height=\"%.1f\"><title>%.0f</title></rect>\n",
				LEFT + k * PLOT_W / BARS, TOP + PLOT_H - (h < 1 ? 1 : h),
				PLOT_W / BARS - 0.5, h < 1 ? 1 : h, bar[k]);
	}
	fputs("</svg>\n", f);
}

static void put_percentiles(FILE *f, const json_t *buckets)
{
	static const char *const name[] = {"0", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"};
	struct axis a = axis_of(buckets);
	double all = 0, seen = 0;
	const json_t *b;
	size_t i;

	json_array_foreach(buckets, i, b)
	{
		all += number(b, 2);
	}
	begin_svg(f, "latency by percentile");
	put_latency_grid(f, &a, false);
	for (int k = 0; k <= (int)NINES; k++)
		put_line(f, LEFT + k / NINES * PLOT_W, name[k]);
	fputs("<path class=\"curve\" d=\"", f);
	json_array_foreach(buckets, i, b)
	{
		double left = (all - seen) / all, nines = -log10(left);
		double y = TOP + (1 - place(&a, number(b, 1))) * PLOT_H;

		if (nines > NINES)
			break;
		fprintf(f, "%c%.1f %.1f", i ? 'L' : 'M', LEFT + nines / NINES * PLOT_W, y);
		seen += number(b, 2);
	}
	fputs("\"/></svg>\n", f);
}

/* ---- the page */

static void put_result(FILE *f, const json_t *r)
{
	const json_t *p = json_object_get(r, "parameters"), *l = json_object_get(r, "latency_ns");
	const json_t *buckets = json_object_get(r, "histogram_ns");
	const char *const part[] = {"client", "server", "messages_per_s_of_windows"};

	fprintf(f, "<h2>%lld bytes</h2>\n",
		(long long)json_integer_value(json_object_get(p, "size")));
	put_table(f, r);
	if (json_array_size(buckets)) {
		fputs("<h3>Latency in ns</h3>\n", f);
		put_table(f, l);
		put_histogram(f, buckets);
		put_percentiles(f, buckets);
	}
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		const json_t *o = json_object_get(r, part[i]);

		if (!json_is_object(o))
			continue;
		fprintf(f, "<details><summary>%s</summary>\n", part[i]);
		put_table(f, o);
		fputs("</details>\n", f);
	}
	fputs("<details><summary>parameters</summary>\n", f);
	put_table(f, p);
	fputs("</details>\n", f);
}

bool vrb_perf_print_html(const char *path, const json_t *report)
{
	FILE *f = fopen(path, "we");
	json_t *r;
	size_t i;

	if (!f)
		return false;
	fprintf(f,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		"<title>verbena perf</title>\n<style>%s</style></head><body>\n"
		"<h1>verbena perf</h1>\n",
		style);
	put_table(f, json_object_get(report, "environment"));
	json_array_foreach(json_object_get(report, "results"), i, r)
	{
		put_result(f, r);
	}
	fputs("</body></html>\n", f);
	i = (size_t)ferror(f);
	return !fclose(f) && !i;
}
