/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `doctor --serve`: answers the questions of `doctor HOST`, from the address that was asked. It
 * counts the sessions of the last few askers, and keeps nothing else.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tools/doctor_probe.h"
#include "tools/tools.h"

#define SESSIONS     64
#define BUFFER_BYTES (1 << 20)

struct session {
	uint32_t id, arrived, reordered, last;
};

struct serve {
	struct session session[SESSIONS];
	unsigned next;
};

static struct session *session_of(struct serve *s, uint32_t id)
{
	struct session *fresh;

	for (unsigned i = 0; i < SESSIONS; i++)
		if (s->session[i].id == id && s->session[i].arrived)
			return &s->session[i];
	fresh = &s->session[s->next++ % SESSIONS];
	*fresh = (struct session){.id = id};
	return fresh;
}

static bool answer(struct serve *s, uint8_t *q, ssize_t n, uint8_t tos)
{
	struct session *k;
	uint32_t seq;

	if (n < VRB_PROBE_BYTES || vrb_get_be32(q) != VRB_PROBE_MAGIC || q[4] != VRB_PROBE_QUESTION)
		return false;
	k = session_of(s, vrb_get_be32(q + 8));
	seq = vrb_get_be32(q + 12);
	k->arrived++;
	if (seq < k->last)
		k->reordered++;
	else
		k->last = seq;
	q[4] = VRB_PROBE_ANSWER;
	q[5] = tos;
	vrb_put_be16(q + 6, (uint32_t)n);
	vrb_put_be32(q + 16, k->arrived);
	vrb_put_be32(q + 20, k->reordered);
	return true;
}

/* Keeps of the control messages the address that was asked, for the way back, and gives the TOS. */
static uint8_t sort_control(struct msghdr *m)
{
	char kept[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	size_t kept_len = 0;
	uint8_t tos = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int v;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			tos = *CMSG_DATA(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&v, CMSG_DATA(c), sizeof(v));
			tos = (uint8_t)v;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo *info = (struct in_pktinfo *)CMSG_DATA(c);

			info->ipi_spec_dst = info->ipi_addr;
			info->ipi_ifindex = 0;
			kept_len = CMSG_SPACE(sizeof(*info));
			memcpy(kept, c, CMSG_LEN(sizeof(*info)));
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			kept_len = CMSG_SPACE(sizeof(struct in6_pktinfo));
			memcpy(kept, c, CMSG_LEN(sizeof(struct in6_pktinfo)));
		}
	}
	memcpy(m->msg_control, kept, kept_len);
	m->msg_controllen = kept_len;
	return tos;
}

static void serve_one(struct serve *s, int fd)
{
	uint8_t q[VRB_PROBE_BYTES_MAX];
	struct sockaddr_storage from;
	union {
		struct cmsghdr align;
		char bytes[256];
	} control;
	struct iovec iov = {.iov_base = q, .iov_len = sizeof(q)};
	struct msghdr m = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
	uint8_t tos;

	if (n < 0 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return;
	tos = sort_control(&m);
	if (!answer(s, q, n, tos))
		return;
	iov.iov_len = (size_t)n;
	(void)sendmsg(fd, &m, MSG_DONTWAIT);
}

static int open_socket(int family, int port)
{
	bool v6 = family == AF_INET6;
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1, bytes = BUFFER_BYTES;
	int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
	int probe = v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fd, level, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &probe,
			 sizeof(probe));
	(void)setsockopt(fd, level, v6 ? IPV6_RECVTCLASS : IP_RECVTOS, &one, sizeof(one));
	(void)setsockopt(fd, level, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &one, sizeof(one));
	if (v6)
		(void)setsockopt(fd, level, IPV6_V6ONLY, &one, sizeof(one));
	if (!bind(fd, v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4,
		  v6 ? sizeof(a6) : sizeof(a4)))
		return fd;
	bytes = errno;
	close(fd);
	errno = bytes;
	return -1;
}

int vrb_doctor_serve(int port)
{
	struct serve s = {.next = 0};
	struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};

	fds[0].fd = open_socket(AF_INET, port);
	if (fds[0].fd < 0 && errno == EADDRINUSE) {
		vrb_complain(
			"UDP port %d is in use, by a program on the software adapter or by the "
			"kernel's soft-RoCE; end it, or take another port at both ends: "
			"--port 4792",
			port);
		return VRB_EXIT_OURS;
	}
	fds[1].fd = open_socket(AF_INET6, port);
	if (fds[0].fd < 0 && fds[1].fd < 0) {
		vrb_complain("cannot open UDP port %d: %s", port, strerror(errno));
		return VRB_EXIT_OURS;
	}
	printf("answering on UDP port %d until Ctrl-C; at the other end: verbena doctor HOST%s\n",
	       port, port == VRB_PROBE_PORT ? "" : " --port ...");
	fflush(stdout);
	while (poll(fds, 2, -1) >= 0 || errno == EINTR)
		for (int i = 0; i < 2; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				serve_one(&s, fds[i].fd);
	return VRB_EXIT_OURS;
}
