/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf_ends.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/tools.h"

#define LOOPBACK "127.0.0.1"
#define GRACE_MS 2000

bool vrb_perf_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return true;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return true;
	vrb_complain("--cpus: CPU %d: %s", cpu, strerror(errno));
	return false;
}

int vrb_perf_serve_one(int listener, const struct perf_params *local, volatile sig_atomic_t *stop,
		       char why[PERF_WHY_BYTES])
{
	struct perf_session s = {.talk = {.stop = stop}};
	int r;

	s.talk.fd = vrb_perf_tcp_accept(listener, stop, s.why);
	r = s.talk.fd < 0 ? -1 : vrb_perf_serve(&s, local);
	if (s.talk.fd >= 0)
		close(s.talk.fd);
	memcpy(why, s.why, PERF_WHY_BYTES);
	return r;
}

static void be_server(int listener, const struct perf_params *local, int cpu,
		      volatile sig_atomic_t *stop)
{
	char why[PERF_WHY_BYTES];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* the client ends it */
	exit(vrb_perf_pin(cpu) && !vrb_perf_serve_one(listener, local, stop, why)
		     ? VRB_EXIT_OK
		     : VRB_EXIT_FAILED);
}

pid_t vrb_perf_fork_server(const struct perf_params *local, const int cpu[2],
			   volatile sig_atomic_t *stop, int *fd)
{
	char why[PERF_WHY_BYTES], port[16];
	int listener = vrb_perf_tcp_listen(LOOPBACK, "0", why);
	pid_t pid;

	if (listener < 0) {
		vrb_complain("perf: %s", why);
		return -1;
	}
	snprintf(port, sizeof(port), "%d", vrb_perf_tcp_port(listener));
	fflush(stdout);
	pid = fork();
	if (!pid)
		be_server(listener, local, cpu[1], stop);
	close(listener);
	if (pid < 0) {
		vrb_complain("fork: %s", strerror(errno));
		return -1;
	}
	*fd = -1;
	if (vrb_perf_pin(cpu[0])) {
		*fd = vrb_perf_tcp_connect(LOOPBACK, port, why);
		if (*fd < 0)
			vrb_complain("perf: %s", why);
	}
	if (*fd >= 0)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -1;
}

bool vrb_perf_collect(pid_t pid)
{
	int status = 0;

	for (int ms = 0; waitpid(pid, &status, WNOHANG) == 0; ms++) {
		if (ms == GRACE_MS)
			kill(pid, SIGKILL);
		usleep(1000);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == VRB_EXIT_OK;
}
