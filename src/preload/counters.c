/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the counters pages of the other processes: connect to each slot name, ask STATS, receive a
 * memfd, copy the page out of it with pread (never mapped: a liar may shrink the file). Only
 * answers of processes of this user count. The sums of one sweep serve for a tenth of a second, so
 * that `cat counters/<star>` asks once.
 */
#include "preload/counters.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/meet.h"
#include "verbena/stats.h"

#define ANSWER_US 50000			/* one process may take so long */
#define SWEEP_NS  (500 * VRB_NS_PER_MS) /* all of them together */
#define FRESH_NS  (100 * VRB_NS_PER_MS)
#define STATS_FDS 3

#define AT(field) (int)offsetof(struct vrb_stats_device, field)

/* clang-format off */
const struct vrb_counter vrb_counters[] = {
	{"counters", "port_xmit_data", AT(tx_bytes), 4},
	{"counters", "port_rcv_data", AT(rx_bytes), 4},
	{"counters", "port_xmit_packets", AT(tx_packets), 1},
	{"counters", "port_rcv_packets", AT(rx_packets), 1},
	{"counters", "unicast_xmit_packets", AT(tx_packets), 1},
	{"counters", "unicast_rcv_packets", AT(rx_packets), 1},
	{"counters", "multicast_xmit_packets", AT(tx_multicast), 1},
	{"counters", "multicast_rcv_packets", AT(rx_multicast), 1},
	{"counters", "symbol_error", -1, 1},
	{"counters", "link_error_recovery", -1, 1},
	{"counters", "link_downed", -1, 1},
	{"counters", "port_rcv_errors", -1, 1},
	{"counters", "port_rcv_remote_physical_errors", -1, 1},
	{"counters", "port_rcv_switch_relay_errors", -1, 1},
	{"counters", "port_rcv_constraint_errors", -1, 1},
	{"counters", "port_xmit_discards", -1, 1},
	{"counters", "port_xmit_constraint_errors", -1, 1},
	{"counters", "port_xmit_wait", -1, 1},
	{"counters", "local_link_integrity_errors", -1, 1},
	{"counters", "excessive_buffer_overrun_errors", -1, 1},
	{"counters", "VL15_dropped", -1, 1},
	{"hw_counters", "sent_pkts", AT(tx_packets), 1},
	{"hw_counters", "rcvd_pkts", AT(rx_packets), 1},
	{"hw_counters", "sent_bytes", AT(tx_bytes), 1},
	{"hw_counters", "rcvd_bytes", AT(rx_bytes), 1},
	{"hw_counters", "retransmits", AT(retransmits), 1},
	{"hw_counters", "local_ack_timeout_err", AT(timeouts), 1},
	{"hw_counters", "out_of_seq_request", AT(sequence_naks_sent), 1},
	{"hw_counters", "rcvd_seq_err", AT(sequence_naks_received), 1},
	{"hw_counters", "send_rnr_err", AT(rnr_naks_sent), 1},
	{"hw_counters", "rcvd_rnr_err", AT(rnr_naks_received), 1},
	{"hw_counters", "silence_probes", AT(probes), 1},
	{"hw_counters", "np_ecn_marked_roce_packets", AT(ecn_marked), 1},
	{"hw_counters", "np_cnp_sent", AT(cnps_sent), 1},
	{"hw_counters", "rp_cnp_handled", AT(cnps_handled), 1},
	{"hw_counters", "active_qps", AT(qps), 1},
	{"hw_counters", "active_cqs", AT(cqs), 1},
	{"hw_counters", "active_mrs", AT(mrs), 1},
	{"hw_counters", "active_srqs", AT(srqs), 1},
};
/* clang-format on */
const unsigned vrb_n_counters = sizeof(vrb_counters) / sizeof(vrb_counters[0]);

/* Sums by device name; all device structs consist of 64-bit numbers behind the name. */
struct totals {
	unsigned n;
	struct vrb_stats_device device[VRB_STATS_DEVICES];
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct totals cache;
static vrb_ns cache_time;
static pid_t cache_pid;

static vrb_ns now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vrb_ns)t.tv_sec * VRB_NS_PER_S + (vrb_ns)t.tv_nsec;
}

static bool is_mine(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid();
}

/* Connects to a slot and returns the memfd of its owner's page, or -1. */
static int ask(uint32_t slot)
{
	struct vrb_meet_hello hello = {.magic = VRB_MEET_MAGIC,
				       .version = VRB_MEET_VERSION,
				       .type = VRB_MEET_STATS,
				       .pid = (uint32_t)getpid()};
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(STATS_FDS * sizeof(int))];
	} c;
	struct timeval limit = {.tv_usec = ANSWER_US};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[STATS_FDS], n = 0;
	int name = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, VRB_MEET_NAME,
			    (unsigned)geteuid(), (unsigned)slot);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)name);

	if (sock < 0)
		return -1;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(sock, (struct sockaddr *)&sa, len) || !is_mine(sock) ||
	    sendmsg(sock, &m, MSG_NOSIGNAL) != (ssize_t)sizeof(hello))
		goto out;
	m.msg_control = c.buf;
	m.msg_controllen = sizeof(c.buf);
	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) <= 0)
		goto out;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(h), (size_t)n * sizeof(int));
	}
out:
	close(sock);
	while (n > 1)
		close(fds[--n]);
	return n ? fds[0] : -1;
}

static void add_device(struct totals *t, const struct vrb_stats_device *d)
{
	const uint64_t *from = (const uint64_t *)((const char *)d + sizeof(d->name));
	uint64_t *to;
	unsigned i = 0;

	while (i < t->n && strncmp(t->device[i].name, d->name, sizeof(d->name)))
		i++;
	if (i == VRB_STATS_DEVICES)
		return;
	if (i == t->n) {
		t->n++;
		memset(&t->device[i], 0, sizeof(t->device[i]));
		memcpy(t->device[i].name, d->name, sizeof(d->name));
	}
	to = (uint64_t *)((char *)&t->device[i] + sizeof(d->name));
	for (size_t k = 0; k < (sizeof(*d) - sizeof(d->name)) / sizeof(uint64_t); k++)
		to[k] += from[k];
}

static void sweep(struct totals *t)
{
	vrb_ns until = now_ns() + SWEEP_NS;

	t->n = 0;
	for (uint32_t slot = 1; slot <= VRB_SLOTS && now_ns() < until; slot++) {
		struct vrb_stats_page page;
		int fd = ask(slot);

		if (fd < 0)
			continue;
		if (pread(fd, &page, sizeof(page), 0) == (ssize_t)sizeof(page) &&
		    page.magic == VRB_STATS_MAGIC && page.size == sizeof(page)) {
			for (uint32_t i = 0; i < page.n_devices && i < VRB_STATS_DEVICES; i++)
				add_device(t, &page.device[i]);
		}
		close(fd);
	}
}

static uint64_t pick(const struct totals *t, const struct vrb_counter *c, const char *device)
{
	for (unsigned i = 0; i < t->n; i++) {
		uint64_t v;

		if (strncmp(t->device[i].name, device, sizeof(t->device[i].name)))
			continue;
		memcpy(&v, (const char *)&t->device[i] + c->offset, sizeof(v));
		return v / c->unit;
	}
	return 0;
}

const struct vrb_counter *vrb_counter_find(const char *dir, size_t dir_len, const char *name)
{
	for (unsigned i = 0; i < vrb_n_counters; i++) {
		const struct vrb_counter *c = &vrb_counters[i];

		if (strlen(c->dir) == dir_len && !memcmp(c->dir, dir, dir_len) &&
		    !strcmp(c->name, name))
			return c;
	}
	return NULL;
}

uint64_t vrb_counter_read(const struct vrb_counter *c, const char *device)
{
	int saved = errno;
	struct totals own;
	uint64_t value;

	if (c->offset < 0)
		return 0;
	/* A lock that is taken (perhaps by a thread that a fork left behind) is not waited for. */
	if (!pthread_mutex_trylock(&cache_lock)) {
		if (cache_pid != getpid() || now_ns() - cache_time > FRESH_NS) {
			sweep(&cache);
			cache_time = now_ns();
			cache_pid = getpid();
		}
		value = pick(&cache, c, device);
		pthread_mutex_unlock(&cache_lock);
	} else {
		sweep(&own);
		value = pick(&own, c, device);
	}
	errno = saved;
	return value;
}
