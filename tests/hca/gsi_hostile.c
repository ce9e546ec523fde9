/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1, from those who are not to be believed: what is no message is counted and dropped, and a
 * claim's name may be another user's, be brought nonsense, many requests at once, or events that
 * are too late.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "box.h"
#include "hca/peer.h"
#include "hca/wire_parts.h"
#include "wire/icrc.h"

#define NOBODY 65534

/* ---- what is no message */

/* By a socket of our own, with the ICRC that belongs to it. */
static void send_raw(const struct vrb_gid *to, const struct vrb_pkt *pkt, const uint8_t *body)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(VRB_ROCE_PORT)};
	struct vrb_net net = {.src = *to, .dst = *to, .ttl = 64, .df = true};
	int s = socket(AF_INET, SOCK_DGRAM, 0), pmtu = IP_PMTUDISC_DO;
	uint8_t head[VRB_NET_MAX], bytes[VRB_ROCE_PACKET_MAX];
	socklen_t n = sizeof(a);
	size_t len;

	memcpy(&a.sin_addr, to->raw + 12, 4);
	MUST(s >= 0 && !setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &pmtu, sizeof(pmtu)));
	a.sin_port = 0;
	MUST(!bind(s, (struct sockaddr *)&a, n) && !getsockname(s, (struct sockaddr *)&a, &n));
	net.sport = ntohs(a.sin_port);
	net.dport = VRB_ROCE_PORT;
	len = vrb_pkt_emit_headers(pkt, bytes);
	memcpy(bytes + len, body, pkt->len);
	memset(bytes + len + pkt->len, 0, 3);
	len += pkt->len + vrb_pkt_pad(pkt->len);
	vrb_icrc_store(
		vrb_icrc_start(head, vrb_net_emit(&net, len + VRB_ICRC_LEN, head), bytes, len),
		bytes + len);
	a.sin_port = htons(VRB_ROCE_PORT);
	MUST(sendto(s, bytes, len + VRB_ICRC_LEN, 0, (struct sockaddr *)&a, sizeof(a)) > 0);
	close(s);
}

static void counted(enum vrb_verdict v, uint64_t n)
{
	for (double end = now_s() + WAIT_MS / 1e3; box_said(v) < n; usleep(500))
		MUST(now_s() < end);
	MUST(box_said(v) == n);
}

static void bad(void)
{
	struct vrb_cm cm = {.kind = VRB_CM_RTU};
	uint8_t mad[VRB_MAD_LEN], odd[VRB_MAD_LEN];
	struct vrb_pkt pkt = box_form;
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;

	kit_own_network();
	b = box_begin(&n);
	to = box_self(&n);
	cm.remote_id = vrb_gsi_new_id(n.ctx);
	MUST(vrb_cm_emit(&cm, mad));
	pkt.qkey = 7;
	send_raw(&to, &pkt, mad);
	counted(VRB_V_DROP_QKEY, 1);
	pkt = box_form;
	pkt.pkey = 0x8001;
	send_raw(&to, &pkt, mad);
	counted(VRB_V_DROP_PKEY, 1);
	pkt = box_form;
	pkt.sqpn = 0x010002;
	send_raw(&to, &pkt, mad);
	counted(VRB_V_DROP_GSI_SOURCE, 1);
	pkt = box_form;
	pkt.op.v = VRB_TP_UD | VRB_OP_SEND_ONLY_IMM;
	send_raw(&to, &pkt, mad);
	pkt.op.v = VRB_TP_RC | VRB_OP_SEND_ONLY;
	send_raw(&to, &pkt, mad);
	counted(VRB_V_DROP_TRANSPORT, 2);
	pkt = box_form;
	for (uint32_t len = 0; len < 60; len += 5) {
		pkt.len = len;
		send_raw(&to, &pkt, mad);
	}
	counted(VRB_V_DROP_MAD, 12);
	memcpy(odd, mad, sizeof(odd));
	odd[1] = 3; /* subnet administration */
	send_raw(&to, &box_form, odd);
	counted(VRB_V_DROP_MAD, 13);
	memcpy(odd, mad, sizeof(odd));
	odd[VRB_MAD_AT_ATTRIBUTE + 1] = 0x1b;
	send_raw(&to, &box_form, odd);
	counted(VRB_V_DROP_CM_KIND, 1);
	/* a slot that nobody has, and none */
	memcpy(odd, mad, sizeof(odd));
	odd[VRB_MAD_AT_REMOTE_ID] = 0xee;
	send_raw(&to, &box_form, odd);
	odd[VRB_MAD_AT_REMOTE_ID] = 0;
	send_raw(&to, &box_form, odd);
	counted(VRB_V_CM_NO_OWNER, 2);
	/* and one that is good */
	send_raw(&to, &box_form, mad);
	box_want(b, &l, VRB_CM_RTU, cm.remote_id);
	MUST(!box_said(VRB_V_CM_NO_LISTENER));
	box_end(&n, b);
}

/* ---- who is not to be believed */

static socklen_t claim_name(struct sockaddr_un *sa, uint32_t uid, uint32_t port)
{
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1,
					    VRB_MEET_CLAIM, uid,
					    (unsigned long long)(BOX_SERVICE + port)));
}

/* Another user has bound the name: it hears nothing. */
static int squatter(int sock, void *arg)
{
	struct pollfd p = {.fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), .events = POLLIN};
	uint8_t bytes[512];
	struct sockaddr_un sa;
	socklen_t n = claim_name(&sa, 0, 1);
	int fd;

	(void)arg;
	MUST(!setgid(NOBODY) && !setuid(NOBODY));
	MUST(!bind(p.fd, (struct sockaddr *)&sa, n) && !listen(p.fd, 8));
	put_u32(sock, 0);
	(void)get_u32(sock);
	while (poll(&p, 1, 0) == 1) {
		fd = accept(p.fd, NULL, NULL);
		MUST(fd >= 0 && recv(fd, bytes, sizeof(bytes), 0) == 0);
		close(fd);
	}
	return 0;
}

static void squatted(void)
{
	struct child c;
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;
	uint32_t id;

	SKIP_FORK_OF_THREADS();
	if (geteuid())
		_exit(77); /* two users are needed */
	kit_own_network_as_root();
	child_start(&c, squatter, NULL);
	(void)get_u32(c.sock);
	b = box_begin(&n);
	to = box_self(&n);
	MUST(vrb_gsi_claim(n.ctx, BOX_SERVICE + 1) == -EADDRINUSE);
	id = box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 1, 71);
	box_want(b, &l, VRB_CM_REJ, id);
	MUST(box_said(VRB_V_LINK_STRANGER) >= 1);
	put_u32(c.sock, 0);
	child_join(&c);
	box_end(&n, b);
}

/* A process of the user brings nonsense to a claim's name: bytes of any length, or none. */
static void nonsense(void)
{
	struct vrb_meet_hello h = {
		.magic = VRB_MEET_MAGIC, .version = VRB_MEET_VERSION, .type = VRB_MEET_MAD};
	uint8_t bytes[sizeof(h) + VRB_MEET_BODY + 64];
	struct sockaddr_un sa;
	struct letter l;
	struct vrb_gid to;
	struct node n;
	struct box *b;
	socklen_t len;

	kit_own_network();
	b = box_begin(&n);
	to = box_self(&n);
	MUST(!vrb_gsi_claim(n.ctx, BOX_SERVICE + 1));
	len = claim_name(&sa, geteuid(), 1);
	for (uint32_t i = 0; i < 600; i++) {
		int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		memset(bytes, (int)i, sizeof(bytes));
		memcpy(bytes, &h, sizeof(h));
		MUST(s >= 0 && !connect(s, (struct sockaddr *)&sa, len));
		if (i % 3)
			(void)!send(s, bytes, i < sizeof(bytes) ? i : sizeof(bytes), MSG_NOSIGNAL);
		close(s);
	}
	(void)box_ask(b, &to, VRB_CM_REQ, BOX_SERVICE + 1, 81);
	box_want(b, &l, VRB_CM_REQ, 0);
	box_end(&n, b);
}

/* The descriptor of a claim that has been released is the program's, which listens on it. */
static void reused(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(sa.sun_family);
	struct node n;
	struct box *b;

	kit_own_network();
	b = box_begin(&n);
	MUST(!vrb_gsi_claim(n.ctx, BOX_SERVICE + 1));
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&sa, len) && !listen(fd, 1));
	len = sizeof(sa);
	MUST(!getsockname(fd, (struct sockaddr *)&sa, &len));
	MUST(s >= 0 && !connect(s, (struct sockaddr *)&sa, len));
	vrb_engine_lock(n.ctx->e);
	vrb_peer_on_event(n.ctx->e, VRB_EV_CLAIM, fd);
	vrb_engine_unlock(n.ctx->e);
	MUST(accept(fd, NULL, NULL) >= 0);
	box_end(&n, b);
}

/* What another process does for a request that is not its own. */
static void bring(const struct node *n, uint32_t port)
{
	const struct vrb_meet_hello h = {
		.magic = VRB_MEET_MAGIC, .version = VRB_MEET_VERSION, .type = VRB_MEET_MAD};
	const struct vrb_net net = {.src = box_self(n), .dst = box_self(n), .ttl = 64};
	const struct vrb_cm cm = {.kind = VRB_CM_REQ, .service_id = BOX_SERVICE + port};
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	uint8_t bytes[VRB_ROCE_PACKET_MAX];
	size_t len = sizeof(h) + sizeof(net);
	struct sockaddr_un sa;
	socklen_t n_sa = claim_name(&sa, geteuid(), port);

	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), &net, sizeof(net));
	len += vrb_pkt_emit_headers(&box_form, bytes + len);
	MUST(vrb_cm_emit(&cm, bytes + len));
	len += VRB_MAD_LEN;
	MUST(s >= 0 && !connect(s, (struct sockaddr *)&sa, n_sa));
	MUST(send(s, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
	close(s);
}

/* More requests come than there are places for connections that have not said what they want. */
static void burst(void)
{
	struct letter l;
	struct node n;
	struct box *b;
	int fd;

	kit_own_network();
	b = box_begin(&n);
	MUST(!vrb_gsi_claim(n.ctx, BOX_SERVICE + 1));
	vrb_engine_lock(n.ctx->e);
	fd = vrb_gsi_find_claim(n.ctx->e, BOX_SERVICE + 1)->fd;
	for (uint32_t i = 0; i < VRB_PENDING_MAX + 80; i++) {
		bring(&n, 1);
		if (i % 32 == 31)
			vrb_peer_on_event(n.ctx->e, VRB_EV_CLAIM, fd);
	}
	vrb_engine_unlock(n.ctx->e);
	for (uint32_t i = 0; i < VRB_PENDING_MAX + 80; i++)
		box_want(b, &l, VRB_CM_REQ, 0);
	box_end(&n, b);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {{"bad", bad},
						{"squatted", squatted},
						{"nonsense", nonsense},
						{"reused", reused},
						{"burst", burst}};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
