/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answering questions of others (wire/ask.h). Who is not the peer of a queue pair learns that it
 * exists and its type, no more; an answer is never longer than its question, and only so many leave
 * in a second, so that nobody is flooded by us.
 */
#include "hca/ask.h"
#include "hca/faults.h"
#include "hca/story.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define PER_SECOND 100u

static bool is_peer(const struct vrb_hqp *q, const struct vrb_gid *src, vrb_qpn from)
{
	if (q->core.dqpn != from)
		return false;
	return !src || (q->wire.addr && !memcmp(&q->wire.dst, src, sizeof(*src)));
}

void vrb_ask_answer(struct vrb_engine *e, const struct vrb_gid *src, struct vrb_ask *a)
{
	struct vrb_hqp *q = e->qp[a->qpn & VRB_QPN_INDEX_MASK];
	const struct vrb_story *s;

	a->is_answer = true;
	if (a->qpn >> VRB_QPN_INDEX_BITS != e->slot || !q) {
		a->what = VRB_ASK_NO_QP;
		return;
	}
	a->type = q->core.type;
	a->state = q->core.state;
	a->what = VRB_ASK_YOURS;
	if (q->core.state < VRB_QPS_RTR)
		return;
	if (!is_peer(q, src, a->from)) {
		a->what = VRB_ASK_OTHER;
		a->state = 0;
		return;
	}
	a->epsn = q->core.epsn;
	s = q->story;
	if (s->ended)
		snprintf(a->name, sizeof(a->name), "%s",
			 vrb_verdict_info(s->end.report.verdict)->counter);
}

static bool may_answer(struct vrb_engine *e)
{
	vrb_ns second = vrb_peek(&e->now) / VRB_NS_PER_S;

	if (e->answered_in != second) {
		e->answered_in = second;
		e->n_answered = 0;
	}
	return e->n_answered++ < PER_SECOND;
}

/* A slot that nobody has, or that of a process which will answer itself. */
static bool is_orphan(vrb_qpn qpn)
{
	int sock = vrb_ask_call(qpn >> VRB_QPN_INDEX_BITS);

	if (sock >= 0)
		close(sock);
	return sock == -ECONNREFUSED && !vrb_slot_is_of_others(qpn >> VRB_QPN_INDEX_BITS);
}

static bool is_struck(struct vrb_engine *e, vrb_qpn qpn, uint32_t dir, uint32_t ip_len)
{
	const struct vrb_hqp *q = e->qp[qpn & VRB_QPN_INDEX_MASK];

	return e->faults &&
	       vrb_faults_aside(e->faults, &(struct vrb_faults_aside){qpn, q ? q->fault_number : 0,
								      dir, ip_len});
}

void vrb_ask_on_packet(struct vrb_engine *e, struct vrb_wire_addr *a,
		       const struct vrb_udp_packet *p)
{
	uint32_t head = (a->udp->v4 ? VRB_IPV4_LEN : VRB_IPV6_LEN) + VRB_UDP_LEN, len;
	uint8_t bytes[VRB_ASK_LEN];
	struct vrb_ask ask;

	if (!vrb_ask_parse(p->bytes, p->len, &ask) || ask.is_answer || !may_answer(e) ||
	    is_struck(e, ask.qpn, VRB_FAULT_RX, head + p->len))
		return;
	len = ask.flags & VRB_ASK_LONG_ANSWER ? p->len : VRB_ASK_LEN;
	if (len > VRB_ROCE_PACKET_MAX)
		return;
	if (ask.qpn >> VRB_QPN_INDEX_BITS == e->slot) {
		vrb_ask_answer(e, &p->net.src, &ask);
	} else if (is_orphan(ask.qpn)) {
		ask.is_answer = true;
		ask.what = VRB_ASK_NO_OWNER;
	} else {
		return; /* the kernel will know better where it belongs, next time */
	}
	vrb_ask_emit(&ask, bytes);
	if (!is_struck(e, ask.qpn, VRB_FAULT_TX, head + len))
		vrb_udp_ask_answer(a->udp, &p->net, bytes, len);
}

void vrb_ask_on_hello(struct vrb_engine *e, int sock, const struct vrb_meet_hello *h)
{
	struct vrb_ask ask = {.qpn = h->arg & VRB_QPN_MASK, .from = h->reserved[0] & VRB_QPN_MASK};
	uint8_t bytes[VRB_ASK_LEN];

	vrb_ask_answer(e, NULL, &ask);
	vrb_ask_emit(&ask, bytes);
	(void)send(sock, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
}
