/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/counters.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/meet.h"
#include "verbena/stats.h"

#define ANSWER_US 50000
#define FDS_MAX	  3

/* As drivers name them: mlx5, rxe, bnxt_re, irdma have one or the other. */
static const char *const retry_names[] = {
	"retransmits",	  "local_ack_timeout_err", "packet_seq_err",	 "rcvd_seq_err",
	"to_retransmits", "retry_rcvd_err",	   "completer_retry_err"};
static const char *const rnr_names[] = {"rcvd_rnr_err", "rnr_nak_retry_err", "rnr_naks_rcvd",
					"retry_rnr_exceeded_err"};
#define N(names) (sizeof(names) / sizeof((names)[0]))

/* The page's descriptor that the owner of a slot sends, or -1. */
static int receive_fd(int sock)
{
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} c;
	struct vrb_meet_hello hello;
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = c.buf,
			   .msg_controllen = sizeof(c.buf)};
	int fds[FDS_MAX], n = 0;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) <= 0)
		return -1;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(h), (size_t)n * sizeof(int));
	}
	while (n > 1)
		close(fds[--n]);
	return n ? fds[0] : -1;
}

/* Whether the slot is this process's; then its page is read. */
static int read_slot(uint32_t slot, struct vrb_stats_page *page)
{
	struct vrb_meet_hello hello = {.magic = VRB_MEET_MAGIC,
				       .version = VRB_MEET_VERSION,
				       .type = VRB_MEET_STATS,
				       .pid = (uint32_t)getpid()};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_usec = ANSWER_US};
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd = -1, ok;
	int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, VRB_MEET_NAME,
			 (unsigned)geteuid(), (unsigned)slot);

	if (sock < 0)
		return 0;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!connect(sock, (struct sockaddr *)&sa,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) &&
	    !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.pid == getpid() &&
	    send(sock, &hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello))
		fd = receive_fd(sock);
	close(sock);
	ok = fd >= 0 && pread(fd, page, sizeof(*page), 0) == (ssize_t)sizeof(*page) &&
	     page->magic == VRB_STATS_MAGIC && page->size == sizeof(*page);
	if (fd >= 0)
		close(fd);
	return ok;
}

static int read_own(struct perf_counters *c, const char *device)
{
	struct vrb_stats_page page;

	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++) {
		if (!read_slot(slot, &page))
			continue;
		for (uint32_t i = 0; i < page.n_devices && i < VRB_STATS_DEVICES; i++) {
			const struct vrb_stats_device *d = &page.device[i];

			if (strncmp(d->name, device, sizeof(d->name)))
				continue;
			c->retries = (int64_t)(d->retransmits + d->timeouts);
			c->rnr_naks = (int64_t)d->rnr_naks_received;
			return 1;
		}
	}
	return 0;
}

/* The sum of those that are there; -1: none. */
static int64_t sum(const char *device, uint32_t port, const char *const *names, size_t n)
{
	int64_t all = -1;
	char path[256];

	for (size_t i = 0; i < n; i++) {
		unsigned long long v = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/hw_counters/%s",
			 device, port, names[i]);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%llu", &v) == 1)
			all = (all < 0 ? 0 : all) + (int64_t)v;
		fclose(f);
	}
	return all;
}

void vrb_perf_counters_read(struct perf_counters *c, const char *device, uint32_t port)
{
	if (!strncmp(device, "verbena", 7) && read_own(c, device))
		return;
	c->retries = sum(device, port, retry_names, N(retry_names));
	c->rnr_naks = sum(device, port, rnr_names, N(rnr_names));
}
