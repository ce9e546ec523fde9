/* SPDX-License-Identifier: BSD-2-Clause */
/* What is believed of a result, and what of it is told. */
#include "support/test.h"

#include <string.h>

#include "tools/perf/result.h"

static struct perf_result r;
static char why[PERF_WHY_BYTES];

/* A hundred messages in a millisecond, 1 to 100 ns. */
static int make(void **state)
{
	(void)state;
	memset(&r, 0, sizeof(r));
	vrb_perf_params_init(&r.params, PERF_LAT);
	r.params.size = 64;
	assert_true(vrb_perf_settle(&r.params, why));
	for (uint64_t v = 1; v <= 100; v++)
		vrb_histogram_add(&r.lat, v);
	r.client = (struct perf_side){.elapsed_ns = 1000000,
				      .messages = 100,
				      .posted = 110,
				      .completed = 110,
				      .retries = -1,
				      .rnr_naks = -1};
	r.server = r.client;
	r.server_known = true;
	return 0;
}

static void test_good(void **state)
{
	(void)state;
	assert_true(vrb_perf_is_plausible(&r, why));
	r.server_known = false;
	r.server.completed = 0;
	assert_true(vrb_perf_is_plausible(&r, why));
}

static void refused(const char *word)
{
	why[0] = '\0';
	assert_false(vrb_perf_is_plausible(&r, why));
	if (!strstr(why, word))
		fail_msg("\"%s\" says nothing of \"%s\"", why, word);
	make(NULL);
}

static void test_implausible(void **state)
{
	(void)state;
	r.client.elapsed_ns = 0;
	refused("no time");
	r.clock_back = true;
	refused("clock");
	r.client.completed = 109;
	refused("never completed");
	r.client.completed = 111;
	refused("were posted");
	r.server.completed = 109;
	refused("received");
	r.client.messages = 0;
	refused("warm-up");
	r.client.messages = 99;
	refused("latencies");
	r.lat.min = 0;
	refused("took no time");
	r.lat.max = 2000000;
	refused("of a run of");
}

/* One-sided operations: the server counts nothing. */
static void test_passive_server(void **state)
{
	(void)state;
	r.params.verb = PERF_READ;
	r.server.completed = 0;
	assert_true(vrb_perf_is_plausible(&r, why));
}

static void test_json(void **state)
{
	json_t *o = vrb_perf_result_json(&r, true), *l = json_object_get(o, "latency_ns");

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(l, "min")), 1);
	assert_in_range(json_integer_value(json_object_get(l, "p50")), 50, 52);
	assert_in_range(json_integer_value(json_object_get(l, "p99")), 99, 100);
	assert_int_equal(json_integer_value(json_object_get(l, "max")), 100);
	assert_int_equal((int)json_real_value(json_object_get(o, "messages_per_s")), 100000);
	assert_true(json_is_null(json_object_get(json_object_get(o, "client"), "retries")));
	assert_true(json_array_size(json_object_get(o, "histogram_ns")) > 50);
	json_decref(o);
}

static void test_side_to_the_peer_and_back(void **state)
{
	struct perf_side s;
	json_t *o;

	(void)state;
	r.client.events = 7;
	r.client.retries = 3;
	o = vrb_perf_side_json(&r.client);
	assert_true(vrb_perf_is_short_of_cpu(&r));
	memset(&s, 0, sizeof(s));
	vrb_perf_side_read(&s, o);
	assert_memory_equal(&s, &r.client, sizeof(s));
	json_decref(o);
	r.client.process_ns = r.client.elapsed_ns;
	assert_false(vrb_perf_is_short_of_cpu(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_good, make),
		cmocka_unit_test_setup(test_implausible, make),
		cmocka_unit_test_setup(test_passive_server, make),
		cmocka_unit_test_setup(test_json, make),
		cmocka_unit_test_setup(test_side_to_the_peer_and_back, make),
	};

	return VRB_RUN_TESTS(tests);
}
