/* SPDX-License-Identifier: BSD-2-Clause */
/* Every variant of every claim can be run, differs from the first one, and is judged as said. */
#include "support/test.h"

#include <string.h>

#include "tools/perf/claims.h"

static char why[PERF_WHY_BYTES];

static void test_table(void **state)
{
	(void)state;
	assert_true(vrb_perf_n_claims >= 10);
	for (unsigned i = 0; i < vrb_perf_n_claims; i++) {
		const struct perf_claim *c = &vrb_perf_claims[i];
		unsigned n = vrb_perf_n_variants(c);
		struct perf_params p, first;

		assert_true(n >= 2 && c->claimed > 0 && c->claimed < n);
		for (unsigned v = 0; v < n; v++) {
			vrb_perf_params_init(&p, PERF_LAT);
			p.duration_ms = 100;
			if (!vrb_perf_variant_params(c, v, &p, why))
				fail_msg("%s, %s: %s", c->name, c->variant[v].label, why);
			assert_int_equal(p.duration_ms, 100);
			if (!v)
				first = p;
			else if (c->variable)
				assert_string_not_equal(c->variant[v].environment,
							c->variant[0].environment);
			else if (!c->by_node)
				assert_memory_not_equal(&p, &first, sizeof(p));
		}
	}
}

static void test_quartiles(void **state)
{
	const double v[] = {9, 1, 5, 3, 7};
	struct perf_quartiles q = vrb_perf_quartiles(v, 5);

	(void)state;
	assert_true(q.low == 3 && q.median == 5 && q.high == 7);
	q = vrb_perf_quartiles(v, 2);
	assert_true(q.low == 1 && q.median == 5 && q.high == 9);
	q = vrb_perf_quartiles(v, 0);
	assert_true(q.median != q.median);
}

static enum perf_verdict judge(double low, double median, double high, bool less)
{
	struct perf_quartiles q = {low, median, high};

	return vrb_perf_judge(&q, 9, less);
}

static void test_judge(void **state)
{
	struct perf_quartiles q = {0.5, 0.5, 0.5};

	(void)state;
	assert_int_equal(judge(0.7, 0.8, 0.9, true), VERDICT_HOLDS);
	assert_int_equal(judge(0.7, 0.8, 0.9, false), VERDICT_OPPOSITE);
	assert_int_equal(judge(1.1, 1.2, 1.3, false), VERDICT_HOLDS);
	assert_int_equal(judge(1.1, 1.2, 1.3, true), VERDICT_OPPOSITE);
	assert_int_equal(judge(0.96, 0.97, 0.98, true), VERDICT_SAME); /* too little */
	assert_int_equal(judge(0.5, 0.8, 1.1, true), VERDICT_SAME);    /* too uncertain */
	assert_int_equal(judge(0.9, 1.2, 1.3, false), VERDICT_SAME);
	assert_int_equal(vrb_perf_judge(&q, 3, true), VERDICT_UNKNOWN);
	q = vrb_perf_quartiles(NULL, 0);
	assert_int_equal(vrb_perf_judge(&q, 0, true), VERDICT_UNKNOWN);
}

static void test_figures(void **state)
{
	static struct perf_result r;

	(void)state;
	for (uint64_t v = 1; v <= 1000; v++)
		vrb_histogram_add(&r.lat, v);
	r.client = (struct perf_side){.elapsed_ns = 2000, .process_ns = 1000, .messages = 4};
	r.server = (struct perf_side){
		.elapsed_ns = 1000, .process_ns = 250, .messages = 8, .events = 2};
	assert_in_range((int)vrb_perf_figure(&r, FIGURE_P50), 490, 520);
	assert_in_range((int)vrb_perf_figure(&r, FIGURE_JITTER), 460, 510);
	assert_int_equal((int)vrb_perf_figure(&r, FIGURE_RATE), 2000000);
	assert_int_equal((int)vrb_perf_figure(&r, FIGURE_SERVER_CPU), 25);
	assert_int_equal((int)vrb_perf_figure(&r, FIGURE_CLIENT_CPU), 50);
	assert_true(vrb_perf_figure(&r, FIGURE_EVENTS) == 0.25);
	for (int i = 0; i < PERF_FIGURES; i++)
		assert_true(strlen(vrb_perf_figure_name((enum perf_figure)i)) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_quartiles),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_figures),
	};

	return VRB_RUN_TESTS(tests);
}
