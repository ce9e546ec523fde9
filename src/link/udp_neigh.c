/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the next host on the way answers ARP or neighbour discovery. The kernel gives up on one
 * after three seconds and tells sockets then; its table shows at once that it still asks in vain.
 * Netlink answers within the call that asks, so nothing here waits.
 */
#include "link/udp.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define ANSWER_BYTES 4096

/* A message with one or two attributes; those of the question take the least room. */
struct msg {
	struct nlmsghdr h;
	union {
		struct rtmsg rt;
		struct ndmsg nd;
		uint8_t bytes[ANSWER_BYTES];
	} u;
};

struct hop {
	uint8_t family, len;
	uint8_t addr[16];
	uint32_t ifindex;
};

static void add_attr(struct msg *m, uint16_t type, const void *data, uint16_t len)
{
	struct rtattr *a = (struct rtattr *)((uint8_t *)m + NLMSG_ALIGN(m->h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	m->h.nlmsg_len = NLMSG_ALIGN(m->h.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* The answer takes the place of the question; false when it is none of this type. */
static bool exchange(int fd, struct msg *m, uint16_t wanted)
{
	long n = syscall(SYS_sendto, fd, m, m->h.nlmsg_len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);

	if (n < 0)
		return false;
	n = syscall(SYS_recvfrom, fd, m, sizeof(*m), MSG_DONTWAIT, NULL, NULL);
	return n >= (long)sizeof(m->h) && m->h.nlmsg_len <= (uint64_t)n &&
	       m->h.nlmsg_type == wanted;
}

/* The router, or the destination itself where it is on the link. */
static bool find_hop(int fd, uint32_t ifindex, struct hop *hop)
{
	struct msg m = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			      .nlmsg_type = RTM_GETROUTE,
			      .nlmsg_flags = NLM_F_REQUEST}};
	struct rtattr *a;
	int left;

	m.u.rt.rtm_family = hop->family;
	m.u.rt.rtm_dst_len = (uint8_t)(hop->len * 8);
	add_attr(&m, RTA_DST, hop->addr, hop->len);
	if (hop->family == AF_INET6 && hop->addr[0] == 0xfe && (hop->addr[1] & 0xc0) == 0x80)
		add_attr(&m, RTA_OIF, &ifindex, sizeof(ifindex));
	if (!exchange(fd, &m, RTM_NEWROUTE) || m.h.nlmsg_len < NLMSG_LENGTH(sizeof(m.u.rt)) ||
	    m.u.rt.rtm_type != RTN_UNICAST)
		return false;
	left = (int)(m.h.nlmsg_len - NLMSG_LENGTH(sizeof(m.u.rt)));
	for (a = RTM_RTA(&m.u.rt); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_GATEWAY && RTA_PAYLOAD(a) == hop->len)
			memcpy(hop->addr, RTA_DATA(a), hop->len);
		else if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) == sizeof(hop->ifindex))
			memcpy(&hop->ifindex, RTA_DATA(a), sizeof(hop->ifindex));
	}
	return hop->ifindex;
}

static bool is_sought(int fd, const struct hop *hop)
{
	struct msg m = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
			      .nlmsg_type = RTM_GETNEIGH,
			      .nlmsg_flags = NLM_F_REQUEST}};

	m.u.nd.ndm_family = hop->family;
	m.u.nd.ndm_ifindex = (int)hop->ifindex;
	add_attr(&m, NDA_DST, hop->addr, hop->len);
	return exchange(fd, &m, RTM_NEWNEIGH) && m.h.nlmsg_len >= NLMSG_LENGTH(sizeof(m.u.nd)) &&
	       (m.u.nd.ndm_state & (NUD_INCOMPLETE | NUD_FAILED));
}

bool vrb_udp_no_neighbour(const struct vrb_gid *dst, uint32_t ifindex)
{
	bool v4 = vrb_gid_is_ipv4(dst), none;
	struct hop hop = {.family = v4 ? AF_INET : AF_INET6, .len = v4 ? 4 : 16};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return false;
	memcpy(hop.addr, v4 ? &dst->raw[12] : dst->raw, hop.len);
	none = find_hop(fd, ifindex, &hop) && is_sought(fd, &hop);
	close(fd);
	return none;
}
