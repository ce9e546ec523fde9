/* SPDX-License-Identifier: BSD-2-Clause */
/* The number in a file of sysfs, lists of CPUs, and a page on a node that is there. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "send/numa.h"

static int read_of(const char *text)
{
	char path[] = "/tmp/vrb_numa_XXXXXX";
	int fd = mkstemp(path), n;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	n = vrb_numa_read(path);
	unlink(path);
	return n;
}

static void test_read(void **state)
{
	(void)state;
	assert_int_equal(read_of("1\n"), 1);
	assert_int_equal(read_of("0\n"), 0);
	assert_int_equal(read_of("-1\n"), -1);
	assert_int_equal(read_of("4096\n"), -1);
	assert_int_equal(read_of("none\n"), -1);
	assert_int_equal(read_of(""), -1);
	assert_int_equal(vrb_numa_read("/nonexistent"), -1);
}

static void test_prefer(void **state)
{
	char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	r = vrb_numa_prefer(p, 1 << 20, 0);
	assert_true(!r || r == -EPERM || r == -ENOSYS); /* a container may forbid it */
	p[0] = p[(1 << 20) - 1] = 1;
	munmap(p, 1 << 20);
}

/* ---- lists of CPUs as the kernel writes them */

static void test_lists(void **state)
{
	cpu_set_t set;

	(void)state;
	assert_true(vrb_numa_parse("0-3,8\n", &set));
	assert_int_equal(CPU_COUNT(&set), 5);
	assert_true(CPU_ISSET(8, &set) && CPU_ISSET(3, &set) && !CPU_ISSET(4, &set));
	assert_true(vrb_numa_parse("7", &set));
	assert_int_equal(CPU_COUNT(&set), 1);
}

static void test_nonsense(void **state)
{
	static const char *const bad[] = {"",	"\n",  "x",	   "1-",
					  "1,", "5-2", "99999999", "0-99999999"};
	cpu_set_t set;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(vrb_numa_parse(bad[i], &set));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_prefer),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
