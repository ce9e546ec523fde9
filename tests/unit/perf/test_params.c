/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of parameters: options, what does not go together, and the way to the peer and back. */
#include "support/test.h"

#include <string.h>

#include "tools/perf/params.h"

static char why[PERF_WHY_BYTES];

static const struct perf_field *field(const char *name)
{
	for (unsigned i = 0; i < vrb_perf_n_fields; i++)
		if (!strcmp(vrb_perf_fields[i].name, name))
			return &vrb_perf_fields[i];
	fail_msg("no field %s", name);
	return NULL;
}

static bool set(struct perf_params *p, const char *name, const char *text)
{
	why[0] = '\0';
	return vrb_perf_field_parse(field(name), text, p, why);
}

static struct perf_params fresh(enum perf_mode mode)
{
	struct perf_params p;

	vrb_perf_params_init(&p, mode);
	p.size = 64;
	return p;
}

static void test_values(void **state)
{
	struct perf_params p = fresh(PERF_LAT);

	(void)state;
	assert_true(set(&p, "qps", "16") && p.qps == 16);
	assert_true(set(&p, "engine", "adaptive") && p.engine == PERF_ADAPTIVE);
	assert_true(set(&p, "verb", "read") && p.verb == PERF_READ);
	assert_true(set(&p, "seconds", "0.25") && p.duration_ms == 250);
	assert_true(set(&p, "inline", "0") && p.inline_bytes == 0);
	assert_true(set(&p, "recv-size", "64k") && p.recv_size == 65536);
	assert_true(set(&p, "gid-index", "3") && p.gid_index == 3);
}

static void test_refused_values(void **state)
{
	static const char *const bad[][2] = {
		{"qps", "0"},	     {"qps", "65"},	   {"qps", ""},
		{"qps", "x"},	     {"qps", "1x"},	   {"qps", "-1"},
		{"qps", "1k"},	     {"engine", "fast"},   {"engine", ""},
		{"verb", "sen"},     {"verb", "sends"},	   {"seconds", "0"},
		{"seconds", "nan"},  {"seconds", "1s"},	   {"seconds", "-1"},
		{"seconds", "1e9"},  {"inline", "5k"},	   {"inline", "1q"},
		{"iterations", "0"}, {"recv-size", "4kk"}, {"pace", "99999999999999999999"},
	};
	struct perf_params p = fresh(PERF_LAT), before = p;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(set(&p, bad[i][0], bad[i][1]));
		assert_non_null(strstr(why, bad[i][0])); /* says which option */
		assert_memory_equal(&p, &before, sizeof(p));
	}
}

static void test_sizes(void **state)
{
	uint32_t s[64];

	(void)state;
	assert_int_equal(vrb_perf_sizes_parse("8,1k,2m", s, 64, why), 3);
	assert_true(s[0] == 8 && s[1] == 1024 && s[2] == 2u << 20);
	assert_int_equal(vrb_perf_sizes_parse("all", s, 64, why), 21);
	assert_true(s[0] == 1 && s[20] == 1u << 20);
	assert_int_equal(vrb_perf_sizes_parse("1g", s, 64, why), 1);
	assert_int_equal(vrb_perf_sizes_parse("", s, 64, why), 0);
	assert_int_equal(vrb_perf_sizes_parse("8,", s, 64, why), 0);
	assert_int_equal(vrb_perf_sizes_parse("0", s, 64, why), 0);
	assert_int_equal(vrb_perf_sizes_parse("2g", s, 64, why), 0);
	assert_int_equal(vrb_perf_sizes_parse("1,2,3", s, 2, why), 0);
	assert_non_null(strstr(why, "at most 2"));
}

static void test_defaults_fit(void **state)
{
	(void)state;
	for (int mode = PERF_LAT; mode <= PERF_RATE; mode++)
		for (int api = PERF_RAW; api <= PERF_LIBRARY; api++) {
			struct perf_params p = fresh((enum perf_mode)mode);

			p.api = (uint32_t)api;
			assert_true(vrb_perf_settle(&p, why));
			assert_true(p.qps && p.sges && p.batch && p.depth && p.align);
			assert_true(p.signal + p.batch - 1 <= p.depth);
			assert_true(p.duration_ms && !p.iterations);
		}
}

static bool refuses(enum perf_mode mode, const char *const *options)
{
	struct perf_params p = fresh(mode);

	for (; *options; options += 2)
		assert_true(set(&p, options[0], options[1]));
	why[0] = '\0';
	return !vrb_perf_settle(&p, why) && why[0];
}

static void test_what_does_not_go_together(void **state)
{
	(void)state;
#define REFUSES(mode, ...) assert_true(refuses(mode, (const char *const[]){__VA_ARGS__, NULL}))
	REFUSES(PERF_LAT, "batch", "2");
	REFUSES(PERF_BW, "signal", "65", "depth", "64");
	REFUSES(PERF_BW, "signal", "60", "depth", "64", "batch", "16");
	REFUSES(PERF_BW, "batch", "65", "depth", "64");
	REFUSES(PERF_RATE, "recv-depth", "30");
	REFUSES(PERF_LAT, "mod-count", "8");
	REFUSES(PERF_LAT, "verb", "write", "engine", "event");
	REFUSES(PERF_BW, "register-each", "1");
	REFUSES(PERF_LAT, "mtu", "1500");
	REFUSES(PERF_LAT, "api", "send", "verb", "write");
	REFUSES(PERF_LAT, "api", "send", "qps", "17");
	REFUSES(PERF_LAT, "api", "send", "gid-index", "0");
	REFUSES(PERF_LAT, "api", "send", "engine", "event", "mod-count", "4");
	REFUSES(PERF_BW, "api", "send", "pages", "huge");
	REFUSES(PERF_BW, "api", "send", "span", "1m");
	REFUSES(PERF_BW, "api", "send", "recv-span", "1m");
	REFUSES(PERF_BW, "verb", "write", "recv-span", "1m");
	REFUSES(PERF_BW, "recv-span", "63");
	REFUSES(PERF_LAT, "span", "1m");
	REFUSES(PERF_BW, "span", "1m", "verb", "read");
	REFUSES(PERF_BW, "span", "1m", "sges", "2");
	REFUSES(PERF_BW, "span", "63");
}

static void test_pieces_of_a_small_message(void **state)
{
	struct perf_params p = fresh(PERF_LAT);

	(void)state;
	p.size = 3;
	p.sges = 4;
	assert_false(vrb_perf_settle(&p, why));
	assert_non_null(strstr(why, "3 bytes"));
}

static void test_to_the_peer_and_back(void **state)
{
	struct perf_params p = fresh(PERF_RATE), q = fresh(PERF_LAT);
	json_t *o;

	(void)state;
	assert_true(set(&p, "engine", "event") && set(&p, "mod-count", "8"));
	assert_true(set(&p, "seconds", "0.123") && set(&p, "gid-index", "5"));
	assert_true(vrb_perf_settle(&p, why));
	o = vrb_perf_params_json(&p, false);
	assert_true(vrb_perf_params_read(&q, o, why));
	assert_int_equal(q.gid_index, PERF_AUTO); /* each end its own */
	q.gid_index = p.gid_index;
	assert_memory_equal(&p, &q, sizeof(p));
	json_decref(o);
}

static void test_hostile_peer(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"mode\": 1, \"size\": 8}",
		"{\"mode\": \"fast\", \"size\": 8}",
		"{\"mode\": \"lat\", \"size\": 0}",
		"{\"mode\": \"lat\", \"size\": -5}",
		"{\"mode\": \"lat\", \"size\": 4294967296}",
		"{\"mode\": \"lat\", \"size\": 8, \"qps\": 1000}",
		"{\"mode\": \"lat\", \"size\": 8, \"qps\": -1}",
		"{\"mode\": \"lat\", \"size\": 8, \"qps\": \"8\"}",
		"{\"mode\": \"lat\", \"size\": 8, \"qps\": 1e300}",
		"{\"mode\": \"lat\", \"size\": 8, \"engine\": \"warp\"}",
		"{\"mode\": \"lat\", \"size\": 8, \"engine\": 1}",
		"{\"mode\": \"lat\", \"size\": 8, \"seconds\": 1e9}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct perf_params p = fresh(PERF_LAT);
		json_t *o = json_loads(bad[i], 0, NULL);

		assert_non_null(o);
		why[0] = '\0';
		assert_false(vrb_perf_params_read(&p, o, why));
		assert_true(why[0]);
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refused_values),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_defaults_fit),
		cmocka_unit_test(test_what_does_not_go_together),
		cmocka_unit_test(test_pieces_of_a_small_message),
		cmocka_unit_test(test_to_the_peer_and_back),
		cmocka_unit_test(test_hostile_peer),
	};

	return VRB_RUN_TESTS(tests);
}
