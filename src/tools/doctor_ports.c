/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports: state, physical state, link layer; and the interface that a RoCE port stands on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_gids.h"

/* What the kernel takes off an interface's MTU for the headers of RoCE: GRH 40, UDP 8, BTH 12, the
 * largest extended headers 32, ICRC 4. */
#define HEADER_BYTES 96
#define PATH_MTU_MAX 4096
#define DROPS_NOTE   1000

static void check_port(struct vrb_doc *d, const struct vrb_doc_device *dev, const char *port)
{
	char path[160], state[40] = "", phys[40] = "", layer[32] = "", rate[48] = "?",
			lid[16] = "?";
	char netdev[16];
	enum vrb_finding_id id = VRB_F_PORT_DOWN;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s", dev->name, port);
	if (!vrb_doc_line(d, state, sizeof(state), "%s/state", path))
		return;
	(void)vrb_doc_line(d, phys, sizeof(phys), "%s/phys_state", path);
	(void)vrb_doc_line(d, layer, sizeof(layer), "%s/link_layer", path);
	(void)vrb_doc_line(d, rate, sizeof(rate), "%s/rate", path);
	(void)vrb_doc_line(d, lid, sizeof(lid), "%s/lid", path);
	vrb_doc_port_netdev(d, dev->name, port, netdev);
	if (!strncmp(state, "4:", 2))
		id = VRB_F_PORT;
	else if (phys[0] && strncmp(phys, "5:", 2))
		id = VRB_F_PORT_PHYS;
	else if (!strcmp(layer, "InfiniBand") && !strncmp(state, "2:", 2))
		id = VRB_F_PORT_NO_SM;
	vrb_doc_add(d, id, "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "device", dev->name,
		    "port", port, "state", state, "phys_state", phys, "link_layer", layer, "rate",
		    rate, "netdev", netdev, "slot", dev->slot, "file", path);
	if (!strcmp(layer, "InfiniBand") && id == VRB_F_PORT)
		vrb_doc_add(d, VRB_F_PORT_IB, "{s:s, s:s, s:s}", "device", dev->name, "port", port,
			    "lid", lid);
}

void vrb_check_ports(struct vrb_doc *d)
{
	vrb_doc_each_port(d, check_port);
}

static int path_mtu(long long mtu)
{
	int p = PATH_MTU_MAX;

	while (p > 256 && p + HEADER_BYTES > mtu)
		p /= 2;
	return p;
}

static void check_statistics(struct vrb_doc *d, const char *netdev)
{
	static const struct {
		const char *name;
		enum vrb_finding_id id;
		long long above;
	} counters[] = {
		{"rx_crc_errors", VRB_F_NETDEV_ERRORS, 0},
		{"rx_frame_errors", VRB_F_NETDEV_ERRORS, 0},
		{"rx_length_errors", VRB_F_NETDEV_ERRORS, 0},
		{"rx_missed_errors", VRB_F_NETDEV_DROPS, 0},
		{"rx_fifo_errors", VRB_F_NETDEV_DROPS, 0},
		{"rx_over_errors", VRB_F_NETDEV_DROPS, 0},
		{"tx_dropped", VRB_F_NETDEV_DROPS, DROPS_NOTE},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		long long n;

		if (vrb_doc_number(d, &n, "/sys/class/net/%s/statistics/%s", netdev,
				   counters[i].name) &&
		    n > counters[i].above)
			vrb_doc_add(d, counters[i].id, "{s:s, s:s, s:I}", "netdev", netdev,
				    "counter", counters[i].name, "count", (json_int_t)n);
	}
}

static void check_netdev(struct vrb_doc *d, const struct vrb_doc_device *dev, const char *port)
{
	long long flags, carrier, mtu;
	char netdev[16], layer[32];

	vrb_doc_port_netdev(d, dev->name, port, netdev);
	if (!vrb_doc_line(d, layer, sizeof(layer), "/sys/class/infiniband/%s/ports/%s/link_layer",
			  dev->name, port) ||
	    strcmp(layer, "Ethernet") ||
	    !vrb_doc_number(d, &flags, "/sys/class/net/%s/flags", netdev))
		return;
	if (!(flags & 1))
		vrb_doc_add(d, VRB_F_NETDEV_DOWN, "{s:s, s:s, s:I}", "netdev", netdev, "device",
			    dev->name, "flags", (json_int_t)flags);
	else if (vrb_doc_number(d, &carrier, "/sys/class/net/%s/carrier", netdev) && !carrier)
		vrb_doc_add(d, VRB_F_NETDEV_NO_CARRIER, "{s:s, s:s, s:i}", "netdev", netdev,
			    "device", dev->name, "carrier", 0);
	if (vrb_doc_number(d, &mtu, "/sys/class/net/%s/mtu", netdev))
		vrb_doc_add(d, mtu < PATH_MTU_MAX + HEADER_BYTES ? VRB_F_MTU_SMALL : VRB_F_MTU_OK,
			    "{s:s, s:s, s:I, s:i}", "netdev", netdev, "device", dev->name, "mtu",
			    (json_int_t)mtu, "path_mtu", path_mtu(mtu));
	check_statistics(d, netdev);
}

void vrb_check_netdevs(struct vrb_doc *d)
{
	vrb_doc_each_port(d, check_netdev);
}
