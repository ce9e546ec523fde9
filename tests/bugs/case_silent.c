/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Status 12, "transport retry counter exceeded", for every reason there is: the completion is the
 * same, the explanation names the true one, and the story of the queue pair keeps it. By shared
 * memory, and by the wire (VERBENA_LINK=udp, or what a fault plan or a namespace makes of it).
 */
#include "kit.h"

#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUICK .timeout = 12, .retry_cnt = 2 /* 17 ms, three tries */

/* A SEND of len bytes from A that ends in status 12, for the reason said (with text). */
static void want_reason(struct k_pair *p, uint32_t len, const char *said, const char *text)
{
	struct k_mr mine = k_good(&p->a, 0, len);
	struct k_wr wr = k_wr_send(1, k_whole(&mine));

	K_WANT_INT(k_send(&p->a, &wr), 0);
	K_WANT_WC(&p->a, K_SQ, 1, IBV_WC_RETRY_EXC_ERR);
	K_WANT_SAID(&p->a, said, text);
}

/* Both ends have heard each other. */
static void talk(struct k_pair *p, uint32_t len)
{
	struct k_mr mine = k_good(&p->a, 40, len), theirs = k_good(&p->b, 40, len);
	struct k_wr wr = k_wr_send(100, k_whole(&theirs));

	K_WANT_INT(k_recv(&p->b, &wr), 0);
	wr = k_wr_send(10, k_whole(&mine));
	K_WANT_INT(k_send(&p->a, &wr), 0);
	K_WANT_WC(&p->a, K_SQ, 10, IBV_WC_SUCCESS);
}

static void not_ready(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_opts ob = {.stop = c->i == IBV_QPS_INIT ? IBV_QPS_INIT : K_STAY};
	struct k_pair p;

	k_pair(&p, &oa, &ob);
	want_reason(&p, 64, "retry_not_ready", c->i == IBV_QPS_INIT ? "INIT" : "RESET");
}

/* The peer's own first error is named here, too. */
static void in_error(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_mr theirs;
	struct k_pair p;
	struct k_wr wr;

	k_pair(&p, &oa, NULL);
	if (!c->i) {
		K_WANT_INT(k_modify(&p.b, IBV_QPS_ERR), 0);
		want_reason(&p, 64, "retry_qp_error", "qp_moved");
		return;
	}
	theirs = k_good(&p.b, 0, 64);
	wr = k_wr_send(1, (struct k_sge){theirs.addr, 64, theirs.lkey ^ 0x5500});
	K_WANT_INT(k_send(&p.b, &wr), 0);
	K_WANT_WC(&p.b, K_SQ, 1, IBV_WC_LOC_PROT_ERR);
	want_reason(&p, 64, "retry_qp_error", "lkey_unknown");
}

static void destroyed(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_pair p;

	k_pair(&p, &oa, NULL);
	if (c->i)
		talk(&p, 64);
	k_destroy_qp(&p.b);
	want_reason(&p, 64, "retry_no_qp", NULL);
}

static void no_process(const struct k_case *c)
{
	struct k_opts oa = {QUICK, .dest_qpn = 0xee1234};
	struct k_pair p;

	(void)c;
	k_pair(&p, &oa, NULL);
	want_reason(&p, 64, "peer_absent", "0xee1234");
}

/* Another address of this host, at which no Verbena listens. */
static void no_listener(const struct k_case *c)
{
	struct k_opts oa = {QUICK, .dest_v4 = 0x7f00004d};
	struct k_pair p;

	(void)c;
	k_own_network();
	setenv("VERBENA_LINK", "udp", 1);
	k_pair(&p, &oa, NULL);
	want_reason(&p, 64, "retry_no_listener", NULL);
}

static void other_peer(const struct k_case *c)
{
	struct k_opts oa = {QUICK}, ob = {.dest_qpn = 0xee1234};
	struct k_pair p;

	(void)c;
	k_pair(&p, &oa, &ob);
	want_reason(&p, 64, "retry_other_peer", NULL);
}

static void other_type(const struct k_case *c)
{
	struct k_opts oa = {QUICK}, ob = {.type = IBV_QPT_UC};
	struct k_pair p;

	(void)c;
	k_pair(&p, &oa, &ob);
	want_reason(&p, 64, "retry_type", "type UC");
}

/* What this end begins with is not what that one expects: dropped as a duplicate, or answered with
 * a NAK for ever. */
static void wrong_psn(const struct k_case *c)
{
	struct k_opts oa = {QUICK}, ob = {.rq_psn = (uint32_t)c->i};
	struct k_pair p;

	k_pair(&p, &oa, &ob);
	want_reason(&p, 64, "retry_psn", "0xfffffe");
}

static void gone(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_pair p;

	(void)c;
	k_two_processes = true;
	k_pair(&p, &oa, NULL);
	talk(&p, 64);
	kill(p.b.pid, SIGKILL);
	want_reason(&p, 64, "peer_gone", NULL);
}

static void stopped(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_pair p;

	(void)c;
	k_two_processes = true;
	k_pair(&p, &oa, NULL);
	talk(&p, 64);
	kill(p.b.pid, SIGSTOP);
	want_reason(&p, 64, "retry_stopped", NULL);
	kill(p.b.pid, SIGKILL);
}

/* Something has the port and says nothing, as an adapter does that has no such queue pair. */
static void foreign(const struct k_case *c)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(4791),
				.sin_addr.s_addr = htonl(0x0a090909)};
	struct k_opts oa = {QUICK, .dest_v4 = 0x0a090909};
	struct k_pair p;
	int s;

	(void)c;
	k_own_network();
	if (system("ip route add local 10.9.9.0/24 dev lo 2>/dev/null"))
		k_skip("no `ip`, or it may not set a route");
	s = socket(AF_INET, SOCK_DGRAM, 0);
	K_CHECK(!bind(s, (struct sockaddr *)&a, sizeof(a)));
	k_pair(&p, &oa, NULL);
	want_reason(&p, 64, "retry_untold", NULL);
}

/* Runs a line of shell in the far end's namespace; false when that fails. */
static bool far_shell(const char *line)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "nsenter --net=%s sh -c \"%s\" 2>/dev/null", k_far_network,
		 line);
	return !system(whole);
}

/* Lives as long as the case, for its network namespace. */
static pid_t hold_network(void)
{
	pid_t holder;
	int ready[2];
	char c;

	K_CHECK(!pipe(ready));
	holder = fork();
	K_CHECK(holder >= 0);
	if (!holder) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		k_skip("no second network namespace");
	close(ready[0]);
	return holder;
}

/* Two networks of one cable: v0 here and v1 in the far end's namespace, with one address each. */
static void make_cable(const char *here, const char *there)
{
	static char path[64];
	char line[384];
	pid_t holder;

	k_own_network();
	holder = hold_network();
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)holder);
	k_far_network = path;
	k_two_processes = true;
	snprintf(line, sizeof(line),
		 "(ip link set lo down; ip link add v0 type veth peer name v1 netns %d && "
		 "ip link set v0 addrgenmode none up && ip addr add %s dev v0) 2>/dev/null",
		 (int)holder, here);
	if (system(line))
		k_skip("no `ip`, or no veth");
	snprintf(line, sizeof(line), "ip link set v1 addrgenmode none up && ip addr add %s dev v1",
		 there);
	if (!far_shell(line))
		k_skip("no `nsenter`");
}

static void make_v4_cable(void)
{
	make_cable("10.9.9.1/24", "10.9.9.2/24");
}

/* The far host takes what comes to RoCE's port no longer, or never did. */
static void drop_4791(void)
{
	if (!far_shell("nft 'add table ip t; add chain ip t i { type filter hook input priority 0; "
		       "}; add rule ip t i udp dport 4791 drop'"))
		k_skip("no `nft`, or the kernel has no nf_tables");
}

static void no_host(const struct k_case *c)
{
	struct k_opts oa = {QUICK, .dest_v4 = 0x0a090909};
	struct k_pair p;

	make_v4_cable();
	if (c->i)
		oa.dest_v4 = 0xc0000207; /* behind a router that is not there */
	if (c->i && system("ip route add 192.0.2.0/24 via 10.9.9.254"))
		k_skip("no route can be set");
	k_pair(&p, &oa, NULL);
	want_reason(&p, 64, "retry_no_host", "113");
}

static void dropped(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_pair p;

	make_v4_cable();
	if (c->i) /* who is busy must not fail before */
		oa.timeout = 17;
	k_pair(&p, &oa, NULL);
	if (c->i)
		talk(&p, 64);
	drop_4791();
	want_reason(&p, 64, c->said, NULL);
}

/* The GIDs of both ends are link-local (fe80): they work, and when nobody has the peer's any more
 * the network says so. */
static void link_local(const struct k_case *c)
{
	struct k_opts oa = {QUICK};
	struct k_pair p;

	make_cable("fe80::9:1/64 nodad", "fe80::9:2/64 nodad");
	k_pair(&p, c->i ? &oa : NULL, NULL);
	K_CHECK(p.a.self.gid.raw[0] == 0xfe && p.b.self.gid.raw[0] == 0xfe);
	if (!c->i) {
		talk(&p, 64);
		return;
	}
	K_CHECK(far_shell("ip -6 addr del fe80::9:2/64 dev v1"));
	want_reason(&p, 64, "retry_no_host", "113");
}

/* Faults on the way, by a plan: c->said is the reason, c->i the length of the message. */
struct fault {
	const char *plan;
	bool talks; /* a short message gets through before */
};

static const struct fault faults[] = {
	{"qp 1 tx send loss 100%", false},
	{"qp 1 tx blackhole above 600", true},
	{"qp 1 rx ack loss 100%", false},
};

static void by_fault(const struct k_case *c)
{
	const struct fault *f = &faults[c->j];
	struct k_opts oa = {QUICK};
	struct k_mr theirs;
	struct k_pair p;
	struct k_wr wr;

	setenv("VERBENA_FAULTS", f->plan, 1);
	k_pair(&p, &oa, NULL);
	if (f->talks)
		talk(&p, 64);
	theirs = k_good(&p.b, 0, 4096);
	wr = k_wr_send(101, k_whole(&theirs));
	K_WANT_INT(k_recv(&p.b, &wr), 0);
	want_reason(&p, (uint32_t)c->i, c->said, NULL);
}

/* clang-format off */
static const struct k_case cases[] = {
	{"not_ready_reset", not_ready, IBV_QPS_RESET, 0, NULL, 0, false},
	{"not_ready_init", not_ready, IBV_QPS_INIT, 0, NULL, 0, false},
	{"in_error_by_its_program", in_error, 0, 0, NULL, 0, false},
	{"in_error_for_a_bad_lkey", in_error, 1, 0, NULL, 0, false},
	{"no_such_qp", destroyed, 0, 0, NULL, 0, false},
	{"qp_destroyed_after_traffic", destroyed, 1, 0, NULL, 0, false},
	{"no_process_has_it", no_process, 0, 0, NULL, 0, false},
	{"nothing_listens", no_listener, 0, 0, NULL, 0, true},
	{"connected_to_another", other_peer, 0, 0, NULL, 0, false},
	{"type_differs", other_type, 0, 0, NULL, 0, false},
	{"psn_behind", wrong_psn, 0x1000, 0, NULL, 0, false},
	{"psn_ahead", wrong_psn, 0xfffff0, 0, NULL, 0, false},
	{"process_gone", gone, 0, 0, NULL, 0, true},
	{"process_stopped", stopped, 0, 0, NULL, 0, true},
	{"packets_lost", by_fault, 64, 0, "retry_lost", 0, true},
	{"mtu_black_hole", by_fault, 1024, 1, "retry_mtu", 0, true},
	{"acks_lost", by_fault, 64, 2, "retry_acks_lost", 0, true},
	{"no_host_answers", no_host, 0, 0, NULL, 0, true},
	{"no_router_answers", no_host, 1, 0, NULL, 0, true},
	{"link_local_gids", link_local, 0, 0, NULL, 0, true},
	{"link_local_gone", link_local, 1, 0, NULL, 0, true},
	{"dropped_after_traffic", dropped, 1, 0, "retry_silence", 0, true},
	{"dropped_from_the_start", dropped, 0, 0, "retry_untold", 0, true},
	{"cannot_be_told", foreign, 0, 0, NULL, 0, true},
};
/* clang-format on */

const struct k_group k_silent_group = {"silent", cases, sizeof(cases) / sizeof(cases[0])};
