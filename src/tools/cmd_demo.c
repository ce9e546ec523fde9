/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena demo`: the parent forks the receiver and the sender before anything is opened, watches
 * the time and collects both exit codes. It touches no verbs itself.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tools/demo.h"
#include "tools/out.h"
#include "tools/tools.h"

#define TCP_TIMEOUT_S 10
#define GRACE_MS      500

static int listen_on_loopback(struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*addr);

	*addr = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd >= 0 && !bind(fd, (struct sockaddr *)addr, len) && !listen(fd, 1) &&
	    !getsockname(fd, (struct sockaddr *)addr, &len))
		return fd;
	vrb_complain("cannot listen on 127.0.0.1: %s%s", strerror(errno),
		     errno == EADDRNOTAVAIL ? " (is loopback up? ip link set lo up)" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool meet(struct demo *d, int listener, const struct sockaddr_in *addr)
{
	struct timeval limit = {.tv_sec = TCP_TIMEOUT_S};
	int one = 1;

	if (d->is_sender) {
		d->sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(d->sock, (const struct sockaddr *)addr, sizeof(*addr)))
			return vrb_demo_fail(
				d, "TCP connect: %s%s", strerror(errno),
				errno == ENETUNREACH ? " (is loopback up? ip link set lo up)" : "");
	} else {
		setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		d->sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (d->sock < 0)
			return vrb_demo_fail(d, "TCP accept: %s", strerror(errno));
	}
	setsockopt(d->sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(d->sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return true;
}

static void introduce(const struct demo *d)
{
	const struct demo_address *a[] = {&d->local, &d->remote};
	static const char *const who[] = {"sender", "receiver"};
	char gid[INET6_ADDRSTRLEN];

	printf("Two processes on %s, one reliable connection:\n",
	       ibv_get_device_name(d->ctx->device));
	for (int i = 0; i < 2; i++) {
		inet_ntop(AF_INET6, a[i]->gid.raw, gid, sizeof(gid));
		printf("  %-9s QP 0x%06x  PSN 0x%06x  rkey 0x%08x  GID %s\n", who[i], a[i]->qpn,
		       a[i]->psn, a[i]->rkey, gid);
	}
	putchar('\n');
	fflush(stdout);
}

static int play(struct demo *d, int listener, const struct sockaddr_in *addr)
{
	bool ok;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	d->report = json_object();
	ok = meet(d, listener, addr) && vrb_demo_connect(d);
	if (ok && d->is_sender && !d->json)
		introduce(d);
	ok = ok && vrb_demo_steps(d) && vrb_demo_measure(d) && vrb_demo_wrong(d);
	if (!ok)
		vrb_complain("demo: the %s failed: %s", d->is_sender ? "sender" : "receiver",
			     d->why[0] ? d->why : "see above");
	if (d->is_sender && d->json)
		vrb_out_json(stdout, d->report);
	fflush(stdout);
	vrb_demo_disconnect(d);
	json_decref(d->report);
	return ok ? VRB_EXIT_OK : VRB_EXIT_FAILED;
}

/* Waits for one child until the deadline, then kills it; says so when that is the first failure.
 * True when it ended with 0. */
static bool collect(pid_t pid, const char *who, uint64_t until_ns, bool is_first)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t now = vrb_demo_now_ns();
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int status = 0;

	if (fd >= 0 && poll(&p, 1, until_ns > now ? (int)((until_ns - now) / 1000000) : 0) == 0) {
		if (is_first)
			vrb_complain("demo: the %s did not end within %d s and was killed", who,
				     DEMO_LIMIT_S);
		kill(pid, SIGKILL);
	}
	if (fd >= 0)
		close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) && is_first)
		vrb_complain("demo: the %s ended by signal %d (%s)", who, WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int stage(struct demo *d)
{
	uint64_t until = vrb_demo_now_ns() + DEMO_LIMIT_S * 1000000000ull;
	struct sockaddr_in addr;
	int listener = listen_on_loopback(&addr);
	pid_t pid[2] = {-1, -1};
	bool ok = true;

	if (listener < 0)
		return VRB_EXIT_FAILED;
	setenv("VERBENA_EXPLAIN", "1", 0);
	fflush(stdout);
	for (int i = 0; i < 2 && ok; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			d->is_sender = i;
			exit(play(d, listener, &addr));
		}
		ok = pid[i] > 0;
		if (!ok)
			vrb_complain("fork: %s", strerror(errno));
	}
	close(listener);
	for (int i = 1; i >= 0; i--) {
		if (pid[i] <= 0)
			continue;
		if (!ok) /* the receiver cannot do much alone */
			until = vrb_demo_now_ns() + GRACE_MS * 1000000ull;
		ok = collect(pid[i], i ? "sender" : "receiver", until, ok) && ok;
	}
	if (!d->json && ok)
		puts("\nAll of it verified.");
	return ok ? VRB_EXIT_OK : VRB_EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {{"device", required_argument, NULL, 'd'},
					      {"json", no_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	struct demo d = {.sock = -1};
	int opt;

	while ((opt = vrb_opt_next(&vrb_cmd_demo, argc, argv, "d:jh", longs)) != -1) {
		switch (opt) {
		case 'd':
			d.device_wanted = optarg;
			break;
		case 'j':
			d.json = true;
			break;
		default:
			return vrb_opt_exit(opt);
		}
	}
	if (optind < argc) {
		vrb_complain("`verbena demo` takes no arguments, only options");
		return VRB_EXIT_USAGE;
	}
	return stage(&d);
}

const struct vrb_command vrb_cmd_demo = {
	.name = "demo",
	.summary = "two processes exchange RDMA SENDs, verified and measured, in seconds",
	.usage = "[--device NAME] [--json]\n\n"
		 "  -d, --device NAME  the device to use (default: the first)\n"
		 "  -j, --json         the result as JSON\n",
	.run = run,
};
