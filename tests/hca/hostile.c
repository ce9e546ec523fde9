/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	rogue (speaks by hand) ----> victim (engine) <==== RC ====> honest (engine)
 *
 * Whatever a process of the same user says or writes, the victim does not crash, hang, or lose the
 * connections it has with others.
 */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hca/direct.h"

#define ROGUE_INDEX 9u

static uint64_t said(enum vrb_verdict v)
{
	return vrb_peek(&vrb_engine_current->stats->verdict[v]);
}

/* Two queue pairs of this process: the engine is well. */
static void healthy(struct node *n)
{
	struct vrb_hqp *a = node_qp(n, VRB_QPT_RC), *b = node_qp(n, VRB_QPT_RC);

	MUST(!node_connect(a, vrb_hqp_qpn(b)) && !node_connect(b, vrb_hqp_qpn(a)));
	node_recv(n, b, 2);
	node_send(n, a, 1, 64);
	for (int i = 0; i < 2; i++) {
		struct vrb_wc wc;

		MUST(node_has_wc(n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	}
	MUST(!vrb_hqp_destroy(a) && !vrb_hqp_destroy(b));
}

/* ---- the honest one: echoes until told to stop */
static int honest(int sock, void *arg)
{
	struct node n;
	struct vrb_hqp *q;
	struct vrb_wc wc;
	struct pollfd p = {.fd = sock, .events = POLLIN};

	(void)arg;
	MUST(get_u32(sock) == 1); /* the victim is open */
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	put_u32(sock, vrb_hqp_qpn(q));
	MUST(!node_connect(q, get_u32(sock)));
	for (uint64_t i = 0; i < 64; i++)
		node_recv(&n, q, 7);
	put_u32(sock, 1);
	while (poll(&p, 1, 0) == 0) {
		if (!node_has_wc(&n, &wc, 10))
			continue;
		MUST(wc.status == VRB_WC_SUCCESS);
		if (wc.opcode != VRB_WCO_RECV)
			continue;
		node_recv(&n, q, 7);
		node_send(&n, q, 3, 32);
	}
	vrb_hqp_destroy(q);
	node_close(&n);
	return 0;
}

struct victim {
	struct node n;
	struct vrb_hqp *q;
	struct child friend;
};

/* Before the rogue is started nothing is open: it is forked without an engine. */
static void victim_open(struct victim *v)
{
	child_start(&v->friend, honest, NULL);
	node_open(&v->n, false);
	v->q = node_qp(&v->n, VRB_QPT_RC);
	put_u32(v->friend.sock, 1);
}

static void victim_meet(struct victim *v)
{
	MUST(!node_connect(v->q, get_u32(v->friend.sock)));
	put_u32(v->friend.sock, vrb_hqp_qpn(v->q));
	MUST(get_u32(v->friend.sock) == 1);
}

static void echo(struct victim *v, int n)
{
	for (int i = 0; i < n; i++) {
		struct vrb_wc wc;

		node_recv(&v->n, v->q, 5);
		node_send(&v->n, v->q, 6, 32);
		for (int k = 0; k < 2; k++)
			MUST(node_has_wc(&v->n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	}
}

static void echo_until(struct victim *v, int sock)
{
	for (struct pollfd p = {.fd = sock, .events = POLLIN}; poll(&p, 1, 0) == 0;)
		echo(v, 1);
}

static void victim_close(struct victim *v)
{
	echo(v, 20);
	put_u32(v->friend.sock, 0);
	child_join(&v->friend);
	vrb_hqp_destroy(v->q);
	healthy(&v->n);
	node_close(&v->n);
}

/* ---- memory that is none, events that are none */

/* A regular file is refused: it could be made shorter under the mapping. */
static int says_files(int sock, void *arg)
{
	static const size_t size[] = {VRB_SHM_SIZE, VRB_BELL_SIZE, 0, sizeof(struct vrb_export)};
	uint32_t slot = get_u32(sock);

	(void)arg;
	for (int bad = 0; bad < 4; bad++) {
		struct rogue r;
		struct vrb_meet_hello h;
		char path[] = "/tmp/vrb-rogue-XXXXXX";
		int fds[4], full[2], fd = mkstemp(path);

		unlink(path);
		rogue_claim(&r);
		rogue_make(&r);
		h = rogue_hello(&r);
		MUST(fd >= 0 && !ftruncate(fd, (off_t)size[bad]) && !pipe(full));
		memcpy(fds, (int[]){r.tx_fd, r.bell_mem, r.bell, r.export}, sizeof(fds));
		fds[bad] = bad == 2 ? full[1] : fd;
		r.to = rogue_connect(slot);
		MUST(!rogue_say(r.to, &h, fds, 4));
		usleep(20000);
		MUST(!ftruncate(fd, 0));
		fcntl(full[1], F_SETFL, O_NONBLOCK);
		while (write(full[1], path, 1) == 1)
			;
		fcntl(full[1], F_SETFL, 0);
		/* no export is no reason to part */
		if (bad != 3)
			MUST(rogue_heard_end(r.to, WAIT_MS));
		usleep(20000);
		close(r.to);
		close(r.listen);
	}
	put_u32(sock, 1);
	return 0;
}

static void test_files(void)
{
	struct child rogue;
	struct victim v;

	child_start(&rogue, says_files, NULL);
	victim_open(&v);
	victim_meet(&v);
	put_u32(rogue.sock, vrb_engine_current->slot);
	echo_until(&v, rogue.sock);
	child_join(&rogue);
	victim_close(&v);
}

/* ---- messages of another version, too short, too long, with too many descriptors */

static int says_nonsense(int sock, void *arg)
{
	uint32_t slot = get_u32(sock);
	struct rogue r;
	int fds[10];

	(void)arg;
	rogue_claim(&r);
	rogue_make(&r);
	for (int i = 0; i < 10; i++)
		fds[i] = r.bell;
	for (uint32_t i = 0; go_on(i, 3000); i++) {
		struct vrb_meet_hello h[2] = {rogue_hello(&r)};
		int s = rogue_connect(slot);

		if (i % 3 == 0)
			h[0].version++;
		if (i % 3 == 1)
			h[0].type = 77;
		if (i % 8 == 7)
			MUST(send(s, h, i % sizeof(h), MSG_NOSIGNAL) >= 0);
		else
			rogue_say(s, h, fds, i % 10 + 1);
		MUST(rogue_heard_end(s, WAIT_MS));
		close(s);
	}
	put_u32(sock, 1);
	return 0;
}

static _Atomic bool stop;

/* Our own descriptors must not be closed by anybody. */
static void *use_descriptors(void *arg)
{
	struct stat st;

	while (!stop) {
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		MUST(fd >= 0);
		for (int i = 0; i < 20; i++)
			MUST(!fstat(fd, &st));
		MUST(!close(fd));
	}
	return arg;
}

static void test_nonsense(void)
{
	struct child rogue;
	struct victim v;
	pthread_t t;
	int fds;

	child_start(&rogue, says_nonsense, NULL);
	victim_open(&v);
	victim_meet(&v);
	echo(&v, 1); /* all that belongs to the friend is open */
	fds = count_fds();
	MUST(!pthread_create(&t, NULL, use_descriptors, NULL));
	put_u32(rogue.sock, vrb_engine_current->slot);
	MUST(get_u32(rogue.sock) == 1);
	stop = true;
	pthread_join(t, NULL);
	child_join(&rogue);
	for (int i = 0; i < WAIT_MS / 10 && count_fds() > fds; i++)
		usleep(10000); /* the last ones */
	MUST(count_fds() <= fds);
	victim_close(&v);
}

/* ---- a ring in another's name */

static int announces_for_others(int sock, void *arg)
{
	uint32_t slot = get_u32(sock), other = get_u32(sock);
	struct rogue r;

	(void)arg;
	rogue_claim(&r);
	rogue_make(&r);
	for (int i = 0; i < 6; i++) {
		struct vrb_meet_hello h = rogue_hello(&r);
		int s = rogue_connect(slot);

		h.slot = (uint32_t[]){other, slot, 0, 256, UINT32_MAX, r.slot - 1}[i];
		MUST(!rogue_say(s, &h, (int[]){r.tx_fd, r.bell_mem, r.bell, r.export}, 4));
		MUST(rogue_heard_end(s, WAIT_MS));
		close(s);
	}
	put_u32(sock, 1);
	return 0;
}

static void test_other_slot(void)
{
	struct child rogue;
	struct victim v;

	child_start(&rogue, announces_for_others, NULL);
	victim_open(&v);
	victim_meet(&v);
	put_u32(rogue.sock, vrb_engine_current->slot);
	put_u32(rogue.sock, v.q->peer->slot);
	echo_until(&v, rogue.sock);
	child_join(&rogue);
	MUST(said(VRB_V_LINK_BAD_HELLO) == 6);
	MUST(said(VRB_V_PEER_GONE) == 0);
	victim_close(&v);
}

/* ---- connections that say nothing; no descriptors left */

static int keeps_silent(int sock, void *arg)
{
	uint32_t slot = get_u32(sock);

	(void)arg;
	for (int i = 0; i < 600; i++) {
		(void)rogue_connect(slot);
		usleep(200);
	}
	put_u32(sock, 1);
	return (int)get_u32(sock); /* holds them until then */
}

static void test_silent(void)
{
	struct child rogue;
	struct victim v;

	child_start(&rogue, keeps_silent, NULL);
	victim_open(&v);
	put_u32(rogue.sock, vrb_engine_current->slot);
	MUST(get_u32(rogue.sock) == 1);
	MUST(count_fds() < 400);
	victim_meet(&v);
	echo(&v, 20);
	put_u32(rogue.sock, 0);
	child_join(&rogue);
	victim_close(&v);
}

static int knocks(int sock, void *arg)
{
	uint32_t slot = get_u32(sock);

	(void)arg;
	for (int i = 0; i < 50; i++) {
		int s = rogue_connect(slot);

		MUST(rogue_heard_end(s, WAIT_MS));
		close(s);
	}
	put_u32(sock, 1);
	MUST(get_u32(sock) == 2);
	for (int i = 0; i < 5; i++)
		(void)rogue_connect(slot);
	put_u32(sock, 3);
	return (int)get_u32(sock);
}

static void test_no_descriptors(void)
{
	struct rlimit old, now;
	struct child rogue;
	struct victim v;
	double cpu;
	int last;

	child_start(&rogue, knocks, NULL);
	victim_open(&v);
	MUST(!getrlimit(RLIMIT_NOFILE, &old));
	last = dup(0);
	now = (struct rlimit){(rlim_t)last, old.rlim_max};
	close(last);
	MUST(!setrlimit(RLIMIT_NOFILE, &now));
	put_u32(rogue.sock, vrb_engine_current->slot);
	MUST(get_u32(rogue.sock) == 1);
	MUST(said(VRB_V_LINK_SYSTEM) >= 50);
	/* Even when the spare one is lost (here: is above the limit) nothing spins. */
	now.rlim_cur = 5;
	MUST(!setrlimit(RLIMIT_NOFILE, &now));
	put_u32(rogue.sock, 2);
	MUST(get_u32(rogue.sock) == 3);
	usleep(100000);
	cpu = cpu_s();
	usleep(1000000);
	MUST(cpu_s() - cpu < 0.5);
	MUST(!setrlimit(RLIMIT_NOFILE, &old));
	put_u32(rogue.sock, 0);
	child_join(&rogue);
	victim_meet(&v);
	victim_close(&v);
}

/* ---- what stands in the ring */

/* Joins, says its slot, then lets `act` play. The victim has connected by then. */
struct play {
	int (*act)(struct rogue *r, int sock);
};

static int plays(int sock, void *arg)
{
	struct play *p = arg;
	struct rogue r;

	rogue_claim(&r);
	put_u32(sock, r.slot);
	rogue_join(&r, get_u32(sock));
	put_u32(sock, 1);
	MUST(get_u32(sock) == 2);
	return p->act(&r, sock);
}

struct scene {
	struct victim v;
	struct child rogue;
	struct vrb_hqp *q; /* connected to the rogue */
	uint32_t slot;	   /* of the rogue */
};

static void scene_open(struct scene *s, int (*act)(struct rogue *r, int sock))
{
	struct play p = {act};

	child_start(&s->rogue, plays, &p);
	victim_open(&s->v);
	victim_meet(&s->v);
	s->slot = get_u32(s->rogue.sock);
	put_u32(s->rogue.sock, vrb_engine_current->slot);
	MUST(get_u32(s->rogue.sock) == 1);
	s->q = node_qp(&s->v.n, VRB_QPT_RC);
	MUST(!node_connect(s->q, s->slot << VRB_QPN_INDEX_BITS | ROGUE_INDEX));
	put_u32(s->rogue.sock, 2);
}

static void scene_close(struct scene *s)
{
	child_join(&s->rogue);
	vrb_hqp_destroy(s->q);
	victim_close(&s->v);
}

/* The channel to the rogue ends; its queue pair says so. */
static void want_gone(struct scene *s)
{
	node_send(&s->v.n, s->q, 77, 32);
	MUST(node_wc(&s->v.n, 77) == VRB_WC_RETRY_EXC_ERR);
	MUST(said(VRB_V_PEER_GONE) >= 1);
}

static int writes_garbage(struct rogue *r, int sock)
{
	struct rogue_line l = {.op = 0x1f, .index = ROGUE_INDEX};

	rogue_write(r, &l);
	MUST(rogue_heard_end(r->to, WAIT_MS) && rogue_heard_end(r->from, WAIT_MS));
	put_u32(sock, 3);
	return (int)get_u32(sock);
}

static void test_garbage(void)
{
	struct scene s;

	scene_open(&s, writes_garbage);
	echo_until(&s.v, s.rogue.sock); /* the rogue rings no bell */
	MUST(get_u32(s.rogue.sock) == 3);
	MUST(said(VRB_V_LINK_BAD_FRAME) == 1);
	want_gone(&s);
	put_u32(s.rogue.sock, 0);
	scene_close(&s);
}

/* Frames for queue pairs of others, acknowledgements of what was never sent, direct notices. */
static int writes_for_others(struct rogue *r, int sock)
{
	uint16_t index = (uint16_t)get_u32(sock), own = (uint16_t)get_u32(sock);
	static const uint8_t ops[] = {VRB_OP_SEND_ONLY,
				      VRB_OP_ACK,
				      VRB_OP_READ_REQ,
				      VRB_OP_WRITE_ONLY,
				      VRB_OP_FETCH_ADD,
				      VRB_OP_READ_RESP_ONLY,
				      VRB_OP_SEND_ONLY_INV,
				      VRB_OP_ATOMIC_ACK,
				      0xff,
				      VRB_TP_UD | VRB_OP_SEND_ONLY};
	uint8_t body[VRB_SHM_BODY];
	struct rogue_line l = {.body = body, .body_len = sizeof(body)};

	memset(body, 0x1f, sizeof(body));
	for (uint32_t i = 0; i < 20000; i++) {
		while (r->head - atomic_load(&r->tx.ctl->lines_used) > VRB_SHM_LINES - 2)
			usleep(10);
		l.op = ops[i % 10];
		l.index = i % 2 ? index : own;
		l.psn = i % 7 ? i : 0;
		l.flags = (uint8_t)(i % 5 ? VRB_SHM_ACK : 0);
		l.ack = i % 3 ? i & 0xffffff : 8u << 24;
		/* what our own queue pair accepts ends it sooner or later: fine */
		rogue_write(r, &l);
	}
	put_u32(sock, 3);
	return (int)get_u32(sock);
}

static void test_for_others(void)
{
	struct scene s;

	scene_open(&s, writes_for_others);
	put_u32(s.rogue.sock, vrb_hqp_qpn(s.v.q) & VRB_QPN_INDEX_MASK);
	put_u32(s.rogue.sock, vrb_hqp_qpn(s.q) & VRB_QPN_INDEX_MASK);
	echo_until(&s.v, s.rogue.sock);
	MUST(get_u32(s.rogue.sock) == 3);
	put_u32(s.rogue.sock, 0);
	scene_close(&s);
}

/* Never takes a line: reliable messages end, datagrams to others go on. */
static int takes_nothing(struct rogue *r, int sock)
{
	(void)r;
	return (int)get_u32(sock);
}

/* Datagrams that wait for room when their address handle is destroyed. */
static void want_fail_without_handle(struct scene *s, struct vrb_hqp *ud)
{
	struct vrb_av *av = malloc(sizeof(*av));
	struct vrb_wc wc;

	*av = (struct vrb_av){.hop_limit = 64};
	memcpy(av->dgid.raw + 10, "\xff\xff\x7f\0\0\1", 6);
	MUST(!vrb_hah_create(s->v.n.pd, av));
	vrb_engine_lock(ud->e); /* as if it had just begun to wait */
	s->q->peer->full_since = 0;
	vrb_engine_unlock(ud->e);
	for (int i = 0; i < 3; i++)
		node_send_ud(&s->v.n, ud, av, s->slot << VRB_QPN_INDEX_BITS | 5);
	MUST(!vrb_list_empty(&ud->stall_node));
	vrb_hah_destroy(s->v.n.pd, av);
	memset(av, 0x55, sizeof(*av));
	free(av);
	MUST(node_has_wc(&s->v.n, &wc, WAIT_MS) && wc.status == VRB_WC_LOC_QP_OP_ERR);
	for (int i = 0; i < 2; i++)
		MUST(node_has_wc(&s->v.n, &wc, WAIT_MS) && wc.status == VRB_WC_WR_FLUSH_ERR);
}

static void test_takes_nothing(void)
{
	struct vrb_av av = {.hop_limit = 64};
	struct scene s;
	struct node *n = &s.v.n;
	struct vrb_hqp *ud[2];
	struct vrb_wc wc;
	bool got = false;

	scene_open(&s, takes_nothing);
	ud[0] = node_qp(n, VRB_QPT_UD);
	ud[1] = node_qp(n, VRB_QPT_UD);
	memcpy(av.dgid.raw + 10, "\xff\xff\x7f\0\0\1", 6);
	MUST(!vrb_hah_create(n->pd, &av));
	node_recv(n, ud[1], 99);
	for (int i = 0; i < 400; i++)
		node_send_ud(n, ud[0], &av, s.slot << VRB_QPN_INDEX_BITS | 5);
	node_send_ud(n, ud[0], &av, vrb_hqp_qpn(ud[1]));
	while (!got) {
		MUST(node_has_wc(n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
		got = wc.wr_id == 99;
	}
	want_fail_without_handle(&s, ud[0]);
	for (uint64_t i = 0; i < 300; i++)
		node_send(n, s.q, 1000 + i, 32);
	do
		MUST(node_has_wc(n, &wc, WAIT_MS));
	while (wc.wr_id != 1000);
	MUST(wc.status == VRB_WC_RETRY_EXC_ERR);
	for (uint64_t i = 1; i < 300; i++)
		MUST(node_wc(n, 1000 + i) == VRB_WC_WR_FLUSH_ERR);
	vrb_hah_destroy(n->pd, &av);
	MUST(!vrb_hqp_destroy(ud[0]) && !vrb_hqp_destroy(ud[1]));
	put_u32(s.rogue.sock, 0);
	scene_close(&s);
}

/* In the middle of a direct operation for ever: deregistration goes on, and the rogue is cut off.
 */
static int never_ends(struct rogue *r, int sock)
{
	atomic_store(&r->tx.ctl->direct_seq, 1);
	put_u32(sock, 3);
	MUST(rogue_heard_end(r->to, WAIT_MS));
	return (int)get_u32(sock);
}

static void test_never_ends(void)
{
	struct vrb_hmr *mr[100];
	struct scene s;

	scene_open(&s, never_ends);
	MUST(get_u32(s.rogue.sock) == 3);
	for (int i = 0; i < 100; i++)
		MUST(!vrb_hmr_reg(s.v.n.pd, s.v.n.buf, 64, (uintptr_t)s.v.n.buf, 15, &mr[i]));
	for (int i = 0; i < 100; i++)
		MUST(!vrb_hmr_dereg(mr[i]));
	want_gone(&s);
	put_u32(s.rogue.sock, 0);
	scene_close(&s);
}

/* In the middle of a direct operation for a while: whoever takes the key away waits for its end. */
static int ends_later(struct rogue *r, int sock)
{
	for (uint32_t i = 0; i < 10; i++) {
		atomic_store(&r->tx.ctl->direct_seq, 2 * i + 1);
		put_u32(sock, 3);
		usleep(20000);
		atomic_store(&r->tx.ctl->direct_seq, 2 * i + 2);
		MUST(get_u32(sock) == 4);
	}
	return (int)get_u32(sock);
}

static void test_ends_later(void)
{
	struct vrb_hmr *mr;
	struct scene s;
	struct node *n = &s.v.n;
	_Atomic uint32_t *seq;

	scene_open(&s, ends_later);
	MUST(!vrb_hmr_reg(n->pd, n->buf, 64, (uintptr_t)n->buf, 15, &mr));
	seq = &s.q->peer->rx.m.ctl->direct_seq;
	for (int i = 0; i < 10; i++) {
		MUST(get_u32(s.rogue.sock) == 3);
		if (i % 3 == 0)
			MUST(!vrb_hmr_rereg(mr, NULL, n->buf + 64, 64, UINT32_MAX));
		else if (i % 3 == 1)
			MUST(!vrb_hmr_rereg(mr, NULL, NULL, 0, 1));
		else
			MUST(!vrb_hmr_dereg(mr) &&
			     !vrb_hmr_reg(n->pd, n->buf, 64, (uintptr_t)n->buf, 15, &mr));
		MUST(atomic_load(seq) % 2 == 0);
		put_u32(s.rogue.sock, 4);
	}
	MUST(!vrb_hmr_dereg(mr));
	put_u32(s.rogue.sock, 0);
	scene_close(&s);
}

/* Dies there, with many queue pairs to it. */
static int dies_there(struct rogue *r, int sock)
{
	MUST(get_u32(sock) == 3);
	atomic_store(&r->tx.ctl->direct_seq, 1);
	return 0;
}

static void test_dies_there(void)
{
	struct vrb_hqp *q[100];
	struct scene s;

	scene_open(&s, dies_there);
	for (int i = 0; i < 100; i++) {
		q[i] = node_qp(&s.v.n, VRB_QPT_RC);
		MUST(!node_connect(q[i], s.slot << VRB_QPN_INDEX_BITS | ROGUE_INDEX));
	}
	put_u32(s.rogue.sock, 3);
	want_gone(&s);
	for (int i = 0; i < 100; i++)
		MUST(!vrb_hqp_destroy(q[i]));
	scene_close(&s);
}

/* ---- connections */

static int says_too_much(struct rogue *r, int sock)
{
	struct vrb_meet_hello h = rogue_hello(r);

	MUST(!rogue_say(r->from, &h, (int[]){r->bell_mem, r->bell, r->export}, 3));
	MUST(rogue_heard_end(r->to, WAIT_MS) && rogue_heard_end(r->from, WAIT_MS));
	return (int)get_u32(sock);
}

static int closes_half(struct rogue *r, int sock)
{
	MUST(!shutdown(r->to, SHUT_WR));
	MUST(rogue_heard_end(r->from, WAIT_MS));
	return (int)get_u32(sock);
}

static int announces_twice(struct rogue *r, int sock)
{
	struct vrb_meet_hello h = rogue_hello(r);
	int s = rogue_connect(get_u32(sock));

	MUST(!rogue_say(s, &h, (int[]){r->tx_fd, r->bell_mem, r->bell, r->export}, 4));
	MUST(rogue_heard_end(s, WAIT_MS)); /* the second only */
	MUST(!rogue_heard_end(r->to, 100));
	close(r->to);
	return (int)get_u32(sock);
}

static void part(int (*act)(struct rogue *r, int sock), bool with_slot)
{
	struct scene s;

	scene_open(&s, act);
	if (with_slot)
		put_u32(s.rogue.sock, vrb_engine_current->slot);
	want_gone(&s);
	put_u32(s.rogue.sock, 0);
	scene_close(&s);
}

static void test_too_much(void)
{
	part(says_too_much, false);
}

static void test_half(void)
{
	part(closes_half, false);
}

static void test_twice(void)
{
	part(announces_twice, true);
}

/* A name that nobody answers for: connected, never attached; or full: not even connected. */
static int never_answers(int sock, void *full)
{
	struct sockaddr_un sa;
	socklen_t n = sizeof(sa);
	struct rogue r;

	rogue_claim(&r);
	MUST(!getsockname(r.listen, (struct sockaddr *)&sa, &n));
	for (int fd = 0; full && fd >= 0;) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(fd, (struct sockaddr *)&sa, n))
			fd = -errno;
		MUST(fd >= 0 || fd == -EAGAIN);
	}
	put_u32(sock, r.slot);
	return (int)get_u32(sock);
}

static void meet_silence(void *full)
{
	struct child rogue;
	struct vrb_hqp *q;
	struct node n;

	child_start(&rogue, never_answers, full);
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	MUST(!node_connect(q, get_u32(rogue.sock) << VRB_QPN_INDEX_BITS | ROGUE_INDEX));
	node_send(&n, q, 1, 32);
	MUST(node_wc(&n, 1) == VRB_WC_RETRY_EXC_ERR);
	put_u32(rogue.sock, 0);
	child_join(&rogue);
	MUST(!vrb_hqp_destroy(q));
	healthy(&n);
	node_close(&n);
}

static void test_never_answers(void)
{
	meet_silence(NULL);
}

static void test_full(void)
{
	meet_silence(&(int){1});
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"files", test_files},
		{"nonsense", test_nonsense},
		{"other_slot", test_other_slot},
		{"silent", test_silent},
		{"no_descriptors", test_no_descriptors},
		{"garbage", test_garbage},
		{"for_others", test_for_others},
		{"takes_nothing", test_takes_nothing},
		{"never_ends", test_never_ends},
		{"ends_later", test_ends_later},
		{"dies_there", test_dies_there},
		{"too_much", test_too_much},
		{"half", test_half},
		{"twice", test_twice},
		{"never_answers", test_never_answers},
		{"full", test_full},
	};

	signal(SIGPIPE, SIG_DFL);
	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
