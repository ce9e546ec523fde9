/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capturing a process that runs already: finds its slot (base/meet.h), passes it the file, and
 * waits. The process appends to the file itself; the capture ends when our connection does, by
 * whichever side.
 */
#include "tools/capture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/meet.h"
#include "tools/slot.h"
#include "tools/tools.h"

#define LOOK_MS	   50
#define ANSWER_MS  5000 /* the process may be busy, or stopped */
#define CONNECT_US 500000

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int vrb_capture_find(pid_t pid)
{
	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++) {
		int sock = vrb_slot_connect(slot, pid, (struct timeval){.tv_usec = CONNECT_US});

		if (sock >= 0)
			return sock;
	}
	if (kill(pid, 0) && errno == ESRCH)
		vrb_complain("there is no process %d", (int)pid);
	else
		vrb_complain("process %d has no device of Verbena open, or belongs to another user "
			     "or network namespace; start it with `verbena run`, and capture as "
			     "its user, in its namespace",
			     (int)pid);
	return -1;
}

static bool ask(int sock, int fd, uint32_t kept)
{
	struct vrb_meet_hello hello = {.magic = VRB_MEET_MAGIC,
				       .version = VRB_MEET_VERSION,
				       .type = VRB_MEET_CAPTURE,
				       .pid = (uint32_t)getpid(),
				       .arg = kept};
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(sizeof(int))];
	} c = {0};
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = c.buf,
			   .msg_controllen = sizeof(c.buf)};

	c.h.cmsg_level = SOL_SOCKET;
	c.h.cmsg_type = SCM_RIGHTS;
	c.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&c.h), &fd, sizeof(int));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(hello);
}

/* 1: it has said *err; 0: nothing in this time; -1: the connection has ended. */
static int hear(int sock, int ms, int *err)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct vrb_meet_hello h;

	if (poll(&p, 1, ms) <= 0)
		return 0;
	if (recv(sock, &h, sizeof(h), MSG_DONTWAIT) != (ssize_t)sizeof(h) ||
	    h.magic != VRB_MEET_MAGIC || h.type != VRB_MEET_CAPTURE)
		return -1;
	*err = (int)h.arg;
	return 1;
}

static bool begin(int sock, pid_t pid, const struct vrb_capture *c, uint32_t kept)
{
	int err = 0, heard = ask(sock, c->fd, kept) ? hear(sock, ANSWER_MS, &err) : -1;

	if (heard == 1 && !err)
		return true;
	if (heard == 0)
		vrb_complain("process %d does not answer; is it stopped?", (int)pid);
	else if (heard == -1)
		vrb_complain("process %d does not know of captures; has it an older Verbena?",
			     (int)pid);
	else if (err == EBUSY)
		vrb_complain("process %d is being captured already; one capture at a time",
			     (int)pid);
	else
		vrb_complain("process %d cannot write %s: %s", (int)pid, c->path, strerror(err));
	return false;
}

static void watch(int sock, pid_t pid, struct vrb_capture *c, const struct vrb_capture_limits *l)
{
	double end = now_s() + l->seconds;
	int err = 0, heard;

	while (!stop && !vrb_capture_count(c, l->packets)) {
		double left = end - now_s();

		if (l->seconds > 0 && left <= 0)
			break;
		heard = hear(sock,
			     l->seconds > 0 && left < LOOK_MS * 1e-3 ? (int)(left * 1e3) + 1
								     : LOOK_MS,
			     &err);
		if (heard == 1)
			vrb_complain("process %d stops to record: cannot write %s: %s", (int)pid,
				     c->path, strerror(err));
		if (heard == -1)
			vrb_complain("process %d has closed the device, or ended", (int)pid);
		if (heard)
			return;
	}
	/* It writes what it has and hangs up. */
	shutdown(sock, SHUT_WR);
	while (hear(sock, ANSWER_MS, &err) == 1)
		;
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

bool vrb_capture_attach(struct vrb_capture *c, int sock, pid_t pid,
			const struct vrb_capture_limits *l)
{
	catch_signals();
	if (!begin(sock, pid, c, l->kept)) {
		close(sock);
		return false;
	}
	fprintf(stderr, "verbena: capturing process %d into %s\n", (int)pid, c->path);
	watch(sock, pid, c, l);
	close(sock);
	/* What came after the last packet that was asked for goes. */
	if (vrb_capture_count(c, l->packets) && ftruncate(c->fd, c->at))
		vrb_complain("cannot shorten %s: %s", c->path, strerror(errno));
	return true;
}
