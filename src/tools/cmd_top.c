/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena top`: what the processes with the software HCA are doing, again and again. On a terminal
 * the table stays in place; elsewhere each one follows the other. Signals are taken only while it
 * waits, so the terminal is always put back.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"
#include "tools/out.h"
#include "tools/tools.h"
#include "tools/top.h"

#define SECONDS_MIN 0.1
#define SECONDS_MAX 86400.0

struct options {
	double seconds;
	unsigned long count; /* 0: until somebody ends it */
	pid_t pid;
	bool as_json, regions;
	bool on_screen;
};

static volatile sig_atomic_t stop, suspend;

static void on_signal(int sig)
{
	if (sig == SIGTSTP)
		suspend = 1;
	else if (sig != SIGWINCH && sig != SIGCONT)
		stop = 1;
}

/* All of them come during ppoll only, with the mask `open`. */
static void catch_signals(sigset_t *open, bool on_screen)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH, SIGCONT};
	struct sigaction sa = {.sa_handler = on_signal};
	size_t n = on_screen ? sizeof(sigs) / sizeof(sigs[0]) : 3;
	sigset_t closed;

	sigemptyset(&closed);
	for (size_t i = 0; i < n; i++) {
		sigaction(sigs[i], &sa, NULL);
		sigaddset(&closed, sigs[i]);
	}
	sigprocmask(SIG_BLOCK, &closed, open);
	for (size_t i = 0; i < n; i++)
		sigdelset(open, sigs[i]);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- showing */

static void show_text(const struct options *o, const struct vrb_top *t)
{
	size_t size = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	vrb_top_text(f, t);
	if (fclose(f)) {
		free(text);
		return;
	}
	if (o->on_screen)
		vrb_screen_show(text);
	else
		fputs(text, stdout);
	free(text);
}

static void show(const struct options *o, const struct vrb_top *t, unsigned long shown)
{
	json_t *json;

	if (o->as_json) {
		json = vrb_top_json(t);
		json_dumpf(json, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(json);
	} else {
		if (shown && !o->on_screen)
			putchar('\n');
		show_text(o, t);
	}
	fflush(stdout);
}

/* ---- waiting */

static void sleep_as_told(void)
{
	suspend = 0;
	vrb_screen_leave();
	kill(getpid(), SIGSTOP);
	vrb_screen_enter();
}

/* A key on the terminal; true: show again at once. */
static bool take_key(struct options *o)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1) {
		/* nothing more will come of it */
		stop = 1;
		return false;
	}
	if (key == 'q')
		stop = 1;
	if (key == 'r')
		o->regions = !o->regions;
	return key == 'r';
}

/* Until the time, a key that changes what is shown, or a signal. True: sample. */
static bool wait_until(struct options *o, double until, const sigset_t *open)
{
	while (!stop) {
		struct pollfd p = {.fd = o->on_screen ? STDIN_FILENO : -1, .events = POLLIN};
		double left = until - now_s();
		struct timespec t = {.tv_sec = (time_t)left,
				     .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
		int n;

		if (left <= 0)
			return true;
		n = ppoll(&p, 1, &t, open);
		if (suspend) {
			sleep_as_told();
			return !stop;
		}
		if (n < 0 && errno == EINTR)
			return !stop; /* the size has changed, perhaps */
		if (n > 0 && take_key(o))
			return true;
	}
	return false;
}

/* ---- the loop */

static int watch(struct options *o)
{
	struct vrb_live sample[2] = {{0}, {0}};
	struct vrb_top t = {0};
	double due = now_s();
	unsigned long shown = 0;
	sigset_t open;

	catch_signals(&open, o->on_screen);
	if (o->on_screen)
		vrb_screen_enter();
	for (unsigned i = 0; !stop && (!o->count || shown < o->count); i++) {
		struct vrb_live *now = &sample[i % 2];

		vrb_live_free(now);
		if (!vrb_live_ask(now, o->pid))
			break;
		t.now = now;
		t.old = i ? &sample[(i + 1) % 2] : NULL;
		t.regions = o->regions;
		/* the first has no rates: only a screen shows it */
		if (i || o->on_screen) {
			show(o, &t, shown);
			shown += i ? 1 : 0;
		}
		if (o->pid && !now->n)
			break; /* it has ended */
		if (o->count && shown == o->count)
			break;
		due = due + o->seconds > now_s() ? due + o->seconds : now_s() + o->seconds;
		if (!wait_until(o, due, &open))
			break;
	}
	vrb_screen_leave();
	vrb_live_free(&sample[0]);
	vrb_live_free(&sample[1]);
	return t.now ? VRB_EXIT_OK : VRB_EXIT_FAILED;
}

/* ---- the command line */

static bool take_option(struct options *o, int opt)
{
	char *end;

	switch (opt) {
	case 'd':
		o->seconds = strtod(optarg, &end);
		if (!*end && o->seconds >= SECONDS_MIN && o->seconds <= SECONDS_MAX)
			return true;
		vrb_complain("--delay takes seconds from 0.1 to 86400, not `%s`", optarg);
		return false;
	case 'n':
		o->count = strtoul(optarg, &end, 10);
		if (!*end && o->count && *optarg != '-')
			return true;
		vrb_complain("--count takes a whole number above 0, not `%s`", optarg);
		return false;
	case 'p':
		o->pid = (pid_t)strtol(optarg, &end, 10);
		if (!*end && o->pid > 0)
			return true;
		vrb_complain("--pid takes the number of a process, not `%s`", optarg);
		return false;
	case 'r':
		o->regions = true;
		return true;
	default:
		o->as_json = true;
		return true;
	}
}

/* Whether there is what was asked for; says so if not. */
static bool is_there(pid_t pid)
{
	struct vrb_live l;
	bool found = vrb_live_ask(&l, pid) && l.n;

	vrb_live_free(&l);
	if (!found)
		vrb_complain("process %d has no device of Verbena open, or belongs to another user "
			     "or network namespace; start it with `verbena run`, and look as its "
			     "user, in its namespace",
			     (int)pid);
	return found;
}

static bool is_screen(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term && strcmp(term, "dumb");
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {{"delay", required_argument, NULL, 'd'},
					      {"count", required_argument, NULL, 'n'},
					      {"pid", required_argument, NULL, 'p'},
					      {"regions", no_argument, NULL, 'r'},
					      {"json", no_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	struct options o = {.seconds = 1};
	int opt;

	while ((opt = vrb_opt_next(&vrb_cmd_top, argc, argv, "hd:n:p:r", longs)) != -1) {
		if (opt == 'h' || opt == '?')
			return vrb_opt_exit(opt);
		if (!take_option(&o, opt))
			return VRB_EXIT_USAGE;
	}
	if (optind < argc) {
		vrb_complain("top takes no `%s`", argv[optind]);
		return VRB_EXIT_USAGE;
	}
	if (o.pid && !is_there(o.pid))
		return VRB_EXIT_FAILED;
	o.on_screen = !o.as_json && is_screen();
	return watch(&o);
}

const struct vrb_command vrb_cmd_top = {
	.name = "top",
	.summary = "show what the processes with the adapter open are doing, live",
	.usage = "[-d SECONDS] [-n COUNT] [-p PID] [-r] [--json]\n\n"
		 "The processes of this user that have the software adapter open, their queue\n"
		 "pairs with rates, what is outstanding, retries and the last verdict.\n\n"
		 "  -d, --delay SECONDS  between two tables (1; at least 0.1)\n"
		 "  -n, --count COUNT    so many tables, then end\n"
		 "  -p, --pid PID        only this process; ends with it\n"
		 "  -r, --regions        registered memory, too, and who registered it\n"
		 "      --json           a line of JSON instead of each table\n\n"
		 "On a terminal: q ends it, r shows or hides the regions. Elsewhere each table is\n"
		 "printed below the other.\n",
	.run = run,
};
