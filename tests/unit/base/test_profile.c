/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles: every knob at its bounds, every mistake with its place, and the profiles with names. */
#include "base/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct vrb_profile p;

static bool parse(const char *text, struct vrb_words_error *err)
{
	return vrb_profile_parse(text, strlen(text), &p, err);
}

static void good(const char *text)
{
	struct vrb_words_error err;
	char why[256];

	if (parse(text, &err))
		return;
	vrb_words_error_format(why, sizeof(why), &err);
	fail_msg("%s: %s", text, why);
}

static void bad(const char *text, const char *want)
{
	struct vrb_words_error err;
	char why[256];

	assert_false(parse(text, &err));
	vrb_words_error_format(why, sizeof(why), &err);
	assert_string_equal(why, want);
}

static void set(const struct vrb_knob *k, const char *value)
{
	char text[128];

	snprintf(text, sizeof(text), "%s = %s", k->name, value);
	good(text);
}

static void knobs(void **state)
{
	struct vrb_words_error err;
	char text[64];

	(void)state;
	for (uint32_t i = 0; i < vrb_profile_n_knobs; i++) {
		const struct vrb_knob *k = &vrb_profile_knobs[i];

		good("");
		assert_int_equal(vrb_profile_value(&p, k), k->plain);
		assert_true(k->min <= k->plain && k->plain <= k->max);
		for (int most = 0; most < 2; most++) {
			snprintf(text, sizeof(text), "%u", most ? k->max : k->min);
			set(k, k->unit != VRB_KNOB_YESNO ? text : most ? "yes" : "no");
			assert_int_equal(vrb_profile_value(&p, k), most ? k->max : k->min);
		}
		snprintf(text, sizeof(text), "%s = %u", k->name, k->max + 1);
		assert_false(parse(text, &err));
		assert_string_equal(err.expected, k->expected);
		if (k->min) {
			snprintf(text, sizeof(text), "%s = %u", k->name, k->min - 1);
			assert_false(parse(text, &err));
		}
	}
}

static void forms(void **state)
{
	(void)state;
	good("# nothing\n\n  max_send_sge=3\t# no blanks\nmax_recv_sge =1; minus_one= yes\r\n");
	assert_int_equal(p.max_send_sge, 3);
	assert_int_equal(p.max_recv_sge, 1);
	assert_int_equal(p.minus_one, 1);
	assert_int_equal(p.max_inline, 1024);
}

static void mistakes(void **state)
{
	(void)state;
	bad("max_recv_sge = 1\nmax_sned_sge = 3\n",
	    "line 2, column 1: `max_sned_sge`, but expected a knob; `verbena run --profile help` "
	    "lists them");
	bad("\n\n  max_send_sge 3", "line 3, column 16: `3`, but expected =");
	bad("max_send_sge = 33", "line 1, column 16: `33`, but expected a number from 1 to 32");
	bad("max_inline = -1",
	    "line 1, column 14: `-1`, but expected a number of bytes from 0 to 1024");
	bad("minus_one = 1", "line 1, column 13: `1`, but expected yes or no");
	bad("minus_one =", "line 1, column 12: the line ends, but expected yes or no");
	bad("minus_one = yes please",
	    "line 1, column 17: `please`, but expected the end of the line");
	bad("gid_gap = 1; gid_gap = 1",
	    "line 1, column 14: `gid_gap`, but expected a knob that has no value yet");
	bad("= 3", "line 1, column 1: `=`, but expected a knob; `verbena run --profile help` lists "
		   "them");
}

static void builtins(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < vrb_profile_n_builtins; i++) {
		const struct vrb_profile_builtin *b = &vrb_profile_builtins[i];

		good(b->text);
		assert_ptr_equal(vrb_profile_builtin(b->name), b);
	}
	assert_null(vrb_profile_builtin("sge"));
	assert_null(vrb_profile_builtin("sge33"));
	assert_null(vrb_profile_builtin(""));
}

static void gids(void **state)
{
	(void)state;
	good("");
	assert_int_equal(vrb_profile_gid_index(&p, 0), 0);
	assert_int_equal(vrb_profile_gid_index(&p, 3), 3);
	good("roce_v1_gids = yes");
	assert_int_equal(vrb_profile_gid_index(&p, 0), 1);
	assert_int_equal(vrb_profile_gid_index(&p, 1), 3);
	good("roce_v1_gids = yes; gid_gap = 2");
	assert_int_equal(vrb_profile_gid_index(&p, 0), 3);
	assert_int_equal(vrb_profile_gid_index(&p, 1), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knobs),    cmocka_unit_test(forms), cmocka_unit_test(mistakes),
		cmocka_unit_test(builtins), cmocka_unit_test(gids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
