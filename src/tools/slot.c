/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/slot.h"

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
