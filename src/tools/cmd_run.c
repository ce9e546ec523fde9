/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena run`: sets the environment and becomes the command. Says beforehand when the command
 * cannot be reached that way: the dynamic linker ignores these variables for set-uid programs, and
 * a static program has no dynamic linker.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/profile.h"
#include "base/totals.h"
#include "base/trace.h"
#include "tools/launch.h"
#include "tools/run_check.h"
#include "tools/run_child.h"
#include "tools/run_faults.h"
#include "tools/run_profile.h"
#include "tools/run_stat.h"
#include "tools/run_trace.h"
#include "tools/tools.h"

#define PROGRAM_HEADERS_MAX 256

/* Finds cmd as execvp does. Returns 0 and its path, or the errno that says why not. */
static int find_command(const char *cmd, char *out, size_t size)
{
	const char *path = getenv("PATH");
	int err = ENOENT;

	if (strchr(cmd, '/')) {
		snprintf(out, size, "%s", cmd);
		return access(out, X_OK) ? errno : 0;
	}
	for (path = path ? path : "/usr/bin:/bin"; path;) {
		const char *end = strchrnul(path, ':');
		struct stat st;

		snprintf(out, size, "%.*s%s%s", (int)(end - path), path, end == path ? "" : "/",
			 cmd);
		if (!stat(out, &st) && S_ISREG(st.st_mode)) {
			if (!access(out, X_OK))
				return 0;
			err = errno;
		}
		path = *end ? end + 1 : NULL;
	}
	return err;
}

/* True when the file is an ELF program without an interpreter. */
static bool is_static(int fd)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (pread(fd, &eh, sizeof(eh), 0) != (ssize_t)sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (int i = 0; i < eh.e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
		off_t at = (off_t)eh.e_phoff + (off_t)i * eh.e_phentsize;

		if (pread(fd, &ph, sizeof(ph), at) != (ssize_t)sizeof(ph))
			return false;
		if (ph.p_type == PT_INTERP)
			return false;
	}
	return true;
}

static void warn_unreachable(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
				((st.st_mode & S_ISGID) && st.st_gid != getegid()) ||
				(geteuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)))
		vrb_complain("warning: %s is privileged (set-uid, set-gid or file capabilities); "
			     "the dynamic linker ignores LD_LIBRARY_PATH for it, so it will not "
			     "see the software HCA",
			     path);
	else if (is_static(fd))
		vrb_complain("warning: %s is statically linked and will not see the software HCA",
			     path);
	close(fd);
}

int vrb_exec_failed(const char *cmd, int err)
{
	if (err == ENOENT) {
		vrb_complain("command not found: %s", cmd);
		return VRB_EXIT_NOT_FOUND;
	}
	vrb_complain("cannot run %s: %s", cmd, strerror(err));
	return VRB_EXIT_NOT_EXECUTABLE;
}

struct options {
	bool with_preload, explain, verbose, is_system;
	const char *story;
	struct vrb_run_check_opt check;
	struct vrb_faults_opt faults;
	struct vrb_profile_opt profile;
	struct vrb_run_stat_opt stat;
	struct vrb_run_trace_opt trace;
};

static const struct option longs[] = {{"no-explain", no_argument, NULL, 'E'},
				      {"no-sysfs", no_argument, NULL, 'S'},
				      {"check", optional_argument, NULL, 'c'},
				      {"check-log", required_argument, NULL, 'L'},
				      {"check-suppress", required_argument, NULL, 'U'},
				      {"system", no_argument, NULL, 'y'},
				      {"faults", required_argument, NULL, 'f'},
				      {"faults-log", required_argument, NULL, 'l'},
				      {"faults-strict", no_argument, NULL, 's'},
				      {"profile", required_argument, NULL, 'p'},
				      {"profiles", required_argument, NULL, 'P'},
				      {"story", required_argument, NULL, 't'},
				      {"stat", optional_argument, NULL, 'a'},
				      {"stat-file", required_argument, NULL, 'A'},
				      {"trace", required_argument, NULL, 'T'},
				      {"trace-form", required_argument, NULL, 'F'},
				      {"trace-max", required_argument, NULL, 'M'},
				      {"verbose", no_argument, NULL, 'v'},
				      {"help", no_argument, NULL, 'h'},
				      {0}};

/* -1 to go on, or the exit status. */
static int take(int opt, struct options *o)
{
	if (opt == 'E')
		o->explain = false;
	else if (opt == 'S')
		o->with_preload = false;
	else if (opt == 'c')
		return vrb_run_check_modes(&o->check, optarg) ? -1 : VRB_EXIT_USAGE;
	else if (opt == 'L')
		o->check.log = optarg;
	else if (opt == 'U')
		o->check.suppress = optarg;
	else if (opt == 'y')
		o->is_system = true;
	else if (opt == 'f')
		o->faults.plan = optarg;
	else if (opt == 'l')
		o->faults.log = optarg;
	else if (opt == 's')
		o->faults.strict = true;
	else if (opt == 'p')
		o->profile.one = optarg;
	else if (opt == 'P')
		o->profile.many = optarg;
	else if (opt == 't')
		o->story = optarg;
	else if (opt == 'T')
		o->trace.file = optarg;
	else if (opt == 'F')
		o->trace.form = optarg;
	else if (opt == 'M')
		o->trace.max = optarg;
	else if (opt == 'a')
		vrb_run_stat_take(&o->stat, optarg);
	else if (opt == 'A')
		o->stat.file = optarg;
	else if (opt == 'v')
		o->verbose = true;
	else
		return opt == 'h' ? VRB_EXIT_OK : VRB_EXIT_OURS;
	return -1;
}

/* Options that do not go together. */
static int refuse(const struct options *o)
{
	const char *what = NULL;

	if (o->profile.many && o->faults.strict)
		what = "--profiles and --faults-strict: not both";
	else if (o->check.fatal && (o->profile.many || o->faults.strict))
		what = "--check=fatal goes with neither --profiles nor --faults-strict";
	else if (o->is_system && !o->check.wanted)
		what = "--system is for --check: without it, start the command as it is";
	else if (o->is_system && (o->faults.plan || o->profile.one || o->profile.many))
		what = "--system: faults and profiles are the software HCA's";
	else if (o->trace.file && (o->profile.many || o->is_system))
		what = "--trace goes with neither --profiles nor --system";
	else if (o->stat.wanted && (o->profile.many || o->is_system))
		what = "--stat goes with neither --profiles nor --system";
	if (!what)
		return -1;
	vrb_complain("%s", what);
	return VRB_EXIT_USAGE;
}

static int parse(int argc, char **argv, struct options *o)
{
	int opt, err = -1;

	/* "+": the options of the command are its own */
	while (err < 0 && (opt = vrb_opt_next(&vrb_cmd_run, argc, argv, "+vh", longs)) != -1)
		err = take(opt, o);
	if (err < 0)
		err = vrb_run_profile_load(&o->profile);
	if (err < 0)
		err = vrb_faults_load(&o->faults);
	if (err < 0)
		err = vrb_run_check_load(&o->check);
	if (err < 0)
		err = vrb_run_trace_load(&o->trace);
	if (err < 0)
		err = vrb_run_stat_load(&o->stat);
	return err < 0 ? refuse(o) : err;
}

/* The program may go to another folder. */
static bool apply_story(const char *file)
{
	char path[PATH_MAX], here[PATH_MAX] = "";
	int n;

	if (!file)
		return true;
	if (*file != '/' && !getcwd(here, sizeof(here))) {
		vrb_complain("the current folder has no name: %s", strerror(errno));
		return false;
	}
	n = snprintf(path, sizeof(path), "%s%s%s", here, *here ? "/" : "", file);
	if (n >= (int)sizeof(path) || setenv("VERBENA_STORY", path, 1)) {
		vrb_complain("--story %s: %s", file, strerror(ENAMETOOLONG));
		return false;
	}
	return true;
}

static void say_what_is_set(const char *path)
{
	static const char *const names[] = {
		"LD_LIBRARY_PATH",	  "LD_PRELOAD",	   "VERBENA_EXPLAIN", VRB_FAULT_ENV,
		VRB_FAULT_ENV_LOG,	  VRB_PROFILE_ENV, "VERBENA_CHECK",   "VERBENA_CHECK_LOG",
		"VERBENA_CHECK_SUPPRESS", "VERBENA_STORY", VRB_TRACE_ENV,     VRB_TOTALS_ENV,
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (i < 3 || getenv(names[i]))
			fprintf(stderr, "verbena: %s=%s\n", names[i],
				getenv(names[i]) ? getenv(names[i]) : "");
	fprintf(stderr, "verbena: running %s\n", path);
}

/* By exec where nothing is left to say afterwards. */
static int start(struct options *o, char **argv)
{
	if (o->profile.many)
		return vrb_run_profiles(&o->profile, argv);
	if (o->faults.strict)
		return vrb_faults_watch(&o->faults, argv);
	if (o->check.fatal)
		return vrb_run_check_watch(&o->check, argv);
	if (o->trace.file || o->stat.wanted)
		return vrb_run_child(argv);
	execvp(argv[0], argv);
	return vrb_exec_failed(argv[0], errno);
}

static bool apply(struct options *o, const struct vrb_launch *l)
{
	return vrb_launch_apply(l) && vrb_faults_apply(&o->faults) &&
	       vrb_run_profile_apply(&o->profile) && apply_story(o->story) &&
	       vrb_run_check_apply(&o->check) && vrb_run_trace_apply(&o->trace) &&
	       vrb_run_stat_apply(&o->stat);
}

static int run(int argc, char **argv)
{
	struct options o = {.with_preload = true, .explain = true};
	char path[PATH_MAX];
	struct vrb_launch l;
	int err = parse(argc, argv, &o);

	if (err >= 0)
		return err;
	if (optind == argc) {
		vrb_usage(&vrb_cmd_run, true);
		return VRB_EXIT_OURS;
	}
	err = find_command(argv[optind], path, sizeof(path));
	if (err)
		return vrb_exec_failed(argv[optind], err);
	warn_unreachable(path);
	if (!vrb_launch_find(&l, o.with_preload && !o.is_system) ||
	    (o.check.wanted && !vrb_launch_find_check(&l)))
		return VRB_EXIT_OURS;
	l.is_system = o.is_system;
	if (!o.explain)
		l.explain = "0";
	if (!apply(&o, &l)) {
		vrb_run_drop_folder(o.trace.folder);
		vrb_run_drop_folder(o.stat.folder);
		return VRB_EXIT_OURS;
	}
	if (o.verbose)
		say_what_is_set(path);
	argv += optind;
	return vrb_run_stat_end(&o.stat, argv, vrb_run_trace_end(&o.trace, start(&o, argv)));
}

const struct vrb_command vrb_cmd_run = {
	.name = "run",
	.summary = "run a program with the software HCA in front of it",
	.usage = "[OPTIONS] [--] COMMAND [ARGUMENTS]\n\n"
		 "  --no-explain   refused calls and failed work requests are not explained\n"
		 "  --no-sysfs     without the view of /sys/class/infiniband and /dev/infiniband\n"
		 "  --check[=fatal,data]  explain misuse of the verbs API, by the call that does\n"
		 "                 it; fatal: fail when there is some; data: also buffers that\n"
		 "                 change while they are sent\n"
		 "  --check-log FILE   the findings as lines of JSON\n"
		 "  --check-suppress FILE  which ones not to tell\n"
		 "  --system       check on the system's own libibverbs and adapter\n"
		 "  --faults PLAN  harm the traffic as PLAN says, a file or the text itself;\n"
		 "                 `--faults help` describes it\n"
		 "  --faults-log FILE  a line for each fault\n"
		 "  --faults-strict    fail when an exact fault has not struck\n"
		 "  --profile NAME the manners of another device, a name or a file;\n"
		 "                 `--profile help` lists names and knobs\n"
		 "  --profiles LIST    run with each of them (with commas, or all), and tell how\n"
		 "                 each ended\n"
		 "  --story FILE   what happened to queue pairs that fail is added to FILE, for\n"
		 "                 `verbena explain FILE`\n"
		 "  --trace FILE   the life of each work request, as text or, when FILE ends in\n"
		 "                 .json, for Perfetto; --trace-form=text|json says which\n"
		 "  --trace-max N  records of one process, 1000000; 0: no bound\n"
		 "  --stat[=text|json]  what each process has done, when COMMAND has ended: a\n"
		 "                 table on standard error, or JSON\n"
		 "  --stat-file FILE   into FILE instead; JSON when it ends in .json\n"
		 "  -v, --verbose  say what is set\n\n"
		 "Exit status: that of COMMAND; 2 PLAN, NAME or a combination is wrong, 122\n"
		 "--check=fatal has found something, 123 an exact fault has not struck, 125\n"
		 "verbena failed, 126 COMMAND cannot be run, 127 it was not found.\n",
	.run = run,
};
