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

#include "tools/launch.h"
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

static int fail_exec(const char *cmd, int err)
{
	if (err == ENOENT) {
		vrb_complain("command not found: %s", cmd);
		return VRB_EXIT_NOT_FOUND;
	}
	vrb_complain("cannot run %s: %s", cmd, strerror(err));
	return VRB_EXIT_NOT_EXECUTABLE;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {{"no-explain", no_argument, NULL, 'E'},
					      {"no-sysfs", no_argument, NULL, 'S'},
					      {"verbose", no_argument, NULL, 'v'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	bool with_preload = true, explain = true, verbose = false;
	char path[PATH_MAX];
	struct vrb_launch l;
	int opt, err;

	/* "+": the options of the command are its own */
	while ((opt = vrb_opt_next(&vrb_cmd_run, argc, argv, "+vh", longs)) != -1) {
		switch (opt) {
		case 'E':
			explain = false;
			break;
		case 'S':
			with_preload = false;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			return opt == 'h' ? VRB_EXIT_OK : VRB_EXIT_OURS;
		}
	}
	if (optind == argc) {
		vrb_usage(&vrb_cmd_run, true);
		return VRB_EXIT_OURS;
	}
	err = find_command(argv[optind], path, sizeof(path));
	if (err)
		return fail_exec(argv[optind], err);
	warn_unreachable(path);
	if (!vrb_launch_find(&l, with_preload))
		return VRB_EXIT_OURS;
	if (!explain)
		l.explain = "0";
	if (!vrb_launch_apply(&l))
		return VRB_EXIT_OURS;
	if (verbose) {
		static const char *const names[] = {"LD_LIBRARY_PATH", "LD_PRELOAD",
						    "VERBENA_EXPLAIN"};

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			fprintf(stderr, "verbena: %s=%s\n", names[i],
				getenv(names[i]) ? getenv(names[i]) : "");
		fprintf(stderr, "verbena: running %s\n", path);
	}
	execvp(argv[optind], argv + optind);
	return fail_exec(argv[optind], errno);
}

const struct vrb_command vrb_cmd_run = {
	.name = "run",
	.summary = "run a program with the software HCA in front of it",
	.usage = "[OPTIONS] [--] COMMAND [ARGUMENTS]\n\n"
		 "  --no-explain   refused calls and failed work requests are not explained\n"
		 "  --no-sysfs     without the view of /sys/class/infiniband and /dev/infiniband\n"
		 "  -v, --verbose  say what is set\n\n"
		 "Exit status: that of COMMAND; 125 verbena failed, 126 COMMAND cannot be run,\n"
		 "127 COMMAND not found.\n",
	.run = run,
};
