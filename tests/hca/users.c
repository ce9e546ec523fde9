/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	root's process, 127.0.0.1  <== wire ==>  nobody's process, 127.0.0.2 (or the same address)
 *
 * Two users of one host: their slots have different numbers, their queue pairs talk by the wire,
 * each from an address of its own; on the same address the second is told why not. Needs two users,
 * so only root can try; in a network namespace.
 */
#include "kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "hca/wire.h"

#define NOBODY 65534

struct user {
	uid_t uid;
	uint8_t address, peer; /* last byte of 127.0.0.x */
	bool is_refused;
};

static void add_address(const char *name, uint32_t host)
{
	struct ifreq r = {.ifr_flags = IFF_UP | IFF_RUNNING};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	strcpy(r.ifr_name, "lo");
	MUST(s >= 0 && !ioctl(s, SIOCSIFFLAGS, &r));
	strcpy(r.ifr_name, name);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	MUST(!ioctl(s, SIOCSIFADDR, &r));
	close(s);
}

static void own_network(void)
{
	if (geteuid() || unshare(CLONE_NEWNET))
		_exit(77);
	add_address("lo", 0x7f000001);
	add_address("lo:1", 0x7f000002);
}

static struct vrb_gid gid_of(uint8_t last)
{
	return (struct vrb_gid){{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = last}};
}

static int connect_from(struct node *n, struct vrb_hqp *q, const struct user *u, vrb_qpn dqpn)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_RTR,
				.path_mtu = 5,
				.dest_qpn = dqpn,
				.min_rnr_timer = 1,
				.timeout = 14,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.dgid = gid_of(u->peer)};
	struct vrb_gid self = gid_of(u->address);
	int err;

	while (memcmp(&n->ctx->dev->gid[a.sgid_index].gid, &self, sizeof(self)))
		MUST(++a.sgid_index < VRB_GIDS_MAX);
	err = vrb_hqp_modify(q, &a,
			     VRB_QPA_STATE | VRB_QPA_AV | VRB_QPA_PATH_MTU | VRB_QPA_DEST_QPN |
				     VRB_QPA_RQ_PSN | VRB_QPA_MIN_RNR_TIMER);
	a.state = VRB_QPS_RTS;
	return err ? err
		   : vrb_hqp_modify(q, &a,
				    VRB_QPA_STATE | VRB_QPA_TIMEOUT | VRB_QPA_RETRY_CNT |
					    VRB_QPA_RNR_RETRY | VRB_QPA_SQ_PSN);
}

static int user(int sock, void *arg)
{
	const struct user *u = arg;
	struct vrb_hqp *q;
	struct node n;
	vrb_qpn dqpn;
	int err;

	MUST(!setgid(u->uid) && !setuid(u->uid));
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	node_recv(&n, q, 2);
	put_u32(sock, vrb_hqp_qpn(q));
	dqpn = get_u32(sock);
	MUST(dqpn >> VRB_QPN_INDEX_BITS != n.ctx->e->slot);
	err = connect_from(&n, q, u, dqpn);
	put_u32(sock, (uint32_t)-err);
	(void)get_u32(sock);
	if (u->is_refused) {
		MUST(err == -EADDRINUSE);
		MUST(vrb_engine_current->stats->verdict[VRB_V_LINK_PORT_TAKEN] == 1);
	} else {
		MUST(!err && q->wire.addr);
	}
	if (u->address != u->peer) {
		node_send(&n, q, 1, 3000);
		for (int i = 0; i < 2; i++) {
			struct vrb_wc wc;

			MUST(node_has_wc(&n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
		}
	}
	put_u32(sock, 0);
	(void)get_u32(sock);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
	return 0;
}

/* The second connects when the first has. */
static void run(struct user *a, struct user *b)
{
	struct child c[2];
	uint32_t qpn[2];

	own_network();
	child_start(&c[0], user, a);
	child_start(&c[1], user, b);
	for (int i = 0; i < 2; i++)
		qpn[i] = get_u32(c[i].sock);
	for (int i = 0; i < 2; i++) {
		put_u32(c[i].sock, qpn[1 - i]);
		(void)get_u32(c[i].sock);
	}
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++)
			put_u32(c[i].sock, 0);
		for (int i = 0; i < 2 && round == 0; i++)
			(void)get_u32(c[i].sock);
	}
	for (int i = 0; i < 2; i++)
		child_join(&c[i]);
}

static void two_addresses(void)
{
	run(&(struct user){0, 1, 2, false}, &(struct user){NOBODY, 2, 1, false});
}

static void one_address(void)
{
	run(&(struct user){0, 1, 1, false}, &(struct user){NOBODY, 1, 1, true});
}

/* No process of anybody has the number. */
static void absent(void)
{
	struct vrb_hqp *q;
	struct node n;

	own_network();
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	MUST(!node_connect(q, 0xee1234));
	MUST(vrb_engine_current->stats->verdict[VRB_V_PEER_ABSENT] == 1);
	node_send(&n, q, 1, 10);
	MUST(node_wc(&n, 1) == VRB_WC_RETRY_EXC_ERR);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"two_addresses", two_addresses},
		{"one_address", one_address},
		{"absent", absent},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
