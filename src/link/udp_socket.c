/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of one local address: opening, their options, and what the kernel knows of a way. */
#include "link/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <netinet/udp.h>
#include <sys/random.h>

#include "link/udp_addr.h"
#include "link/udp_parts.h"

#define BUFFER_BYTES  (4 << 20)
#define PORT_TRIES    64
#define PORT_PAUSE_US 20

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static int make(const struct vrb_udp *u)
{
	int fd = socket(u->v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (!u->v4)
		(void)set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	return fd;
}

static int bind_to(const struct vrb_udp *u, int fd, uint16_t port)
{
	union vrb_udp_addr a;
	socklen_t n = vrb_udp_addr(&a, &u->gid, u->ifindex, port);

	return bind(fd, &a.sa, n) ? -errno : 0;
}

/* What receiving wants to know of each datagram. Without UDP_GRO (old kernels) they come one by
 * one. */
static void set_receive(struct vrb_udp *u, int fd)
{
	socklen_t len = sizeof(u->buffer);

	(void)set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
	(void)getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &u->buffer, &len);
	(void)set(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (u->v4) {
		(void)set(fd, IPPROTO_IP, IP_RECVTOS, 1);
	} else {
		(void)set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		/* RoCEv2 A17.3: the checksum may be 0 here too (the kernel's soft-RoCE sends it
		 * so); a socket drops that unless it is told. */
		(void)set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	}
}

/*
 * Alone on the address we are no group, and the kernel need not choose for each packet: the option
 * is set after the bind, and the next of the user who comes makes us both one.
 */
static int bind_port(struct vrb_udp *u)
{
	int err = bind_to(u, u->rx_fd, VRB_ROCE_PORT);

	if (!err)
		return set(u->rx_fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (err == -EADDRINUSE)
		err = set(u->rx_fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (err)
		return err;
	err = bind_to(u, u->rx_fd, VRB_ROCE_PORT);
	for (int i = 0; i < PORT_TRIES && err == -EADDRINUSE; i++) {
		usleep(PORT_PAUSE_US); /* the first may be between its two calls */
		err = bind_to(u, u->rx_fd, VRB_ROCE_PORT);
	}
	return err;
}

void vrb_udp_want_hops(struct vrb_udp *u)
{
	if (u->has_hops)
		return;
	u->has_hops = true;
	if (u->v4)
		(void)set(u->rx_fd, IPPROTO_IP, IP_RECVTTL, 1);
	else
		(void)set(u->rx_fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
}

int vrb_udp_open(const struct vrb_gid *gid, uint32_t ifindex, uint32_t slot, struct vrb_udp **out)
{
	struct vrb_udp *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->gid = *gid;
	u->ifindex = ifindex;
	u->v4 = vrb_gid_is_ipv4(gid);
	for (uint32_t i = 0; i < VRB_UDP_LANES; i++)
		u->lane[i] = (struct vrb_udp_lane){.fd = -1, .hops_set = VRB_UDP_HOPS};
	u->rx_fd = make(u);
	err = u->rx_fd < 0 ? u->rx_fd : 0;
	if (!err) {
		set_receive(u, u->rx_fd);
		err = bind_port(u);
	}
	if (!err)
		err = vrb_udp_rx_open(u);
	if (!err)
		err = vrb_udp_steer_open(u, slot);
	if (err) {
		vrb_udp_close(u);
		return err;
	}
	*out = u;
	return 0;
}

void vrb_udp_stop(struct vrb_udp *u)
{
	if (u->rx_fd >= 0)
		close(u->rx_fd);
	u->rx_fd = -1;
	if (u->steer)
		vrb_udp_steer_disown(u);
}

void vrb_udp_disown(struct vrb_udp *u)
{
	for (uint32_t i = 0; i < VRB_UDP_LANES; i++) {
		if (u->lane[i].fd >= 0)
			close(u->lane[i].fd);
		u->lane[i].fd = -1;
	}
	vrb_udp_stop(u);
}

void vrb_udp_close(struct vrb_udp *u)
{
	vrb_udp_disown(u);
	vrb_udp_rx_close(u);
	vrb_udp_steer_close(u);
	free(u);
}

/* RoCEv2 A17.9.2: source ports from 0xC000 up. Whichever is free; several tries are normal. */
static int bind_lane(struct vrb_udp *u, int fd, uint32_t lane)
{
	int err = -EADDRINUSE;

	for (int i = 0; i < PORT_TRIES && err == -EADDRINUSE; i++) {
		uint16_t r;

		if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
			r = (uint16_t)(lane * 1009u + (uint32_t)i * 61u);
		u->lane[lane].port = (uint16_t)(VRB_UDP_PORT_MIN | r);
		err = bind_to(u, fd, u->lane[lane].port);
	}
	return err;
}

int vrb_udp_lane(struct vrb_udp *u, uint32_t lane)
{
	int fd = u->lane[lane].fd, err;

	if (fd >= 0)
		return fd;
	fd = make(u);
	if (fd < 0)
		return fd;
	(void)set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
	(void)set(fd, SOL_SOCKET, SO_RCVBUF, 0); /* nobody sends to it */
	/* ID 0 and "do not fragment": what the ICRC is computed with */
	if (u->v4)
		err = set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
	else
		err = set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
	if (!err)
		err = bind_lane(u, fd, lane);
	if (err) {
		close(fd);
		return err;
	}
	u->lane[lane].fd = fd;
	return fd;
}

int vrb_udp_socket(const struct vrb_udp *u)
{
	int fd = make(u), err = fd < 0 ? fd : bind_to(u, fd, 0);

	if (err < 0 && fd >= 0)
		close(fd);
	return err < 0 ? err : fd;
}

int vrb_udp_route(const struct vrb_udp *u, const struct vrb_gid *dst, uint32_t *mtu)
{
	union vrb_udp_addr a;
	socklen_t n = vrb_udp_addr(&a, dst, u->ifindex, VRB_ROCE_PORT), size = sizeof(int);
	int fd = vrb_udp_socket(u), err = 0, v = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, &a.sa, n))
		err = -errno;
	if (!err &&
	    getsockopt(fd, u->v4 ? IPPROTO_IP : IPPROTO_IPV6, u->v4 ? IP_MTU : IPV6_MTU, &v, &size))
		err = -errno;
	close(fd);
	*mtu = (uint32_t)v;
	return err;
}
