/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes come to an address and leave it, or are killed, while a stream of unreliable messages
 * goes on between two others. Each change moves sockets in the kernel's group, so that packets of
 * the stream reach other processes for a moment; every message must arrive all the same, and those
 * of a connection in order. A kill may cost what the kernel has given to the dying socket, no more.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "hca/wire.h"
#include "kit.h"

#define ROUNDS	 16u
#define STEP_US	 4000u	 /* between two changes */
#define CALM_US	 400000u /* after kills: what is sent then arrives */
#define SLOTS	 256u	 /* receives, each with a place of its own */
#define PLACE	 (NODE_LEN / 2 / SLOTS)
#define LEN	 64u
#define SENDS	 64u
#define PATIENCE 3.0

/* How a process leaves. */
enum leave { CLOSES, KILLED };

static enum vrb_qp_type type;

static void open_node(struct node *n)
{
	setenv("VERBENA_LINK", "udp", 1);
	node_open(n, false);
}

/* Opens the sockets of the address; leaves when it is told to. */
static int comer(int sock, void *arg)
{
	struct vrb_hqp *q;
	struct node n;

	(void)arg;
	open_node(&n);
	q = node_qp(&n, VRB_QPT_UC);
	MUST(!node_connect(q, 0xfe0001));
	put_u32(sock, 0);
	(void)get_u32(sock);
	vrb_hqp_destroy(q);
	node_close(&n);
	return 0;
}

/* ---- the stream */

static struct vrb_hqp *open_line(struct node *n, int sock, vrb_qpn *to)
{
	struct vrb_hqp *q;

	open_node(n);
	q = node_qp(n, type);
	put_u32(sock, vrb_hqp_qpn(q));
	*to = get_u32(sock);
	if (type == VRB_QPT_UC)
		MUST(!node_connect(q, *to));
	return q;
}

static bool is_told(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void post_send(struct node *n, struct vrb_hqp *q, const struct vrb_swqe *form, uint32_t i)
{
	uint8_t *at = n->buf + i % SENDS * LEN;
	struct vrb_swqe *w;

	memcpy(at, &i, sizeof(i));
	vrb_engine_lock(q->e);
	w = vrb_hqp_swqe(q, 0);
	memcpy(w, form, VRB_SWQE_HEADER);
	w->len = LEN;
	w->op = VRB_WR_SEND;
	w->flags = VRB_WRF_SIGNALED;
	w->n_sge = 1;
	w->sge[0] = (struct vrb_sge){.addr = (uintptr_t)at, .len = LEN, .lkey = n->mr->lkey};
	vrb_hqp_commit(q, 1);
	vrb_engine_unlock(q->e);
}

static int sender(int sock, void *arg)
{
	struct vrb_swqe form = {0};
	struct vrb_av av = {0};
	uint32_t n_sent = 0, busy = 0;
	struct vrb_hqp *q;
	struct vrb_wc wc;
	struct node n;
	vrb_qpn to;

	(void)arg;
	q = open_line(&n, sock, &to);
	if (type == VRB_QPT_UD) {
		av.dgid = n.ctx->dev->gid[0].gid;
		MUST(!vrb_hah_create(n.pd, &av));
		form.ud.av = &av;
		form.ud.qpn = to;
		form.ud.qkey = 7;
	}
	put_u32(sock, 0);
	(void)get_u32(sock);
	while (!is_told(sock)) {
		while (busy < SENDS) {
			post_send(&n, q, &form, n_sent++);
			busy++;
		}
		MUST(node_has_wc(&n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
		busy--;
	}
	for (; busy; busy--)
		MUST(node_has_wc(&n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	(void)get_u32(sock);
	put_u32(sock, n_sent);
	(void)get_u32(sock);
	return 0;
}

static void post_recv(struct node *n, struct vrb_hqp *q, uint64_t i)
{
	struct vrb_rwqe *w;

	vrb_engine_lock(q->e);
	w = vrb_wq_entry(&q->core.rq, q->core.rq.tail);
	w->wr_id = i;
	w->n_sge = 1;
	w->len = PLACE;
	w->sge[0] = (struct vrb_sge){.addr = (uintptr_t)n->buf + NODE_LEN / 2 + i * PLACE,
				     .len = PLACE,
				     .lkey = n->mr->lkey};
	vrb_hqp_commit_recv(q, 1);
	vrb_engine_unlock(q->e);
}

static uint32_t number_at(const struct node *n, uint64_t i)
{
	uint32_t v, grh = type == VRB_QPT_UD ? VRB_GRH_LEN : 0;

	memcpy(&v, n->buf + NODE_LEN / 2 + i * PLACE + grh, sizeof(v));
	return v;
}

/* What came: how many, how often not the next, how often an earlier one. */
struct came {
	uint32_t n, next, n_odd, n_back;
};

static int receiver(int sock, void *arg)
{
	struct came came = {0};
	uint32_t want = UINT32_MAX;
	struct vrb_hqp *q;
	struct vrb_wc wc;
	struct node n;
	double end = 0;
	vrb_qpn to;

	(void)arg;
	q = open_line(&n, sock, &to);
	for (uint32_t i = 0; i < SLOTS; i++)
		post_recv(&n, q, i);
	put_u32(sock, 0);
	while (came.next != want && (!end || now_s() < end)) {
		if (node_has_wc(&n, &wc, 1)) {
			uint32_t v = number_at(&n, wc.wr_id);

			MUST(wc.status == VRB_WC_SUCCESS);
			came.n++;
			came.n_odd += v != came.next;
			came.n_back += v < came.next;
			came.next = v + 1;
			post_recv(&n, q, wc.wr_id);
		} else if (!end && is_told(sock)) {
			want = get_u32(sock);
			end = now_s() + PATIENCE;
		}
	}
	put(sock, &came, sizeof(came));
	return 0;
}

/* ---- the controller */

static void join(struct child *c)
{
	child_start(c, comer, NULL);
	(void)get_u32(c->sock);
}

static void leave(struct child *c, enum leave how)
{
	if (how == KILLED) {
		child_kill(c);
	} else {
		put_u32(c->sock, 0);
		child_join(c);
	}
}

/* The receiver comes last: with each earlier one that leaves, its socket takes that one's place. */
static uint32_t stream(enum leave how, uint32_t round)
{
	struct child c[3], from, to;
	struct came came;
	uint32_t qpn, n;
	bool bad;

	join(&c[0]);
	join(&c[1]);
	child_start(&from, sender, NULL);
	qpn = get_u32(from.sock);
	child_start(&to, receiver, NULL);
	put_u32(from.sock, get_u32(to.sock));
	put_u32(to.sock, qpn);
	(void)get_u32(to.sock);
	(void)get_u32(from.sock);
	put_u32(from.sock, 0);
	for (uint32_t i = 0; i < 5; i++) {
		usleep(STEP_US + round * 97);
		if (i == 1)
			join(&c[2]);
		else if (i < 4)
			leave(&c[i ? i - 1 : 0], how);
	}
	usleep(how == KILLED ? CALM_US : 0);
	put_u32(from.sock, 0);
	n = get_u32(from.sock);
	put_u32(to.sock, n);
	get(to.sock, &came, sizeof(came));
	put_u32(from.sock, 0);
	child_join(&to);
	child_join(&from);
	bad = came.next != n || (type == VRB_QPT_UC && came.n_back) ||
	      (how == CLOSES && came.n != n);
	if (bad)
		fprintf(stderr, "round %u: %u of %u messages, %u not the next, %u earlier\n", round,
			came.n, n, came.n_odd, came.n_back);
	return bad;
}

static void moving(enum vrb_qp_type t, enum leave how)
{
	uint32_t bad = 0;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	type = t;
	for (uint32_t round = 0; round < ROUNDS; round++)
		bad += stream(how, round);
	if (bad)
		fprintf(stderr, "%u of %u rounds lost messages or order\n", bad, ROUNDS);
	MUST(!bad);
}

/* ---- what overtakes, one by one */

/* Message i of a connection, as if another process had received it. */
static void carry_in(struct vrb_hqp *q, struct vrb_psn first, uint32_t i)
{
	struct vrb_net net = {.src = q->wire.dst, .dst = q->wire.addr->udp->gid, .ttl = 64};
	struct vrb_pkt pkt = {.op = vrb_opcode(VRB_TP_UC, VRB_OP_SEND_ONLY),
			      .pkey = 0xffff,
			      .psn = vrb_psn_add(first, i),
			      .dqpn = vrb_hqp_qpn(q),
			      .len = sizeof(i)};
	uint8_t bytes[sizeof(net) + VRB_HEADERS_MAX + sizeof(i)];
	size_t n = sizeof(net);

	memcpy(bytes, &net, n);
	n += vrb_pkt_emit_headers(&pkt, bytes + n);
	memcpy(bytes + n, &i, sizeof(i));
	vrb_engine_lock(q->e);
	MUST(vrb_wire_carried(q->e, bytes, (uint32_t)(n + sizeof(i))));
	vrb_engine_unlock(q->e);
}

static void want(struct node *n, uint32_t i)
{
	struct vrb_wc wc;

	MUST(node_has_wc(n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	MUST(number_at(n, wc.wr_id) == i);
}

static void overtaken(void)
{
	struct vrb_psn first;
	struct vrb_hqp *q;
	struct vrb_wc wc;
	struct node n;
	double start;

	kit_own_network();
	type = VRB_QPT_UC;
	open_node(&n);
	q = node_qp(&n, type);
	MUST(!node_connect(q, 0xfe0001));
	first = q->core.epsn;
	for (uint32_t i = 0; i < 8; i++)
		post_recv(&n, q, i);
	carry_in(q, first, 2);
	carry_in(q, first, 1);
	MUST(!node_has_wc(&n, &wc, 1));
	carry_in(q, first, 0);
	for (uint32_t i = 0; i < 3; i++)
		want(&n, i);
	/* what does not come is lost in the end */
	start = (double)vrb_peek(&n.ctx->e->now) / 1e9;
	carry_in(q, first, 5);
	carry_in(q, first, 4);
	want(&n, 4);
	MUST((double)vrb_clock_now() / 1e9 - start > 0.3);
	want(&n, 5);
	/* what is kept ends with the connection */
	carry_in(q, first, 7);
	MUST(!node_to(q, VRB_QPS_RESET));
	MUST(!q->kept.n && !node_has_wc(&n, &wc, 1));
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

/* ---- an owner that does not look */

/* Has a slot and no socket: what comes for it is carried to it. */
static int owner(int sock, void *arg)
{
	struct node n;

	(void)arg;
	open_node(&n);
	put_u32(sock, n.ctx->e->slot);
	(void)get_u32(sock);
	node_close(&n);
	return 0;
}

static void take(struct node *n, uint32_t count)
{
	struct vrb_wc wc;

	while (count--)
		MUST(node_has_wc(n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
}

/* What the ring of a stopped process does not hold waits beside it, and holds up nobody. */
static void slow_owner(void)
{
	struct vrb_hqp *away, *from, *to;
	struct vrb_peer *p;
	struct child c;
	struct node n;
	uint32_t slot;

	SKIP_FORK_OF_THREADS();
	kit_own_network();
	child_start(&c, owner, NULL);
	slot = get_u32(c.sock);
	open_node(&n);
	away = node_qp(&n, VRB_QPT_UC);
	from = node_qp(&n, VRB_QPT_UC);
	to = node_qp(&n, VRB_QPT_UC);
	MUST(!node_connect(away, slot << VRB_QPN_INDEX_BITS | 5));
	MUST(!node_connect(to, vrb_hqp_qpn(from)) && !node_connect(from, vrb_hqp_qpn(to)));
	node_send(&n, away, 1, LEN); /* opens the ring */
	take(&n, 1);
	child_stop(&c);
	for (uint32_t i = 0; i < VRB_SHM_LINES + 40; i++)
		node_send(&n, away, 1, LEN);
	take(&n, VRB_SHM_LINES + 40);
	node_recv(&n, to, 2);
	node_send(&n, from, 3, LEN);
	take(&n, 2);
	p = n.ctx->e->peer[slot];
	MUST(p && p->n_carry > 0);
	kill(c.pid, SIGCONT);
	for (double end = now_s() + WAIT_MS / 1e3; p->n_carry; usleep(1000))
		MUST(now_s() < end);
	put_u32(c.sock, 0);
	child_join(&c);
	MUST(!vrb_hqp_destroy(away) && !vrb_hqp_destroy(from) && !vrb_hqp_destroy(to));
	node_close(&n);
}

static void uc_closes(void)
{
	moving(VRB_QPT_UC, CLOSES);
}

static void uc_killed(void)
{
	moving(VRB_QPT_UC, KILLED);
}

static void ud_closes(void)
{
	moving(VRB_QPT_UD, CLOSES);
}

static void ud_killed(void)
{
	moving(VRB_QPT_UD, KILLED);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"overtaken", overtaken}, {"slow_owner", slow_owner}, {"uc_closes", uc_closes},
		{"uc_killed", uc_killed}, {"ud_closes", ud_closes},   {"ud_killed", ud_killed},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
