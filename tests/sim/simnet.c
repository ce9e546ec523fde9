/* SPDX-License-Identifier: BSD-2-Clause */
/* The running part of simnet: frames, placements, timers, one instant after the other. */
#include "sim/simnet.h"

#include <stdarg.h>
#include <string.h>

#include "support/pcap.h"
#include "wire/icrc.h"

#define RX_BURST 16u

void sn_fail(struct sn *sn, const char *fmt, ...)
{
	va_list ap;

	if (sn->failed)
		return;
	sn->failed = true;
	va_start(ap, fmt);
	vsnprintf(sn->why, sizeof(sn->why), fmt, ap);
	va_end(ap);
}

static unsigned end_index(const struct sn_end *e)
{
	return (unsigned)(e - e->sn->end);
}

static void trace(const struct sn_end *e, const char *what, const struct vrb_pkt *pkt)
{
	char line[256];

	if (!e->sn->trace)
		return;
	vrb_pkt_dump(line, sizeof(line), pkt);
	printf("%12.3f us  %c %s %s\n", (double)e->sn->now / 1000, 'A' + (char)end_index(e), what,
	       line);
}

static void trace_report(const struct sn_end *e, const struct vrb_report *r)
{
	char line[256];

	if (!e->sn->trace)
		return;
	vrb_verdict_format(line, sizeof(line), r);
	printf("%12.3f us  %c %s: %s\n", (double)e->sn->now / 1000, 'A' + (char)end_index(e),
	       vrb_verdict_info(r->verdict)->name, line);
}

static void drop(struct sn_end *e, const struct vrb_report *r)
{
	e->n_verdict[r->verdict]++;
	trace_report(e, r);
}

/* ---- effects */

static bool in_slot(const struct sn_region *g, const uint8_t *p, uint32_t len)
{
	uint32_t lo = 0, hi = g->n_slots;
	uint64_t off = (uint64_t)(p - g->mem);

	while (lo < hi) { /* the first slot that ends behind p */
		uint32_t mid = (lo + hi) / 2;

		if ((uint64_t)g->slot[mid].off + g->slot[mid].len > off)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo < g->n_slots && g->slot[lo].off <= off &&
	       off + len <= (uint64_t)g->slot[lo].off + g->slot[lo].len;
}

static bool may_write(const struct sn_end *e, const uint8_t *p, uint32_t len)
{
	for (unsigned k = SN_DST; k < SN_N_REGIONS; k++) {
		const struct sn_region *g = &e->region[k];

		if (p >= g->mem && p < g->mem + SN_REGION_LEN)
			return in_slot(g, p, len);
	}
	return false;
}

static void place(struct sn_end *e, const struct vrb_place *p)
{
	uint64_t old;

	if (p->len == 0)
		return;
	if (!may_write(e, p->dst, p->len)) {
		sn_fail(e->sn, "end %c: a placement of %u bytes outside the slots",
			'A' + (char)end_index(e), p->len);
		return;
	}
	if (p->kind == VRB_PLACE_COPY) {
		memcpy(p->dst, p->src, p->len);
		return;
	}
	memcpy(&old, p->dst, sizeof(old));
	*p->result = old;
	if (p->kind == VRB_PLACE_FETCH_ADD)
		old += p->swap_add;
	else if (old == p->compare)
		old = p->swap_add;
	memcpy(p->dst, &old, sizeof(old));
}

static void run_effects(struct sn_end *e)
{
	struct vrb_fx *fx = &e->sn->fx;
	unsigned n_notify = 0;

	for (uint32_t i = 0; i < fx->n_place; i++)
		place(e, &fx->place[i]);
	for (struct vrb_cq *cq = fx->notify; cq; cq = cq->notify_next) {
		cq->due = 0;
		e->n_notified++;
		if (++n_notify > 2) {
			sn_fail(e->sn, "the chain of notified CQs is a loop");
			break;
		}
	}
	for (uint32_t i = 0; i < fx->n_event; i++)
		e->n_async[(unsigned)fx->event[i].kind % 32]++;
	for (uint32_t i = 0; i < fx->n_report; i++)
		drop(e, &fx->report[i]);
	vrb_fx_reset(fx);
}

/* ---- receiving */

static void set_grh(struct vrb_pkt *pkt, const uint8_t *ip, const struct vrb_net *net, uint8_t *grh)
{
	if (vrb_gid_is_ipv4(&net->dst)) {
		memset(grh, 0, 20);
		memcpy(grh + 20, ip, VRB_IPV4_LEN);
	} else {
		memcpy(grh, ip, VRB_IPV6_LEN);
	}
	pkt->grh = grh;
}

/* True when the straight line took the packet. */
static bool receive_fast(struct sn_end *e, struct sn_qp *q, const struct vrb_pkt *pkt)
{
	uint8_t *dst;

	if (pkt->op.v == (VRB_TP_RC | VRB_OP_ACK)) {
		if ((pkt->syndrome & VRB_AETH_KIND_MASK) != VRB_AETH_ACK ||
		    !vrb_qp_fast_ack(&q->core, pkt->psn, e->sn->now))
			return false;
		e->n_fast[2]++;
		return true;
	}
	if (pkt->op.v != (VRB_TP_RC | VRB_OP_SEND_ONLY))
		return false;
	dst = vrb_qp_fast_recv(&q->core, pkt->psn.v, pkt->len);
	if (!dst)
		return false;
	if (!may_write(e, dst, pkt->len))
		sn_fail(e->sn, "the straight line writes outside the slots");
	else
		memcpy(dst, pkt->payload, pkt->len);
	vrb_qp_fast_recv_done(&q->core, pkt->len, pkt->flags & VRB_PKT_ACKREQ);
	e->n_fast[1]++;
	return true;
}

static void adapt(struct sn_end *e, struct sn_qp *q)
{
	if (q->adapts)
		q->n_lost += vrb_window_on_step(&q->window, &q->core, e->sn->now);
}

static void on_frame(struct sn_end *e, const struct vrb_link_rx *rx)
{
	uint8_t grh[VRB_GRH_LEN];
	struct vrb_report why = {0};
	struct vrb_net net;
	struct vrb_pkt pkt;
	const uint8_t *bytes;
	struct sn_qp *q;
	size_t len;

	if (vrb_net_parse(rx->bytes, rx->len, &net, &bytes, &len) != VRB_OK) {
		why.verdict = VRB_V_DROP_IP;
		why.val[0] = rx->len;
		drop(e, &why);
		return;
	}
	if (vrb_icrc_check(rx->bytes, vrb_net_len(&net), bytes, len, &why) != VRB_OK ||
	    vrb_pkt_parse(bytes, len - VRB_ICRC_LEN, &pkt, &why) != VRB_OK) {
		drop(e, &why);
		return;
	}
	trace(e, "<-", &pkt);
	q = sn_find_qp(e, pkt.dqpn);
	if (!q || memcmp(&net.src, &e->to_peer.dgid, sizeof(net.src)) != 0) {
		sn_fail(e->sn, "a good packet for nobody");
		return;
	}
	if (e->fast && receive_fast(e, q, &pkt))
		return;
	set_grh(&pkt, rx->bytes, &net, grh);
	vrb_qp_on_packet(&q->core, &pkt, e->sn->now, &e->sn->fx);
	run_effects(e);
	adapt(e, q);
}

static bool receive(struct sn_end *e)
{
	struct vrb_link_rx rx[RX_BURST];
	uint32_t n = vrb_link_recv(e->link, rx, RX_BURST, e->sn->now);

	for (uint32_t i = 0; i < n && !e->sn->failed; i++)
		on_frame(e, &rx[i]);
	return n > 0;
}

/* ---- sending */

static bool flush_stuck(struct sn_end *e)
{
	const struct vrb_seg seg = {e->stuck, e->stuck_len};
	const struct vrb_link_tx tx = {&seg, 1};

	if (e->stuck_len && vrb_link_send(e->link, &tx, 1, e->sn->now)) {
		e->stuck_len = 0;
		return true;
	}
	return false;
}

/* Builds the frame where a frame waits for the link: sending is then the same as sending again. */
static void send_tx(struct sn_end *e, const struct vrb_tx *tx)
{
	struct vrb_net net = {.src = e->gid,
			      .dst = e->to_peer.dgid,
			      .ttl = 64,
			      .df = true,
			      .ip_id = e->ip_id++,
			      .sport = 0xc000,
			      .dport = VRB_ROCE_PORT};
	uint8_t headers[VRB_HEADERS_MAX], *out = e->stuck;
	uint32_t pad = vrb_pkt_pad(tx->pkt.len), crc;
	size_t n_headers = vrb_pkt_emit_headers(&tx->pkt, headers), n_net;

	n_net = vrb_net_emit(&net, n_headers + tx->pkt.len + pad + VRB_ICRC_LEN, out);
	memcpy(out + n_net, headers, n_headers);
	crc = vrb_icrc_start(out, n_net, headers, n_headers);
	out += n_net + n_headers;
	for (uint32_t i = 0; i < tx->n_seg; out += tx->seg[i++].len)
		if (tx->seg[i].len)
			memcpy(out, tx->seg[i].base, tx->seg[i].len);
	memset(out, 0, pad);
	crc = vrb_icrc_add_payload(crc, tx->seg, tx->n_seg, tx->pkt.len);
	vrb_icrc_store(crc, out + pad);
	e->stuck_len = (uint32_t)(out + pad + VRB_ICRC_LEN - e->stuck);
	if (e->sn->pcap)
		pcap_write(e->sn->pcap, e->sn->now, e->stuck, e->stuck_len);
	e->sn->n_frames++;
	flush_stuck(e);
}

/* IBA 10.8.3.3: a fenced entry starts when all READs and atomics before it are complete. */
static void check_fence(struct sn_end *e, const struct vrb_qp *qp, struct vrb_psn psn)
{
	bool reads = false;

	for (uint32_t i = qp->sq_una; i != qp->sq.tail; i++) {
		const struct vrb_swqe *w = vrb_wq_entry(&qp->sq, i);
		bool is_read = w->op == VRB_WR_READ || w->op == VRB_WR_CMP_SWAP ||
			       w->op == VRB_WR_FETCH_ADD;

		if (vrb_psn_diff(psn, w->first) >= 0 && vrb_psn_diff(psn, w->last) <= 0) {
			if (reads && (w->flags & VRB_WRF_FENCE))
				sn_fail(e->sn, "PSN 0x%x of a fenced entry leaves too early",
					psn.v);
			return;
		}
		reads |= is_read;
	}
	sn_fail(e->sn, "PSN 0x%x belongs to no entry that is outstanding", psn.v);
}

/* What must hold for every packet that the core makes. */
static void check_tx(struct sn_end *e, const struct sn_qp *q, const struct vrb_tx *tx, bool request)
{
	const struct vrb_qp *qp = &q->core;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < tx->n_seg; i++)
		sum += tx->seg[i].len;
	if (sum != tx->pkt.len || tx->pkt.len > qp->mtu)
		sn_fail(e->sn, "a packet of %u bytes, %u in its list, MTU %u", tx->pkt.len, sum,
			qp->mtu);
	if (!vrb_op_has(tx->pkt.op, VRB_OPF_KNOWN | (request ? VRB_OPF_REQUEST : VRB_OPF_RESPONSE)))
		sn_fail(e->sn, "opcode 0x%x of the wrong role", tx->pkt.op.v);
	if (qp->type != VRB_QPT_UD && tx->pkt.dqpn != qp->dqpn)
		sn_fail(e->sn, "a packet for QP 0x%x", tx->pkt.dqpn);
	if (request && qp->type == VRB_QPT_RC) {
		int32_t ahead = vrb_psn_diff(tx->pkt.psn, qp->una_psn);

		if (ahead < 0 || (uint32_t)ahead >= qp->window_max)
			sn_fail(e->sn, "PSN 0x%x leaves the window: oldest 0x%x, window %u",
				tx->pkt.psn.v, qp->una_psn.v, qp->window_max);
		check_fence(e, qp, tx->pkt.psn);
	}
}

static bool send_one(struct sn_end *e, struct sn_qp *q, bool request)
{
	struct vrb_fx *fx = &e->sn->fx;
	struct vrb_tx tx;
	bool got;

	got = request ? vrb_qp_poll_request(&q->core, e->sn->now, &tx, fx)
		      : vrb_qp_poll_response(&q->core, e->sn->now, &tx, fx);
	if (got) {
		trace(e, "->", &tx.pkt);
		check_tx(e, q, &tx, request);
		send_tx(e, &tx);
		q->n_requests += request;
		if (request && q->adapts && vrb_window_wants_time(&q->window, &tx.pkt))
			vrb_window_on_sent(&q->window, &q->core, &tx.pkt, e->sn->now);
	}
	run_effects(e);
	return got;
}

static bool responses(struct sn_end *e, struct sn_qp *q)
{
	vrb_ns now = e->sn->now;
	bool any = false;

	if (q->core.ack_pending && q->ack_due == VRB_NS_NEVER)
		q->ack_due = now + e->ack_delay;
	for (uint32_t i = 0; i < e->tx_burst && !e->stuck_len; i++) {
		if (!q->core.resp_pending && !(q->core.ack_pending && q->ack_due <= now))
			break;
		if (!send_one(e, q, false)) {
			if (q->core.resp_pending || q->core.ack_pending)
				sn_fail(e->sn, "a response is owed and none comes");
			break;
		}
		any = true;
	}
	if (!q->core.ack_pending)
		q->ack_due = VRB_NS_NEVER;
	return any;
}

static bool requests(struct sn_end *e, struct sn_qp *q)
{
	bool any = false;

	for (uint32_t i = 0; i < e->tx_burst && !e->stuck_len; i++) {
		if (!vrb_qp_can_send(&q->core, e->sn->now))
			break;
		/* without a packet it may have completed a local operation, or failed one */
		send_one(e, q, true);
		any = true;
	}
	return any;
}

static bool deadline(struct sn_end *e, struct sn_qp *q)
{
	if (vrb_qp_next_deadline(&q->core) > e->sn->now)
		return false;
	vrb_qp_on_deadline(&q->core, e->sn->now, &e->sn->fx);
	run_effects(e);
	adapt(e, q);
	if (vrb_qp_next_deadline(&q->core) <= e->sn->now)
		sn_fail(e->sn, "a deadline that has passed stays");
	return true;
}

static bool end_turn(struct sn_end *e)
{
	bool any = flush_stuck(e);

	any |= receive(e);
	for (uint32_t i = 0; i < e->n_qp && !e->sn->failed; i++) {
		struct sn_qp *q = &e->qp[i];

		any |= deadline(e, q);
		if (e->requests_first)
			any |= requests(e, q);
		any |= responses(e, q);
		if (!e->requests_first)
			any |= requests(e, q);
	}
	return any;
}

void sn_turn(struct sn *sn)
{
	for (uint32_t turn = 0; turn < SN_TURNS_MAX && !sn->failed; turn++) {
		bool any = end_turn(&sn->end[0]);

		any |= end_turn(&sn->end[1]);
		/* the recv that made room may have come after the last attempt */
		any |= flush_stuck(&sn->end[0]);
		any |= flush_stuck(&sn->end[1]);
		if (!any)
			return;
	}
	sn_fail(sn, "no end of work at one instant");
}

static vrb_ns earlier(vrb_ns a, vrb_ns b)
{
	return a < b ? a : b;
}

vrb_ns sn_next_time(const struct sn *sn)
{
	vrb_ns next = VRB_NS_NEVER;

	for (unsigned k = 0; k < 2; k++) {
		const struct sn_end *e = &sn->end[k];

		next = earlier(next, vrb_link_next_deadline(e->link));
		for (uint32_t i = 0; i < e->n_qp; i++) {
			next = earlier(next, vrb_qp_next_deadline(&e->qp[i].core));
			if (e->qp[i].ack_due > sn->now) /* else the link has no room */
				next = earlier(next, e->qp[i].ack_due);
		}
	}
	return next;
}

/* ---- calls of the application */

static bool post_fast(struct sn_end *e, struct sn_qp *q)
{
	struct vrb_swqe *w = vrb_wq_entry(&q->core.sq, q->core.sq.tail);
	struct vrb_tx tx = {.n_seg = 1};

	if (e->stuck_len || !vrb_qp_fast_send(&q->core, w, e->sn->now, &tx.seg[0].base))
		return false;
	tx.seg[0].len = w->len;
	tx.pkt = (struct vrb_pkt){
		.op = {VRB_TP_RC | VRB_OP_SEND_ONLY},
		.flags = VRB_PKT_ACKREQ | (w->flags & VRB_WRF_SOLICITED ? VRB_PKT_SE : 0),
		.pkey = 0xffff,
		.dqpn = q->core.dqpn,
		.psn = w->first,
		.len = w->len,
	};
	trace(e, "=>", &tx.pkt);
	check_tx(e, q, &tx, true);
	send_tx(e, &tx);
	e->n_fast[0]++;
	return true;
}

void sn_post(struct sn_end *e, struct sn_qp *q)
{
	if (e->fast && q->core.type == VRB_QPT_RC && post_fast(e, q))
		return;
	vrb_qp_post(&q->core, 1, &e->sn->fx);
	run_effects(e);
}

void sn_post_recv(struct sn_end *e, struct sn_qp *q)
{
	if (q->core.srq)
		q->core.srq->wq.tail++;
	else
		vrb_qp_post_recv(&q->core, 1, &e->sn->fx);
	run_effects(e);
}

void sn_to_err(struct sn_end *e, struct sn_qp *q)
{
	const struct vrb_qp_attr attr = {.state = VRB_QPS_ERR};

	vrb_qp_modify(&q->core, &attr, VRB_QPA_STATE, 0, 0, &e->sn->fx);
	run_effects(e);
}
