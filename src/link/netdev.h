/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network interfaces a software HCA can stand on, in the order of the devices verbena0,
 * verbena1, ...: every interface that is up and has a usable address, the default route's first,
 * then by interface index, loopback last. The library and the sysfs view both compile this file, so
 * that they agree on names, GUIDs and GID tables. Asks the kernel by rtnetlink: needs neither /proc
 * nor /sys nor privileges.
 */
#ifndef VRB_LINK_NETDEV_H
#define VRB_LINK_NETDEV_H

#include "base/types.h"

#define VRB_NETDEV_GIDS 16

struct vrb_netdev {
	char name[16];	 /* verbena0 */
	char ifname[16]; /* eth0 */
	uint32_t ifindex, mtu;
	uint32_t speed_mbps; /* 0: unknown */
	bool up, running, loopback;
	uint8_t path_mtu; /* code 1..5: the largest that fits mtu with all headers; 5 on lo */
	uint8_t mac[6];
	uint64_t guid;	 /* network order; unique among the devices of a host */
	uint32_t n_gids; /* IPv4-mapped first, then IPv6, then link-local IPv6 */
	struct vrb_gid gid[VRB_NETDEV_GIDS];
	bool gid_is_v4[VRB_NETDEV_GIDS];
};

/* Writes at most max devices to out; returns how many or -errno. Any thread; no state is kept. */
int vrb_netdev_scan(struct vrb_netdev *out, int max);

#endif
