/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See run_profile.h. A profile is checked before the program starts, so that a mistake is said once
 * and by us. The program gets a file's whole path: it may change its folder.
 */
#include "tools/run_profile.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>

#include "link/profile.h"
#include "tools/out.h"
#include "tools/tools.h"

#define LIST_MAX 32u

static void print_knob(const struct vrb_knob *k)
{
	char range[32];

	if (k->unit == VRB_KNOB_YESNO)
		printf("  %-14s yes no        %-10s %s\n", k->name, k->plain ? "yes" : "no",
		       k->meaning);
	else {
		snprintf(range, sizeof(range), "%u..%u", k->min, k->max);
		printf("  %-14s %-13s %-10u %s\n", k->name, range, k->plain, k->meaning);
	}
}

static void print_help(void)
{
	puts("A profile is one of the names below or a file of lines `knob = value`; a semicolon\n"
	     "ends a line, too, and # begins a comment. What it does not name is as in `plain`.\n\n"
	     "  knob           values        plain      meaning");
	for (uint32_t i = 0; i < vrb_profile_n_knobs; i++)
		print_knob(&vrb_profile_knobs[i]);
	putchar('\n');
	for (uint32_t i = 0; i < vrb_profile_n_builtins; i++)
		printf("  %-14s %s\n", vrb_profile_builtins[i].name,
		       vrb_profile_builtins[i].summary);
	puts("\nverbena(7) says more.");
}

static bool check(const char *name)
{
	struct vrb_profile_error err;
	struct vrb_profile p;

	if (!vrb_profile_load(name, &p, &err))
		return true;
	vrb_complain("profile: %s", err.text);
	if (err.line)
		fputs("Try `verbena run --profile help`.\n", stderr);
	return false;
}

/* The names of a list with commas; all: those that are built in. Returns how many. */
static uint32_t split(char *list, const char *out[LIST_MAX])
{
	char *save = NULL;
	uint32_t n = 0;

	if (!strcmp(list, "all")) {
		for (; n < vrb_profile_n_builtins && n < LIST_MAX; n++)
			out[n] = vrb_profile_builtins[n].name;
		return n;
	}
	for (char *s = strtok_r(list, ",", &save); s && n < LIST_MAX;
	     s = strtok_r(NULL, ",", &save))
		out[n++] = s;
	return n;
}

int vrb_run_profile_load(const struct vrb_profile_opt *o)
{
	const char *name[LIST_MAX];
	char *list;
	uint32_t n;
	bool ok;

	if (o->one && !strcmp(o->one, "help")) {
		print_help();
		return VRB_EXIT_OK;
	}
	if (o->one && o->many) {
		vrb_complain("--profile and --profiles: not both");
		return VRB_EXIT_USAGE;
	}
	if (!o->many)
		return o->one && !check(o->one) ? VRB_EXIT_USAGE : -1;
	list = strdup(o->many);
	n = list ? split(list, name) : 0;
	ok = n > 0;
	for (uint32_t i = 0; i < n; i++)
		ok &= check(name[i]);
	if (!n)
		vrb_complain("--profiles wants names with commas between them, or all");
	free(list);
	return ok ? -1 : VRB_EXIT_USAGE;
}

static bool set(const char *name)
{
	char *path = vrb_profile_builtin(name) ? NULL : realpath(name, NULL);
	int err = setenv(VRB_PROFILE_ENV, path ? path : name, 1);

	free(path);
	if (err)
		vrb_complain("cannot set the environment: %s", strerror(errno));
	return !err;
}

bool vrb_run_profile_apply(const struct vrb_profile_opt *o)
{
	return !o->one || set(o->one);
}

/* ---- one after the other */

static int run_one(const char *name, char **argv)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return VRB_EXIT_OURS;
	if (!pid) {
		signal(SIGINT, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		if (!set(name))
			_exit(VRB_EXIT_OURS);
		execvp(argv[0], argv);
		_exit(vrb_exec_failed(argv[0], errno));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return VRB_EXIT_OURS;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int vrb_run_profiles(const struct vrb_profile_opt *o, char **argv)
{
	json_t *rows = json_array();
	const char *name[LIST_MAX];
	char *list = strdup(o->many);
	uint32_t n = list ? split(list, name) : 0;
	int worst = VRB_EXIT_OK;

	/* the command hears the terminal's signals itself; what it makes of them is in the table */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	for (uint32_t i = 0; i < n; i++) {
		double start = now_s();
		int status = run_one(name[i], argv);

		if (status)
			worst = VRB_EXIT_FAILED;
		json_array_append_new(rows,
				      json_pack("{s:s, s:i, s:f}", "profile", name[i],
						"exit status", status, "seconds", now_s() - start));
	}
	vrb_out_table(stdout, rows);
	json_decref(rows);
	free(list);
	return worst;
}
