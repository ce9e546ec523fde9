/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena capture`: makes the file, then either runs a command whose processes append to it
 * (VERBENA_CAPTURE), or asks a running process to do so (capture_attach.c). Closes with a line that
 * says how much was captured.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/capture.h"
#include "tools/tools.h"

static volatile sig_atomic_t child;

static void pass_on(int sig)
{
	/* from the terminal the command gets these itself */
	if (child > 0 && sig != SIGINT && sig != SIGQUIT)
		kill((pid_t)child, sig);
}

/* The command decides what they mean. What is ignored (nohup, a shell's background) stays so; the
 * rest is reset by the child's exec. */
static void catch_signals(void)
{
	static const int sigs[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = pass_on, .sa_flags = SA_RESTART}, old;

	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		if (!sigaction(sigs[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(sigs[i], &sa, NULL);
}

static bool set_environment(const struct vrb_capture *c, uint32_t kept)
{
	char *path = realpath(c->path, NULL), number[16];
	bool ok;

	snprintf(number, sizeof(number), "%u", kept);
	ok = path && !setenv("VERBENA_CAPTURE", path, 1) &&
	     !setenv("VERBENA_CAPTURE_SNAP", number, 1);
	if (!ok)
		vrb_complain("cannot set the environment: %s", strerror(errno));
	free(path);
	return ok;
}

/* Becomes `verbena run -- COMMAND...`. */
static void become_run(int argc, char **argv)
{
	char **all = calloc((size_t)argc + 4, sizeof(*all));
	static char name[] = "verbena", run[] = "run", dashes[] = "--";

	if (all) {
		all[0] = name;
		all[1] = run;
		all[2] = dashes;
		memcpy(all + 3, argv, (size_t)argc * sizeof(*argv));
		execv("/proc/self/exe", all);
	}
	vrb_complain("cannot start myself by /proc/self/exe: %s", strerror(errno));
	_exit(VRB_EXIT_OURS);
}

static int capture_command(struct vrb_capture *c, uint32_t kept, int argc, char **argv)
{
	int status = 0;
	pid_t pid;

	if (!set_environment(c, kept))
		return VRB_EXIT_OURS;
	catch_signals();
	pid = fork();
	if (pid < 0) {
		vrb_complain("cannot fork: %s", strerror(errno));
		return VRB_EXIT_OURS;
	}
	if (!pid)
		become_run(argc, argv);
	child = pid;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	vrb_capture_end(c);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

static bool number(const char *what, const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *out > 0 && *out <= max)
		return true;
	vrb_complain("%s takes a whole number from 1 to %llu, not `%s`", what,
		     (unsigned long long)max, text);
	return false;
}

struct options {
	struct vrb_capture_limits limits;
	uint64_t pid, kept;
	bool limited;
};

/* 0, or -1: a value was refused; else an option that is not ours. */
static int take_option(struct options *o, int opt)
{
	char *end;

	switch (opt) {
	case 'p':
		return number("--pid", optarg, INT32_MAX, &o->pid) ? 0 : -1;
	case 's':
		return number("--snap", optarg, UINT32_MAX - 1, &o->kept) ? 0 : -1;
	case 'c':
		o->limited = true;
		return number("--count", optarg, UINT64_MAX - 1, &o->limits.packets) ? 0 : -1;
	case 't':
		o->limited = true;
		o->limits.seconds = strtod(optarg, &end);
		if (*end || !(o->limits.seconds > 0 && o->limits.seconds < 1e9)) {
			vrb_complain("--seconds takes a time above 0, not `%s`", optarg);
			return -1;
		}
		return 0;
	default:
		return opt;
	}
}

/* What may not go together; argc, argv: what follows the options. */
static bool check(const struct options *o, int argc, char **argv)
{
	if (argc == 0) {
		vrb_complain("no FILE to capture into");
	} else if (o->pid && argc > 1) {
		vrb_complain("either --pid or a command, not both: `%s`", argv[1]);
	} else if (!o->pid && o->limited) {
		vrb_complain("--seconds and --count go with --pid; a command is captured until it "
			     "ends");
	} else if (!o->pid && argc == 1) {
		vrb_complain("nothing to capture: give --pid PID or a command behind `%s --`",
			     argv[0]);
	} else {
		return true;
	}
	return false;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{"pid", required_argument, NULL, 'p'},	 {"snap", required_argument, NULL, 's'},
		{"count", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},	 {0}};
	struct options o = {.limits.packets = UINT64_MAX};
	struct vrb_capture c;
	int opt, sock = -1;

	/* "+": the options of the command are its own */
	while ((opt = vrb_opt_next(&vrb_cmd_capture, argc, argv, "+p:s:c:t:h", longs)) != -1) {
		opt = take_option(&o, opt);
		if (opt)
			return opt == 'h' ? VRB_EXIT_OK : VRB_EXIT_OURS;
	}
	argc -= optind;
	argv += optind;
	if (argc > 1 && !strcmp(argv[1], "--")) {
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	/* the process first: the file is emptied for none that is not there */
	if (!check(&o, argc, argv) || (o.pid && (sock = vrb_capture_find((pid_t)o.pid)) < 0) ||
	    !vrb_capture_create(&c, argv[0]))
		return VRB_EXIT_OURS;
	if (!o.pid)
		return capture_command(&c, (uint32_t)o.kept, argc - 1, argv + 1);
	o.limits.kept = (uint32_t)o.kept;
	if (!vrb_capture_attach(&c, sock, (pid_t)o.pid, &o.limits))
		return VRB_EXIT_OURS;
	vrb_capture_end(&c);
	return VRB_EXIT_OK;
}

const struct vrb_command vrb_cmd_capture = {
	.name = "capture",
	.summary = "record the packets of a program into a file for Wireshark",
	.usage = "[OPTIONS] FILE [--] COMMAND [ARGUMENTS]\n"
		 "       verbena capture [OPTIONS] --pid PID FILE\n\n"
		 "FILE becomes a pcapng file with every packet of the wire and of the\n"
		 "shared-memory path; comments name queue pair, work request and refusals.\n\n"
		 "  -p, --pid PID    a process that runs already, until Ctrl-C or its end\n"
		 "  -c, --count N    with --pid: N packets\n"
		 "  -t, --seconds T  with --pid: for so long\n"
		 "  -s, --snap N     keep N bytes of each packet's payload\n\n"
		 "Exit status: that of COMMAND, 0 with --pid; 125 verbena failed,\n"
		 "126 COMMAND cannot be run, 127 COMMAND not found.\n",
	.run = run,
};
