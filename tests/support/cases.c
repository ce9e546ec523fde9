/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/cases.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_one(const struct kit_test *t)
{
	const char *word = "ok";
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0); /* what it kills by group is its own */
		alarm(CASE_SECONDS);
		t->run();
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFSIGNALED(status))
		word = WTERMSIG(status) == SIGALRM ? "HANGS" : "CRASHES";
	else if (WEXITSTATUS(status))
		word = WEXITSTATUS(status) == 77 ? "skip" : "NOT OK";
	printf("%-7s %s\n", word, t->name);
	if (!strcmp(word, "ok"))
		return 0;
	return strcmp(word, "skip") ? 1 : 77;
}

int kit_main(int argc, char **argv, const struct kit_test *tests, size_t n)
{
	int worst = 0;

	for (size_t i = 0; i < n; i++) {
		int r = 0;

		if (argc < 2 || !strcmp(argv[1], tests[i].name))
			r = run_one(&tests[i]);
		if (r == 1 || !worst)
			worst = r;
	}
	return worst;
}
