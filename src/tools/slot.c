/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/slot.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* 0 and *owner, or -errno. */
static int reach(int sock, uint32_t slot, pid_t *owner)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct ucred u = {0};
	socklen_t size = sizeof(u);
	int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, VRB_MEET_NAME,
			 (unsigned)geteuid(), (unsigned)slot);
	int err = 0;

	if (connect(sock, (struct sockaddr *)&sa,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &u, &size))
		err = -errno;
	else if (u.uid != geteuid())
		err = -EPERM;
	*owner = u.pid;
	return err;
}

int vrb_slot_connect(uint32_t slot, pid_t pid, struct timeval patience)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t owner;

	if (sock < 0)
		return -1;
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!reach(sock, slot, &owner) && (!pid || owner == pid))
		return sock;
	close(sock);
	return -1;
}

int vrb_slot_call(uint32_t slot, pid_t *owner)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (sock < 0)
		return -errno;
	err = reach(sock, slot, owner);
	if (!err)
		return sock;
	close(sock);
	return err;
}

int vrb_slot_hear(int sock, struct vrb_meet_hello *hello, int *fds, unsigned max, int flags)
{
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(VRB_SLOT_FDS * sizeof(int))];
	} c = {0};
	struct iovec iov = {hello, sizeof(*hello)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = c.buf,
			   .msg_controllen = CMSG_SPACE(max * sizeof(int))};
	ssize_t got = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | flags);
	struct cmsghdr *ch = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	unsigned n = 0;

	if (ch && ch->cmsg_level == SOL_SOCKET && ch->cmsg_type == SCM_RIGHTS)
		n = (unsigned)((ch->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (unsigned i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(ch) + i * sizeof(int), sizeof(fd));
		if (i < max)
			fds[i] = fd;
		else
			close(fd);
	}
	if (got != (ssize_t)sizeof(*hello))
		memset(hello, 0, sizeof(*hello));
	return (int)(n < max ? n : max);
}
