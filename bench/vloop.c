/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	vloop [lat|write|bw|rate|wake|qps|mrs|memory]...      (all)
 *
 * The verbs as a careful program uses them, between two pinned processes: SEND ping-pong,
 * RDMA WRITE ping-pong on memory, a stream, the rate of 64-byte messages in lists of 16 with
 * one signal in 64, a sleeper woken through its completion channel; the same ping-pong over
 * many QPs and many regions; and what an idle QP costs in memory. BENCH_PATH_MTU=1024
 * instead of 4096; BENCH_NETNS: the child is in another network namespace (probe.h).
 */
#include "probe.h"
#include "support/end.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INLINE_MAX 256
#define LIST	   16
#define SIGNAL	   64

static struct windows w;

/* Two connected ends, one here on the first CPU, one in a child on the second. */
struct duo {
	struct end e;
	struct end_id peer;
	pid_t child;
	int sock;
};

static void duo_open(struct duo *d, const struct end_opts *o)
{
	const char *mtu = getenv("BENCH_PATH_MTU");
	struct end_opts opts = {0};
	int s[2];

	if (o)
		opts = *o;
	if (mtu && !strcmp(mtu, "1024"))
		opts.mtu = IBV_MTU_1024;
	begin();
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	d->child = spawn(1);
	d->sock = s[d->child ? 0 : 1];
	close(s[d->child ? 1 : 0]);
	if (d->child)
		pin(0);
	end_open(&d->e, &opts);
}

static void duo_meet(struct duo *d)
{
	MUST(end_meet(&d->e, d->sock, &d->peer));
}

static void duo_close(struct duo *d)
{
	char c = 'q';

	MUST(put_all(d->sock, &c, 1) && get_all(d->sock, &c, 1));
	if (!d->child)
		_exit(0);
	close(d->sock);
	reap(d->child);
	end_close(&d->e);
}

static void post_recvs(struct ibv_qp *qp, uint64_t addr, uint32_t len, uint32_t lkey, int n)
{
	struct ibv_sge sge = {addr, len, lkey};
	struct ibv_recv_wr wr[LIST], *bad;

	for (int i = 0; i < LIST; i++)
		wr[i] = (struct ibv_recv_wr){
			.next = i + 1 < LIST ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1};
	for (; n >= LIST; n -= LIST)
		MUST(!ibv_post_recv(qp, wr, &bad));
	for (; n > 0; n--) {
		wr[0].next = NULL;
		MUST(!ibv_post_recv(qp, wr, &bad));
	}
}

static void send_one(struct ibv_qp *qp, struct ibv_sge *sge, uint64_t i)
{
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	if (sge->length <= INLINE_MAX)
		wr.send_flags |= IBV_SEND_INLINE;
	if (i % SIGNAL == SIGNAL - 1)
		wr.send_flags |= IBV_SEND_SIGNALED;
	MUST(!ibv_post_send(qp, &wr, &bad));
}

static void send_signaled(struct ibv_qp *qp, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	MUST(!ibv_post_send(qp, &wr, &bad));
}

/* Polls until a receive has completed; send completions are taken on the way. */
static void wait_recv(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (;;) {
		SPIN_UNTIL(ibv_poll_cq(cq, 1, &wc) == 1);
		if (wc.status != IBV_WC_SUCCESS)
			die("a completion ended in %s", ibv_wc_status_str(wc.status));
		if (wc.opcode == IBV_WC_RECV)
			return;
	}
}

/* ---- SEND ping-pong */

static void lat(uint32_t n)
{
	enum { TRIPS = 20, WINDOWS = 1000 };
	struct end_opts o = {.len = 16384, .inline_max = INLINE_MAX};
	struct ibv_sge sge;
	struct duo d;

	duo_open(&d, &o);
	sge = (struct ibv_sge){(uintptr_t)d.e.buf, n, d.e.mr->lkey};
	post_recvs(d.e.qp, (uintptr_t)d.e.buf + 8192, 4096, d.e.mr->lkey, 64);
	duo_meet(&d);
	w.n = 0;
	for (uint64_t i = 0; i < TRIPS * WINDOWS; i++) {
		if (i % TRIPS == 0)
			tick(&w);
		if (d.child)
			send_one(d.e.qp, &sge, i);
		wait_recv(d.e.cq);
		if (!d.child)
			send_one(d.e.qp, &sge, i);
		post_recvs(d.e.qp, (uintptr_t)d.e.buf + 8192, 4096, d.e.mr->lkey, 1);
	}
	duo_close(&d);
	emit("vloop SEND one-way", (long)n, "ns", median_window(&w) / TRIPS / 2 * 1e9);
}

/* ---- RDMA WRITE ping-pong: each side looks at the last byte of its memory */

static void write_pingpong(uint32_t n)
{
	enum { TRIPS = 50, WINDOWS = 200 };
	struct end_opts o = {.len = 16384, .inline_max = INLINE_MAX};
	struct duo d;

	duo_open(&d, &o);
	duo_meet(&d);
	w.n = 0;
	for (uint64_t i = 0; i < TRIPS * WINDOWS; i++) {
		uint8_t mark = (uint8_t)(i % 250 + 1);
		volatile uint8_t *in = d.e.buf + 8192 + n - 1;

		if (i % TRIPS == 0)
			tick(&w);
		if (!d.child)
			SPIN_UNTIL(*in == mark);
		d.e.buf[n - 1] = mark;
		MUST(!end_rdma(&d.e, IBV_WR_RDMA_WRITE, 1, n, d.peer.addr + 8192, d.peer.rkey));
		end_done(&d.e, 1);
		if (d.child)
			SPIN_UNTIL(*in == mark);
	}
	duo_close(&d);
	emit("vloop WRITE one-way", (long)n, "ns", median_window(&w) / TRIPS / 2 * 1e9);
}

/* ---- stream */

static void bw(uint32_t n)
{
	enum { DEPTH = 64, WINDOWS = 60 };
	int per = n >= 1 << 20 ? 4 : n >= 65536 ? 32 : 256, total = per * WINDOWS;
	struct end_opts o = {.len = (size_t)n * 2, .recv_wr = 1024, .send_wr = DEPTH, .cqe = 2048};
	struct ibv_wc wc[32];
	int sent = 0, done = 0, k;
	struct duo d;

	duo_open(&d, &o);
	post_recvs(d.e.qp, (uintptr_t)d.e.buf + n, n, d.e.mr->lkey, 512);
	duo_meet(&d);
	w.n = 0;
	while (done < total) {
		for (; d.child && sent < total && sent - done < DEPTH; sent++)
			MUST(!end_send(&d.e, 1, 0, n, IBV_SEND_SIGNALED));
		SPIN_UNTIL((k = ibv_poll_cq(d.e.cq, 32, wc)) != 0);
		MUST(k > 0);
		for (int i = 0; i < k; i++) {
			MUST(wc[i].status == IBV_WC_SUCCESS);
			if (d.child && done++ % per == 0)
				tick(&w);
		}
		if (!d.child) {
			done += k;
			post_recvs(d.e.qp, (uintptr_t)d.e.buf + n, n, d.e.mr->lkey, k);
		}
	}
	duo_close(&d);
	emit("vloop SEND bandwidth", (long)n, "MB/s", (double)n * per / median_window(&w) / 1e6);
}

/* ---- rate */

static void rate_send(struct duo *d, uint64_t total)
{
	enum { DEPTH = 1024, WINDOW = LIST * 256 };
	struct ibv_sge sge = {(uintptr_t)d->e.buf, 64, d->e.mr->lkey};
	struct ibv_send_wr wr[LIST], *bad;
	uint64_t sent = 0, done = 0;
	struct ibv_wc wc[16];

	for (int i = 0; i < LIST; i++)
		wr[i] = (struct ibv_send_wr){.next = i + 1 < LIST ? &wr[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .send_flags = IBV_SEND_INLINE};
	w.n = 0;
	while (done < total) {
		int k;

		if (sent < total && sent - done + LIST <= DEPTH) {
			if (sent % WINDOW == 0)
				tick(&w);
			sent += LIST;
			wr[LIST - 1].send_flags =
				IBV_SEND_INLINE | (sent % SIGNAL ? 0 : IBV_SEND_SIGNALED);
			MUST(!ibv_post_send(d->e.qp, wr, &bad));
			if (sent % (2 * SIGNAL))
				continue;
		}
		k = ibv_poll_cq(d->e.cq, 16, wc);
		MUST(k >= 0);
		for (int i = 0; i < k; i++)
			MUST(wc[i].status == IBV_WC_SUCCESS);
		done += (uint64_t)k * SIGNAL;
		if (!k)
			relax();
	}
}

static void rate_recv(struct duo *d, uint64_t total)
{
	struct ibv_wc wc[64];
	uint64_t got = 0;
	int owed = 0;

	while (got < total) {
		int k;

		SPIN_UNTIL((k = ibv_poll_cq(d->e.cq, 64, wc)) != 0);
		MUST(k > 0 && wc[0].status == IBV_WC_SUCCESS);
		got += (uint64_t)k;
		owed += k;
		if (owed >= 4 * LIST) {
			post_recvs(d->e.qp, (uintptr_t)d->e.buf, 64, d->e.mr->lkey,
				   owed / LIST * LIST);
			owed %= LIST;
		}
	}
}

static void rate(void)
{
	struct end_opts o = {
		.send_wr = 1024, .recv_wr = 8192, .cqe = 10240, .inline_max = INLINE_MAX};
	uint64_t total = LIST * 256 * 200;
	struct duo d;

	duo_open(&d, &o);
	post_recvs(d.e.qp, (uintptr_t)d.e.buf, 64, d.e.mr->lkey, 8192);
	duo_meet(&d);
	if (d.child)
		rate_send(&d, total);
	else
		rate_recv(&d, total);
	duo_close(&d);
	emit("vloop SEND rate", 64, "M/s", LIST * 256 / median_window(&w) / 1e6);
}

/* ---- a sleeper and its channel */

/* The CQ is armed. Sleeps until a receive has completed and leaves the CQ armed. */
static void sleep_recv(struct end *e)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *user;

	for (;;) {
		MUST(!ibv_get_cq_event(e->chan, &cq, &user));
		ibv_ack_cq_events(cq, 1);
		MUST(!ibv_req_notify_cq(cq, 0));
		while (ibv_poll_cq(e->cq, 1, &wc) == 1) {
			MUST(wc.status == IBV_WC_SUCCESS);
			if (wc.opcode == IBV_WC_RECV)
				return;
		}
	}
}

/* The waker pauses long enough for the sleeper to be asleep; the message carries the time. */
static void wake(void)
{
	enum { SAMPLES = 300 };
	struct end_opts o = {.channel = true, .inline_max = INLINE_MAX};
	struct ibv_sge sge;
	double t = 0;
	struct duo d;

	duo_open(&d, &o);
	sge = (struct ibv_sge){(uintptr_t)d.e.buf, 8, d.e.mr->lkey};
	post_recvs(d.e.qp, (uintptr_t)d.e.buf, 64, d.e.mr->lkey, 64);
	MUST(!ibv_req_notify_cq(d.e.cq, 0));
	duo_meet(&d);
	w.n = 0;
	for (int i = 0; i < SAMPLES && !d.child; i++) {
		sleep_recv(&d.e);
		memcpy(&t, d.e.buf, 8);
		sample(&w, wall() - t);
		post_recvs(d.e.qp, (uintptr_t)d.e.buf, 64, d.e.mr->lkey, 1);
	}
	for (int i = 0; i < SAMPLES && d.child; i++) {
		pause_us(WAKE_PAUSE_US);
		t = wall();
		memcpy(d.e.buf, &t, 8);
		send_signaled(d.e.qp, &sge);
		end_done(&d.e, 1);
	}
	t = median_sample(&w);
	MUST(d.child ? get_all(d.sock, &t, sizeof(t)) : put_all(d.sock, &t, sizeof(t)));
	duo_close(&d);
	emit("vloop wake", 8, "ns", t * 1e9);
}

/* ---- growth: the same ping-pong over many queue pairs, or with many regions */

/* More QPs on d's PD and CQ, all connected; the first is d's own. */
static struct ibv_qp **more_qps(struct duo *d, int n)
{
	struct ibv_qp **qp = calloc((size_t)n, sizeof(struct ibv_qp *));
	struct end e = d->e;

	MUST(qp);
	qp[0] = d->e.qp;
	for (int i = 1; i < n; i++) {
		struct ibv_qp_init_attr init = {.send_cq = e.cq,
						.recv_cq = e.cq,
						.qp_type = IBV_QPT_RC,
						.cap = {32, 32, 1, 1, 0}};
		struct end_id peer;

		MUST((qp[i] = ibv_create_qp(e.pd, &init)) != NULL);
		e.qp = qp[i];
		e.id.qpn = qp[i]->qp_num;
		end_init(&e);
		MUST(end_meet(&e, d->sock, &peer));
	}
	return qp;
}

static void many_qps(int n)
{
	enum { TRIPS = 100, WINDOWS = 100 };
	struct end_opts o = {.cqe = (uint32_t)n * 64 + 256};
	struct ibv_qp **qp;
	struct ibv_sge sge;
	struct duo d;

	duo_open(&d, &o);
	sge = (struct ibv_sge){(uintptr_t)d.e.buf, 8, d.e.mr->lkey};
	duo_meet(&d);
	qp = more_qps(&d, n);
	for (int i = 0; i < n; i++)
		post_recvs(qp[i], (uintptr_t)d.e.buf + 64, 64, d.e.mr->lkey, 4);
	MUST(put_all(d.sock, "p", 1) && get_all(d.sock, d.e.buf, 1));
	w.n = 0;
	for (uint64_t i = 0; i < TRIPS * WINDOWS; i++) {
		struct ibv_qp *q = qp[i * 7919 % (uint64_t)n];

		if (i % TRIPS == 0)
			tick(&w);
		if (d.child)
			send_signaled(q, &sge);
		wait_recv(d.e.cq);
		if (!d.child)
			send_signaled(q, &sge);
		post_recvs(q, (uintptr_t)d.e.buf + 64, 64, d.e.mr->lkey, 1);
	}
	for (int i = 1; i < n; i++)
		MUST(!ibv_destroy_qp(qp[i]));
	free(qp);
	duo_close(&d);
	emit("vloop SEND one-way, QPs", n, "ns", median_window(&w) / TRIPS / 2 * 1e9);
}

static void many_mrs(int n)
{
	enum { TRIPS = 100, WINDOWS = 100 };
	struct end_opts o = {.len = (size_t)n * 64 + 4096};
	struct ibv_mr **mr = calloc((size_t)n, sizeof(struct ibv_mr *));
	struct duo d;

	MUST(mr);
	duo_open(&d, &o);
	for (int i = 0; i < n; i++)
		MUST((mr[i] = ibv_reg_mr(d.e.pd, d.e.buf + (size_t)i * 64, 64,
					 IBV_ACCESS_LOCAL_WRITE)) != NULL);
	post_recvs(d.e.qp, (uintptr_t)d.e.buf, 64, mr[0]->lkey, 64);
	duo_meet(&d);
	w.n = 0;
	for (uint64_t i = 0; i < TRIPS * WINDOWS; i++) {
		uint64_t k = i * 7919 % (uint64_t)n;
		struct ibv_sge sge = {(uintptr_t)mr[k]->addr, 8, mr[k]->lkey};

		if (i % TRIPS == 0)
			tick(&w);
		if (d.child)
			send_signaled(d.e.qp, &sge);
		wait_recv(d.e.cq);
		if (!d.child)
			send_signaled(d.e.qp, &sge);
		post_recvs(d.e.qp, (uintptr_t)mr[k]->addr, 64, mr[k]->lkey, 1);
	}
	for (int i = 0; i < n; i++)
		MUST(!ibv_dereg_mr(mr[i]));
	free(mr);
	duo_close(&d);
	emit("vloop SEND one-way, MRs", n, "ns", median_window(&w) / TRIPS / 2 * 1e9);
}

/* Proportional resident memory of this process in bytes. */
static double resident(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	double kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %lf", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

/* One process's share of N connected idle QPs: 32 one-SGE work requests each way. */
static void memory(void)
{
	enum { N = 1000 };
	struct ibv_qp **qp;
	double before;
	struct duo d;

	duo_open(&d, NULL);
	duo_meet(&d);
	before = resident();
	qp = more_qps(&d, N + 1);
	before = (resident() - before) / N;
	free(qp);
	MUST(put_all(d.sock, "m", 1) && get_all(d.sock, d.e.buf, 1));
	if (!d.child)
		_exit(0);
	reap(d.child);
	emit("vloop memory per idle QP", N, "bytes", before);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {8, 64, 256, 4096}, large[] = {4096, 65536, 1 << 20};
	static const int qps[] = {1, 100, 1000}, mrs[] = {1, 1000, 100000};

	for (int i = 0; i < 4 && wanted(argc, argv, "lat"); i++)
		lat(sizes[i]);
	for (int i = 0; i < 2 && wanted(argc, argv, "write"); i++)
		write_pingpong(sizes[i * 2]);
	for (int i = 0; i < 3 && wanted(argc, argv, "bw"); i++)
		bw(large[i]);
	if (wanted(argc, argv, "rate"))
		rate();
	if (wanted(argc, argv, "wake"))
		wake();
	for (int i = 0; i < 3 && wanted(argc, argv, "qps"); i++)
		many_qps(qps[i]);
	for (int i = 0; i < 3 && wanted(argc, argv, "mrs"); i++)
		many_mrs(mrs[i]);
	if (wanted(argc, argv, "memory"))
		memory();
	return 0;
}
