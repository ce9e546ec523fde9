/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena metrics`: the numbers of `verbena top` for Prometheus, printed once or served on a
 * loopback port or a Unix socket. Nothing but loopback: what runs here is nobody else's business,
 * and a scraper elsewhere comes through whatever the site trusts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/metrics.h"
#include "tools/tools.h"

#define PORT	9479
#define BACKLOG 16

struct options {
	unsigned port; /* 0: any */
	const char *path;
	pid_t pid;
	bool once, objects, has_port;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void catch_signals(sigset_t *open)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = on_signal};
	sigset_t closed;

	sigemptyset(&closed);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		sigaction(sigs[i], &sa, NULL);
		sigaddset(&closed, sigs[i]);
	}
	sigprocmask(SIG_BLOCK, &closed, open);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		sigdelset(open, sigs[i]);
}

static bool make(FILE *f, void *arg)
{
	const struct options *o = arg;
	struct vrb_live l;

	if (!vrb_live_ask(&l, o->pid))
		return false;
	vrb_metrics_print(f, &l, o->objects);
	vrb_live_free(&l);
	return true;
}

/* ---- where to listen */

static int listen_port(const struct options *o)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)o->port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	socklen_t len = sizeof(sa);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&sa, &len)) {
		vrb_complain("cannot listen on port %u of 127.0.0.1: %s", o->port, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	fprintf(stderr, "verbena: serving http://127.0.0.1:%u/metrics\n",
		(unsigned)ntohs(sa.sin_port));
	return fd;
}

/* A socket that nobody listens on any more goes; anything else at that path stays. */
static void remove_stale(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return;
	if (!lstat(sa->sun_path, &st) && S_ISSOCK(st.st_mode) &&
	    connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) && errno == ECONNREFUSED)
		unlink(sa->sun_path);
	close(fd);
}

static int listen_path(const struct options *o)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	mode_t old;
	int fd, err;

	if (strlen(o->path) >= sizeof(sa.sun_path)) {
		vrb_complain("%s: a socket's path has at most %zu bytes", o->path,
			     sizeof(sa.sun_path) - 1);
		return -1;
	}
	strcpy(sa.sun_path, o->path);
	remove_stale(&sa);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	old = umask(0177);
	err = fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, BACKLOG) ? errno
											    : 0;
	umask(old);
	if (err) {
		vrb_complain("cannot listen on %s: %s", o->path, strerror(err));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	fprintf(stderr, "verbena: serving GET /metrics on %s\n", o->path);
	return fd;
}

static int serve(struct options *o)
{
	struct vrb_http h = {.make = make, .arg = o, .stop = &stop};
	sigset_t open;
	int err;

	catch_signals(&open);
	h.open = &open;
	h.fd = o->path ? listen_path(o) : listen_port(o);
	if (h.fd < 0)
		return VRB_EXIT_FAILED;
	err = vrb_http_serve(&h);
	close(h.fd);
	if (o->path)
		unlink(o->path);
	return err ? VRB_EXIT_FAILED : VRB_EXIT_OK;
}

/* ---- the command line */

static bool take_number(const char *what, unsigned long max, unsigned long *out)
{
	char *end;

	*out = strtoul(optarg, &end, 10);
	if (*optarg && !*end && *optarg != '-' && *out <= max)
		return true;
	vrb_complain("%s takes a number up to %lu, not `%s`", what, max, optarg);
	return false;
}

static bool take_option(struct options *o, int opt)
{
	unsigned long n;

	switch (opt) {
	case 'P':
		if (!take_number("--port", 65535, &n))
			return false;
		o->port = (unsigned)n;
		o->has_port = true;
		return true;
	case 'u':
		o->path = optarg;
		return true;
	case 'p':
		if (!take_number("--pid", INT32_MAX, &n))
			return false;
		if (!n) {
			vrb_complain("--pid takes the number of a process");
			return false;
		}
		o->pid = (pid_t)n;
		return true;
	case 's':
		o->objects = false;
		return true;
	default:
		o->once = true;
		return true;
	}
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {{"port", required_argument, NULL, 'P'},
					      {"unix", required_argument, NULL, 'u'},
					      {"pid", required_argument, NULL, 'p'},
					      {"summary", no_argument, NULL, 's'},
					      {"once", no_argument, NULL, '1'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	struct options o = {.port = PORT, .objects = true};
	int opt;

	while ((opt = vrb_opt_next(&vrb_cmd_metrics, argc, argv, "hp:", longs)) != -1) {
		if (opt == 'h' || opt == '?')
			return vrb_opt_exit(opt);
		if (!take_option(&o, opt))
			return VRB_EXIT_USAGE;
	}
	if (optind < argc) {
		vrb_complain("metrics takes no `%s`", argv[optind]);
		return VRB_EXIT_USAGE;
	}
	if ((o.path && o.has_port) || (o.once && (o.path || o.has_port))) {
		vrb_complain("one of --port, --unix and --once");
		return VRB_EXIT_USAGE;
	}
	if (!o.once)
		return serve(&o);
	return make(stdout, &o) && !fflush(stdout) ? VRB_EXIT_OK : VRB_EXIT_FAILED;
}

const struct vrb_command vrb_cmd_metrics = {
	.name = "metrics",
	.summary = "the same numbers for Prometheus, printed or served",
	.usage = "[--port PORT | --unix PATH | --once] [-p PID] [--summary]\n\n"
		 "Serves what `verbena top` shows at http://127.0.0.1:9479/metrics, in the text\n"
		 "format of Prometheus, until it is interrupted.\n\n"
		 "      --port PORT   another port of 127.0.0.1; 0: any free one, which is said\n"
		 "      --unix PATH   a Unix socket instead, for this user only\n"
		 "      --once        print it and end\n"
		 "  -p, --pid PID     only this process\n"
		 "      --summary     processes and devices, without queue pairs and CQs\n",
	.run = run,
};
