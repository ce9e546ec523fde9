/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of questions (wire/ask.h). One is connected to the peer's port, from a port of its own:
 * the kernel then gives it what the network says of that way, and nothing but the peer's answers.
 */
#include "link/udp.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "link/udp_addr.h"
#include "link/udp_parts.h"

#define DRAIN_MAX 8u

int vrb_udp_ask_open(const struct vrb_udp *u, const struct vrb_gid *dst)
{
	union vrb_udp_addr to;
	socklen_t n = vrb_udp_addr(&to, dst, u->ifindex, VRB_ROCE_PORT);
	int fd = vrb_udp_socket(u), on = 1, err;

	if (fd < 0)
		return fd;
	/* else only a port that is closed is told of */
	(void)setsockopt(fd, u->v4 ? IPPROTO_IP : IPPROTO_IPV6, u->v4 ? IP_RECVERR : IPV6_RECVERR,
			 &on, sizeof(on));
	if (!connect(fd, &to.sa, n))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

void vrb_udp_ask_drain(int fd)
{
	struct msghdr m = {0};

	for (uint32_t i = 0; i < DRAIN_MAX; i++)
		if (syscall(SYS_recvmsg, fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
}

/* Zeros behind it, so that it is as long as what is asked about. */
int vrb_udp_ask_send(int fd, const uint8_t ask[VRB_ASK_LEN], uint32_t len)
{
	static const uint8_t zeros[VRB_ROCE_PACKET_MAX];
	struct iovec iov[2] = {{(void *)(uintptr_t)ask, VRB_ASK_LEN},
			       {(void *)(uintptr_t)zeros, len - VRB_ASK_LEN}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	return syscall(SYS_sendmsg, fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void vrb_udp_ask_answer(const struct vrb_udp *u, const struct vrb_net *net,
			const uint8_t ask[VRB_ASK_LEN], uint32_t len)
{
	static const uint8_t zeros[VRB_ROCE_PACKET_MAX];
	union vrb_udp_addr to;
	struct iovec iov[2] = {{(void *)(uintptr_t)ask, VRB_ASK_LEN},
			       {(void *)(uintptr_t)zeros, len - VRB_ASK_LEN}};
	struct msghdr m = {.msg_name = &to,
			   .msg_namelen = vrb_udp_addr(&to, &net->src, u->ifindex, net->sport),
			   .msg_iov = iov,
			   .msg_iovlen = 2};

	(void)syscall(SYS_sendmsg, u->rx_fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}
