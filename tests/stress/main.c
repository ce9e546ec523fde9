/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	test_stress [NAME [COUNT]]
 *
 * Runs one stress test, or all with their short counts. The watchdog ends a test that hangs and
 * fails it; nothing else depends on time.
 */
#include "stress.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct test {
	const char *name;
	void (*run)(long n);
	long n; /* the short count */
} tests[] = {
	{"one_thread", test_one_thread, 2000},
	{"passive", test_passive, 2000},
	{"wakeup", test_wakeup, 20000},
	{"wakeup_poll", test_wakeup_poll, 10000},
	{"wakeup_held", test_wakeup_held, 10000},
	{"wakeup_held_poll", test_wakeup_held_poll, 10000},
	{"idle", test_idle, 1000},
	{"atomics", test_atomics, 5000},
	{"threads", test_threads, 2000},
	{"fork", test_fork, 20},
	{"huge", test_huge, 1},
};

pid_t start_child(int *sock)
{
	int s[2];
	pid_t pid, me = getpid();

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != me)
			_exit(1);
	}
	*sock = s[pid ? 0 : 1];
	close(s[pid ? 1 : 0]);
	return pid;
}

void join_child(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		die("a child ended with wait status 0x%x", (unsigned int)status);
}

static int run(const struct test *t, long n)
{
	double start = now_s();
	const char *word = "ok";
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		long longer = n > 4 * t->n ? n / (4 * t->n) : 1;

		setpgid(0, 0);
		enough_s *= (double)longer;
		alarm((unsigned int)longer * CASE_SECONDS);
		t->run(n);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		word = WTERMSIG(status) == SIGALRM ? "HANGS" : "CRASHES";
	else if (WEXITSTATUS(status))
		word = WEXITSTATUS(status) == 77 ? "skip" : "NOT OK";
	printf("%-7s %s %ld (%.1f s)\n", word, t->name, n, now_s() - start);
	if (!strcmp(word, "ok"))
		return 0;
	return strcmp(word, "skip") ? 1 : 77;
}

int main(int argc, char **argv)
{
	int worst = 0;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		int r;

		if (argc > 1 && strcmp(argv[1], tests[i].name))
			continue;
		r = run(&tests[i], argc > 2 ? strtol(argv[2], NULL, 0) : tests[i].n);
		if (r == 1 || !worst)
			worst = r;
	}
	return worst;
}
