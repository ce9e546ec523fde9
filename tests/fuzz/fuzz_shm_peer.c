/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	input bytes ---> [ ring, control page, bell ] ---> engine with queue pairs of all kinds
 *
 * The peer is a liar of the same user: it writes any line, gives any credit, announces any sleeper.
 * The engine is the real one without its helper thread, so that everything happens in the order of
 * the input. Nothing is written outside registered memory (the sanitizers and the canaries see to
 * it), and a posted work request has at most one completion.
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "hca/kit.h"
#include "hca/peer.h"

#define EVENTS_MAX 300
#define N_QPS	   4
#define N_WRS	   4096
#define CANARY	   4096u

static struct node n;
static struct rogue rogue;
static struct vrb_hsrq *srq;
static struct vrb_hqp *qp[N_QPS]; /* RC, UC, UD, RC on the SRQ */
static struct vrb_av av;
static uint8_t *region; /* canary, NODE_LEN registered bytes, canary */
static vrb_ns now;
static uint32_t next_id;
static uint8_t n_done[N_WRS];

static struct vrb_engine *engine(void)
{
	return n.ctx->e;
}

/* What the helper would do with its sockets. */
static void run_sockets(void)
{
	struct vrb_engine *e = engine();
	struct epoll_event ev[8];
	int got;

	while ((got = epoll_wait(e->epoll_fd, ev, 8, 0)) > 0) {
		for (int i = 0; i < got; i++) {
			vrb_engine_lock(e);
			vrb_peer_on_event(e, (uint32_t)(ev[i].data.u64 >> 32),
					  (int)(uint32_t)ev[i].data.u64);
			vrb_engine_unlock(e);
		}
	}
}

static void leave(void)
{
	if (rogue.to < 0)
		return;
	close(rogue.to);
	close(rogue.from);
	run_sockets();
	munmap(rogue.tx.ctl, VRB_SHM_SIZE);
	munmap(rogue.rx.ctl, VRB_SHM_SIZE);
	close(rogue.tx_fd);
	close(rogue.bell_mem);
	close(rogue.bell);
	close(rogue.export);
	rogue.to = -1;
}

static void join(void)
{
	struct vrb_meet_hello h = rogue_hello(&rogue);

	leave();
	rogue_make(&rogue);
	rogue.head = 0;
	rogue.to = rogue_connect(engine()->slot);
	FZ_CHECK(!rogue_say(rogue.to, &h,
			    (int[]){rogue.tx_fd, rogue.bell_mem, rogue.bell, rogue.export}, 4));
	run_sockets();
	rogue_accept(&rogue, engine()->slot);
	FZ_CHECK(atomic_load(&rogue.tx.ctl->attached));
}

static void begin(void)
{
	node_open(&n, false);
	vrb_helper_stop(engine());
	FZ_CHECK(!vrb_hsrq_create(n.pd, 64, 1, 0, &srq, &srq));
	rogue_claim(&rogue);
	region = malloc(NODE_LEN + 2 * CANARY);
	FZ_CHECK(region);
	memcpy(av.dgid.raw + 10, "\xff\xff\x7f\0\0\1", 6);
	FZ_CHECK(!vrb_hah_create(n.pd, &av));
}

static struct vrb_hqp *make_qp(enum vrb_qp_type type, struct vrb_hsrq *s)
{
	struct vrb_hqp_init init = {.type = type,
				    .scq = n.cq,
				    .rcq = n.cq,
				    .srq = s,
				    .max_send_wr = 16,
				    .max_recv_wr = s ? 0 : 16,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .user = &n};
	struct vrb_qp_attr a = {.state = VRB_QPS_INIT, .port = 1, .access = 15, .qkey = 7};
	uint32_t state = VRB_QPA_STATE;
	struct vrb_hqp *q;

	FZ_CHECK(!vrb_hqp_create(n.pd, &init, &q));
	FZ_CHECK(!vrb_hqp_modify(q, &a, state | VRB_QPA_ACCESS | VRB_QPA_QKEY));
	if (type != VRB_QPT_UD) {
		FZ_CHECK(!node_connect(q, rogue.slot << VRB_QPN_INDEX_BITS | 9));
		return q;
	}
	a.state = VRB_QPS_RTR;
	FZ_CHECK(!vrb_hqp_modify(q, &a, state));
	a.state = VRB_QPS_RTS;
	FZ_CHECK(!vrb_hqp_modify(q, &a, state | VRB_QPA_SQ_PSN));
	return q;
}

static void open_qps(void)
{
	qp[0] = make_qp(VRB_QPT_RC, NULL);
	qp[1] = make_qp(VRB_QPT_UC, NULL);
	qp[2] = make_qp(VRB_QPT_UD, NULL);
	qp[3] = make_qp(VRB_QPT_RC, srq);
}

/* ---- what the peer writes */

static uint32_t near(struct fz *f, uint32_t v)
{
	uint8_t b = fz_u8(f);

	if (b == 255)
		return fz_u32(f);
	return b < 128 ? v : v + b - 192u;
}

/* Header fields as link/shm.c lays them out; good keys and addresses more often than not. */
static void fill_body(struct fz *f, uint8_t op, uint8_t body[VRB_SHM_BODY])
{
	uint32_t flags = vrb_op_flags((struct vrb_opcode){op}), rkey = near(f, n.mr->rkey), at = 0;
	uint64_t va = (uintptr_t)n.buf + near(f, 64);

	for (uint32_t i = 0; i < VRB_SHM_BODY && f->n; i++)
		body[i] = fz_u8(f);
	if (flags & (VRB_OPF_RETH | VRB_OPF_ATOMICETH)) {
		memcpy(body, &va, 8);
		memcpy(body + 8, &rkey, 4);
		at = 12;
	}
	if (flags & VRB_OPF_RETH && body[at + 1]) {
		uint32_t len = body[at] % 2 ? body[at + 1] : (uint32_t)body[at + 1] << 9;

		memcpy(body + at, &len, 4);
	}
	if (flags & VRB_OPF_DETH && body[0] % 4)
		memcpy(body, "\7\0\0\0", 4);
}

static void refer_to_data(struct fz *f, uint8_t op, uint8_t body[VRB_SHM_BODY])
{
	uint32_t flags = vrb_op_flags((struct vrb_opcode){op}), at = 0, len, end;

	at += flags & (VRB_OPF_RETH | VRB_OPF_ATOMICETH) ? 12 : 0;
	at += flags & VRB_OPF_RETH ? 4 : 0;
	at += flags & VRB_OPF_AETH ? 5 : 0;
	at += flags & VRB_OPF_DETH ? 40 : 0;
	at += flags & (VRB_OPF_IMM | VRB_OPF_INV) ? 4 : 0;
	len = fz_u8(f) % 2 ? fz_u32(f) % 20000 : fz_u32(f);
	end = fz_u8(f) % 4 ? (len + 63) & ~63u : fz_u32(f);
	if (at + 8 > VRB_SHM_BODY)
		return;
	memcpy(body + at, &end, 4);
	memcpy(body + at + 4, &len, 4);
}

static void write_line(struct fz *f)
{
	struct vrb_hqp *q = qp[fz_u8(f) % N_QPS];
	uint8_t body[VRB_SHM_BODY] = {0}, shape = fz_u8(f);
	struct rogue_line l = {.op = fz_u8(f), .body = body, .body_len = sizeof(body)};

	l.flags = fz_u8(f) & 31;
	l.index = shape & 1 ? (uint16_t)fz_u32(f) : (uint16_t)vrb_hqp_qpn(q);
	if (shape & 2)
		l.op = (uint8_t)((q->core.type == VRB_QPT_UC   ? VRB_TP_UC
				  : q->core.type == VRB_QPT_UD ? VRB_TP_UD
							       : VRB_TP_RC) |
				 (l.op & 31));
	l.psn = near(f, shape & 4 ? q->core.una_psn.v : q->core.epsn.v);
	l.ack = near(f, q->core.next_psn.v - 1) & 0xffffff;
	fill_body(f, l.op, body);
	if (l.flags & VRB_SHM_DATA_REF)
		refer_to_data(f, l.op, body);
	else
		l.ack |= (uint32_t)(fz_u8(f) % (shape & 8 ? 256 : 20)) << 24;
	if (shape & 16)
		l.op = VRB_SHM_OP_DIRECT;
	rogue_write(&rogue, &l);
}

static void write_raw(struct fz *f)
{
	struct vrb_shm_line *line = &rogue.tx.line[fz_u8(f) % VRB_SHM_LINES];

	for (size_t i = 0; i < sizeof(*line) && f->n; i++)
		((volatile uint8_t *)line)[i] = fz_u8(f);
}

static void give_credit(struct fz *f)
{
	struct vrb_peer *p = engine()->peer[rogue.slot];

	atomic_store(&rogue.rx.ctl->lines_used, near(f, p->tx.head));
	atomic_store(&rogue.rx.ctl->data_used, near(f, p->tx.data_head));
	atomic_store(&rogue.rx.ctl->want_credit, fz_u8(f) & 1);
	atomic_store(&rogue.tx.ctl->want_credit, fz_u8(f));
	atomic_store(&rogue.tx.ctl->sender_cpu, fz_u32(f));
}

/* ---- what the application does */

static uint64_t take_id(void)
{
	next_id = (next_id + 1) % N_WRS;
	n_done[next_id] = 0;
	return next_id;
}

static void fill_sge(struct fz *f, struct vrb_sge *s, bool must_fit)
{
	uint32_t len = must_fit ? fz_u8(f) : (uint32_t)fz_u8(f) << 5;

	*s = (struct vrb_sge){(uintptr_t)n.buf + (uint32_t)fz_u8(f) * 64, len, n.mr->lkey};
}

static void post_recv(struct fz *f)
{
	struct vrb_hqp *q = qp[fz_u8(f) % N_QPS];
	struct vrb_wq *wq = q->core.srq ? &srq->core.wq : &q->core.rq;
	struct vrb_rwqe *w;

	if (wq->tail - wq->head >= wq->cap)
		return;
	vrb_engine_lock(engine());
	w = vrb_wq_entry(wq, wq->tail);
	w->wr_id = take_id();
	w->n_sge = 1;
	fill_sge(f, w->sge, false);
	w->len = w->sge[0].len;
	if (q->core.srq)
		wq->tail++;
	else
		vrb_hqp_commit_recv(q, 1);
	vrb_engine_unlock(engine());
}

static void post_send(struct fz *f)
{
	struct vrb_hqp *q = qp[fz_u8(f) % N_QPS];
	struct vrb_swqe *w;

	if (vrb_qp_sq_used(&q->core) >= q->core.sq.cap || q->core.state < VRB_QPS_RTS)
		return;
	vrb_engine_lock(engine());
	w = vrb_hqp_swqe(q, 0);
	memset(w, 0, VRB_SWQE_HEADER);
	w->wr_id = take_id();
	w->op = q->core.type == VRB_QPT_UD ? VRB_WR_SEND : fz_u8(f) % (VRB_WR_FETCH_ADD + 1);
	w->flags = fz_u8(f) & (VRB_WRF_FENCE | VRB_WRF_SIGNALED | VRB_WRF_SOLICITED);
	w->n_sge = 1;
	fill_sge(f, w->sge, q->core.type == VRB_QPT_UD);
	if (w->op >= VRB_WR_CMP_SWAP)
		w->sge[0].len = 8;
	w->len = w->sge[0].len;
	if (q->core.type == VRB_QPT_UD) {
		w->ud.av = &av;
		w->ud.qpn =
			fz_u8(f) % 2 ? rogue.slot << VRB_QPN_INDEX_BITS | 5 : vrb_hqp_qpn(qp[2]);
		w->ud.qkey = 7;
	} else {
		w->va = fz_u32(f);
		w->rkey = fz_u32(f);
	}
	vrb_hqp_commit(q, 1);
	vrb_engine_unlock(engine());
}

static void poll_all(void)
{
	struct vrb_wc wc;

	while (vrb_hcq_poll(n.cq, 1, &wc) == 1) {
		FZ_CHECK(wc.wr_id < N_WRS);
		FZ_CHECK(++n_done[wc.wr_id] == 1);
	}
}

static void turn(void)
{
	vrb_engine_lock(engine());
	vrb_engine_turn(engine(), now);
	vrb_engine_unlock(engine());
}

static void change_state(struct fz *f)
{
	struct vrb_hqp *q = qp[fz_u8(f) % N_QPS];
	uint8_t b = fz_u8(f);

	if (b % 3 == 0)
		MUST(!node_to(q, VRB_QPS_ERR));
	else if (q->core.state == VRB_QPS_RTS && b % 3 == 1)
		MUST(!node_to(q, VRB_QPS_SQD));
	else if (q->core.state == VRB_QPS_SQD)
		MUST(!node_to(q, VRB_QPS_RTS));
}

static void step(struct fz *f)
{
	uint8_t b = fz_u8(f);

	if (b < 110)
		write_line(f);
	else if (b < 120)
		write_raw(f);
	else if (b < 140)
		give_credit(f);
	else if (b < 170)
		post_recv(f);
	else if (b < 200)
		post_send(f);
	else if (b < 215)
		poll_all();
	else if (b < 220)
		change_state(f);
	else if (b < 240)
		now += (vrb_ns)(fz_u8(f) + 1) * VRB_NS_PER_MS;
	else
		turn();
}

static void check_canaries(void)
{
	for (uint32_t i = 0; i < CANARY; i++)
		FZ_CHECK(region[i] == 0xca && region[CANARY + NODE_LEN + i] == 0xca);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz f = {data, size};
	struct vrb_hmr *whole = n.mr;
	uint8_t *pages = n.buf;

	if (!n.ctx) {
		begin();
		whole = n.mr;
		pages = n.buf;
	}
	memset(region, 0xca, NODE_LEN + 2 * CANARY);
	n.buf = region + CANARY;
	FZ_CHECK(!vrb_hmr_reg(n.pd, n.buf, NODE_LEN, (uintptr_t)n.buf, 15, &n.mr));
	join();
	open_qps();
	now = vrb_clock_now();
	for (int i = 0; i < EVENTS_MAX && f.n; i++)
		step(&f);
	for (int i = 0; i < 8; i++) {
		turn();
		poll_all();
	}
	run_sockets();
	for (int i = 0; i < N_QPS; i++)
		FZ_CHECK(!vrb_hqp_destroy(qp[i]));
	srq->core.wq.head = srq->core.wq.tail;
	FZ_CHECK(!vrb_hmr_dereg(n.mr));
	check_canaries();
	n.mr = whole;
	n.buf = pages;
	return 0;
}
