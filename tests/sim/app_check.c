/* SPDX-License-Identifier: BSD-2-Clause */
/* The checkers: what each completion claims is compared with the memory of both ends. */
#include <string.h>

#include "sim/app.h"

#define SPOIL 0x5cu

uint8_t app_byte(uint32_t id, uint32_t off)
{
	return (uint8_t)(id * 151 + (id >> 8) * 29 + off + (off >> 8) * 13);
}

void app_fill(uint8_t *p, uint32_t id, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = app_byte(id, i);
}

static bool shows(const uint8_t *p, uint32_t id, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != app_byte(id, i))
			return false;
	return true;
}

bool app_takes_receive(uint8_t op)
{
	return op == VRB_WR_SEND || op == VRB_WR_SEND_IMM || op == VRB_WR_SEND_INV ||
	       op == VRB_WR_WRITE_IMM;
}

static bool has_imm(uint8_t op)
{
	return op == VRB_WR_SEND_IMM || op == VRB_WR_WRITE_IMM;
}

/* From now on nobody may write there (or send from there and expect it to be seen). */
static void spoil(uint8_t *p, uint32_t len)
{
	memset(p, SPOIL, len);
}

static bool is_spoiled(const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != SPOIL)
			return false;
	return true;
}

static void bad(struct app *a, unsigned k, unsigned i, uint32_t m, const char *what)
{
	sn_fail(&a->sn, "end %c QP %u message %u (op %u, %u bytes): %s", 'A' + (char)k, i + 1, m,
		a->side[k][i].msg[m].op, a->side[k][i].msg[m].len, what);
}

/* Message m of this side is complete: is its effect there, on the peer's memory and ours? */
static void verify_done(struct app *a, unsigned k, unsigned i, uint32_t m)
{
	struct app_side *s = &a->side[k][i], *peer = &a->side[!k][i];
	struct app_msg *msg = &s->msg[m];
	bool rc = a->plan.qp[i].type == VRB_QPT_RC;

	if (rc && app_takes_receive(msg->op) && peer->next_in <= m)
		bad(a, k, i, m, "completed before the peer had it");
	if (rc && (msg->op == VRB_WR_WRITE || msg->op == VRB_WR_WRITE_IMM)) {
		if (!msg->spoiled && !shows(msg->remote, msg->id, msg->len))
			bad(a, k, i, m, "the WRITE's bytes are not there");
		if (!msg->kept && !msg->spoiled) {
			spoil(msg->remote, msg->len);
			msg->spoiled = true;
		}
	}
	if (msg->op == VRB_WR_READ && !shows(msg->local, msg->shown, msg->len))
		bad(a, k, i, m, "the READ shows other bytes");
	if (msg->op == VRB_WR_CMP_SWAP || msg->op == VRB_WR_FETCH_ADD) {
		uint64_t old;

		memcpy(&old, msg->local, sizeof(old));
		if (old != msg->expect)
			bad(a, k, i, m, "the atomic's old value is wrong");
	}
	/* the buffer is the application's again: to send from it now would be seen by the peer */
	spoil(msg->local, msg->len);
}

static uint32_t wc_opcode(uint8_t op)
{
	switch (op) {
	case VRB_WR_WRITE:
	case VRB_WR_WRITE_IMM:
		return VRB_WCO_WRITE;
	case VRB_WR_READ:
		return VRB_WCO_READ;
	case VRB_WR_CMP_SWAP:
		return VRB_WCO_CMP_SWAP;
	case VRB_WR_FETCH_ADD:
		return VRB_WCO_FETCH_ADD;
	default:
		return VRB_WCO_SEND;
	}
}

static void on_send_error(struct app *a, unsigned k, unsigned i, const struct vrb_wc *wc)
{
	struct app_side *s = &a->side[k][i];
	uint32_t m = (uint32_t)wc->wr_id;

	if (s->error) {
		if (wc->status != VRB_WC_WR_FLUSH_ERR)
			bad(a, k, i, m, "a second error that is no flush");
		if (m != s->done)
			bad(a, k, i, m, "flushed out of order");
	} else {
		/* earlier ones were successful and unsignaled */
		for (; s->done < m && !a->sn.failed; s->done++) {
			if (s->msg[s->done].flags & VRB_WRF_SIGNALED)
				bad(a, k, i, s->done, "its completion is missing");
			verify_done(a, k, i, s->done);
		}
		if (!a->ending && wc->status != VRB_WC_RETRY_EXC_ERR &&
		    wc->status != VRB_WC_RNR_RETRY_EXC_ERR)
			sn_fail(&a->sn, "end %c QP %u message %u: status %u", 'A' + (char)k, i + 1,
				m, wc->status);
		if (!a->ending && !a->plan.harsh)
			sn_fail(&a->sn,
				"end %c QP %u message %u: retries ran out (%u) in a mild run",
				'A' + (char)k, i + 1, m, wc->status);
		s->error = (uint8_t)wc->status;
	}
	s->done = m + 1;
}

static void on_send_wc(struct app *a, unsigned k, unsigned i, const struct vrb_wc *wc)
{
	struct app_side *s = &a->side[k][i];
	uint32_t m = (uint32_t)wc->wr_id;

	if (wc->wr_id >= s->posted || m < s->done) {
		sn_fail(&a->sn, "end %c QP %u: a completion for message %llu, posted %u, done %u",
			'A' + (char)k, i + 1, (unsigned long long)wc->wr_id, s->posted, s->done);
		return;
	}
	if (wc->status != VRB_WC_SUCCESS) {
		on_send_error(a, k, i, wc);
		return;
	}
	if (s->error)
		bad(a, k, i, m, "success after an error");
	if (!(s->msg[m].flags & VRB_WRF_SIGNALED))
		bad(a, k, i, m, "a completion that was not asked for");
	if (wc->opcode != wc_opcode(s->msg[m].op))
		bad(a, k, i, m, "the completion has another opcode");
	if ((s->msg[m].op == VRB_WR_READ || s->msg[m].op == VRB_WR_CMP_SWAP ||
	     s->msg[m].op == VRB_WR_FETCH_ADD) &&
	    wc->byte_len != s->msg[m].len)
		bad(a, k, i, m, "the completion has another length");
	for (; s->done <= m && !a->sn.failed; s->done++) {
		if (s->done < m && (s->msg[s->done].flags & VRB_WRF_SIGNALED))
			bad(a, k, i, s->done, "its completion is missing");
		verify_done(a, k, i, s->done);
	}
}

/* Does this completion and buffer show this message of the peer? */
static bool arrived(const struct app_msg *msg, uint32_t grh, const struct vrb_wc *wc,
		    const uint8_t *buf)
{
	uint32_t flags = grh ? VRB_WCF_GRH : 0;

	if (!app_takes_receive(msg->op) || wc->byte_len != msg->len + grh)
		return false;
	if (has_imm(msg->op)) {
		flags |= VRB_WCF_IMM;
		if (wc->imm != msg->id)
			return false;
	}
	if (msg->op == VRB_WR_SEND_INV) {
		flags |= VRB_WCF_INV;
		if (wc->imm != msg->inv_rkey)
			return false;
	}
	if (wc->wc_flags != flags)
		return false;
	if (msg->op == VRB_WR_WRITE_IMM)
		return wc->opcode == VRB_WCO_RECV_WRITE_IMM &&
		       (msg->spoiled || shows(msg->remote, msg->id, msg->len));
	return wc->opcode == VRB_WCO_RECV && shows(buf + grh, msg->id, msg->len);
}

/* The 40 bytes in front of a UD message: its addresses (RoCEv2 A17.4.5). */
static bool grh_ok(const struct app *a, unsigned k, const uint8_t *g)
{
	const struct sn_end *e = &a->sn.end[k];

	if (a->plan.ipv6)
		return g[0] >> 4 == 6 && !memcmp(g + 8, e->to_peer.dgid.raw, 16) &&
		       !memcmp(g + 24, e->gid.raw, 16);
	return g[20] == 0x45 && !memcmp(g + 32, e->to_peer.dgid.raw + 12, 4) &&
	       !memcmp(g + 36, e->gid.raw + 12, 4);
}

static void on_message(struct app *a, unsigned k, unsigned i, const struct vrb_wc *wc,
		       struct app_recv *r)
{
	struct app_side *s = &a->side[k][i], *peer = &a->side[!k][i];
	bool rc = a->plan.qp[i].type == VRB_QPT_RC;
	uint32_t grh = a->plan.qp[i].type == VRB_QPT_UD ? VRB_GRH_LEN : 0;
	uint32_t m = rc || a->plan.ordered ? s->next_in : 0;

	if (a->plan.qp[i].type == VRB_QPT_UD &&
	    (!grh_ok(a, k, r->buf) || wc->src_qp != a->sn.end[!k].qp[i].core.qpn))
		sn_fail(&a->sn, "end %c QP %u: wrong GRH or source QP", 'A' + (char)k, i + 1);
	if (rc)
		while (m < peer->posted && !app_takes_receive(peer->msg[m].op))
			m++;
	else
		while (m < peer->posted && !arrived(&peer->msg[m], grh, wc, r->buf))
			m++;
	if (m >= peer->posted || !arrived(&peer->msg[m], grh, wc, r->buf)) {
		sn_fail(&a->sn,
			"end %c QP %u: receive %llu holds no message that could come now "
			"(length %u, next %u)",
			'A' + (char)k, i + 1, (unsigned long long)wc->wr_id, wc->byte_len, m);
		return;
	}
	a->awaited[k] |= (peer->msg[m].flags & VRB_WRF_SOLICITED) != 0;
	s->next_in = m + 1;
	s->n_in++;
	spoil(r->buf, r->room);
	r->spoiled = true;
}

static void on_recv_wc(struct app *a, unsigned k, const struct vrb_wc *wc)
{
	struct sn_qp *q = sn_find_qp(&a->sn.end[k], wc->qp_num);
	unsigned i = q ? (unsigned)(q - a->sn.end[k].qp) : 0;
	struct app_rq *rq = a->side[k][i].rq;
	struct app_recv *r = &rq->recv[wc->wr_id % APP_RECVS_MAX];

	if (!q || wc->wr_id >= rq->posted || r->done) {
		sn_fail(&a->sn, "end %c: a receive completion for nothing, or a second one",
			'A' + (char)k);
		return;
	}
	/* the receives of one QP complete in the order posted */
	if (!a->plan.srq[k] && wc->wr_id != rq->n_done)
		sn_fail(&a->sn, "end %c QP %u: receive %llu completes, %u is next", 'A' + (char)k,
			i + 1, (unsigned long long)wc->wr_id, rq->n_done);
	r->done = true;
	rq->n_done++;
	a->awaited[k] |= wc->status != VRB_WC_SUCCESS;
	if (wc->status == VRB_WC_SUCCESS)
		on_message(a, k, i, wc, r);
	else if (wc->status != VRB_WC_WR_FLUSH_ERR ||
		 (!a->ending && !a->side[k][i].error && !a->plan.harsh))
		sn_fail(&a->sn, "end %c QP %u: receive %llu ends in status %u", 'A' + (char)k,
			i + 1, (unsigned long long)wc->wr_id, wc->status);
}

void app_arm(struct app *a, unsigned k)
{
	a->awaited[k] = false;
	if (a->plan.arm[k] != VRB_CQ_UNARMED)
		vrb_cq_arm(&a->sn.end[k].rcq, a->plan.arm[k] == VRB_CQ_ARMED_SOLICITED);
}

/* IBA 11.2.6.4: an arm fires once, by the first completion of its kind. */
static void check_notified(struct app *a, unsigned k)
{
	uint32_t n = a->sn.end[k].n_notified - a->notified[k];
	bool certain = true;

	/* where messages may be lost, one may be taken for another with the same bytes */
	for (uint32_t i = 0; i < a->plan.n_qp; i++)
		certain &= a->plan.qp[i].type == VRB_QPT_RC;
	if (n != a->awaited[k] && certain)
		sn_fail(&a->sn, "end %c: %u notifications, %u awaited", 'A' + (char)k, n,
			a->awaited[k]);
	a->notified[k] = a->sn.end[k].n_notified;
	app_arm(a, k);
}

static bool poll_recv(struct app *a, unsigned k)
{
	struct vrb_wc wc[8];
	bool any = false;
	uint32_t n;

	while ((n = vrb_cq_poll(&a->sn.end[k].rcq, 8, wc)) > 0 && !a->sn.failed) {
		any = true;
		for (uint32_t i = 0; i < n; i++)
			on_recv_wc(a, k, &wc[i]);
	}
	a->awaited[k] |= any && a->plan.arm[k] == VRB_CQ_ARMED_ANY;
	a->awaited[k] &= a->plan.arm[k] != VRB_CQ_UNARMED;
	if (any && !a->sn.failed)
		check_notified(a, k);
	return any;
}

static bool poll_send(struct app *a, unsigned k)
{
	struct sn_end *e = &a->sn.end[k];
	struct vrb_wc wc[8];
	bool any = false;
	uint32_t n;

	if (a->sn.now < a->cq_at[k] && !a->ending)
		return false;
	if (a->plan.cq_pause[k])
		a->cq_at[k] =
			a->sn.now + 1 + vrb_prng_below(&a->rng, (uint32_t)a->plan.cq_pause[k]);
	while ((n = vrb_cq_poll(&e->scq, 8, wc)) > 0 && !a->sn.failed) {
		any = true;
		for (uint32_t i = 0; i < n; i++) {
			struct sn_qp *q = sn_find_qp(e, wc[i].qp_num);

			if (q)
				on_send_wc(a, k, (unsigned)(q - e->qp), &wc[i]);
			else
				sn_fail(&a->sn, "a completion of QP 0x%x", wc[i].qp_num);
		}
	}
	return any;
}

/* Receives first, and always: they are what the completions of sends are checked against. */
bool app_poll(struct app *a)
{
	bool any = poll_recv(a, 0);

	any |= poll_recv(a, 1);
	any |= poll_send(a, 0);
	any |= poll_send(a, 1);
	return any;
}

bool app_side_finished(const struct app *a, unsigned k, unsigned i)
{
	const struct app_side *s = &a->side[k][i], *peer = &a->side[!k][i];
	uint32_t left = 0;

	if (s->done < (s->error ? s->posted : s->n))
		return false;
	if (a->plan.qp[i].type != VRB_QPT_RC || peer->error || s->error)
		return true;
	for (uint32_t m = s->next_in; m < peer->n; m++)
		left += app_takes_receive(peer->msg[m].op);
	return left == 0;
}

/* UC: a WRITE that lost packets leaves each byte as it was or as it shall be. */
static void check_partial(struct app *a, unsigned k, unsigned i, uint32_t m)
{
	const struct app_msg *msg = &a->side[k][i].msg[m];

	for (uint32_t b = 0; b < msg->len; b++)
		if (msg->remote[b] != 0 && msg->remote[b] != app_byte(msg->id, b))
			bad(a, k, i, m, "a WRITE left bytes that nobody sent");
}

static void check_messages(struct app *a, unsigned k, unsigned i)
{
	struct app_side *s = &a->side[k][i], *peer = &a->side[!k][i];
	uint64_t counter;

	for (uint32_t m = 0; m < s->n; m++) {
		const struct app_msg *msg = &s->msg[m];
		bool write = msg->op == VRB_WR_WRITE || msg->op == VRB_WR_WRITE_IMM;

		if (write && msg->spoiled && !is_spoiled(msg->remote, msg->len))
			bad(a, k, i, m, "written again after its completion");
		if (write && !msg->spoiled && !msg->kept)
			check_partial(a, k, i, m);
		if (m < s->done && !s->error && !is_spoiled(msg->local, msg->len))
			bad(a, k, i, m, "local memory written after its completion");
	}
	memcpy(&counter, peer->counter, sizeof(counter));
	if (!s->error && !peer->error && counter != peer->counter_end)
		sn_fail(&a->sn, "QP %u: the counter at end %c is wrong at the end", i + 1,
			'A' + (char)!k);
}

static void check_recvs(struct app *a, const struct app_rq *rq)
{
	for (uint32_t r = 0; r < rq->posted; r++)
		if (rq->recv[r].spoiled && !is_spoiled(rq->recv[r].buf, rq->recv[r].room))
			sn_fail(&a->sn, "receive %u written after its completion", r);
}

/* All QPs are in ERR and everything has been polled. */
void app_check_end(struct app *a)
{
	static const unsigned never[] = {VRB_ASYNC_CQ_ERR, VRB_ASYNC_QP_FATAL, VRB_ASYNC_QP_REQ_ERR,
					 VRB_ASYNC_QP_ACCESS_ERR, VRB_ASYNC_SRQ_ERR};

	for (unsigned k = 0; k < 2; k++) {
		struct sn_end *e = &a->sn.end[k];

		for (uint32_t i = 0; i < a->plan.n_qp; i++) {
			struct app_side *s = &a->side[k][i];

			check_messages(a, k, i);
			check_recvs(a, s->rq);
			if (s->done != s->posted)
				bad(a, k, i, s->done, "no completion in ERR");
			if (!a->plan.srq[k] && s->rq->n_done != s->rq->posted)
				sn_fail(&a->sn, "end %c QP %u: %u receives posted, %u completed",
					'A' + (char)k, i + 1, s->rq->posted, s->rq->n_done);
		}
		for (unsigned n = 0; n < sizeof(never) / sizeof(never[0]); n++)
			if (e->n_async[never[n]])
				sn_fail(&a->sn, "end %c: async event %u", 'A' + (char)k, never[n]);
		if (a->plan.srq[k] && e->n_async[VRB_ASYNC_LAST_WQE] != a->plan.n_qp)
			sn_fail(&a->sn, "end %c: %u LAST_WQE_REACHED events for %u QPs",
				'A' + (char)k, e->n_async[VRB_ASYNC_LAST_WQE], a->plan.n_qp);
	}
	sn_check_guards(&a->sn);
}
