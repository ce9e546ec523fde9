/* SPDX-License-Identifier: BSD-2-Clause */
/* What a tool is told of a process's objects (hca/rows.h): numbers that add up, whoever asks. */
#include "kit.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/qp.h"
#include "hca/engine.h"
#include "verbena/stats.h"

#define ANSWER_MS 60000

struct answer {
	struct vrb_rows head;
	struct vrb_row_qp qp[VRB_ROWS_MAX];
	struct vrb_row_cq cq[VRB_ROWS_MAX];
	struct vrb_row_mr mr[VRB_ROWS_MAX];
	struct vrb_stats_page page;
};
static struct answer a;

/* Outside readers have them from here, tests/e2e/top among them. */
VRB_STATIC_ASSERT(sizeof(struct vrb_rows) == 80 && sizeof(struct vrb_row_qp) == 232 &&
			  sizeof(struct vrb_row_cq) == 32 && sizeof(struct vrb_row_mr) == 64,
		  "the layout is public");

static void take(int fd, off_t *at, void *to, size_t n)
{
	MUST(pread(fd, to, n, *at) == (ssize_t)n);
	*at += (off_t)n;
}

/* Asks this process itself; its helper answers. */
static void ask(uint32_t from)
{
	struct vrb_meet_hello h = {.magic = VRB_MEET_MAGIC,
				   .version = VRB_MEET_VERSION,
				   .type = VRB_MEET_ROWS,
				   .arg = from};
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} c = {0};
	struct iovec iov = {&h, sizeof(h)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = c.buf,
			   .msg_controllen = sizeof(c.buf)};
	int sock = rogue_connect(vrb_engine_current->slot), fd[2];
	struct pollfd p = {.fd = sock, .events = POLLIN};
	off_t at = 0;

	MUST(!rogue_say(sock, &h, NULL, 0));
	MUST(poll(&p, 1, ANSWER_MS) == 1 && recvmsg(sock, &m, MSG_CMSG_CLOEXEC) == sizeof(h));
	MUST(h.type == VRB_MEET_ROWS && CMSG_FIRSTHDR(&m) && c.h.cmsg_len == CMSG_LEN(sizeof(fd)));
	memcpy(fd, CMSG_DATA(&c.h), sizeof(fd));
	take(fd[0], &at, &a.head, sizeof(a.head));
	MUST(a.head.magic == VRB_ROWS_MAGIC && a.head.pid == (uint32_t)getpid());
	take(fd[0], &at, a.qp, a.head.n_qps * sizeof(a.qp[0]));
	take(fd[0], &at, a.cq, a.head.n_cqs * sizeof(a.cq[0]));
	take(fd[0], &at, a.mr, a.head.n_mrs * sizeof(a.mr[0]));
	at = 0;
	take(fd[1], &at, &a.page, sizeof(a.page));
	close(fd[0]);
	close(fd[1]);
	close(sock);
}

static const struct vrb_row_qp *row(const struct vrb_hqp *q)
{
	for (uint32_t i = 0; i < a.head.n_qps; i++)
		if (a.qp[i].qpn == vrb_hqp_qpn(q))
			return &a.qp[i];
	MUST(!"a row for this queue pair");
	return NULL;
}

static void await(struct node *n, unsigned completions)
{
	struct vrb_wc wc;

	while (completions--)
		MUST(node_has_wc(n, &wc, ANSWER_MS) && wc.status == VRB_WC_SUCCESS);
}

static void messages(void)
{
	const struct vrb_row_qp *r;
	struct vrb_hqp *s, *t;
	struct node n;

	node_open(&n, false);
	s = node_qp(&n, VRB_QPT_RC);
	t = node_qp(&n, VRB_QPT_RC);
	MUST(!node_connect(s, vrb_hqp_qpn(t)) && !node_connect(t, vrb_hqp_qpn(s)));
	for (int i = 0; i < 7; i++)
		node_recv(&n, t, 1);
	for (int i = 0; i < 5; i++)
		node_send(&n, s, 2, 100);
	await(&n, 10);
	ask(0);
	MUST(a.head.n_qps == 2 && a.head.n_cqs == 1 && a.head.n_mrs == 1 && !a.head.next);
	r = row(s);
	/* bytes: on a busy machine some may have gone twice */
	MUST(r->sent == 5 && r->taken == 0 && r->tx_bytes >= 500 && r->outstanding == 0);
	MUST(a.page.device[r->device].tx_bytes == r->tx_bytes);
	MUST(r->state == VRB_QPS_RTS && r->type == VRB_QPT_RC && r->peer_qpn == vrb_hqp_qpn(t));
	MUST(r->link == VRB_ROW_SAME_HOST && r->peer_pid == (uint32_t)getpid());
	MUST(r->send_room == 512);
	r = row(t);
	MUST(r->taken == 5 && r->sent == 0 && r->rx_bytes >= 500 && r->recv_used == 2);
	MUST(a.cq[0].pushed == 10 && a.cq[0].used == 0 && a.cq[0].room == 4096);
	MUST(a.mr[0].length == NODE_LEN && a.mr[0].lkey == n.mr->lkey &&
	     a.mr[0].addr == (uintptr_t)n.buf && a.head.registered_bytes == NODE_LEN);
	/* the sums outlive the queue pairs, and a reset loses none */
	MUST(!node_to(s, VRB_QPS_RESET) && !node_to(t, VRB_QPS_RESET));
	ask(0);
	MUST(row(s)->sent == 5 && row(t)->taken == 5 && row(s)->state == VRB_QPS_RESET);
	MUST(!vrb_hqp_destroy(s) && !vrb_hqp_destroy(t));
	ask(0);
	MUST(a.head.n_qps == 0 && a.page.device[0].tx_bytes >= 500 &&
	     a.page.device[0].rx_bytes >= 500);
	node_close(&n);
}

/* Messages that wait for completions to be polled, and one that nobody takes. */
static void waiting(void)
{
	const struct vrb_row_qp *r;
	struct vrb_hqp *s, *t;
	struct vrb_wc wc;
	struct node n;

	node_open(&n, false);
	s = node_qp(&n, VRB_QPT_RC);
	t = node_qp(&n, VRB_QPT_RC);
	MUST(!node_connect(s, vrb_hqp_qpn(t)) && !node_connect(t, vrb_hqp_qpn(s)));
	node_send(&n, s, 2, 100);
	/* no receive: an RNR NAK, again and again, while we poll */
	do {
		MUST(!node_has_wc(&n, &wc, 1));
		ask(0);
		r = row(s);
	} while (!r->rnr_naks_received);
	MUST(r->outstanding == 1 && r->send_used == 1);
	MUST(r->verdict[0] && r->verdict_ns && r->verdict_ns <= a.head.now_ns);
	MUST(row(t)->rnr_naks_sent);
	MUST(a.page.device[r->device].rnr_naks_received && a.page.device[r->device].rnr_naks_sent);
	node_recv(&n, t, 1);
	await(&n, 2);
	MUST(!vrb_hqp_destroy(s) && !vrb_hqp_destroy(t));
	node_close(&n);
}

/* More than one answer holds. */
static void many(void)
{
	enum { N = VRB_ROWS_MAX + 100 };
	static struct vrb_hqp *q[N];
	static bool seen[N];
	struct vrb_hmr *mr[3];
	uint32_t n_seen = 0;
	struct node n;

	node_open(&n, false);
	for (int i = 0; i < N; i++)
		q[i] = node_qp(&n, VRB_QPT_UD);
	for (int i = 0; i < 3; i++)
		MUST(!vrb_hmr_reg(n.pd, n.buf, 4096u << i, 0, 1, &mr[i]));
	for (uint32_t from = 0, rounds = 0; rounds == 0 || from; rounds++) {
		MUST(rounds < 3);
		ask(from);
		MUST(a.head.n_cqs == (rounds ? 0 : 1) && a.head.n_mrs == (rounds ? 0 : 4));
		for (int i = 0; i < N; i++) {
			for (uint32_t k = 0; k < a.head.n_qps; k++) {
				if (a.qp[k].qpn != vrb_hqp_qpn(q[i]))
					continue;
				MUST(!seen[i]);
				seen[i] = true;
				n_seen++;
			}
		}
		if (!rounds) /* the newest first */
			MUST(a.mr[0].lkey == mr[2]->lkey && a.mr[3].lkey == n.mr->lkey);
		from = a.head.next;
	}
	MUST(n_seen == N);
	ask(UINT32_MAX); /* beyond the last */
	MUST(!a.head.n_qps && !a.head.next);
	/* a region that moves stays in its list */
	MUST(!vrb_hmr_rereg(mr[1], NULL, n.buf + 4096, 4096, UINT32_MAX));
	MUST(!vrb_hmr_dereg(mr[0]) && !vrb_hmr_dereg(mr[2]));
	ask(0);
	MUST(a.head.n_mrs == 2 && a.mr[0].addr == (uintptr_t)n.buf + 4096);
	MUST(!vrb_hmr_dereg(mr[1]));
	for (int i = 0; i < N; i++)
		MUST(!vrb_hqp_destroy(q[i]));
	node_close(&n);
}

/* The second device only: its row is not the first, and is read all the same. */
static void second_device(void)
{
	struct vrb_hdev *list[VRB_DEVICES_MAX], other;
	struct vrb_hctx *ctx;

	if (vrb_hca_devices(list) < 1)
		_exit(77);
	other = *list[0];
	other.index = 1;
	strcpy(other.name, "other");
	MUST(!vrb_hctx_open(&other, &ctx));
	ask(0);
	MUST(a.page.n_devices == 2 && !strcmp(a.page.device[1].name, "other"));
	vrb_hctx_close(ctx);
}

int main(int argc, char **argv)
{
	static const struct kit_test tests[] = {
		{"messages", messages},
		{"waiting", waiting},
		{"many", many},
		{"second_device", second_device},
	};

	return kit_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
