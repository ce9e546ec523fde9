/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the error cases, each in a forked process under a watchdog, with both ends in one process
 * and with the far end in a second one.
 *
 *	test_errors [--group NAME] [--case NAME] [--mode one|two|both] [--list] [--log]
 *
 * Prints a line per case; exit status 0, 1 (a case failed), 77 (no device).
 */
#include "kit.h"
#include "kit_do.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CASE_SECONDS 300
#define LOG_MAX	     (64u << 10)

int k_real_stderr = 2;
static int log_fd = -1;

/* ---- what the library prints */

void k_log_start(void)
{
	if (log_fd < 0)
		k_real_stderr = fcntl(2, F_DUPFD_CLOEXEC, 3);
	log_fd = memfd_create("test-errors-log", MFD_CLOEXEC);
	fcntl(log_fd, F_SETFL, O_APPEND);
	dup2(log_fd, 2);
}

static char *log_read(void)
{
	static char text[LOG_MAX + 1];
	ssize_t n = pread(log_fd, text, LOG_MAX, 0);

	text[n > 0 ? n : 0] = 0;
	return text;
}

bool k_log_has(const char *text, const char *text2, int ms)
{
	double until = k_now() + ms / 1000.0;

	do {
		char *save = NULL, *line = strtok_r(log_read(), "\n", &save);

		for (; line; line = strtok_r(NULL, "\n", &save)) {
			char *at = strstr(line, text);

			if (at && strstr(at, text2))
				return true;
		}
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	} while (k_now() < until);
	return false;
}

void k_fail(const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	va_list ap;

	va_start(ap, fmt);
	dprintf(k_real_stderr, "    %s:%d: ", base ? base + 1 : file, line);
	vdprintf(k_real_stderr, fmt, ap);
	dprintf(k_real_stderr, "\n");
	va_end(ap);
	if (log_fd >= 0 && *log_read())
		dprintf(k_real_stderr, "    what was explained:\n%s", log_read());
	_exit(1);
}

void k_skip(const char *why)
{
	dprintf(k_real_stderr, "    skipped: %s\n", why);
	_exit(77);
}

/* ---- running */

static int wait_for(pid_t pid)
{
	double until = k_now() + CASE_SECONDS;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (k_now() > until) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			fprintf(stderr, "    hangs: killed after %d s\n", CASE_SECONDS);
			return 1;
		}
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "    killed by signal %d\n", WTERMSIG(status));
	return 1;
}

static int run_case(const struct k_case *c, bool two, bool show_log)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		k_two_processes = two;
		k_log_start();
		if (getenv("VERBENA_LINK")) /* by the wire: the port is ours alone */
			k_own_network();
		c->run(c);
		if (show_log)
			dprintf(k_real_stderr, "%s", log_read());
		_exit(0);
	}
	return pid < 0 ? 1 : wait_for(pid);
}

static const char *opt_group, *opt_case, *opt_mode = "both";
static bool opt_list, opt_log;

static void run_both(const struct k_group *g, const struct k_case *c, int n[3])
{
	for (int two = 0; two < 2; two++) {
		int r;

		if ((two && c->local) || (opt_mode[0] == 'o' && two) ||
		    (opt_mode[0] == 't' && !two && !c->local))
			continue;
		if (opt_list) {
			printf("%s/%s%s\n", g->name, c->name, two ? " (two processes)" : "");
			continue;
		}
		r = run_case(c, two, opt_log);
		printf("%-7s %s/%s%s\n",
		       r == 0	 ? "ok"
		       : r == 77 ? "skip"
				 : "NOT OK",
		       g->name, c->name, two ? " (two processes)" : "");
		n[r == 0 ? 0 : r == 77 ? 2 : 1]++;
	}
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"group", 1, NULL, 'g'}, {"case", 1, NULL, 'c'}, {"mode", 1, NULL, 'm'},
		{"list", 0, NULL, 'l'},	 {"log", 0, NULL, 'L'},	 {NULL, 0, NULL, 0},
	};
	int o;

	while ((o = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (o == 'g')
			opt_group = optarg;
		else if (o == 'c')
			opt_case = optarg;
		else if (o == 'm')
			opt_mode = optarg;
		else if (o == 'l')
			opt_list = true;
		else if (o == 'L')
			opt_log = true;
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	int n[3] = {0, 0, 0};

	parse(argc, argv);
	setenv("VERBENA_EXPLAIN", "1", 1);
	for (size_t i = 0; i < k_n_groups; i++) {
		if (opt_group && strcmp(opt_group, k_groups[i]->name))
			continue;
		for (size_t j = 0; j < k_groups[i]->n; j++)
			if (k_groups[i]->cases[j].run &&
			    (!opt_case || !strcmp(opt_case, k_groups[i]->cases[j].name)))
				run_both(k_groups[i], &k_groups[i]->cases[j], n);
	}
	if (opt_list)
		return 0;
	printf("%d passed, %d failed, %d skipped\n", n[0], n[1], n[2]);
	if (n[1] || n[0] + n[2] == 0)
		return 1;
	return n[0] ? 0 : 77;
}
