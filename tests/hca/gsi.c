/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 of several processes on one address, 127.0.0.1: requests reach the process that has claimed
 * their service id, everything else the owner of the communication id, none another; where nobody
 * listens they are refused; what is no message is counted and dropped. tests/e2e/gsi kills members.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/pcapng.h"
#include "box.h"
#include "hca/peer.h"
#include "hca/wire_parts.h"
#include "kit.h"
#include "wire/icrc.h"

#define SERVICE	    0x0000000001060000ull /* + port, as rdma_cm has it */
#define NOBODY	    65534
#define QUIET_MS    100 /* what should not come has not come by then */
#define ALL_FOR_ONE 40u

static struct vrb_gid self_of(const struct node *n)
{
	return n->ctx->dev->gid[0].gid;
}

static struct vrb_wire_addr *addr_of(const struct node *n)
{
	struct vrb_gid self = self_of(n);

	return vrb_wire_find(n->ctx->e->wire, &self);
}

static struct box *open_box(struct node *n)
{
	node_open(n, false);
	return box_open(n->ctx);
}

static void close_box(struct node *n, struct box *b)
{
	struct letter l;

	MUST(!box_take(b, &l, 0));
	box_close(b);
	node_close(n);
}

static void want(struct box *b, struct letter *l, enum vrb_cm_kind kind, uint32_t remote_id)
{
	MUST(box_take(b, l, WAIT_MS));
	MUST(l->cm.kind == kind && l->cm.remote_id == remote_id);
}

/* ---- nobody listens */

static void refused(void)
{
	struct letter l;
	struct vrb_gid to;
	struct node n;
	struct box *b;
	uint32_t id;

	kit_own_network();
	b = open_box(&n);
	to = self_of(&n);
	id = box_ask(b, &to, VRB_CM_REQ, SERVICE + 7174, 11);
	want(b, &l, VRB_CM_REJ, id);
	MUST(l.cm.reason == VRB_CM_REJ_SERVICE_ID && l.cm.about == VRB_CM_ABOUT_REQ);
	MUST(l.cm.tid == 11 && !l.cm.local_id);
	id = box_ask(b, &to, VRB_CM_SIDR_REQ, SERVICE + 7175, 12);
	want(b, &l, VRB_CM_SIDR_REP, id);
	MUST(l.cm.status == VRB_CM_SIDR_NO_SERVICE && l.cm.service_id == SERVICE + 7175);
	MUST(box_said(VRB_V_CM_NO_LISTENER) == 2);
	close_box(&n, b);
}

/* A packet as if it had come; len of what is behind the headers. */
static bool give(struct node *n, const struct vrb_pkt *form, const uint8_t *body, bool from_socket)
{
	struct vrb_udp_packet p = {.net = {.src = self_of(n), .dst = self_of(n), .ttl = 64}};
	uint8_t bytes[VRB_ROCE_PACKET_MAX];
	struct vrb_pkt pkt;
	size_t len = vrb_pkt_emit_headers(form, bytes);
	bool done;

	memcpy(bytes + len, body, form->len);
	p.bytes = bytes;
	p.len = (uint32_t)len + form->len;
	MUST(vrb_pkt_parse(p.bytes, p.len, &pkt, NULL) == VRB_OK);
	done = vrb_gsi_take(n->ctx->e, addr_of(n), &p, &pkt, from_socket);
	return done;
}

static const struct vrb_pkt form = {.op.v = VRB_TP_UD | VRB_OP_SEND_ONLY,
				    .pkey = 0xffff,
				    .dqpn = VRB_GSI_QPN,
				    .qkey = VRB_GSI_QKEY,
				    .sqpn = VRB_GSI_QPN,
				    .len = VRB_MAD_LEN};

/* A scan is answered so far, and no further. */
static void flood(void)
{
	struct vrb_cm cm = {.kind = VRB_CM_REQ, .local_id = 0x12345678, .service_id = SERVICE};
	uint8_t mad[VRB_MAD_LEN];
	uint64_t answered, not ;
	struct node n;
	struct box *b;

	kit_own_network();
	b = open_box(&n);
	MUST(vrb_cm_emit(&cm, mad));
	vrb_engine_lock(n.ctx->e); /* one second, as nobody looks at the clock meanwhile */
	for (uint32_t i = 0; i < 1500; i++)
		MUST(give(&n, &form, mad, true));
	answered = box_said(VRB_V_CM_NO_LISTENER);
	not = box_said(VRB_V_CM_UNANSWERED);
	vrb_engine_unlock(n.ctx->e);
	MUST(answered == 1000 && not == 500);
	box_close(b); /* of the answers, which are for an id that nobody has */
	node_close(&n);
}

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
	struct vrb_pkt pkt = form;
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;

	kit_own_network();
	b = open_box(&n);
	to = self_of(&n);
	cm.remote_id = vrb_gsi_new_id(n.ctx);
	MUST(vrb_cm_emit(&cm, mad));
	pkt.qkey = 7;
	send_raw(&to, &pkt, mad);
	counted(VRB_V_DROP_QKEY, 1);
	pkt = form;
	pkt.pkey = 0x8001;
	send_raw(&to, &pkt, mad);
	counted(VRB_V_DROP_PKEY, 1);
	pkt = form;
	pkt.sqpn = 0x010002;
	send_raw(&to, &pkt, mad);
	counted(VRB_V_DROP_GSI_SOURCE, 1);
	pkt = form;
	pkt.op.v = VRB_TP_UD | VRB_OP_SEND_ONLY_IMM;
	send_raw(&to, &pkt, mad);
	pkt.op.v = VRB_TP_RC | VRB_OP_SEND_ONLY;
	send_raw(&to, &pkt, mad);
	counted(VRB_V_DROP_TRANSPORT, 2);
	pkt = form;
	for (uint32_t len = 0; len < 60; len += 5) {
		pkt.len = len;
		send_raw(&to, &pkt, mad);
	}
	counted(VRB_V_DROP_MAD, 12);
	memcpy(odd, mad, sizeof(odd));
	odd[1] = 3; /* subnet administration */
	send_raw(&to, &form, odd);
	counted(VRB_V_DROP_MAD, 13);
	memcpy(odd, mad, sizeof(odd));
	odd[VRB_MAD_AT_ATTRIBUTE + 1] = 0x1b;
	send_raw(&to, &form, odd);
	counted(VRB_V_DROP_CM_KIND, 1);
	/* a slot that nobody has, and none */
	memcpy(odd, mad, sizeof(odd));
	odd[VRB_MAD_AT_REMOTE_ID] = 0xee;
	send_raw(&to, &form, odd);
	odd[VRB_MAD_AT_REMOTE_ID] = 0;
	send_raw(&to, &form, odd);
	counted(VRB_V_CM_NO_OWNER, 2);
	/* and one that is good */
	send_raw(&to, &form, mad);
	want(b, &l, VRB_CM_RTU, cm.remote_id);
	MUST(!box_said(VRB_V_CM_NO_LISTENER));
	close_box(&n, b);
}

/* ---- claims */

enum order { CLAIM = 1, RELEASE, TAKE, ANSWER, CARRIED, END };

/* Packets that this process has carried to others. */
static uint32_t n_carried(struct vrb_engine *e)
{
	uint32_t n = 0;

	vrb_engine_lock(e);
	for (uint32_t slot = 1; slot <= VRB_SLOTS; slot++)
		if (e->peer[slot] && e->peer[slot]->tx_open)
			n += (uint32_t)e->peer[slot]->tx.head;
	vrb_engine_unlock(e);
	return n;
}

/* A member does what it is told: an order, and a port or a word. */
static int member(int sock, void *arg)
{
	struct letter l = {0};
	struct node n;
	struct box *b = open_box(&n);

	(void)arg;
	put_u32(sock, n.ctx->e->slot);
	for (;;) {
		uint32_t order = get_u32(sock), what = get_u32(sock), id;

		switch (order) {
		case CLAIM:
			put_u32(sock, (uint32_t)-vrb_gsi_claim(n.ctx, SERVICE + what));
			break;
		case RELEASE:
			vrb_gsi_release(n.ctx, SERVICE + what);
			put_u32(sock, 0);
			break;
		case TAKE: /* what: ms; 0 back: nothing came */
			put_u32(sock, box_take(b, &l, (int)what) ? box_word(&l) : 0);
			break;
		case CARRIED:
			put_u32(sock, n_carried(n.ctx->e));
			break;
		case ANSWER:
			id = vrb_gsi_new_id(n.ctx);
			box_write(b, &l.src, VRB_CM_REP, (struct box_ids){id, l.cm.local_id}, what);
			put_u32(sock, id);
			break;
		default:
			close_box(&n, b);
			return 0;
		}
	}
}

static uint32_t tell(struct child *c, enum order order, uint32_t what)
{
	put_u32(c->sock, order);
	put_u32(c->sock, what);
	return get_u32(c->sock);
}

static void dismiss(struct child *c)
{
	put_u32(c->sock, END);
	put_u32(c->sock, 0);
	child_join(c);
}

static void claims(void)
{
	struct child c;
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;
	uint32_t id;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	child_start(&c, member, NULL);
	(void)get_u32(c.sock);
	b = open_box(&n);
	to = self_of(&n);
	MUST(!vrb_gsi_claim(n.ctx, SERVICE + 1));
	MUST(vrb_gsi_claim(n.ctx, SERVICE + 1) == -EADDRINUSE);
	MUST(box_said(VRB_V_CM_SERVICE_TAKEN) == 1);
	MUST(tell(&c, CLAIM, 1) == EADDRINUSE);
	(void)box_ask(b, &to, VRB_CM_REQ, SERVICE + 1, 21);
	want(b, &l, VRB_CM_REQ, 0);
	MUST(box_word(&l) == 21 && l.cm.service_id == SERVICE + 1);
	MUST(!tell(&c, TAKE, QUIET_MS));
	/* it changes hands */
	vrb_gsi_release(n.ctx, SERVICE + 1);
	MUST(!tell(&c, CLAIM, 1));
	(void)box_ask(b, &to, VRB_CM_REQ, SERVICE + 1, 22);
	MUST(tell(&c, TAKE, WAIT_MS) == 22);
	(void)box_ask(b, &to, VRB_CM_SIDR_REQ, SERVICE + 1, 23);
	MUST(tell(&c, TAKE, WAIT_MS) == 23);
	/* released, it is refused; and so when its owner has died */
	MUST(!tell(&c, RELEASE, 1));
	id = box_ask(b, &to, VRB_CM_REQ, SERVICE + 1, 24);
	want(b, &l, VRB_CM_REJ, id);
	MUST(!tell(&c, CLAIM, 1));
	child_kill(&c);
	id = box_ask(b, &to, VRB_CM_REQ, SERVICE + 1, 25);
	want(b, &l, VRB_CM_REJ, id);
	MUST(!vrb_gsi_claim(n.ctx, SERVICE + 1));
	close_box(&n, b);
}

static int hold(int sock, void *arg)
{
	(void)arg;
	(void)get_u32(sock);
	return 0;
}

/* A forked child does not keep what its parent has claimed. */
static void forked(void)
{
	struct child c;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	b = open_box(&n);
	MUST(!vrb_gsi_claim(n.ctx, SERVICE + 1));
	child_start(&c, hold, NULL);
	vrb_gsi_release(n.ctx, SERVICE + 1);
	for (double end = now_s() + WAIT_MS / 1e3; vrb_gsi_claim(n.ctx, SERVICE + 1); usleep(500))
		MUST(now_s() < end);
	put_u32(c.sock, 0);
	child_join(&c);
	close_box(&n, b);
}

static void limits(void)
{
	struct node n;
	struct box *b;

	kit_own_network();
	node_open(&n, false);
	MUST(vrb_gsi_claim(n.ctx, SERVICE) == -ENOTCONN);
	b = box_open(n.ctx);
	for (uint32_t i = 0; i < VRB_GSI_CLAIMS; i++) {
		int err = vrb_gsi_claim(n.ctx, SERVICE + i);

		if (err == -EMFILE)
			_exit(77); /* this user may have few descriptors */
		MUST(!err);
	}
	MUST(vrb_gsi_claim(n.ctx, SERVICE + VRB_GSI_CLAIMS) == -ENOSPC);
	vrb_gsi_release(n.ctx, SERVICE + 5);
	MUST(!vrb_gsi_claim(n.ctx, SERVICE + VRB_GSI_CLAIMS));
	close_box(&n, b);
}

/* ---- several processes */

/* Each has a service, and is answered by its id; the sender is one of them. */
static void owners(void)
{
	struct child c[3];
	uint32_t id[3], mine[3];
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	for (uint32_t i = 0; i < 3; i++) {
		child_start(&c[i], member, NULL);
		(void)get_u32(c[i].sock);
		MUST(!tell(&c[i], CLAIM, 100 + i));
	}
	b = open_box(&n);
	to = self_of(&n);
	for (uint32_t i = 0; i < 3; i++) {
		mine[i] = box_ask(b, &to, VRB_CM_REQ, SERVICE + 100 + i, 31 + i);
		MUST(tell(&c[i], TAKE, WAIT_MS) == 31 + i);
		id[i] = tell(&c[i], ANSWER, 41 + i);
		want(b, &l, VRB_CM_REP, mine[i]);
		MUST(box_word(&l) == 41 + i && l.cm.local_id == id[i]);
	}
	for (uint32_t k = 0; k < ALL_FOR_ONE; k++)
		for (uint32_t i = 0; i < 3; i++)
			box_write(b, &to, k % 2 ? VRB_CM_DREQ : VRB_CM_RTU,
				  (struct box_ids){mine[i], id[i]}, 1000 * (i + 1) + k);
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t k = 0; k < ALL_FOR_ONE; k++)
			MUST(tell(&c[i], TAKE, WAIT_MS) / 1000 == i + 1);
		MUST(!tell(&c[i], TAKE, QUIET_MS));
		dismiss(&c[i]);
	}
	close_box(&n, b);
}

/* Once members have come, the kernel's program knows: nothing is carried. */
static void steered(void)
{
	uint32_t slot[3], quiet = 0, last = UINT32_MAX;
	struct child c[3];
	struct vrb_gid to;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	for (uint32_t i = 0; i < 3; i++) {
		child_start(&c[i], member, NULL);
		slot[i] = get_u32(c[i].sock);
	}
	b = open_box(&n);
	to = self_of(&n);
	for (double end = now_s() + WAIT_MS / 1e3; quiet < 20; usleep(1000)) {
		uint32_t sum = n_carried(n.ctx->e);

		MUST(now_s() < end);
		for (uint32_t i = 0; i < 3; i++) {
			box_write(b, &to, i % 2 ? VRB_CM_RTU : VRB_CM_SIDR_REP,
				  (struct box_ids){1, slot[i] << 24 | 77}, 7);
			MUST(tell(&c[i], TAKE, WAIT_MS) == 7);
		}
		for (uint32_t i = 0; i < 3; i++)
			sum += tell(&c[i], CARRIED, 0);
		quiet = sum == last ? quiet + 1 : 0;
		last = sum;
	}
	for (uint32_t i = 0; i < 3; i++)
		dismiss(&c[i]);
	close_box(&n, b);
}

/* The kernel gave it to the wrong one: by the ring to its owner, who is not asked twice. */
static void carried(void)
{
	struct vrb_cm cm = {.kind = VRB_CM_DREQ, .data_len = 4};
	uint8_t mad[VRB_MAD_LEN];
	uint32_t word = 51, slot;
	struct child c;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	child_start(&c, member, NULL);
	slot = get_u32(c.sock);
	b = open_box(&n);
	cm.remote_id = slot << 24 | 5;
	cm.data = (const uint8_t *)&word;
	MUST(vrb_cm_emit(&cm, mad));
	vrb_engine_lock(n.ctx->e);
	MUST(give(&n, &form, mad, true));
	vrb_engine_ring_bells(n.ctx->e);
	vrb_engine_unlock(n.ctx->e);
	MUST(tell(&c, TAKE, WAIT_MS) == 51);
	/* one that another has handed to us goes no further */
	vrb_engine_lock(n.ctx->e);
	MUST(give(&n, &form, mad, false));
	vrb_engine_unlock(n.ctx->e);
	MUST(box_said(VRB_V_CM_NO_OWNER) == 1);
	MUST(!tell(&c, TAKE, QUIET_MS));
	/* a request that was handed over, and its claim released meanwhile */
	cm.kind = VRB_CM_REQ;
	MUST(vrb_cm_emit(&cm, mad));
	vrb_engine_lock(n.ctx->e);
	MUST(give(&n, &form, mad, false));
	vrb_engine_unlock(n.ctx->e);
	MUST(box_said(VRB_V_CM_BUSY) == 1 && !box_said(VRB_V_CM_NO_LISTENER));
	dismiss(&c);
	close_box(&n, b);
}

/* A listener that does not run is not refused for: its requests wait, and what does not fit is
 * lost. */
static void stopped(void)
{
	struct vrb_cm cm = {.kind = VRB_CM_REQ, .service_id = SERVICE + 1, .data_len = 4};
	uint32_t word = 61, n_given = 0;
	uint8_t mad[VRB_MAD_LEN];
	struct child c;
	struct node n;
	struct box *b;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	child_start(&c, member, NULL);
	(void)get_u32(c.sock);
	MUST(!tell(&c, CLAIM, 1));
	b = open_box(&n);
	child_stop(&c);
	cm.data = (const uint8_t *)&word;
	MUST(vrb_cm_emit(&cm, mad));
	vrb_engine_lock(n.ctx->e);
	for (; !box_said(VRB_V_CM_BUSY); n_given++)
		MUST(give(&n, &form, mad, true) && n_given < 1000);
	vrb_engine_unlock(n.ctx->e);
	MUST(!box_said(VRB_V_CM_NO_LISTENER) && n_given > 100);
	kill(c.pid, SIGCONT);
	for (uint32_t i = 0; i + 1 < n_given; i++)
		MUST(tell(&c, TAKE, WAIT_MS) == 61);
	MUST(!tell(&c, TAKE, QUIET_MS));
	dismiss(&c);
	close_box(&n, b);
}

/* ---- who is not to be believed */

static socklen_t claim_name(struct sockaddr_un *sa, uint32_t uid, uint32_t port)
{
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1,
					    VRB_MEET_CLAIM, uid,
					    (unsigned long long)(SERVICE + port)));
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
	b = open_box(&n);
	to = self_of(&n);
	MUST(vrb_gsi_claim(n.ctx, SERVICE + 1) == -EADDRINUSE);
	id = box_ask(b, &to, VRB_CM_REQ, SERVICE + 1, 71);
	want(b, &l, VRB_CM_REJ, id);
	MUST(box_said(VRB_V_LINK_STRANGER) >= 1);
	put_u32(c.sock, 0);
	child_join(&c);
	close_box(&n, b);
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
	b = open_box(&n);
	to = self_of(&n);
	MUST(!vrb_gsi_claim(n.ctx, SERVICE + 1));
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
	(void)box_ask(b, &to, VRB_CM_REQ, SERVICE + 1, 81);
	want(b, &l, VRB_CM_REQ, 0);
	close_box(&n, b);
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
	b = open_box(&n);
	MUST(!vrb_gsi_claim(n.ctx, SERVICE + 1));
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&sa, len) && !listen(fd, 1));
	len = sizeof(sa);
	MUST(!getsockname(fd, (struct sockaddr *)&sa, &len));
	MUST(s >= 0 && !connect(s, (struct sockaddr *)&sa, len));
	vrb_engine_lock(n.ctx->e);
	vrb_peer_on_event(n.ctx->e, VRB_EV_CLAIM, fd);
	vrb_engine_unlock(n.ctx->e);
	MUST(accept(fd, NULL, NULL) >= 0);
	close_box(&n, b);
}

/* What another process does for a request that is not its own. */
static void bring(const struct node *n, uint32_t port)
{
	const struct vrb_meet_hello h = {
		.magic = VRB_MEET_MAGIC, .version = VRB_MEET_VERSION, .type = VRB_MEET_MAD};
	const struct vrb_net net = {.src = self_of(n), .dst = self_of(n), .ttl = 64};
	const struct vrb_cm cm = {.kind = VRB_CM_REQ, .service_id = SERVICE + port};
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	uint8_t bytes[VRB_ROCE_PACKET_MAX];
	size_t len = sizeof(h) + sizeof(net);
	struct sockaddr_un sa;
	socklen_t n_sa = claim_name(&sa, geteuid(), port);

	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), &net, sizeof(net));
	len += vrb_pkt_emit_headers(&form, bytes + len);
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
	b = open_box(&n);
	MUST(!vrb_gsi_claim(n.ctx, SERVICE + 1));
	vrb_engine_lock(n.ctx->e);
	fd = vrb_gsi_find_claim(n.ctx->e, SERVICE + 1)->fd;
	for (uint32_t i = 0; i < VRB_PENDING_MAX + 80; i++) {
		bring(&n, 1);
		if (i % 32 == 31)
			vrb_peer_on_event(n.ctx->e, VRB_EV_CLAIM, fd);
	}
	vrb_engine_unlock(n.ctx->e);
	for (uint32_t i = 0; i < VRB_PENDING_MAX + 80; i++)
		want(b, &l, VRB_CM_REQ, 0);
	close_box(&n, b);
}

/* ---- the capture names them */

static bool has_text(int fd, const char *text)
{
	static char bytes[1u << 20];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	return n > 0 && memmem(bytes, (size_t)n, text, strlen(text));
}

static void recorded(void)
{
	uint8_t head[VRB_PCAPNG_HEAD_MAX];
	size_t n_head = vrb_pcapng_emit_head(head, "test");
	char path[] = "/tmp/verbena-gsi.XXXXXX";
	int fd = mkstemp(path);
	struct vrb_gid to;
	struct letter l;
	struct node n;
	struct box *b;
	uint32_t id;

	kit_own_network();
	MUST(fd >= 0 && write(fd, head, n_head) == (ssize_t)n_head);
	MUST(!setenv("VERBENA_CAPTURE", path, 1));
	b = open_box(&n);
	unlink(path);
	to = self_of(&n);
	MUST(!vrb_gsi_claim(n.ctx, SERVICE + 1));
	(void)box_ask(b, &to, VRB_CM_REQ, SERVICE + 1, 91);
	want(b, &l, VRB_CM_REQ, 0);
	id = box_ask(b, &to, VRB_CM_REQ, SERVICE + 2, 92);
	want(b, &l, VRB_CM_REJ, id);
	close_box(&n, b);
	MUST(has_text(fd, "sender QP 0x000001: CM REQ service_id=0x1060001"));
	MUST(has_text(fd, "receiver QP 0x000001: CM REQ service_id=0x1060001"));
	MUST(has_text(fd, "no process of this user listens there"));
	MUST(has_text(fd, "sender QP 0x000001: CM REJ"));
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"refused", refused}, {"flood", flood},	      {"bad", bad},
		{"claims", claims},   {"forked", forked},     {"limits", limits},
		{"owners", owners},   {"steered", steered},   {"carried", carried},
		{"stopped", stopped}, {"squatted", squatted}, {"nonsense", nonsense},
		{"reused", reused},   {"burst", burst},	      {"recorded", recorded},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
