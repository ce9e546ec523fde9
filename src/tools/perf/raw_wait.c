/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting, and the three ways to wait for completions. The number of a request stands in its wr_id,
 * so that one completion retires all before it on its queue pair.
 */
#include "tools/perf/raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define POLL_MAX	16
#define SPIN_NS		(20 * VRB_NS_PER_US) /* adaptive: as long as a wake-up costs */
#define SPINS_PER_CLOCK 32u
#define ACK_BATCH	64u
#define SILENCE_NS	(15 * VRB_NS_PER_S)
#define IDLE_PER_CLOCK	65536u

#define PLACES_ON 509u /* a prime */

#define INDEX_BITS 8
#define INDEX_MASK 0x3fu
#define ID_NOTE	   0x40u /* an empty message */

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static enum ibv_wr_opcode opcode(const struct perf_params *p)
{
	static const enum ibv_wr_opcode op[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	return op[p->verb];
}

void vrb_perf_raw_prepare(struct perf_raw *e)
{
	bool may_inline = e->p->verb != PERF_READ && e->p->size <= e->inline_max;

	for (uint32_t i = 0; i < e->p->batch; i++) {
		e->wr[i] = (struct ibv_send_wr){.next = &e->wr[i + 1],
						.sg_list = e->sge,
						.num_sge = (int)e->p->sges,
						.opcode = opcode(e->p),
						.send_flags = may_inline ? IBV_SEND_INLINE : 0};
		e->wr[i].wr.rdma.remote_addr = e->peer_addr;
		e->wr[i].wr.rdma.rkey = e->peer_rkey;
	}
	for (uint32_t i = 0; i < e->n_qps; i++)
		e->qp[i].to_signal = e->p->signal;
}

/* Each message from another place, so far from the last one that nothing fetches it ahead. */
static void walk(struct perf_raw *e, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		e->place = (e->place + PLACES_ON) % e->places;
		e->walk[i] = e->sge[0];
		e->walk[i].addr += e->place * e->place_len;
		e->wr[i].sg_list = &e->walk[i];
	}
}

bool vrb_perf_raw_post(struct perf_raw *e, struct perf_qp *q, uint32_t n)
{
	unsigned flags = e->wr[0].send_flags & ~(unsigned)IBV_SEND_SIGNALED;
	struct ibv_send_wr *last = &e->wr[n - 1], *bad;
	int r;

	if (e->places)
		walk(e, n);
	for (struct ibv_send_wr *w = e->wr; w <= last; w++) {
		w->wr_id = ++q->posted << INDEX_BITS | q->index;
		w->next = w + 1;
		w->send_flags = flags;
		if (--q->to_signal)
			continue;
		q->to_signal = e->p->signal;
		w->send_flags |= IBV_SEND_SIGNALED;
		if (!q->stamp && e->run->measuring && e->p->mode != PERF_LAT) {
			q->stamp = q->posted;
			q->stamp_ns = vrb_perf_now();
		}
	}
	last->next = NULL;
	r = ibv_post_send(q->qp, e->wr, &bad);
	return !r || vrb_perf_fail(e->run, "ibv_post_send: %s", strerror(r));
}

bool vrb_perf_raw_refill(struct perf_raw *e, struct perf_qp *q, bool all)
{
	struct ibv_recv_wr wr[PERF_RECV_LIST], *bad;
	struct ibv_sge sge[PERF_RECV_LIST];
	int r;

	while (q->missing >= (all ? 1 : e->recv_list)) {
		uint32_t n = q->missing < PERF_RECV_LIST ? q->missing : PERF_RECV_LIST;

		for (uint32_t i = 0; i < n; i++) {
			sge[i] = e->rx;
			wr[i] = (struct ibv_recv_wr){.wr_id = q->index,
						     .next = i + 1 < n ? &wr[i + 1] : NULL,
						     .sg_list = &sge[i],
						     .num_sge = 1};
			if (!e->rx_places)
				continue;
			e->rx_place = (e->rx_place + 1) % e->rx_places;
			sge[i].addr += (uint64_t)e->rx_place * e->p->size;
		}
		r = ibv_post_recv(q->qp, wr, &bad);
		if (r)
			return vrb_perf_fail(e->run, "ibv_post_recv: %s", strerror(r));
		q->missing -= n;
		q->owed += n;
	}
	return true;
}

bool vrb_perf_raw_note(struct perf_raw *e, struct perf_qp *q, uint32_t imm)
{
	struct ibv_send_wr wr = {.wr_id = q->posted << INDEX_BITS | ID_NOTE | q->index,
				 .opcode = e->p->verb == PERF_SEND ? IBV_WR_SEND_WITH_IMM
								   : IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htonl(imm)};
	struct ibv_send_wr *bad;
	int r;

	wr.wr.rdma.remote_addr = e->peer_addr;
	wr.wr.rdma.rkey = e->peer_rkey;
	r = ibv_post_send(q->qp, &wr, &bad);
	return !r || vrb_perf_fail(e->run, "ibv_post_send: %s", strerror(r));
}

static void take_receive(struct perf_raw *e, const struct ibv_wc *wc)
{
	struct perf_qp *q = &e->qp[wc->wr_id & INDEX_MASK];

	q->missing++;
	if (!(wc->wc_flags & IBV_WC_WITH_IMM)) {
		e->arrived++;
		e->where = q;
	} else if (ntohl(wc->imm_data) == PERF_END) {
		e->n_ended++;
	} else {
		q->credit += ntohl(wc->imm_data);
	}
}

static void take_send(struct perf_raw *e, const struct ibv_wc *wc)
{
	struct perf_qp *q = &e->qp[wc->wr_id & INDEX_MASK];
	uint64_t number = wc->wr_id >> INDEX_BITS, now;

	if (e->run->is_client && e->p->mode != PERF_LAT)
		e->run->done += number - q->done;
	q->done = number;
	if (wc->wr_id & ID_NOTE && e->run->is_client)
		e->n_ended++;
	if (!q->stamp || number < q->stamp)
		return;
	now = vrb_perf_now();
	vrb_histogram_add(&e->run->r->lat, now > q->stamp_ns ? now - q->stamp_ns : 0);
	q->stamp = 0;
}

static int take(struct perf_raw *e, const struct ibv_wc *wc, int n)
{
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			vrb_perf_fail(e->run, "a work request ended in \"%s\"",
				      ibv_wc_status_str(wc[i].status));
			return -1;
		}
		if (wc[i].opcode & IBV_WC_RECV)
			take_receive(e, &wc[i]);
		else
			take_send(e, &wc[i]);
	}
	e->run->side.completions += (uint64_t)n;
	e->idle = 0;
	return n;
}

static int look(struct perf_raw *e)
{
	struct ibv_wc wc[POLL_MAX];
	int n = ibv_poll_cq(e->cq, POLL_MAX, wc);

	e->run->side.polls++;
	if (n > 0)
		return take(e, wc, n);
	e->run->side.empty_polls++;
	if (!n)
		return 0;
	vrb_perf_fail(e->run, "ibv_poll_cq failed");
	return -1;
}

/* Arms, looks once more, sleeps: a completion between the look and the arming has made no event. */
static int wait_event(struct perf_raw *e)
{
	struct ibv_cq *cq;
	void *context;
	int n, r = ibv_req_notify_cq(e->cq, 0);

	if (r) {
		vrb_perf_fail(e->run, "ibv_req_notify_cq: %s", strerror(r));
		return -1;
	}
	n = look(e);
	if (n)
		return n;
	if (ibv_get_cq_event(e->channel, &cq, &context)) {
		if (errno == EINTR || errno == EAGAIN)
			return 0;
		vrb_perf_fail(e->run, "ibv_get_cq_event: %s", strerror(errno));
		return -1;
	}
	e->run->side.events++;
	if (++e->unacked >= ACK_BATCH) {
		ibv_ack_cq_events(e->cq, e->unacked);
		e->unacked = 0;
	}
	return look(e);
}

/* Whether to spin on: false after the time that a wake-up costs. */
static bool is_worth_spinning(struct perf_raw *e)
{
	if (e->idle == 1)
		e->idle_ns = vrb_perf_now();
	return e->idle % SPINS_PER_CLOCK || vrb_perf_now() < e->idle_ns + SPIN_NS;
}

static int check_silence(struct perf_raw *e)
{
	uint64_t now = vrb_perf_now();

	if (e->idle == IDLE_PER_CLOCK || !e->run->is_client)
		e->idle_ns = now;
	if (now < e->idle_ns + SILENCE_NS)
		return 0;
	vrb_perf_fail(e->run, "no completion within %llu s",
		      (unsigned long long)(SILENCE_NS / VRB_NS_PER_S));
	return -1;
}

int vrb_perf_raw_poll(struct perf_raw *e, bool may_wait)
{
	int n = look(e);

	if (n || !may_wait)
		return n;
	e->idle++;
	if (e->p->engine == PERF_EVENT || (e->p->engine == PERF_ADAPTIVE && !is_worth_spinning(e)))
		return wait_event(e);
	relax();
	return e->idle % IDLE_PER_CLOCK ? 0 : check_silence(e);
}

bool vrb_perf_raw_drain(struct perf_raw *e, uint32_t imm)
{
	e->n_ended = 0;
	for (uint32_t i = 0; i < e->n_qps; i++)
		if (!vrb_perf_raw_note(e, &e->qp[i], imm))
			return false;
	while (e->n_ended < e->n_qps)
		if (vrb_perf_raw_poll(e, true) < 0)
			return false;
	return true;
}
