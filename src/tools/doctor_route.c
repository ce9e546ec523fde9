/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which GID serves an address (--gid), and interfaces that share a subnet. An address of one's own
 * is looked up in the GID tables; any other by the routes of /proc/net, longest prefix first.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_gids.h"

#define ROUTES_MAX 64

struct route {
	char netdev[16];
	uint32_t net, mask; /* network order */
};

/* /proc/net/route prints addresses as numbers of the machine's byte order. */
static bool parse_route(const char *line, struct route *r)
{
	unsigned net, flags, mask;

	if (sscanf(line, "%15s %x %*x %x %*d %*d %*d %x", r->netdev, &net, &flags, &mask) != 4 ||
	    !(flags & 1))
		return false;
	r->net = net;
	r->mask = mask;
	return true;
}

static bool route_v4(const struct vrb_doc *d, uint32_t addr, char netdev[16])
{
	char *text = vrb_doc_slurp(d, "/proc/%s/net/route", d->pid), *cursor = text, *line;
	struct route r, best = {.netdev = ""};

	while ((line = vrb_doc_next_line(&cursor)))
		if (parse_route(line, &r) && (addr & r.mask) == r.net &&
		    (!best.netdev[0] || ntohl(r.mask) > ntohl(best.mask)))
			best = r;
	free(text);
	snprintf(netdev, 16, "%s", best.netdev);
	return best.netdev[0];
}

static bool parse_hex16(const char *hex, uint8_t out[16])
{
	for (int i = 0; i < 16; i++) {
		unsigned byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return false;
		out[i] = (uint8_t)byte;
	}
	return true;
}

static bool in_prefix(const uint8_t *addr, const uint8_t *net, unsigned bits)
{
	for (unsigned i = 0; i < bits && i < 128; i++)
		if ((addr[i / 8] ^ net[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static bool route_v6(const struct vrb_doc *d, const uint8_t *addr, char netdev[16])
{
	char *text = vrb_doc_slurp(d, "/proc/%s/net/ipv6_route", d->pid), *cursor = text, *line;
	int longest = -1;

	while ((line = vrb_doc_next_line(&cursor))) {
		char hex[33], name[16];
		unsigned bits;
		uint8_t net[16];

		if (sscanf(line, "%32s %x %*s %*s %*s %*s %*s %*s %*s %15s", hex, &bits, name) !=
			    3 ||
		    !parse_hex16(hex, net) || !strcmp(name, "lo") || bits > 128 ||
		    (int)bits <= longest || !in_prefix(addr, net, bits))
			continue;
		longest = (int)bits;
		snprintf(netdev, 16, "%s", name);
	}
	free(text);
	return longest >= 0;
}

/* IPv4 becomes ::ffff:a.b.c.d. */
static bool parse_address(const char *text, uint8_t out[16])
{
	memset(out, 0, 16);
	out[10] = out[11] = 0xff;
	return inet_pton(AF_INET, text, out + 12) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

static bool serves(const struct vrb_gid_wish *w, const struct vrb_doc_gid *g)
{
	if (!w->netdev)
		return !memcmp(g->raw, w->addr, 16);
	return g->kind == w->kind && !strcmp(g->netdev, w->netdev);
}

/* Adds the finding for the first port that has an entry; RoCE v2 before v1. */
static bool find_entry(struct vrb_doc *d, const struct vrb_gid_wish *w, bool v2,
		       struct vrb_doc_gids *g)
{
	struct vrb_doc_names *ports = malloc(sizeof(*ports));
	bool found = false;

	for (unsigned i = 0; ports && !found && i < d->n_dev; i++) {
		const char *device = d->dev[i].name;

		if (d->device && !vrb_doc_wants(d, &d->dev[i]))
			continue;
		vrb_doc_names(d, ports, "/sys/class/infiniband/%s/ports", device);
		for (unsigned k = 0; !found && k < ports->n; k++) {
			vrb_doc_gids(d, g, device, ports->name[k]);
			for (unsigned e = 0; !found && e < g->n; e++) {
				const struct vrb_doc_gid *x = &g->gid[e];

				if (x->v2 != v2 || !serves(w, x))
					continue;
				found = true;
				vrb_doc_add(d, v2 ? VRB_F_GID_FOR : VRB_F_GID_FOR_V1,
					    "{s:s, s:s, s:s, s:i, s:s, s:s, s:s}", "address",
					    d->gid, "device", device, "port", ports->name[k],
					    "index", x->index, "gid", x->text, "type", x->type,
					    "netdev", x->netdev);
			}
		}
	}
	free(ports);
	return found;
}

/* Devices of the kernel before those of the software adapter. */
static bool find_any(struct vrb_doc *d, const struct vrb_gid_wish *w, struct vrb_doc_gids *g)
{
	return find_entry(d, w, true, g) || find_entry(d, w, false, g) ||
	       (!d->root[0] && vrb_doc_software_gid(d, w));
}

void vrb_check_gid_for(struct vrb_doc *d)
{
	uint8_t addr[16];
	char netdev[16] = "";
	struct vrb_doc_gids *g;
	struct vrb_gid_wish w = {.addr = addr};
	const char *reason;
	uint32_t v4;

	if (!d->gid)
		return;
	if (!parse_address(d->gid, addr)) {
		vrb_doc_add(d, VRB_F_GID_FOR_NONE, "{s:s, s:s}", "address", d->gid, "reason",
			    VRB_TR("it is no IPv4 or IPv6 address"));
		return;
	}
	g = malloc(sizeof(*g));
	if (!g)
		return;
	if (find_any(d, &w, g))
		goto out;
	w.kind = vrb_gid_kind_of(addr);
	memcpy(&v4, addr + 12, 4);
	if (w.kind == VRB_GID_V4 ? !route_v4(d, v4, netdev) : !route_v6(d, addr, netdev)) {
		reason = VRB_TR("there is no route to it");
	} else {
		w.netdev = netdev;
		if (find_any(d, &w, g))
			goto out;
		reason = w.kind == VRB_GID_V4 ? VRB_TR("the route leaves by {netdev}, and no RDMA "
						       "device has an IPv4 GID of it")
					      : VRB_TR("the route leaves by {netdev}, and no RDMA "
						       "device has such a GID of it");
	}
	vrb_doc_add(d, VRB_F_GID_FOR_NONE, "{s:s, s:s, s:s}", "address", d->gid, "reason", reason,
		    "netdev", netdev);
	vrb_doc_say(d, "reason", reason);
out:
	free(g);
}

static bool has_rdma(const struct vrb_doc *d, const char *netdev)
{
	for (unsigned i = 0; i < d->n_dev; i++) {
		char name[16];

		if (d->dev[i].ours)
			continue;
		vrb_doc_port_netdev(d, d->dev[i].name, "1", name);
		if (!strcmp(name, netdev))
			return true;
	}
	return false;
}

static void compare(struct vrb_doc *d, const struct route *a, const struct route *b)
{
	char net[INET_ADDRSTRLEN], subnet[64];

	if (a->net != b->net || a->mask != b->mask || !a->mask || !strcmp(a->netdev, b->netdev) ||
	    !has_rdma(d, a->netdev) || !has_rdma(d, b->netdev))
		return;
	inet_ntop(AF_INET, &a->net, net, sizeof(net));
	snprintf(subnet, sizeof(subnet), "%s/%d", net, __builtin_popcount(a->mask));
	vrb_doc_add(d, VRB_F_SAME_SUBNET, "{s:s, s:s, s:s, s:s}", "first", a->netdev, "second",
		    b->netdev, "subnet", subnet, "file", "/proc/net/route");
}

void vrb_check_subnets(struct vrb_doc *d)
{
	struct route all[ROUTES_MAX];
	char *text = vrb_doc_slurp(d, "/proc/%s/net/route", d->pid), *cursor = text, *line;
	long long ignore = 0;
	unsigned n = 0;

	while (n < ROUTES_MAX && (line = vrb_doc_next_line(&cursor)))
		if (parse_route(line, &all[n]))
			n++;
	free(text);
	if (vrb_doc_number(d, &ignore, "/proc/sys/net/ipv4/conf/all/arp_ignore") && ignore)
		return;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = i + 1; k < n; k++)
			compare(d, &all[i], &all[k]);
}
