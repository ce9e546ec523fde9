/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receiver leaves after it has got a message whose completion nobody asked for, and which has
 * therefore not asked for an acknowledgement: its sender must not take it for lost.
 */
#include <stdlib.h>
#include <string.h>

#include "hca/fast.h"
#include "kit.h"

enum { DESTROYS, TO_ERROR, EXITS };

static int way;
static bool wire;

static int receiver(int sock, void *arg)
{
	struct vrb_hqp *q;
	struct vrb_wc wc;
	struct node n;

	(void)arg;
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	node_recv(&n, q, 1);
	node_recv(&n, q, 2);
	put_u32(sock, vrb_hqp_qpn(q));
	MUST(!node_connect(q, get_u32(sock)));
	put_u32(sock, 0);
	for (int i = 0; i < 2; i++)
		MUST(node_has_wc(&n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	if (way == DESTROYS)
		MUST(!vrb_hqp_destroy(q));
	if (way == TO_ERROR)
		MUST(!node_to(q, VRB_QPS_ERR));
	if (way == EXITS)
		exit(0);
	(void)get_u32(sock);
	return 0;
}

static void send_unsignaled(struct node *n, struct vrb_hqp *q)
{
	struct vrb_swqe *w;

	vrb_engine_lock(q->e);
	w = vrb_hqp_swqe(q, 0);
	memset(w, 0, VRB_SWQE_HEADER);
	w->len = 20;
	w->op = VRB_WR_SEND;
	w->n_sge = 1;
	w->sge[0] = (struct vrb_sge){.addr = (uintptr_t)n->buf, .len = 20, .lkey = n->mr->lkey};
	if (wire) {
		q->core.asked_at = vrb_clock_now(); /* as if the one before was close */
		vrb_hqp_commit(q, 1);
	} else {
		MUST(vrb_hqp_fast_post(q, w, false));
	}
	vrb_engine_ring_bells(q->e);
	vrb_engine_unlock(q->e);
}

static void leaves(int how)
{
	struct child c;
	struct vrb_hqp *q;
	struct vrb_wc wc;
	struct node n;

	SKIP_FORK_OF_THREADS();
	way = how;
	child_start(&c, receiver, NULL);
	node_open(&n, false);
	q = node_qp(&n, VRB_QPT_RC);
	MUST(!node_connect(q, get_u32(c.sock)));
	put_u32(c.sock, vrb_hqp_qpn(q));
	(void)get_u32(c.sock);
	node_send(&n, q, 1, 20); /* opens the ring */
	MUST(node_has_wc(&n, &wc, WAIT_MS) && wc.status == VRB_WC_SUCCESS);
	send_unsignaled(&n, q);
	for (double end = now_s() + WAIT_MS / 1e3;
	     !vrb_psn_eq(q->core.una_psn, q->core.next_psn);) {
		(void)node_has_wc(&n, &wc, 1);
		MUST(now_s() < end);
	}
	if (how != EXITS)
		put_u32(c.sock, 0);
	child_join(&c);
	MUST(!node_has_wc(&n, &wc, 300) && vrb_hqp_state(q) == VRB_QPS_RTS);
	MUST(!vrb_hqp_destroy(q));
	node_close(&n);
}

static void destroys(void)
{
	leaves(DESTROYS);
}

static void to_error(void)
{
	leaves(TO_ERROR);
}

static void exits(void)
{
	leaves(EXITS);
}

static void by_wire(void)
{
	wire = true;
	setenv("VERBENA_LINK", "udp", 1);
	kit_own_network();
}

static void destroys_wire(void)
{
	by_wire();
	leaves(DESTROYS);
}

static void to_error_wire(void)
{
	by_wire();
	leaves(TO_ERROR);
}

static void exits_wire(void)
{
	by_wire();
	leaves(EXITS);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {{"destroys", destroys},
						{"to_error", to_error},
						{"exits", exits},
						{"destroys_wire", destroys_wire},
						{"to_error_wire", to_error_wire},
						{"exits_wire", exits_wire}};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
