/* SPDX-License-Identifier: BSD-2-Clause */
/* Every row of the verdict table is complete and its sentence can be formatted; text limits. */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/verdict.h"

static void test_rows(void **state)
{
	(void)state;
	for (unsigned v = 0; v < VRB_N_VERDICTS; v++) {
		const struct vrb_verdict_info *row = vrb_verdict_info((enum vrb_verdict)v);
		struct vrb_report r = {.verdict = (enum vrb_verdict)v,
				       .val = {11, 12, 13, 14, 15, 16}};
		char text[512];
		size_t n;

		assert_non_null(row->name);
		assert_true(row->counter[0] && row->sentence[0] && row->clause[0] && row->hint[0]);
		n = vrb_verdict_format(text, sizeof(text), &r);
		assert_int_equal(n, strlen(text));
		/* all placeholders were understood, nothing was cut */
		if (strchr(text, '{') || n + 1 >= sizeof(text))
			fail_msg("%s: %s", row->name, text);
		for (unsigned w = 0; w < v; w++)
			assert_string_not_equal(row->counter,
						vrb_verdict_info((enum vrb_verdict)w)->counter);
	}
}

static void test_format(void **state)
{
	struct vrb_report r = {VRB_V_LKEY_RANGE_END, 7, {1, 0xabc, UINT64_MAX, 0, 12, 4096}};
	char text[512], tiny[6];

	(void)state;
	vrb_verdict_format(text, sizeof(text), &r);
	assert_string_equal(text,
			    "SGE 1: 0 bytes at 0xffffffffffffffff run 12 bytes past the end of "
			    "the region of lkey 0xabc");
	assert_int_equal(vrb_verdict_format(tiny, sizeof(tiny), &r), 5);
	assert_string_equal(tiny, "SGE 1");
	assert_int_equal(vrb_verdict_format(tiny, 0, &r), 0);
	r.verdict = VRB_V_DROP_SHORT;
	r.val[0] = UINT64_MAX;
	vrb_verdict_format(text, sizeof(text), &r);
	assert_non_null(strstr(text, "18446744073709551615 bytes"));
}

static void test_out_of_range(void **state)
{
	(void)state;
	assert_string_equal(vrb_verdict_info((enum vrb_verdict)VRB_N_VERDICTS)->name, "UNKNOWN");
	assert_string_equal(vrb_verdict_info((enum vrb_verdict) - 1)->name, "UNKNOWN");
	assert_string_equal(vrb_verdict_info(VRB_OK)->name, "OK");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_out_of_range),
	};

	return VRB_RUN_TESTS(tests);
}
