/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_child.h. */
#include "tools/run_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include "tools/tools.h"

static volatile pid_t child;

static void forward(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/* The command's exit status as a shell gives it. */
static int wait_for_child(void)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return VRB_EXIT_OURS;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int vrb_run_child(char **argv)
{
	struct sigaction sa = {.sa_handler = forward};

	child = fork();
	if (child < 0) {
		vrb_complain("cannot start a process: %s", strerror(errno));
		return VRB_EXIT_OURS;
	}
	if (!child) {
		execvp(argv[0], argv);
		_exit(vrb_exec_failed(argv[0], errno));
	}
	/* of the terminal's signals the command hears itself */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	return wait_for_child();
}

bool vrb_run_log(const char *asked, const char *stem, char path[PATH_MAX], bool *is_ours)
{
	const char *dir = getenv("TMPDIR");
	char *cwd = NULL;
	int fd;

	if (asked) {
		cwd = asked[0] == '/' ? NULL : getcwd(NULL, 0);
		snprintf(path, PATH_MAX, "%s%s%s", cwd ? cwd : "", cwd ? "/" : "", asked);
		free(cwd);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	} else {
		snprintf(path, PATH_MAX, "%s/%s-XXXXXX", dir && dir[0] == '/' ? dir : "/tmp", stem);
		fd = mkostemp(path, O_CLOEXEC);
		*is_ours = fd >= 0;
	}
	if (fd < 0)
		vrb_complain("%s: %s", path, strerror(errno));
	else
		close(fd);
	return fd >= 0;
}

void vrb_run_drop_folder(const char *folder)
{
	DIR *d = *folder ? opendir(folder) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0);
	if (!d)
		return;
	closedir(d);
	(void)rmdir(folder);
}
