/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "send/channel.h"
#include "send/fail.h"

#define BACKLOG	   128
#define IDLE_S	   5 /* the kernel's own probes of a silent host */
#define PROBE_S	   2
#define PROBES	   3
#define UNHEARD_MS 15000u /* what stays unacknowledged so long means a host that is gone */

static int resolve(const char *host, const char *port, int flags, struct addrinfo **list)
{
	struct addrinfo hints = {.ai_flags = flags, .ai_socktype = SOCK_STREAM};
	int r = getaddrinfo(host, port, &hints, list);

	if (!r)
		return 0;
	(void)vrb_fail(EINVAL, VRB_V_SEND_ADDRESS, 0, 0, 0);
	return vrb_about("%s port %s: %s", host ? host : "*", port, gai_strerror(r));
}

static void tune(int fd)
{
	int one = 1, idle = IDLE_S, every = PROBE_S, probes = PROBES;
	unsigned unheard = UNHEARD_MS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof(unheard));
}

/* 0 when fd is ready within the deadline, or an errno. */
static int wait_fd(int fd, short what, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = fd, .events = what};
	int r;

	do {
		uint64_t now = vrb_now(), left = deadline_ns > now ? deadline_ns - now : 0;
		struct timespec t = {.tv_sec = (time_t)(left / VRB_NS_PER_S),
				     .tv_nsec = (long)(left % VRB_NS_PER_S)};

		r = ppoll(&p, 1, deadline_ns == VRB_NS_NEVER ? NULL : &t, NULL);
	} while (r < 0 && errno == EINTR);
	if (r > 0)
		return 0;
	return r < 0 ? errno : ETIMEDOUT;
}

static int listen_on(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	int err;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int vrb_tcp_listen(const char *host, const char *port)
{
	struct addrinfo *list;
	int fd = resolve(host, port, AI_PASSIVE, &list);

	if (fd)
		return fd;
	fd = -EADDRNOTAVAIL;
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = listen_on(a);
	freeaddrinfo(list);
	if (fd >= 0)
		return fd;
	(void)vrb_fail(-fd, VRB_V_SEND_LISTEN, (uint64_t)-fd, 0, 0);
	return vrb_about("%s port %s", host ? host : "*", port);
}

static int connect_to(const struct addrinfo *a, uint64_t deadline_ns)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err = 0;
	socklen_t len = sizeof(err);

	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen)) {
		err = errno;
		if (err == EINPROGRESS)
			err = wait_fd(fd, POLLOUT, deadline_ns);
		if (!err)
			(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	}
	if (!err) {
		tune(fd);
		return fd;
	}
	close(fd);
	return -err;
}

int vrb_tcp_connect(const char *host, const char *port, uint64_t deadline_ns)
{
	struct addrinfo *list;
	int fd = resolve(host, port, 0, &list);

	if (fd)
		return fd;
	fd = -EADDRNOTAVAIL;
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = connect_to(a, deadline_ns);
	freeaddrinfo(list);
	if (fd >= 0)
		return fd;
	(void)vrb_fail(-fd, VRB_V_SEND_CONNECT, (uint64_t)-fd, 0, 0);
	return vrb_about("%s port %s", host ? host : "this host", port);
}

int vrb_tcp_start(const struct sockaddr *to, socklen_t len)
{
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd >= 0 && (!connect(fd, to, len) || errno == EINPROGRESS))
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	return vrb_fail(err, VRB_V_SEND_CONNECT, (uint64_t)err, 0, 0);
}

int vrb_tcp_started(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int err = 0;

	if (poll(&p, 1, 0) <= 0)
		return -EAGAIN;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err)
		return vrb_fail(err, VRB_V_SEND_CONNECT, (uint64_t)err, 0, 0);
	tune(fd);
	return 0;
}

int vrb_tcp_more(int fd, void *bytes, size_t len, uint32_t *got)
{
	while (*got < len) {
		ssize_t r = recv(fd, (char *)bytes + *got, len - *got, MSG_DONTWAIT);

		if (r > 0)
			*got += (uint32_t)r;
		else if (!r)
			return -ECONNRESET;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int vrb_tcp_accept(int listener, uint64_t deadline_ns)
{
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), r;

		if (fd >= 0) {
			tune(fd);
			return fd;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			return vrb_fail(errno, VRB_V_SEND_LISTEN, (uint64_t)errno, 0, 0);
		r = wait_fd(listener, POLLIN, deadline_ns);
		if (r)
			return -r;
	}
}

int vrb_tcp_port(int fd)
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(a);

	(void)getsockname(fd, (struct sockaddr *)&a, &len);
	if (a.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
	return ntohs(((struct sockaddr_in *)&a)->sin_port);
}

void vrb_tcp_address(int fd, struct vrb_gid *gid)
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(a);

	(void)getsockname(fd, (struct sockaddr *)&a, &len);
	if (a.ss_family == AF_INET6)
		memcpy(gid->raw, &((struct sockaddr_in6 *)&a)->sin6_addr, sizeof(gid->raw));
	else
		vrb_gid_from_ipv4(gid, ((struct sockaddr_in *)&a)->sin_addr.s_addr);
}

/* The exchange is smaller than any socket's buffer: a write that does not fit is a failure. */
int vrb_tcp_put(int fd, const void *bytes, size_t len, int step)
{
	ssize_t r = send(fd, bytes, len, MSG_NOSIGNAL);

	if (r == (ssize_t)len)
		return 0;
	r = r < 0 ? errno : EPIPE;
	return vrb_fail((int)r, VRB_V_SEND_EXCHANGE, (uint64_t)step, (uint64_t)r, 0);
}

int vrb_tcp_get(int fd, void *bytes, size_t len, uint64_t deadline_ns, int step)
{
	size_t got = 0;
	int err = 0;

	while (got < len && !err) {
		ssize_t r = recv(fd, (char *)bytes + got, len - got, 0);

		if (r > 0)
			got += (size_t)r;
		else if (!r)
			err = ECONNRESET;
		else if (errno == EAGAIN)
			err = wait_fd(fd, POLLIN, deadline_ns);
		else if (errno != EINTR)
			err = errno;
	}
	return err ? vrb_fail(err, VRB_V_SEND_EXCHANGE, (uint64_t)step, (uint64_t)err, 0) : 0;
}
