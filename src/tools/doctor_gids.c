/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GID tables: what is usable, which index to use, which one for an address. The address of a peer
 * leads to an interface by /proc/net/route and ipv6_route, as the kernel would choose it, but for
 * policy rules.
 */
#include "tools/doctor_gids.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum vrb_gid_kind vrb_gid_kind_of(const uint8_t *raw)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80)
		return VRB_GID_LINK_LOCAL;
	return memcmp(raw, mapped, 12) ? VRB_GID_V6 : VRB_GID_V4;
}

void vrb_doc_gids(const struct vrb_doc *d, struct vrb_doc_gids *out, const char *device,
		  const char *port)
{
	char path[160];

	out->n = 0;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s", device, port);
	for (int i = 0; i < VRB_DOC_GIDS; i++) {
		struct vrb_doc_gid *g = &out->gid[out->n];
		static const uint8_t none[16];
		char line[64];

		if (!vrb_doc_line(d, line, sizeof(line), "%s/gids/%d", path, i))
			break;
		if (inet_pton(AF_INET6, line, g->raw) != 1 || !memcmp(g->raw, none, 16) ||
		    /* an empty entry of an InfiniBand port has the prefix all the same */
		    !memcmp(g->raw + 8, none, 8))
			continue;
		inet_ntop(AF_INET6, g->raw, g->text, sizeof(g->text));
		g->index = i;
		g->type[0] = g->netdev[0] = '\0';
		(void)vrb_doc_line(d, g->type, sizeof(g->type), "%s/gid_attrs/types/%d", path, i);
		(void)vrb_doc_line(d, g->netdev, sizeof(g->netdev), "%s/gid_attrs/ndevs/%d", path,
				   i);
		g->v2 = !strcmp(g->type, "RoCE v2");
		g->kind = vrb_gid_kind_of(g->raw);
		out->n++;
	}
}

void vrb_doc_port_netdev(const struct vrb_doc *d, const char *device, const char *port,
			 char netdev[16])
{
	struct vrb_doc_names *names = malloc(sizeof(*names));

	snprintf(netdev, 16, "NETDEV");
	if (vrb_doc_line(d, netdev, 16, "/sys/class/infiniband/%s/ports/%s/gid_attrs/ndevs/0",
			 device, port) ||
	    vrb_doc_line(d, netdev, 16, "/sys/class/infiniband/%s/parent", device)) {
		free(names);
		return;
	}
	if (names && vrb_doc_names(d, names, "/sys/class/infiniband/%s/device/net", device))
		snprintf(netdev, 16, "%.15s", names->name[0]);
	free(names);
}

const struct vrb_doc_gid *vrb_doc_gid_best(const struct vrb_doc_gids *g)
{
	const struct vrb_doc_gid *best = NULL;

	for (unsigned i = 0; i < g->n; i++)
		if (g->gid[i].v2 && (!best || g->gid[i].kind < best->kind))
			best = &g->gid[i];
	return best;
}

void vrb_doc_each_port(struct vrb_doc *d,
		       void (*f)(struct vrb_doc *d, const struct vrb_doc_device *dev,
				 const char *port))
{
	struct vrb_doc_names *ports = malloc(sizeof(*ports));

	for (unsigned i = 0; ports && i < d->n_dev; i++) {
		if (!vrb_doc_wants(d, &d->dev[i]))
			continue;
		vrb_doc_names(d, ports, "/sys/class/infiniband/%s/ports", d->dev[i].name);
		for (unsigned k = 0; k < ports->n; k++)
			f(d, &d->dev[i], ports->name[k]);
	}
	free(ports);
}

static bool is_ethernet(const struct vrb_doc *d, const char *device, const char *port)
{
	char layer[32];

	return vrb_doc_line(d, layer, sizeof(layer), "/sys/class/infiniband/%s/ports/%s/link_layer",
			    device, port) &&
	       !strcmp(layer, "Ethernet");
}

static void check_netdevs(struct vrb_doc *d, const char *device, const char *port,
			  const struct vrb_doc_gids *g)
{
	const char *seen = "";

	for (unsigned i = 0; i < g->n; i++) {
		const char *netdev = g->gid[i].netdev;

		if (!*netdev || !strcmp(netdev, seen) ||
		    vrb_doc_exists(d, "/sys/class/net/%s", netdev))
			continue;
		vrb_doc_add(d, VRB_F_GID_NETDEV_GONE, "{s:s, s:s, s:i, s:s}", "device", device,
			    "port", port, "index", g->gid[i].index, "netdev", netdev);
		seen = netdev;
	}
}

static void judge_table(struct vrb_doc *d, const char *device, const char *port,
			const struct vrb_doc_gids *g)
{
	const struct vrb_doc_gid *best = vrb_doc_gid_best(g);
	char netdev[16], first[96];

	vrb_doc_port_netdev(d, device, port, netdev);
	if (!g->n) {
		vrb_doc_add(d, VRB_F_GID_NONE, "{s:s, s:s, s:s}", "device", device, "port", port,
			    "netdev", netdev);
		return;
	}
	if (!best) {
		vrb_doc_add(d, VRB_F_GID_NO_V2, "{s:s, s:s, s:s, s:i}", "device", device, "port",
			    port, "netdev", netdev, "count", (int)g->n);
		return;
	}
	if (best->kind == VRB_GID_LINK_LOCAL)
		vrb_doc_add(d, VRB_F_GID_LINK_LOCAL, "{s:s, s:s, s:s, s:s, s:i}", "device", device,
			    "port", port, "netdev", netdev, "gid", best->text, "index",
			    best->index);
	if (g->gid[0].index)
		snprintf(first, sizeof(first), "%s", VRB_TR("empty"));
	else
		snprintf(first, sizeof(first), "%s (%s)", g->gid[0].text, g->gid[0].type);
	if (best->kind != VRB_GID_LINK_LOCAL && best->index)
		vrb_doc_add(d, VRB_F_GID_NOT_FIRST, "{s:s, s:s, s:i, s:s, s:s, s:s}", "device",
			    device, "port", port, "index", best->index, "gid", best->text, "netdev",
			    best->netdev, "first", first);
	else
		vrb_doc_add(d, VRB_F_GID_INDEX, "{s:s, s:s, s:i, s:s, s:s}", "device", device,
			    "port", port, "index", best->index, "gid", best->text, "netdev",
			    best->netdev);
}

static void check_port(struct vrb_doc *d, const struct vrb_doc_device *dev, const char *port)
{
	struct vrb_doc_gids *g;

	if (!is_ethernet(d, dev->name, port))
		return;
	g = malloc(sizeof(*g));
	if (!g)
		return;
	vrb_doc_gids(d, g, dev->name, port);
	judge_table(d, dev->name, port, g);
	check_netdevs(d, dev->name, port, g);
	free(g);
}

void vrb_check_gids(struct vrb_doc *d)
{
	vrb_doc_each_port(d, check_port);
}
