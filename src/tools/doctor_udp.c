/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP port 4791 and what UDP needs. The owner of a socket is found by its inode among the
 * descriptors of processes; a socket of the kernel has no process.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_gids.h"

#define ROCE_PORT     4791
#define SOCKETS_MAX   64
#define PACKET_BYTES  8480 /* of a receive buffer, for a packet with 4 KiB of payload */
#define RMEM_LOW      1048576
#define CONNTRACK_PCT 90

struct sock {
	char address[INET6_ADDRSTRLEN];
	long long uid, inode, drops;
	char owner[64];
	bool owned;
	int sharing; /* how many more stand on the address */
};

/* The words of /proc/net/udp print an address as 32-bit numbers of the machine's byte order. */
static bool parse_sock(const char *line, bool v6, struct sock *s)
{
	char hex[33];
	unsigned port, word[4] = {0};
	int n = v6 ? 4 : 1;

	if (sscanf(line, " %*d: %32[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %lld %*d %lld %*d %*s %lld",
		   hex, &port, &s->uid, &s->inode, &s->drops) != 5 ||
	    port != ROCE_PORT || strlen(hex) != (size_t)(8 * n))
		return false;
	for (int i = 0; i < n; i++)
		if (sscanf(hex + 8 * i, "%8x", &word[i]) != 1)
			return false;
	inet_ntop(v6 ? AF_INET6 : AF_INET, word, s->address, sizeof(s->address));
	snprintf(s->owner, sizeof(s->owner), "user %lld", s->uid);
	s->owned = false;
	s->sharing = 0;
	return true;
}

static unsigned read_socks(const struct vrb_doc *d, struct sock *out, unsigned n, bool v6)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/net/%s", d->pid, v6 ? "udp6" : "udp");
	char *cursor = text, *line;

	while (n < SOCKETS_MAX && (line = vrb_doc_next_line(&cursor)))
		if (parse_sock(line, v6, &out[n]))
			n++;
	free(text);
	return n;
}

struct socks {
	struct sock s[SOCKETS_MAX];
	unsigned n;
};

static bool match_process(const struct vrb_doc *d, const char *pid, void *arg)
{
	struct socks *all = arg;
	struct vrb_doc_names *fds = malloc(sizeof(*fds));

	if (fds)
		vrb_doc_names(d, fds, "/proc/%s/fd", pid);
	for (unsigned i = 0; fds && i < fds->n; i++) {
		char target[64], comm[32] = "?", path[4096];
		long long inode;

		if (!vrb_doc_link(d, target, sizeof(target), "/proc/%s/fd/%s", pid, fds->name[i]) ||
		    sscanf(target, "socket:[%lld]", &inode) != 1)
			continue;
		for (unsigned k = 0; k < all->n; k++) {
			if (all->s[k].inode != inode)
				continue;
			(void)vrb_doc_line(d, comm, sizeof(comm), "/proc/%s/comm", pid);
			snprintf(all->s[k].owner, sizeof(all->s[k].owner), "%s, process %s", comm,
				 pid);
			all->s[k].owned = true;
			snprintf(path, sizeof(path), "%s/proc/%s/fd/%s", d->root, pid,
				 fds->name[i]);
			vrb_record_link(d, path, target);
		}
	}
	free(fds);
	return false;
}

static const char *virtual_device(const struct vrb_doc *d)
{
	for (unsigned i = 0; i < d->n_dev; i++)
		if (!d->dev[i].ours && !d->dev[i].slot[0])
			return d->dev[i].name;
	return "rxe0";
}

static void judge(struct vrb_doc *d, const struct sock *s)
{
	/* no process has it, and soft-RoCE is there to have it */
	if (!s->owned && !s->uid && vrb_doc_exists(d, "/sys/module/rdma_rxe"))
		vrb_doc_add(d, VRB_F_PORT_KERNEL, "{s:s, s:s, s:s}", "address", s->address,
			    "device", virtual_device(d), "file", "/proc/net/udp");
	else if (d->uid >= 0 && s->uid != d->uid)
		vrb_doc_add(d, VRB_F_PORT_USER, "{s:s, s:I, s:s, s:s}", "address", s->address,
			    "uid", (json_int_t)s->uid, "process", s->owner, "file",
			    "/proc/net/udp");
	else
		vrb_doc_add(d, VRB_F_PORT_OURS, "{s:s, s:I, s:s}", "address", s->address, "uid",
			    (json_int_t)s->uid, "process", s->owner);
	if (s->drops)
		vrb_doc_add(d, VRB_F_PORT_DROPS, "{s:s, s:I, s:s, s:s}", "address", s->address,
			    "drops", (json_int_t)s->drops, "process", s->owner, "file",
			    "/proc/net/udp");
}

/* The processes of a user share an address: one finding for all of them. */
static void check_port(struct vrb_doc *d)
{
	struct socks all;
	struct sock *s = all.s;
	unsigned n = read_socks(d, s, read_socks(d, s, 0, false), true);

	all.n = n;
	if (n)
		vrb_doc_each_pid(d, match_process, &all);
	for (unsigned i = 0; i < n; i++) {
		bool first = true;
		size_t len;

		for (unsigned k = 0; k < i && first; k++)
			first = strcmp(s[k].address, s[i].address) || s[k].uid != s[i].uid;
		for (unsigned k = i + 1; first && k < n; k++)
			if (!strcmp(s[k].address, s[i].address) && s[k].uid == s[i].uid) {
				s[i].sharing++;
				s[i].drops += s[k].drops;
			}
		len = strlen(s[i].owner);
		if (s[i].sharing)
			snprintf(s[i].owner + len, sizeof(s[i].owner) - len, " and %d more sockets",
				 s[i].sharing);
		if (first)
			judge(d, &s[i]);
	}
}

/* /proc/net/snmp: a line of names, then a line of values. */
static void check_errors(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/net/snmp", d->pid), names[512], values[512];
	const char *second = text ? strstr(text, "\nUdp:") : NULL;
	char *n = names, *v = values, *name, *value;

	second = second ? strstr(second + 1, "\nUdp:") : NULL;
	if (second && vrb_doc_field(text, "Udp:", names, sizeof(names)) &&
	    vrb_doc_field(second + 1, "Udp:", values, sizeof(values)))
		while ((name = strsep(&n, " ")) && (value = strsep(&v, " ")))
			if (!strcmp(name, "RcvbufErrors") && atoll(value) > 0)
				vrb_doc_add(d, VRB_F_UDP_ERRORS, "{s:I, s:s}", "count",
					    (json_int_t)atoll(value), "file", "/proc/net/snmp");
	free(text);
}

void vrb_check_udp(struct vrb_doc *d)
{
	long long n, max;

	check_port(d);
	if (vrb_doc_number(d, &n, "/proc/sys/net/core/rmem_max") && n < RMEM_LOW)
		/* the kernel doubles what a program asks for */
		vrb_doc_add(d, VRB_F_RMEM_SMALL, "{s:I, s:I, s:s}", "rmem_max", (json_int_t)n,
			    "packets", (json_int_t)(2 * n / PACKET_BYTES), "file",
			    "/proc/sys/net/core/rmem_max");
	check_errors(d);
	if (vrb_doc_number(d, &n, "/proc/sys/net/netfilter/nf_conntrack_count") &&
	    vrb_doc_number(d, &max, "/proc/sys/net/netfilter/nf_conntrack_max") && max > 0 &&
	    n > max / 100 * CONNTRACK_PCT)
		vrb_doc_add(d, VRB_F_CONNTRACK_FULL, "{s:I, s:I, s:I, s:s}", "count", (json_int_t)n,
			    "max", (json_int_t)max, "twice", (json_int_t)(2 * max), "file",
			    "/proc/sys/net/netfilter/nf_conntrack_count");
}
