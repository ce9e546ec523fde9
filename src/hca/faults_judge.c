/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which rules strike a packet. A rule sees the packets of its direction, queue pair, class and
 * time. One by chance draws one number for each packet that it sees, whatever other rules do, so
 * rules do not disturb each other and the same packets give the same faults again.
 *
 * An exact rule counts messages by their first packets. A repeated packet is not a new message: its
 * PSN is not beyond the newest; and a request that came ahead of its turn is dropped by the core
 * and comes again, so it does not count. What has been dropped by a rule strikes no other one.
 */
#include "hca/faults_parts.h"

static bool is_answer(const struct vrb_pkt *pkt, uint8_t kind)
{
	return pkt->op.v == (VRB_TP_RC | VRB_OP_ACK) &&
	       (pkt->syndrome & VRB_AETH_KIND_MASK) == kind;
}

static bool in_class(enum vrb_fault_class class, const struct vrb_pkt *pkt)
{
	static const uint32_t flags[VRB_FAULT_CLASSES] = {
		[VRB_FAULT_REQUEST] = VRB_OPF_REQUEST,
		[VRB_FAULT_RESPONSE] = VRB_OPF_RESPONSE,
		[VRB_FAULT_SEND] = VRB_OPF_REQUEST | VRB_OPF_SEND,
		[VRB_FAULT_WRITE] = VRB_OPF_REQUEST | VRB_OPF_WRITE,
		[VRB_FAULT_READ_REQUEST] = VRB_OPF_REQUEST | VRB_OPF_READ,
		[VRB_FAULT_READ_RESPONSE] = VRB_OPF_RESPONSE | VRB_OPF_READ,
		[VRB_FAULT_ATOMIC] = VRB_OPF_REQUEST | VRB_OPF_ATOMIC,
		[VRB_FAULT_ATOMIC_RESPONSE] = VRB_OPF_RESPONSE | VRB_OPF_ATOMIC,
	};

	if (class == VRB_FAULT_ACKS)
		return is_answer(pkt, VRB_AETH_ACK);
	if (class == VRB_FAULT_NAKS)
		return is_answer(pkt, VRB_AETH_NAK);
	if (class == VRB_FAULT_RNR_NAKS)
		return is_answer(pkt, VRB_AETH_RNR);
	if (class == VRB_FAULT_CNPS)
		return pkt->op.v == VRB_OPCODE_CNP;
	return vrb_op_has(pkt->op, flags[class]);
}

static bool sees(const struct vrb_faults *f, uint32_t i, const struct vrb_fault_view *v)
{
	const struct vrb_fault_rule *r = &f->plan.rule[i];
	vrb_ns t = v->now - f->start;
	vrb_qpn qpn = r->qpn ? r->qpn : f->state[i].bound;

	return (r->dirs & v->dir) && (!r->qp || r->qp == v->q->fault_number) &&
	       (!qpn || qpn == v->q->core.qpn) && in_class(r->class, v->pkt) && t >= r->from &&
	       t < r->until;
}

/* ---- exact rules */

/* The responder would execute it now: only then may it answer NAK. */
static bool is_in_order(const struct vrb_fault_view *v)
{
	const struct vrb_qp *c = &v->q->core;

	return c->type == VRB_QPT_RC && vrb_op_has(v->pkt->op, VRB_OPF_REQUEST) &&
	       vrb_psn_eq(v->pkt->psn, c->epsn) && c->state >= VRB_QPS_RTR &&
	       c->state < VRB_QPS_ERR;
}

static bool is_ahead(const struct vrb_fault_view *v)
{
	const struct vrb_qp *c = &v->q->core;

	return v->dir == VRB_FAULT_RX && c->type == VRB_QPT_RC &&
	       vrb_op_has(v->pkt->op, VRB_OPF_REQUEST) && vrb_psn_diff(v->pkt->psn, c->epsn) > 0;
}

/* A packet that was never seen before: a message begins, goes on or ends. */
static void count_message(const struct vrb_fault_rule *r, struct vrb_fault_state *s,
			  const struct vrb_pkt *pkt)
{
	s->began = true;
	s->high = pkt->psn;
	if (vrb_op_has(pkt->op, VRB_OPF_FIRST)) {
		if (s->count == r->nth && !s->ended) {
			s->last = vrb_psn_sub(pkt->psn, 1);
			s->ended = true;
		}
		if (++s->count == r->nth)
			s->first = pkt->psn;
	}
	if (s->count == r->nth && !s->ended && vrb_op_has(pkt->op, VRB_OPF_LAST)) {
		s->last = pkt->psn;
		s->ended = true;
	}
}

static bool is_of_message(const struct vrb_fault_rule *r, struct vrb_fault_state *s,
			  const struct vrb_fault_view *v)
{
	const struct vrb_pkt *pkt = v->pkt;
	int32_t at;

	if (is_ahead(v))
		return false;
	if (!s->began || vrb_psn_diff(pkt->psn, s->high) > 0)
		count_message(r, s, pkt);
	if (s->count < r->nth)
		return false;
	at = vrb_psn_diff(pkt->psn, s->first);
	if (at < 0 || (s->ended && vrb_psn_diff(pkt->psn, s->last) > 0))
		return false;
	if (r->packet == VRB_FAULT_PACKET_LAST)
		return vrb_op_has(pkt->op, VRB_OPF_LAST);
	return (uint32_t)at == r->packet - 1;
}

static bool is_named(const struct vrb_fault_rule *r, struct vrb_fault_state *s,
		     const struct vrb_fault_view *v)
{
	s->bound = v->q->core.qpn;
	if (!r->by_packet && v->q->core.type != VRB_QPT_UD)
		return is_of_message(r, s, v);
	/* packets, and datagrams, are never repeated: `times` takes those that follow */
	return s->count < UINT32_MAX && ++s->count >= r->nth;
}

/* ---- what a rule does */

static uint8_t syndrome(const struct vrb_fault_rule *r)
{
	static const uint8_t of[] = {
		[VRB_FAULT_SEQUENCE] = VRB_NAK_PSN_SEQ,
		[VRB_FAULT_INVALID] = VRB_NAK_INVALID,
		[VRB_FAULT_ACCESS] = VRB_NAK_ACCESS,
		[VRB_FAULT_OPERATIONAL] = VRB_NAK_OPERATIONAL,
	};

	return r->kind == VRB_FAULT_RNR_NAK ? VRB_AETH_RNR : of[r->nak];
}

static bool refuses(const struct vrb_fault_rule *r)
{
	return r->kind == VRB_FAULT_RNR_NAK || r->kind == VRB_FAULT_NAK;
}

static bool may_refuse(const struct vrb_fault_rule *r, const struct vrb_fault_view *v)
{
	return is_in_order(v) &&
	       (r->kind != VRB_FAULT_RNR_NAK || vrb_op_has(v->pkt->op, VRB_OPF_NEEDS_RQ));
}

/* Later packets of a rule never pass an earlier one of their direction that it delays. */
static vrb_ns delayed(const struct vrb_fault_rule *r, struct vrb_fault_state *s,
		      const struct vrb_fault_view *v, const uint64_t *random)
{
	vrb_ns *last = &s->last_due[v->dir == VRB_FAULT_RX], due = v->now;

	if (random)
		due += r->time + (r->jitter ? *random % (r->jitter + 1) : 0);
	if (due < *last)
		due = *last;
	*last = due;
	return due;
}

static void apply(const struct vrb_fault_rule *r, uint64_t random, struct vrb_fault_hit *h)
{
	switch (r->kind) {
	case VRB_FAULT_DUPLICATE:
		h->copies = 2;
		break;
	case VRB_FAULT_CORRUPT:
		h->corrupt = true;
		h->random = random;
		break;
	case VRB_FAULT_REORDER:
		h->due += r->time;
		break;
	case VRB_FAULT_RNR_NAK:
	case VRB_FAULT_NAK:
		h->refuse = syndrome(r);
		break;
	case VRB_FAULT_DELAY:
		break; /* judge_one has done it */
	case VRB_FAULT_DROP:
	case VRB_FAULT_BLACKHOLE:
	case VRB_FAULT_PARTITION:
	case VRB_FAULT_KINDS:
		h->drop = true;
		break;
	}
}

static void judge_one(struct vrb_faults *f, uint32_t i, const struct vrb_fault_view *v,
		      struct vrb_fault_hit *h)
{
	const struct vrb_fault_rule *r = &f->plan.rule[i];
	struct vrb_fault_state *s = &f->state[i];
	uint64_t random;
	bool strikes;

	if (!r->exact && refuses(r) && !may_refuse(r, v))
		return;
	s->seen++;
	random = vrb_prng_next(&s->rng);
	if (r->exact)
		strikes = is_named(r, s, v) && (!refuses(r) || may_refuse(r, v));
	else if (r->kind == VRB_FAULT_BLACKHOLE)
		strikes = v->ip_len > r->above;
	else
		strikes = (random >> 32) * VRB_FAULT_PPM >> 32 < r->per_million;
	strikes = strikes && !h->drop && (!r->times || s->struck < r->times);
	if (r->kind == VRB_FAULT_DELAY)
		h->due += delayed(r, s, v, strikes ? &random : NULL) - v->now;
	if (!strikes)
		return;
	s->struck++;
	h->rule = i + 1;
	apply(r, random, h);
	vrb_faults_log_strike(f, i, v);
}

static bool loses_all(const struct vrb_fault_rule *r, const struct vrb_faults_aside *a, vrb_ns t)
{
	if (!(r->dirs & a->dir) || (r->qp && r->qp != a->number) || (r->qpn && r->qpn != a->qpn) ||
	    r->class != VRB_FAULT_ANY || r->exact || t < r->from || t >= r->until)
		return false;
	if (r->kind == VRB_FAULT_BLACKHOLE)
		return a->ip_len > r->above;
	return r->kind == VRB_FAULT_PARTITION ||
	       (r->kind == VRB_FAULT_DROP && r->per_million == VRB_FAULT_PPM);
}

bool vrb_faults_aside(const struct vrb_faults *f, const struct vrb_faults_aside *a)
{
	vrb_ns t = vrb_clock_now() - f->start;

	for (uint32_t i = 0; i < f->plan.n; i++)
		if (loses_all(&f->plan.rule[i], a, t) &&
		    (!f->plan.rule[i].times || f->state[i].struck < f->plan.rule[i].times))
			return true;
	return false;
}

bool vrb_faults_judge(struct vrb_faults *f, const struct vrb_fault_view *v,
		      struct vrb_fault_hit *out)
{
	*out = (struct vrb_fault_hit){.copies = 1, .due = v->now};
	for (uint32_t i = 0; i < f->plan.n; i++)
		if (sees(f, i, v))
			judge_one(f, i, v, out);
	return out->drop || out->corrupt || out->refuse || out->copies > 1 || out->due > v->now;
}
