/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of CPUs as the kernel writes them. */
#include "support/test.h"

#include <sched.h>
#include <string.h>

#include "send/node.h"

static void test_lists(void **state)
{
	cpu_set_t set;

	(void)state;
	assert_true(vrb_node_parse("0-3,8\n", &set));
	assert_int_equal(CPU_COUNT(&set), 5);
	assert_true(CPU_ISSET(8, &set) && CPU_ISSET(3, &set) && !CPU_ISSET(4, &set));
	assert_true(vrb_node_parse("7", &set));
	assert_int_equal(CPU_COUNT(&set), 1);
}

static void test_nonsense(void **state)
{
	static const char *const bad[] = {"",	"\n",  "x",	   "1-",
					  "1,", "5-2", "99999999", "0-99999999"};
	cpu_set_t set;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(vrb_node_parse(bad[i], &set));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
