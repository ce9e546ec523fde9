/* SPDX-License-Identifier: BSD-2-Clause */
/* CPUs of one node and of two, in trees of several kinds; memory of the pages that were asked for.
 */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/perf/nodes.h"
#include "tools/perf/pages.h"

static char why[PERF_WHY_BYTES], root[64];

static void put(int node, const char *list)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "mkdir -p %s/sys/devices/system/node/node%d", root, node);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d/cpulist", root, node);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(list, f);
	fclose(f);
}

static bool pick(bool together, int from, int to, int cpu[2])
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = from; i <= to; i++)
		CPU_SET((size_t)i, &set);
	why[0] = '\0';
	return vrb_perf_nodes_pick(root, &set, together, cpu, why);
}

static void test_nodes(void **state)
{
	char command[128];
	int cpu[2];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/verbena-nodes.%d", (int)getpid());
	assert_false(pick(true, 0, 63, cpu)); /* no tree at all */
	put(0, "0-3,8-11\n");
	assert_false(pick(true, 0, 63, cpu));
	assert_non_null(strstr(why, "one NUMA node"));
	put(1, "4-7,12\n");
	put(7, "\n"); /* memory alone */
	assert_true(pick(true, 0, 63, cpu) && cpu[0] == 0 && cpu[1] == 1);
	assert_true(pick(false, 0, 63, cpu) && cpu[0] == 0 && cpu[1] == 4);
	assert_true(pick(true, 3, 5, cpu) && cpu[0] == 4 && cpu[1] == 5);
	assert_true(pick(false, 11, 12, cpu) && cpu[0] == 11 && cpu[1] == 12);
	assert_false(pick(true, 11, 12, cpu));
	assert_non_null(strstr(why, "two CPUs"));
	assert_false(pick(false, 4, 7, cpu));
	put(1, "4-,x,-1,99999999999999999999-3");
	assert_true(pick(false, 0, 63, cpu) || why[0]);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void test_pages(void **state)
{
	size_t len = 5 << 20;
	uint8_t *mem;

	(void)state;
	for (int kind = PERF_ANY_PAGES; kind <= PERF_HUGE_PAGES; kind++) {
		why[0] = '\0';
		len = (5u << 20) + 1;
		mem = vrb_perf_pages_map(&len, (enum perf_pages)kind, why);
		if (!mem) { /* a kernel need not have any to give */
			assert_true(kind == PERF_HUGE_PAGES && strstr(why, "huge pages"));
			continue;
		}
		assert_true(len > 5u << 20 &&
			    len % (kind == PERF_HUGE_PAGES ? 2u << 20 : 4096) == 0);
		assert_true(mem[0] == 1 && mem[len - 1] == 1);
		assert_int_equal(munmap(mem, len), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_pages),
	};

	return VRB_RUN_TESTS(tests);
}
