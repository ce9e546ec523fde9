/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three dumps of rtnetlink decide the list of devices: routes (which interface is the default
 * route's), addresses (which interfaces have one: these become entries), links (name, MTU, MAC,
 * flags). An IPv6 address that is still tentative is left out, because a socket cannot be bound to
 * it yet. Interfaces that are not up are dropped at the end.
 */
#include "link/netdev.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

#define IFINDEX_LO     1u    /* the kernel gives loopback this index in every namespace */
#define RECV_BYTES     16384 /* the kernel fills 8 KiB unless it saw larger reads */
#define RECVS_MAX      65536 /* bound on one dump */
#define ROCE_OVERHEAD  96    /* GRH 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28, ICRC 4 */
#define PATH_MTU_CODES 5

struct scan {
	struct vrb_netdev *dev;
	int max, n;
	uint32_t default_ifindex, default_metric;
	bool have_default;
};

typedef void (*on_message)(struct scan *s, const struct nlmsghdr *h);

struct dump_request {
	struct nlmsghdr h;
	struct rtgenmsg g;
};

/* Hands every message of one dump to fn. */
static int dump(struct scan *s, int fd, uint16_t type, uint8_t family, on_message fn)
{
	char buf[RECV_BYTES] __attribute__((aligned(8)));
	struct dump_request req = {0};

	req.h.nlmsg_len = sizeof(req);
	req.h.nlmsg_type = type;
	req.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	req.g.rtgen_family = family;
	if (send(fd, &req, sizeof(req), 0) < 0)
		return -errno;
	for (int i = 0; i < RECVS_MAX; i++) {
		ssize_t got = recv(fd, buf, sizeof(buf), MSG_TRUNC);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got > (ssize_t)sizeof(buf))
			return -EMSGSIZE;
		for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, got); h = NLMSG_NEXT(h, got)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
			fn(s, h);
		}
	}
	return -EBUSY;
}

static uint32_t attr_u32(const struct rtattr *a)
{
	uint32_t v = 0;

	if (RTA_PAYLOAD(a) >= sizeof(v))
		memcpy(&v, RTA_DATA(a), sizeof(v));
	return v;
}

static void on_route(struct scan *s, const struct nlmsghdr *h)
{
	const struct rtmsg *r = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*r));
	uint32_t oif = 0, metric = 0, table = 0;

	if (h->nlmsg_type != RTM_NEWROUTE || left < 0 || r->rtm_dst_len ||
	    r->rtm_type != RTN_UNICAST)
		return;
	table = r->rtm_table;
	for (const struct rtattr *a = RTM_RTA(r); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_OIF)
			oif = attr_u32(a);
		else if (a->rta_type == RTA_PRIORITY)
			metric = attr_u32(a);
		else if (a->rta_type == RTA_TABLE)
			table = attr_u32(a);
		else if (a->rta_type == RTA_MULTIPATH && RTA_PAYLOAD(a) >= sizeof(struct rtnexthop))
			oif = (uint32_t)((struct rtnexthop *)RTA_DATA(a))->rtnh_ifindex;
	}
	if (!oif || table != RT_TABLE_MAIN || (s->have_default && metric >= s->default_metric))
		return;
	s->default_ifindex = oif;
	s->default_metric = metric;
	s->have_default = true;
}

/* Devices are sorted by this number. */
static uint64_t rank(const struct scan *s, uint32_t ifindex)
{
	if (s->have_default && ifindex == s->default_ifindex)
		return 0;
	return ifindex == IFINDEX_LO ? UINT64_MAX : ifindex;
}

/* The entry of ifindex, made at its place when new; NULL when the table is full of better ones. A
 * full table gives up its last entry before loopback. */
static struct vrb_netdev *entry_get(struct scan *s, uint32_t ifindex)
{
	int i = 0, victim;

	while (i < s->n && rank(s, s->dev[i].ifindex) < rank(s, ifindex))
		i++;
	if (i < s->n && s->dev[i].ifindex == ifindex)
		return &s->dev[i];
	if (s->n == s->max) {
		victim = s->n - 1;
		if (victim > 0 && s->dev[victim].ifindex == IFINDEX_LO)
			victim--;
		if (i > victim && ifindex != IFINDEX_LO)
			return NULL;
		memmove(&s->dev[victim], &s->dev[victim + 1],
			(size_t)(s->n - victim - 1) * sizeof(s->dev[0]));
		s->n--;
		if (i > victim)
			i--;
	}
	memmove(&s->dev[i + 1], &s->dev[i], (size_t)(s->n - i) * sizeof(s->dev[0]));
	memset(&s->dev[i], 0, sizeof(s->dev[i]));
	s->dev[i].ifindex = ifindex;
	s->n++;
	return &s->dev[i];
}

static int gid_class(const struct vrb_gid *g, bool is_v4)
{
	if (is_v4)
		return 0;
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80 ? 2 : 1;
}

static void gid_add(struct vrb_netdev *d, const struct vrb_gid *g, bool is_v4)
{
	uint32_t i = 0;

	while (i < d->n_gids && gid_class(&d->gid[i], d->gid_is_v4[i]) <= gid_class(g, is_v4)) {
		if (!memcmp(&d->gid[i], g, sizeof(*g)))
			return;
		i++;
	}
	if (i == VRB_NETDEV_GIDS)
		return;
	if (d->n_gids == VRB_NETDEV_GIDS)
		d->n_gids--;
	memmove(&d->gid[i + 1], &d->gid[i], (d->n_gids - i) * sizeof(d->gid[0]));
	memmove(&d->gid_is_v4[i + 1], &d->gid_is_v4[i], (d->n_gids - i) * sizeof(bool));
	d->gid[i] = *g;
	d->gid_is_v4[i] = is_v4;
	d->n_gids++;
}

static void on_address(struct scan *s, const struct nlmsghdr *h)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*m));
	const struct rtattr *addr = NULL, *local = NULL;
	struct vrb_gid gid = {{0}};
	struct vrb_netdev *d;
	uint32_t flags;

	if (h->nlmsg_type != RTM_NEWADDR || left < 0)
		return;
	flags = m->ifa_flags;
	for (const struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFA_ADDRESS)
			addr = a;
		else if (a->rta_type == IFA_LOCAL)
			local = a;
		else if (a->rta_type == IFA_FLAGS)
			flags = attr_u32(a);
	}
	if (local)
		addr = local;
	if (!addr || (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)))
		return;
	if (m->ifa_family == AF_INET && RTA_PAYLOAD(addr) == 4) {
		gid.raw[10] = gid.raw[11] = 0xff;
		memcpy(&gid.raw[12], RTA_DATA(addr), 4);
	} else if (m->ifa_family == AF_INET6 && RTA_PAYLOAD(addr) == sizeof(gid)) {
		memcpy(&gid, RTA_DATA(addr), sizeof(gid));
	} else {
		return;
	}
	d = entry_get(s, m->ifa_index);
	if (d)
		gid_add(d, &gid, m->ifa_family == AF_INET);
}

static void on_link(struct scan *s, const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*m));
	struct vrb_netdev *d = NULL;

	if (h->nlmsg_type != RTM_NEWLINK || left < 0)
		return;
	for (int i = 0; i < s->n; i++)
		if (s->dev[i].ifindex == (uint32_t)m->ifi_index)
			d = &s->dev[i];
	if (!d)
		return;
	d->up = m->ifi_flags & IFF_UP;
	d->running = m->ifi_flags & IFF_RUNNING;
	d->loopback = m->ifi_flags & IFF_LOOPBACK;
	for (const struct rtattr *a = IFLA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_IFNAME)
			snprintf(d->ifname, sizeof(d->ifname), "%.*s", (int)RTA_PAYLOAD(a),
				 (const char *)RTA_DATA(a));
		else if (a->rta_type == IFLA_MTU)
			d->mtu = attr_u32(a);
		else if (a->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(a) == sizeof(d->mac))
			memcpy(d->mac, RTA_DATA(a), sizeof(d->mac));
	}
}

static uint32_t link_speed(int fd, const char *ifname)
{
	struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
	struct ifreq ifr = {.ifr_data = (void *)&cmd};
	uint32_t speed;

	memcpy(ifr.ifr_name, ifname, sizeof(ifr.ifr_name));
	if (ioctl(fd, SIOCETHTOOL, &ifr))
		return 0;
	speed = (uint32_t)cmd.speed_hi << 16 | cmd.speed;
	return speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed;
}

static uint8_t path_mtu_code(uint32_t mtu)
{
	uint8_t code = 1;

	while (code < PATH_MTU_CODES && (256u << code) + ROCE_OVERHEAD <= mtu)
		code++;
	return code;
}

/* EUI-64 of the MAC. Without a MAC (loopback, tunnels) a locally administered pattern with the last
 * 32 bits of the first address; interfaces that share one MAC differ by their index. */
static uint64_t make_guid(const struct vrb_netdev *first, const struct vrb_netdev *d)
{
	static const uint8_t none[6];
	uint8_t b[8];
	uint64_t guid;

	if (memcmp(d->mac, none, sizeof(none))) {
		memcpy(b,
		       (const uint8_t[8]){d->mac[0] ^ 2, d->mac[1], d->mac[2], 0xff, 0xfe,
					  d->mac[3], d->mac[4], d->mac[5]},
		       sizeof(b));
	} else {
		memcpy(b, (const uint8_t[4]){0x02, 'v', 'r', 'b'}, 4);
		memcpy(b + 4, &d->gid[0].raw[12], 4);
	}
	memcpy(&guid, b, sizeof(guid));
	for (const struct vrb_netdev *e = first; e < d; e++) {
		if (e->guid == guid) {
			b[3] = (uint8_t)(d->ifindex >> 8);
			b[4] = (uint8_t)d->ifindex;
			memcpy(&guid, b, sizeof(guid));
		}
	}
	return guid;
}

static void finish(struct scan *s, int fd)
{
	int n = 0;

	for (int i = 0; i < s->n; i++) {
		struct vrb_netdev *d = &s->dev[n];

		if (!s->dev[i].up || !s->dev[i].n_gids || !s->dev[i].ifname[0])
			continue;
		if (n != i)
			*d = s->dev[i];
		snprintf(d->name, sizeof(d->name), "verbena%u", (uint8_t)n);
		d->path_mtu = path_mtu_code(d->mtu);
		d->speed_mbps = d->loopback ? 0 : link_speed(fd, d->ifname);
		d->guid = make_guid(s->dev, d);
		n++;
	}
	s->n = n;
}

int vrb_netdev_scan(struct vrb_netdev *out, int max)
{
	struct scan s = {.dev = out, .max = max};
	int fd, udp, err;

	if (max <= 0)
		return -EINVAL;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	/* No IPv4 default route: an IPv6 one decides. A kernel without either has no default. */
	if (dump(&s, fd, RTM_GETROUTE, AF_INET, on_route) || !s.have_default)
		(void)dump(&s, fd, RTM_GETROUTE, AF_INET6, on_route);
	err = dump(&s, fd, RTM_GETADDR, AF_UNSPEC, on_address);
	if (!err)
		err = dump(&s, fd, RTM_GETLINK, AF_UNSPEC, on_link);
	close(fd);
	if (err)
		return err;
	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	finish(&s, udp);
	if (udp >= 0)
		close(udp);
	return s.n;
}
