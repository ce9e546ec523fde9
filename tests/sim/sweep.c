/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Goodput on virtual time: one end streams messages to the other for a while, over a wire of known
 * latency and rate that loses frames both ways, with the window law of core/window.h. Time is
 * virtual and chance is seeded, so the figures are the same on every machine.
 *
 * sim_sweep            the table, and what must hold in it
 * sim_sweep OP LOSS    one run with its trace (OP as in the table, LOSS per million)
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "link/fault.h"
#include "link/hold.h"
#include "link/sim.h"
#include "sim/simnet.h"

#define DEPTH	 16u /* messages posted ahead */
#define MSG_LEN	 32768u
#define RUN_NS	 (400 * VRB_NS_PER_MS)
#define LATENCY	 10000u
#define PS_BYTE	 400u /* 2.5 GB/s */
#define MTU_CODE 5u
#define WINDOW	 48u /* the most */
#define PROBES	 12u /* in 10 ms of silence */

static const struct {
	const char *name;
	enum vrb_wr_op op;
	uint32_t len;
} ops[] = {
	{"SEND", VRB_WR_SEND, MSG_LEN},
	{"WRITE", VRB_WR_WRITE, MSG_LEN},
	{"READ", VRB_WR_READ, MSG_LEN},
	{"CAS", VRB_WR_CMP_SWAP, 8},
};
#define N_OPS (sizeof(ops) / sizeof(ops[0]))

static const uint32_t losses[] = {0, 1000, 10000, 50000, 200000};
#define N_LOSSES (sizeof(losses) / sizeof(losses[0]))

struct run {
	unsigned op;
	uint32_t loss; /* per million, each way */
	/* the receiving process stands still for stall_ns of each period_ns; frames beyond buffer
	 * are lost */
	vrb_ns period_ns, stall_ns;
	uint32_t buffer;
	/* or: a hop on the way is slower, and holds `buffer` frames */
	uint32_t hop_ps_byte;

	uint64_t n_done, n_bad, n_requests, n_needed, n_lost, n_timeouts, n_dropped, n_dup;
	vrb_ns longest; /* without a completion */
	uint8_t least_retry;
};

static struct sn sn;

/* ---- a receiver that is not scheduled for a while */

static const struct run *judged;

static void stand_still(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns now)
{
	vrb_ns phase = now % judged->period_ns;
	vrb_ns due = phase < judged->stall_ns ? now - phase + judged->stall_ns : now;

	if (h->n - h->given >= judged->buffer)
		h->link.n_dropped++;
	else
		vrb_hold_put(h, bytes, len, due);
}

static void slow_hop(struct vrb_hold *h, const uint8_t *bytes, uint32_t len, vrb_ns now)
{
	if (h->n - h->given >= judged->buffer) {
		h->link.n_dropped++;
		return;
	}
	if (h->last_due < now)
		h->last_due = now;
	h->last_due += (vrb_ns)len * judged->hop_ps_byte / 1000;
	vrb_hold_put(h, bytes, len, h->last_due);
}

static bool open_links(const struct run *r, struct vrb_link *link[2])
{
	const struct vrb_sim_conf conf = {VRB_FRAME_MAX, 512, LATENCY, PS_BYTE};
	struct vrb_fault_conf fault = {.per_million = r->loss, .until = VRB_NS_NEVER};
	struct vrb_hold *h;

	if (vrb_sim_open(&conf, link))
		return false;
	for (unsigned k = 0; k < 2; k++) {
		fault.seed = 77 + k;
		if (r->loss && vrb_loss_open(link[k], &fault, NULL, &link[k]))
			return false;
	}
	if (r->buffer) {
		h = vrb_hold_create(link[1], &fault, r->period_ns ? stand_still : slow_hop);
		if (!h)
			return false;
		link[1] = &h->link;
	}
	return true;
}

/* ---- the stream */

struct stream {
	struct run *r;
	struct sn_end *a, *b;
	struct sn_qp *qa, *qb;
	uint8_t *local[DEPTH], *remote[DEPTH];
	uint32_t posted, done;
	vrb_ns last_done;
};

static void post_recv(struct stream *s, uint32_t i)
{
	struct vrb_rwqe *w = vrb_wq_entry(&s->qb->core.rq, s->qb->core.rq.tail);

	w->wr_id = i;
	w->n_sge = 1;
	w->len = MSG_LEN;
	w->sge[0] = (struct vrb_sge){(uintptr_t)s->remote[i % DEPTH], MSG_LEN,
				     s->b->region[SN_DST].lkey};
	sn_post_recv(s->b, s->qb);
}

static void post_send(struct stream *s)
{
	struct vrb_swqe *w = vrb_wq_entry(&s->qa->core.sq, s->qa->core.sq.tail);
	enum vrb_wr_op op = ops[s->r->op].op;
	bool in = op == VRB_WR_READ || op == VRB_WR_CMP_SWAP;
	uint32_t i = s->posted++ % DEPTH, len = ops[s->r->op].len;

	if (op == VRB_WR_SEND || op == VRB_WR_WRITE)
		memset(s->local[i], (int)s->posted, 64);
	memset(w, 0, VRB_SWQE_HEADER);
	w->wr_id = s->posted - 1;
	w->op = (uint8_t)op;
	w->flags = VRB_WRF_SIGNALED;
	w->len = len;
	w->n_sge = 1;
	w->rkey = s->b->region[SN_REM].rkey;
	w->va = (uintptr_t)s->remote[op == VRB_WR_CMP_SWAP ? 0 : i];
	w->sge[0] = (struct vrb_sge){(uintptr_t)s->local[i], len,
				     s->a->region[in ? SN_DST : SN_SRC].lkey};
	if (op == VRB_WR_CMP_SWAP) { /* counts up as long as each is executed once, in order */
		w->atomic.compare = s->posted - 1;
		w->atomic.swap_add = s->posted;
	}
	sn_post(s->a, s->qa);
}

/* The first and last bytes of a message say which it was; atomics must have counted. */
static bool is_good(const struct stream *s, uint32_t i)
{
	const uint8_t *at =
		ops[s->r->op].op == VRB_WR_READ ? s->local[i % DEPTH] : s->remote[i % DEPTH];
	uint64_t old;

	if (ops[s->r->op].op == VRB_WR_CMP_SWAP) {
		memcpy(&old, s->local[i % DEPTH], sizeof(old));
		return old == i;
	}
	if (ops[s->r->op].op == VRB_WR_READ)
		return at[0] == (uint8_t)(i % DEPTH) && at[MSG_LEN - 1] == at[0];
	return at[0] == (uint8_t)(i + 1) && at[63] == at[0];
}

static bool poll(struct stream *s)
{
	struct vrb_wc wc;
	bool any = false;

	while (vrb_cq_poll(&s->b->rcq, 1, &wc) == 1) {
		any = true;
		if (wc.status == VRB_WC_SUCCESS) {
			s->r->n_bad += !is_good(s, (uint32_t)wc.wr_id);
			post_recv(s, (uint32_t)wc.wr_id + DEPTH);
		}
	}
	while (vrb_cq_poll(&s->a->scq, 1, &wc) == 1) {
		any = true;
		if (wc.status != VRB_WC_SUCCESS) {
			sn_fail(&sn, "message %" PRIu64 " ended in status %u", wc.wr_id,
				(unsigned)wc.status);
			break;
		}
		if (ops[s->r->op].op != VRB_WR_SEND)
			s->r->n_bad += !is_good(s, (uint32_t)wc.wr_id);
		if (sn.now - s->last_done > s->r->longest)
			s->r->longest = sn.now - s->last_done;
		s->last_done = sn.now;
		s->done++;
		post_send(s);
	}
	return any;
}

static void begin(struct stream *s)
{
	const struct sn_qp_conf conf = {.type = VRB_QPT_RC,
					.mtu_code = MTU_CODE,
					.window_max = WINDOW,
					.adapts = true,
					.psn = {0xfffff0, 77},
					.sq_cap = SN_SQ_MAX,
					.rq_cap = SN_RQ_MAX,
					.timeout = 14,
					.retry_cnt = 7,
					.rnr_retry = 7,
					.min_rnr_timer = 1,
					.rd_atomic = 16};
	enum vrb_wr_op op = ops[s->r->op].op;

	s->a = &sn.end[0];
	s->b = &sn.end[1];
	s->a->tx_burst = s->b->tx_burst = 16; /* a turn's 64 KiB */
	sn_connect(&sn, &conf);
	s->qa = &s->a->qp[0];
	s->qb = &s->b->qp[0];
	for (uint32_t i = 0; i < DEPTH; i++) {
		bool in = op == VRB_WR_READ || op == VRB_WR_CMP_SWAP;

		s->local[i] = sn_slot(s->a, in ? SN_DST : SN_SRC, MSG_LEN, 8);
		s->remote[i] = sn_slot(s->b, op == VRB_WR_SEND ? SN_DST : SN_REM, MSG_LEN, 8);
		if (op == VRB_WR_READ)
			memset(s->remote[i], (int)i, MSG_LEN);
	}
	if (op == VRB_WR_CMP_SWAP)
		memset(s->remote[0], 0, 8);
	if (op == VRB_WR_SEND)
		for (uint32_t i = 0; i < DEPTH; i++)
			post_recv(s, i);
	for (uint32_t i = 0; i < DEPTH; i++)
		post_send(s);
}

static bool run(struct run *r, bool trace)
{
	struct stream s = {.r = r};
	struct vrb_link *link[2];
	uint64_t before[VRB_N_VERDICTS];

	judged = r;
	r->least_retry = 7;
	if (!open_links(r, link)) {
		fprintf(stderr, "no memory\n");
		exit(1);
	}
	sn.trace = trace;
	sn_start(&sn, link, false);
	memcpy(before, sn.end[1].n_verdict, sizeof(before));
	begin(&s);
	while (!sn.failed && sn.now < RUN_NS) {
		vrb_ns deadline = s.qa->core.ack_deadline, next;

		do
			sn_turn(&sn);
		while (poll(&s) && !sn.failed);
		if (s.qa->core.retry_left < r->least_retry)
			r->least_retry = s.qa->core.retry_left;
		r->n_timeouts += deadline <= sn.now;
		next = sn_next_time(&sn);
		if (next == VRB_NS_NEVER || next <= sn.now) {
			sn_fail(&sn, "time stands still");
			break;
		}
		sn.now = next;
	}
	r->n_done = s.done;
	r->n_requests = s.qa->n_requests;
	r->n_needed = (s.qa->core.una_psn.v - 0xfffff0u) & VRB_PSN_MASK;
	r->n_lost = s.qa->n_lost;
	r->n_dropped = link[1]->n_dropped;
	r->n_dup = sn.end[1].n_verdict[VRB_V_DROP_DUPLICATE] - before[VRB_V_DROP_DUPLICATE];
	if (sn.failed)
		printf("FAILED: %s %u: %s\n", ops[r->op].name, r->loss, sn.why);
	sn_stop(&sn);
	return !sn.failed;
}

static double goodput(const struct run *r)
{
	return (double)r->n_done * ops[r->op].len / ((double)RUN_NS / 1000); /* MB/s */
}

static void print(const struct run *r)
{
	if (ops[r->op].len > 8)
		printf("%-6s %6.2f %% %9.1f MB/s", ops[r->op].name, r->loss / 1e4, goodput(r));
	else
		printf("%-6s %6.2f %% %9.1f k/s ", ops[r->op].name, r->loss / 1e4,
		       (double)r->n_done / ((double)RUN_NS / 1e6));
	printf("  sent/needed %5.2f  losses %5" PRIu64 "  timeouts %3" PRIu64
	       "  longest pause %6.2f ms  retries left %u\n",
	       (double)r->n_requests / (double)(r->n_needed ? r->n_needed : 1), r->n_lost,
	       r->n_timeouts, (double)r->longest / 1e6, r->least_retry);
}

static unsigned check(bool ok, const char *what)
{
	if (!ok)
		printf("FAILED: %s\n", what);
	return !ok;
}

/* MB/s of a window that is halved at each loss and grows by one a round trip (Mathis 1997), on this
 * wire. */
static double allowed(uint32_t loss)
{
	double frame = (128u << MTU_CODE) + VRB_HEADERS_MAX, rate = 1e6 / PS_BYTE;
	double rtt = 2.0 * LATENCY + frame * PS_BYTE / 1000;
	double law = loss ? sqrt(1.5e6 / loss) * (128u << MTU_CODE) * 1000 / rtt : rate;

	return law < rate ? law : rate;
}

/* Up to 1 % at least half of what the law allows; no ACK timeout up to 5 %; at 20 % it moves, and
 * is never near the end of its retries. */
static unsigned check_row(const struct run *r)
{
	unsigned failures = check(r->n_bad == 0, "bytes differ");

	if (ops[r->op].len > 8 && r->loss <= 10000)
		failures += check(goodput(r) * 2 >= allowed(r->loss), "less than half the law");
	if (r->loss <= 50000)
		failures += check(r->n_timeouts == 0, "an ACK timeout");
	if (r->loss == 0)
		failures += check(r->n_requests <= r->n_needed + WINDOW + r->n_dup && !r->n_lost,
				  "repetitions without loss");
	failures += check(r->n_done > 500, "it hardly moves");
	return failures + check(r->least_retry >= 5, "retries are running out");
}

static unsigned table(void)
{
	unsigned failures = 0;

	for (unsigned op = 0; op < N_OPS; op++) {
		for (unsigned l = 0; l < N_LOSSES; l++) {
			struct run r = {.op = op, .loss = losses[l]};

			failures += !run(&r, false);
			print(&r);
			failures += check_row(&r);
		}
	}
	return failures;
}

/* Ten of fifty milliseconds nobody takes what arrives; the buffer holds a window and the probes.
 * Nothing may be lost, nothing but the probes repeated, and the window must not suffer. */
static unsigned slow_receiver(void)
{
	struct run r = {.period_ns = 50 * VRB_NS_PER_MS,
			.stall_ns = 10 * VRB_NS_PER_MS,
			.buffer = WINDOW + PROBES};
	unsigned failures = !run(&r, false);

	printf("a receiver that stands still for 10 ms of each 50, buffer %u:\n", r.buffer);
	print(&r);
	failures += check_row(&r);
	failures += check(r.n_dropped == 0, "the window overflows the buffer");
	failures += check(r.n_dup <= PROBES * (RUN_NS / r.period_ns), "more than probes repeated");
	return failures + check(goodput(&r) >= allowed(0) * 0.75, "it did not recover at once");
}

/* The same with half the buffer: what overflows is repeated, and the window finds its size. */
static unsigned small_buffer(void)
{
	struct run r = {.period_ns = 50 * VRB_NS_PER_MS,
			.stall_ns = 10 * VRB_NS_PER_MS,
			.buffer = WINDOW / 2};
	unsigned failures = !run(&r, false);

	printf("the same, buffer %u:\n", r.buffer);
	print(&r);
	failures += check(r.n_bad == 0, "bytes differ");
	failures += check(r.n_timeouts == 0, "an ACK timeout");
	return failures + check(goodput(&r) >= allowed(0) * 0.7, "throughput collapses");
}

/* A hop at a quarter of the rate that holds one turn's burst: the window alone, without pacing,
 * must keep it busy. */
static unsigned bottleneck(void)
{
	struct run r = {.hop_ps_byte = 4 * PS_BYTE, .buffer = 16};
	unsigned failures = !run(&r, false);

	printf("a hop of %.0f MB/s that holds %u frames:\n", 1e6 / r.hop_ps_byte, r.buffer);
	print(&r);
	failures += check(r.n_bad == 0, "bytes differ");
	failures += check(r.n_timeouts == 0, "an ACK timeout");
	return failures + check(goodput(&r) >= 1e6 / r.hop_ps_byte * 0.85, "the hop is idle");
}

int main(int argc, char **argv)
{
	unsigned failures = 0;

	if (!sn_init(&sn))
		return 1;
	if (argc == 3) {
		struct run r = {.loss = (uint32_t)strtoul(argv[2], NULL, 0)};

		while (r.op < N_OPS - 1 && strcmp(ops[r.op].name, argv[1]) != 0)
			r.op++;
		failures += !run(&r, true);
	} else {
		failures += table();
		failures += slow_receiver();
		failures += small_buffer();
		failures += bottleneck();
	}
	sn_fini(&sn);
	return failures ? 1 : 0;
}
