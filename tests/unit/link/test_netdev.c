/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of interfaces: what holds on any machine, and what must come out in a network namespace
 * that holds loopback only (skipped where namespaces are not permitted).
 */
#include "support/test.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "link/netdev.h"

#define MAX 16

static int class_of(const struct vrb_netdev *d, uint32_t i)
{
	if (d->gid_is_v4[i])
		return 0;
	return d->gid[i].raw[0] == 0xfe && (d->gid[i].raw[1] & 0xc0) == 0x80 ? 2 : 1;
}

static void check_device(const struct vrb_netdev *d, int i)
{
	char name[16];

	snprintf(name, sizeof(name), "verbena%u", (uint8_t)i);
	assert_string_equal(d->name, name);
	assert_true(d->up);
	assert_true(d->n_gids >= 1 && d->n_gids <= VRB_NETDEV_GIDS);
	assert_int_equal(d->ifindex, if_nametoindex(d->ifname));
	assert_in_range(d->path_mtu, 1, 5);
	for (uint32_t k = 1; k < d->n_gids; k++)
		assert_true(class_of(d, k - 1) <= class_of(d, k));
}

static void test_invariants(void **state)
{
	struct vrb_netdev d[MAX], again[MAX];
	int n = vrb_netdev_scan(d, MAX);

	(void)state;
	assert_in_range(n, 0, MAX);
	for (int i = 0; i < n; i++) {
		check_device(&d[i], i);
		for (int k = 0; k < i; k++)
			assert_true(d[k].guid != d[i].guid);
		if (d[i].loopback)
			assert_int_equal(i, n - 1);
	}
	memset(again, 0xff, sizeof(again));
	assert_int_equal(vrb_netdev_scan(again, MAX), n);
	assert_memory_equal(d, again, (size_t)n * sizeof(d[0]));
}

static void test_small_table(void **state)
{
	struct vrb_netdev all[MAX], one;
	int n = vrb_netdev_scan(all, MAX);

	(void)state;
	assert_true(vrb_netdev_scan(&one, 0) < 0);
	if (n < 1)
		skip();
	assert_int_equal(vrb_netdev_scan(&one, 1), 1);
}

/* In a child: a fresh namespace has loopback, down. Exit status: what was wrong, 77 to skip. */
static int in_namespace(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	struct vrb_netdev d[MAX];
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return 77;
	if (vrb_netdev_scan(d, MAX) != 0)
		return 1;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		return 77;
	close(fd);
	if (vrb_netdev_scan(d, MAX) != 1)
		return 2;
	if (!d[0].loopback || !d[0].up || strcmp(d[0].name, "verbena0") ||
	    strcmp(d[0].ifname, "lo"))
		return 3;
	if (memcmp(&d[0].gid[0], loopback, sizeof(loopback)) || d[0].path_mtu != 5)
		return 4;
	return d[0].guid ? 0 : 5;
}

static void test_loopback_only(void **state)
{
	pid_t pid = fork();
	int status = 0;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(in_namespace());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_invariants),
		cmocka_unit_test(test_small_table),
		cmocka_unit_test(test_loopback_only),
	};

	return VRB_RUN_TESTS(tests);
}
