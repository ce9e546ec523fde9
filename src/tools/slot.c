/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/slot.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/meet.h"

int vrb_slot_connect(uint32_t slot, pid_t pid, struct timeval patience)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct ucred u = {0};
	socklen_t size = sizeof(u);
	int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, VRB_MEET_NAME,
			 (unsigned)geteuid(), (unsigned)slot);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -1;
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(sock, (struct sockaddr *)&sa,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) &&
	    !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &u, &size) && u.uid == geteuid() &&
	    (!pid || u.pid == pid))
		return sock;
	close(sock);
	return -1;
}

int vrb_slot_call(uint32_t slot, pid_t *owner)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct ucred u = {0};
	socklen_t size = sizeof(u);
	int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, VRB_MEET_NAME,
			 (unsigned)geteuid(), (unsigned)slot);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (sock < 0)
		return -errno;
	if (connect(sock, (struct sockaddr *)&sa,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
		err = -errno;
	else if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &u, &size))
		err = -errno;
	else
		err = u.uid == geteuid() ? 0 : -EPERM;
	*owner = u.pid;
	if (!err)
		return sock;
	close(sock);
	return err;
}
