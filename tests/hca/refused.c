/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusals that need a network namespace, another user or all slots: each must be counted under its
 * verdict. Every test makes a user and network namespace of its own with loopback in it; where that
 * is not allowed it is skipped.
 */
#include "kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SMALL_MTU 1500

static uint64_t counted(enum vrb_verdict v)
{
	return vrb_engine_current->stats->verdict[v];
}

static void set_mtu(int mtu)
{
	struct ifreq r = {.ifr_name = "lo"};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	r.ifr_mtu = mtu;
	MUST(s >= 0 && !ioctl(s, SIOCSIFMTU, &r));
	close(s);
}

static int bind_name(uint32_t slot)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, VRB_MEET_NAME,
			 (unsigned int)geteuid(), slot);

	MUST(s >= 0);
	return bind(s, (struct sockaddr *)&sa,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

/* All names are taken: opening says so. (Counted nowhere: there is no engine; it is the errno.) */
static void no_slot(void)
{
	struct vrb_hctx *ctx;

	kit_own_network();
	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++)
		MUST(!bind_name(slot));
	MUST(node_try_open(&ctx) == -EUSERS); /* verdict link_no_slot */
}

/* A process of another user knocks: it is not let in. Needs two users, so only root can try. */
static void stranger(void)
{
	struct node n;
	uint32_t slot;
	pid_t pid;
	int status;

	if (geteuid())
		_exit(77);
	node_open(&n, false);
	slot = vrb_engine_current->slot;
	pid = fork();
	if (!pid) {
		struct vrb_meet_hello h = {.magic = VRB_MEET_MAGIC,
					   .version = VRB_MEET_VERSION,
					   .type = VRB_MEET_STATS};
		int s = rogue_connect(slot); /* by the name of root's slot, as somebody else */

		close(s);
		MUST(!setgid(65534) && !setuid(65534));
		s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		{
			struct sockaddr_un sa = {.sun_family = AF_UNIX};
			int len = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, VRB_MEET_NAME,
					   0u, slot);

			MUST(!connect(s, (struct sockaddr *)&sa,
				      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
						  (size_t)len)));
		}
		(void)!write(s, &h, sizeof(h));
		MUST(rogue_heard_end(s, WAIT_MS));
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST(counted(VRB_V_LINK_STRANGER) == 1);
	node_close(&n);
}

/* Another program holds the port of the only address. A datagram queue pair may never need it; it
 * is said when an address handle or a connection does. */
static void port_taken(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(4791),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct vrb_av av = {0};
	struct vrb_hqp *q;
	struct node n;
	int s;

	kit_own_network();
	s = socket(AF_INET, SOCK_DGRAM, 0);
	MUST(s >= 0 && !bind(s, (struct sockaddr *)&sa, sizeof(sa)));
	MUST(!setenv("VERBENA_LINK", "udp", 1));
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_UD);
	MUST(counted(VRB_V_LINK_PORT_TAKEN) == 0);
	memcpy(av.dgid.raw + 10, "\xff\xff\x7f\0\0\1", 6);
	MUST(vrb_hah_create(n.pd, &av) == -EADDRINUSE);
	MUST(counted(VRB_V_LINK_PORT_TAKEN) == 1);
	MUST(!vrb_hqp_destroy(q));
	q = node_qp(&n, VRB_QPT_RC);
	MUST(node_connect(q, 0x123456));
	MUST(counted(VRB_V_LINK_PORT_TAKEN) == 2);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

/* A path MTU of 4096 cannot cross an interface of 1500. */
static void wire_mtu(void)
{
	struct vrb_hqp *q;
	struct node n;

	kit_own_network();
	set_mtu(SMALL_MTU);
	MUST(!setenv("VERBENA_LINK", "udp", 1));
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	MUST(node_connect(q, 0x123456) == -EINVAL);
	MUST(counted(VRB_V_MODIFY_WIRE_MTU) == 1);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

/* The interface shrinks under a connected queue pair: what cannot be sent is counted, and the queue
 * pair ends as if it were lost. */
static void wire_send(void)
{
	struct vrb_hqp *q;
	struct node n;

	kit_own_network();
	MUST(!setenv("VERBENA_LINK", "udp", 1));
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	MUST(!node_connect(q, vrb_hqp_qpn(q)));
	set_mtu(SMALL_MTU);
	node_send(&n, q, 1, 4000);
	for (int i = 0; i < WAIT_MS && !counted(VRB_V_LINK_SEND); i++)
		usleep(1000);
	MUST(counted(VRB_V_LINK_SEND) >= 1);
	MUST(node_wc(&n, 1) == VRB_WC_RETRY_EXC_ERR && counted(VRB_V_RETRY_EXC) == 1);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"no_slot", no_slot},	{"stranger", stranger},	  {"port_taken", port_taken},
		{"wire_mtu", wire_mtu}, {"wire_send", wire_send},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
