/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable queue pairs that run ahead of their receiver: a message waits for a program that is
 * behind with its completions, in the ring and in the socket, and by the wire a window of packets
 * goes ahead of the answers, or of a peer that gives none.
 */
#include <signal.h>

#include "hca/wire.h"
#include "kit.h"

#define N_MESSAGES 200u
#define LEN	   (NODE_LEN / 2)

/* In a network of its own, so that nobody else has the port, or comes to it and goes. */
static void by_wire(void)
{
	setenv("VERBENA_LINK", "udp", 1);
	kit_own_network();
}

static void turn(struct node *n)
{
	vrb_engine_lock(n->ctx->e);
	vrb_engine_turn(n->ctx->e, vrb_clock_now());
	vrb_engine_unlock(n->ctx->e);
}

/* Turns until a message has waited for a receive of q for ms. */
static void wait_behind(struct node *n, struct vrb_hqp *q, unsigned ms)
{
	vrb_ns first;

	do
		turn(n);
	while (!q->wait.on);
	first = q->wait.spent_behind;
	while (q->wait.spent_behind - first < ms * VRB_NS_PER_MS)
		turn(n);
}

/* Takes n completions; all must be good. */
static void take(struct node *n, unsigned count)
{
	struct vrb_wc wc;

	while (count--) {
		MUST(node_has_wc(n, &wc, WAIT_MS));
		MUST(wc.status == VRB_WC_SUCCESS);
	}
}

/* Two messages for one receive; the program looks much later, and posts another one then. */
static void late_receive(enum vrb_qp_type type)
{
	struct node n;
	struct vrb_hqp *a, *b;

	node_open(&n, false);
	a = node_qp(&n, type);
	b = node_qp(&n, type);
	MUST(!node_connect(b, a->core.qpn));
	MUST(!node_connect(a, b->core.qpn));
	node_recv(&n, b, 1);
	node_send(&n, a, 11, 64);
	node_send(&n, a, 12, 64);
	wait_behind(&n, b, 105);
	MUST(b->core.rcq->tail - b->core.rcq->head == 3);
	node_recv(&n, b, 2);
	take(&n, 4);
}

static void late_receive_ring(void)
{
	late_receive(VRB_QPT_UC);
}

static void late_receive_wire(void)
{
	by_wire();
	late_receive(VRB_QPT_UC);
}

/* What waits for a receive holds up nobody else, and comes when there is one. */
static void no_receive_wire(void)
{
	struct vrb_hqp *a[2], *b[2];
	struct vrb_wc wc;
	struct node n;

	by_wire();
	node_open(&n, false);
	for (int i = 0; i < 2; i++) {
		a[i] = node_qp(&n, VRB_QPT_UC);
		b[i] = node_qp(&n, VRB_QPT_UC);
		MUST(!node_connect(b[i], a[i]->core.qpn));
		MUST(!node_connect(a[i], b[i]->core.qpn));
	}
	node_recv(&n, b[1], 1);
	node_send(&n, a[0], 11, 64);
	node_send(&n, a[1], 12, 64);
	take(&n, 3);
	MUST(b[0]->kept.n == 1);
	MUST(!node_has_wc(&n, &wc, 1));
	node_recv(&n, b[0], 2);
	take(&n, 1);
	MUST(!b[0]->kept.n);
}

static void send_all(struct node *n, struct vrb_hqp *a)
{
	for (unsigned i = 0; i < N_MESSAGES; i++)
		node_send(n, a, i, LEN);
}

static void window(void)
{
	struct node n;
	struct vrb_hqp *a, *b;

	by_wire();
	node_open(&n, false);
	a = node_qp(&n, VRB_QPT_UC);
	b = node_qp(&n, VRB_QPT_UC);
	MUST(!node_connect(b, a->core.qpn));
	MUST(!node_connect(a, b->core.qpn));
	for (unsigned i = 0; i < N_MESSAGES; i++)
		node_recv(&n, b, i);
	send_all(&n, a);
	take(&n, 2 * N_MESSAGES);
	MUST(a->flow.was_heard);
	MUST(a->flow.out < a->flow.window);
	MUST(!b->flow.was_heard);
}

static int receiver(int sock, void *arg)
{
	struct vrb_hqp *q;
	struct node n;
	vrb_qpn to;

	(void)arg;
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_UC);
	for (unsigned i = 0; i < 2 * N_MESSAGES; i++)
		node_recv(&n, q, i);
	put_u32(sock, vrb_hqp_qpn(q));
	to = get_u32(sock);
	MUST(!node_connect(q, to));
	put_u32(sock, 0);
	take(&n, 2 * N_MESSAGES);
	(void)get_u32(sock);
	return 0;
}

/* A peer that does not get the CPU for a while is waited for. */
static void stopped_peer(void)
{
	struct vrb_hqp *a;
	struct child c;
	struct node n;
	struct vrb_wc wc;
	unsigned sent = 0;
	vrb_ns begin;

	SKIP_FORK_OF_THREADS();
	by_wire();
	child_start(&c, receiver, NULL);
	node_open(&n, false);
	a = node_qp(&n, VRB_QPT_UC);
	MUST(!node_connect(a, get_u32(c.sock)));
	put_u32(c.sock, vrb_hqp_qpn(a));
	(void)get_u32(c.sock);
	send_all(&n, a);
	take(&n, N_MESSAGES);
	MUST(a->flow.was_heard);
	child_stop(&c);
	begin = vrb_peek(&n.ctx->e->now);
	send_all(&n, a);
	while (!a->flow.until)
		sent += node_has_wc(&n, &wc, 0);
	/* its patience is that for a peer that has answered; ours may be over when we look */
	MUST(a->flow.until >= begin + VRB_NS_PER_S);
	MUST(sent < N_MESSAGES);
	MUST(!a->flow.silent || vrb_clock_now() >= begin + VRB_NS_PER_S);
	kill(c.pid, SIGCONT);
	take(&n, N_MESSAGES - sent);
	put_u32(c.sock, 0);
	child_join(&c);
}

#define STREAMS 24u
#define FIRST	4u /* until a stream has been answered */
#define EACH	36u

static void join_all(struct vrb_hqp **q, int sock)
{
	for (unsigned i = 0; i < STREAMS; i++)
		put_u32(sock, vrb_hqp_qpn(q[i]));
	for (unsigned i = 0; i < STREAMS; i++)
		MUST(!node_connect(q[i], get_u32(sock)));
	put_u32(sock, 0);
	(void)get_u32(sock);
}

static int receiver_of_many(int sock, void *arg)
{
	struct vrb_hqp *q[STREAMS];
	struct node n;

	(void)arg;
	node_open(&n, false);
	for (unsigned i = 0; i < STREAMS; i++) {
		q[i] = node_qp(&n, VRB_QPT_UC);
		for (unsigned j = 0; j < FIRST + EACH; j++)
			node_recv(&n, q[i], j);
	}
	join_all(q, sock);
	take(&n, STREAMS * (FIRST + EACH));
	put_u32(sock, 0);
	(void)get_u32(sock);
	return 0;
}

/* All streams together leave no more under way than the peer's buffer holds: while its process
 * stands still nothing is lost. */
static void stopped_peer_of_many(void)
{
	struct vrb_hqp *q[STREAMS];
	struct child c;
	struct node n;

	SKIP_FORK_OF_THREADS();
	by_wire();
	child_start(&c, receiver_of_many, NULL);
	node_open(&n, false);
	for (unsigned i = 0; i < STREAMS; i++)
		q[i] = node_qp(&n, VRB_QPT_UC);
	join_all(q, c.sock);
	for (unsigned i = 0; i < STREAMS * FIRST; i++)
		node_send(&n, q[i % STREAMS], i, LEN);
	take(&n, STREAMS * FIRST);
	for (unsigned i = 0; i < STREAMS; i++)
		while (!q[i]->flow.was_heard)
			turn(&n);
	child_stop(&c);
	for (unsigned i = 0; i < STREAMS * EACH; i++)
		node_send(&n, q[i % STREAMS], i, LEN);
	for (double end = now_s() + 0.2; now_s() < end;)
		turn(&n);
	kill(c.pid, SIGCONT);
	take(&n, STREAMS * EACH);
	(void)get_u32(c.sock);
	put_u32(c.sock, 0);
	child_join(&c);
}

/* Nobody answers: sending goes on all the same. */
static void silent_peer(void)
{
	struct node n;
	struct vrb_hqp *a;

	by_wire();
	node_open(&n, false);
	a = node_qp(&n, VRB_QPT_UC);
	MUST(!node_connect(a, 0xfe0001));
	send_all(&n, a);
	take(&n, N_MESSAGES);
	MUST(a->flow.is_mute);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"late_receive_ring", late_receive_ring},
		{"late_receive_wire", late_receive_wire},
		{"no_receive_wire", no_receive_wire},
		{"window", window},
		{"stopped_peer", stopped_peer},
		{"silent_peer", silent_peer},
		{"stopped_peer_of_many", stopped_peer_of_many},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
