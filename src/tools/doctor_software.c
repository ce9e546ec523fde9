/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the software adapter stands on: its devices (asked by the verbs API, on this machine only),
 * the interfaces, what the environment puts in front of a program, and who uses it now.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

#include "base/meet.h"
#include "tools/doctor_gids.h"

#define FLAG_UP		0x1
#define FLAG_LOOPBACK	0x8
#define TEXT_BYTES	256
#define MEMBERS_SHOWN	8
#define MEMBERS_MANY	200
#define MEMBERS_AT_MOST (4 * VRB_SLOTS)

static void append(char *list, const char *word)
{
	size_t len = strlen(list);

	snprintf(list + len, TEXT_BYTES - len, "%s%s", len ? ", " : "", word);
}

static void check_devices(struct vrb_doc *d)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	char names[TEXT_BYTES] = "";

	if (!list)
		return;
	for (int i = 0; i < n; i++) {
		append(names, ibv_get_device_name(list[i]));
		d->is_software = d->is_software ||
				 (d->device && !strcmp(d->device, ibv_get_device_name(list[i])));
	}
	ibv_free_device_list(list);
	if (n)
		vrb_doc_add(d, VRB_F_SOFTWARE, "{s:i, s:s}", "count", n, "devices", names);
	else
		vrb_doc_add(d, VRB_F_SOFTWARE_NONE, "{s:i}", "count", n);
}

static bool find_in(struct vrb_doc *d, const struct vrb_gid_wish *w, struct ibv_device *dev)
{
	struct ibv_context *ctx = ibv_open_device(dev);
	struct ibv_port_attr port = {.gid_tbl_len = 0};
	bool found = false;

	if (!ctx)
		return false;
	if (ibv_query_port(ctx, 1, &port))
		port.gid_tbl_len = 0;
	for (int i = 0; !found && i < port.gid_tbl_len; i++) {
		char text[INET6_ADDRSTRLEN], netdev[IF_NAMESIZE] = "";
		struct ibv_gid_entry e;

		if (ibv_query_gid_ex(ctx, 1, (uint32_t)i, &e, 0))
			continue;
		if_indextoname(e.ndev_ifindex, netdev);
		found = w->netdev ? !strcmp(w->netdev, netdev) &&
					    vrb_gid_kind_of(e.gid.raw) == w->kind
				  : !memcmp(e.gid.raw, w->addr, 16);
		inet_ntop(AF_INET6, e.gid.raw, text, sizeof(text));
		if (found)
			vrb_doc_add(d, VRB_F_GID_FOR, "{s:s, s:s, s:s, s:i, s:s, s:s, s:s}",
				    "address", d->gid, "device", ibv_get_device_name(dev), "port",
				    "1", "index", i, "gid", text, "type", "RoCE v2", "netdev",
				    netdev);
	}
	ibv_close_device(ctx);
	return found;
}

bool vrb_doc_software_gid(struct vrb_doc *d, const struct vrb_gid_wish *w)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	bool found = false;

	for (int i = 0; list && !found && i < n; i++)
		if (!d->device || !strcmp(d->device, ibv_get_device_name(list[i])))
			found = find_in(d, w, list[i]);
	if (list)
		ibv_free_device_list(list);
	return found;
}

static void check_interfaces(struct vrb_doc *d)
{
	struct vrb_doc_names *names = malloc(sizeof(*names));
	char all[TEXT_BYTES] = "";
	unsigned n = 0, up = 0;
	bool lo_down = false;

	if (names)
		vrb_doc_names(d, names, "/sys/class/net");
	for (unsigned i = 0; names && i < names->n; i++) {
		long long flags;

		if (!vrb_doc_number(d, &flags, "/sys/class/net/%s/flags", names->name[i]))
			continue;
		append(all, names->name[i]);
		n++;
		up += flags & FLAG_UP ? 1 : 0;
		lo_down = lo_down || ((flags & FLAG_LOOPBACK) && !(flags & FLAG_UP));
	}
	free(names);
	if (n && !up)
		vrb_doc_add(d, VRB_F_NET_ALL_DOWN, "{s:s, s:s}", "interfaces", all, "file",
			    "/sys/class/net/*/flags");
	else if (lo_down)
		vrb_doc_add(d, VRB_F_LO_DOWN, "{s:s}", "file", "/sys/class/net/lo/flags");
}

/* The first folder of LD_LIBRARY_PATH with a libibverbs is what programs get. */
static void check_front(struct vrb_doc *d)
{
	char path[1024], *rest = path, *dir;

	if (!vrb_doc_env(d, "LD_LIBRARY_PATH", path, sizeof(path)))
		return;
	while ((dir = strsep(&rest, ":;"))) {
		char library[1100];
		const struct vrb_doc_device *nic = NULL;

		if (!*dir || !vrb_doc_exists(d, "%s/libibverbs.so.1", dir))
			continue;
		if (!vrb_doc_exists(d, "%s/libverbena-preload.so", dir))
			return;
		snprintf(library, sizeof(library), "%s/libibverbs.so.1", dir);
		for (unsigned i = 0; i < d->n_dev && !nic; i++)
			nic = d->dev[i].slot[0] && !d->dev[i].ours ? &d->dev[i] : NULL;
		if (nic)
			vrb_doc_add(d, VRB_F_SOFTWARE_HIDES_NIC, "{s:s, s:s, s:s}", "device",
				    nic->name, "library", library, "file", "/proc/self/environ");
		else
			vrb_doc_add(d, VRB_F_SOFTWARE_FRONT, "{s:s, s:s}", "library", library,
				    "file", "/proc/self/environ");
		return;
	}
}

void vrb_check_software(struct vrb_doc *d)
{
	if (!d->root[0])
		check_devices(d);
	check_interfaces(d);
	check_front(d);
}

/* A listening abstract name of base/meet.h in a line of /proc/net/unix. */
static bool is_member(const char *line, unsigned *uid, unsigned *slot)
{
	const char *at = strrchr(line, '@');
	char name[64], flags[16];

	if (!at || sscanf(at + 1, VRB_MEET_NAME, uid, slot) != 2)
		return false;
	snprintf(name, sizeof(name), VRB_MEET_NAME, *uid, *slot);
	/* 00010000: the socket that listens; those of its connections have the same name */
	return !strcmp(at + 1, name) && sscanf(line, "%*s %*s %*s %15s", flags) == 1 &&
	       !strcmp(flags, "00010000");
}

void vrb_check_members(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/net/unix", d->pid), *cursor = text, *line;
	char members[TEXT_BYTES] = "", word[48];
	unsigned n = 0, uid, slot;

	for (unsigned i = 0; n < MEMBERS_AT_MOST && (line = vrb_doc_next_line(&cursor)); i++) {
		if (!is_member(line, &uid, &slot))
			continue;
		snprintf(word, sizeof(word), "slot %u of user %u", slot, uid);
		if (n++ < MEMBERS_SHOWN)
			append(members, word);
	}
	free(text);
	if (n > MEMBERS_SHOWN)
		append(members, "...");
	if (n >= MEMBERS_MANY)
		vrb_doc_add(d, VRB_F_MEMBERS_MANY, "{s:i, s:s}", "count", (int)n, "file",
			    "/proc/net/unix");
	else if (n)
		vrb_doc_add(d, VRB_F_MEMBERS, "{s:i, s:s, s:s}", "count", (int)n, "members",
			    members, "file", "/proc/net/unix");
}
