/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets whose turn has not come: a copy waits, and the socket goes on.
 *
 * One for another process (wire_io.c) waits for room in its ring. What follows is of unreliable
 * queue pairs only.
 *
 * One that finds no receive waits for the program to post one (hca/in.c says why, and how long).
 *
 * One of a connection may have overtaken others. When a member of the kernel's group comes or goes,
 * packets take several ways for a moment: some come directly, some are carried to us (wire_io.c).
 * Each way keeps the order, all together do not, and a connection that repeats nothing would take
 * what overtakes for a loss. So what is ahead waits for those before it, WAIT_NS at most; then they
 * are lost. That it may be so is known from what reaches us before anything is overtaken: the probe
 * of whoever changes the group (link/udp_steer.c), or what is carried. At other times, and alone on
 * an address, a gap is a loss at once.
 */
#include <errno.h>
#include <sys/mman.h>

#include "hca/wire.h"
#include "hca/wire_parts.h"
#include "hca/work.h"

#define KEPT_MAX   (32 * VRB_WIRE_FLOW_MAX) /* packets of all queue pairs together */
#define KEPT_LIE   256u			    /* whose memory stays ours while nothing is kept */
#define KEPT_EACH  VRB_WIRE_FLOW_MAX
#define CARRY_EACH (4 * VRB_WIRE_FLOW_MAX)
#define CARRY_NS   VRB_NS_PER_S /* for a ring of which nothing is taken */
#define MOVING_NS  VRB_NS_PER_S
#define WAIT_NS	   (500 * VRB_NS_PER_MS) /* a process that carries may have to wait for the CPU */

struct vrb_wire_kept {
	struct vrb_list node;
	struct vrb_wire_addr *addr; /* it has come to */
	struct vrb_psn psn;
	vrb_qpn qpn; /* to be carried */
	struct vrb_net net;
	uint32_t len;
	uint8_t bytes[VRB_ROCE_PACKET_MAX];
};

int vrb_wire_keep_open(struct vrb_wire *w)
{
	void *at;

	if (w->kept)
		return 0;
	at = mmap(NULL, KEPT_MAX * sizeof(*w->kept), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	w->kept = at;
	vrb_list_init(&w->kept_free);
	return 0;
}

void vrb_wire_keep_close(struct vrb_wire *w)
{
	while (!vrb_list_empty(&w->carriers)) {
		struct vrb_peer *p = vrb_list_entry(w->carriers.next, struct vrb_peer, carry_node);

		vrb_list_del(&p->carry_node);
		vrb_list_init(&p->carry);
		p->n_carry = 0;
	}
	if (w->kept)
		munmap(w->kept, KEPT_MAX * sizeof(*w->kept));
}

/* Memory that was never used is not touched before it must be. */
static struct vrb_wire_kept *take_free(struct vrb_wire *w)
{
	struct vrb_wire_kept *k;

	if (!w->kept)
		return NULL;
	if (!vrb_list_empty(&w->kept_free)) {
		k = vrb_list_entry(w->kept_free.next, struct vrb_wire_kept, node);
		vrb_list_del(&k->node);
		return k;
	}
	return w->n_kept < KEPT_MAX ? &w->kept[w->n_kept++] : NULL;
}

static bool has_kept(const struct vrb_hqp *q)
{
	return q->kept.n > 0;
}

static struct vrb_wire_kept *first(const struct vrb_hqp *q)
{
	return vrb_list_entry(q->kept.list.next, struct vrb_wire_kept, node);
}

static void give_back(struct vrb_wire *w)
{
	if (vrb_wire_keeps_some(w))
		return;
	if (w->n_kept > KEPT_LIE)
		madvise(w->kept, w->n_kept * sizeof(*w->kept), MADV_DONTNEED);
	vrb_list_init(&w->kept_free);
	w->n_kept = 0;
}

static void release(struct vrb_hqp *q)
{
	struct vrb_wire_kept *k = first(q);

	vrb_list_del(&k->node);
	vrb_list_add_tail(&q->e->wire->kept_free, &k->node);
	if (--q->kept.n)
		return;
	vrb_list_del(&q->kept.node);
	q->kept.look_at = q->kept.until = 0;
	give_back(q->e->wire);
}

void vrb_wire_keep_forget(struct vrb_hqp *q)
{
	while (has_kept(q))
		release(q);
}

/* ---- is it its turn? */

void vrb_wire_keep_moves(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	a->moving_until = vrb_peek(&e->now) + MOVING_NS;
}

static bool is_moving(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	if (a->probes_seen != a->udp->n_probed) {
		a->probes_seen = a->udp->n_probed;
		vrb_wire_keep_moves(e, a);
	}
	return vrb_peek(&e->now) < a->moving_until;
}

/* Others before it may still come, or are kept. */
static bool has_overtaken(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_pkt *pkt)
{
	int32_t ahead;

	if (q->core.type == VRB_QPT_UD)
		return has_kept(q);
	ahead = vrb_psn_diff(pkt->psn, q->core.epsn);
	if (vrb_likely(ahead <= 0) || ahead >= (int32_t)KEPT_EACH)
		return false;
	return has_kept(q) || is_moving(e, q->wire.addr);
}

/* The first need not wait for others. */
static bool is_due(struct vrb_hqp *q, vrb_ns now)
{
	struct vrb_hqp_kept *o = &q->kept;

	if (q->core.type == VRB_QPT_UD || vrb_psn_diff(first(q)->psn, q->core.epsn) <= 0)
		return true;
	if (!o->until || !vrb_psn_eq(o->gap, q->core.epsn)) {
		o->gap = q->core.epsn;
		o->until = now + WAIT_NS;
	}
	o->look_at = o->until;
	return now >= o->until;
}

static bool finds_no_receive(struct vrb_hqp *q, const struct vrb_pkt *pkt, vrb_ns now)
{
	return vrb_wire_flow_takes(&q->core, pkt) && vrb_engine_may_wait(q, pkt->op, now, true);
}

/* ---- in and out */

static void put(struct vrb_hqp *q, struct vrb_wire_kept *k, const struct vrb_udp_packet *p)
{
	struct vrb_list *before = q->kept.list.prev;
	struct vrb_psn psn = k->psn;

	k->net = p->net;
	k->len = p->len;
	memcpy(k->bytes, p->bytes, p->len);
	while (q->core.type == VRB_QPT_UC && before != &q->kept.list &&
	       vrb_psn_diff(vrb_list_entry(before, struct vrb_wire_kept, node)->psn, psn) > 0)
		before = before->prev;
	/* behind `before`: at the tail of the list that begins with the next one */
	vrb_list_add_tail(before->next, &k->node);
	if (!q->kept.n++)
		vrb_list_add_tail(&q->e->wire->keepers, &q->kept.node);
}

/* all: whether they wait for something or not. */
static void go_on(struct vrb_engine *e, struct vrb_hqp *q, bool all)
{
	vrb_ns now = vrb_peek(&e->now);
	struct vrb_udp_packet p;
	struct vrb_report why;
	struct vrb_pkt pkt;

	while (has_kept(q) && (all || is_due(q, now))) {
		p = (struct vrb_udp_packet){
			.net = first(q)->net, .bytes = first(q)->bytes, .len = first(q)->len};
		/* it was parsed before it was kept */
		if (vrb_pkt_parse(p.bytes, p.len, &pkt, &why) == VRB_OK) {
			if (!all && finds_no_receive(q, &pkt, now)) {
				q->kept.look_at = now + VRB_WIRE_WAIT_NS;
				return;
			}
			vrb_wire_deliver(e, q, first(q)->addr, &p, &pkt);
		}
		release(q);
	}
}

/* ---- for others */

static bool try_carry(struct vrb_engine *e, struct vrb_peer *p, vrb_qpn qpn,
		      const struct vrb_udp_packet *packet)
{
	const struct vrb_seg seg[] = {{&packet->net, sizeof(packet->net)},
				      {packet->bytes, packet->len}};
	const struct vrb_pkt pkt = {.op.v = VRB_SHM_OP_CARRIED,
				    .dqpn = qpn,
				    .len = (uint32_t)sizeof(packet->net) + packet->len};

	if (!vrb_shm_room(&p->tx, pkt.len))
		return false;
	vrb_shm_push(&p->tx, &pkt, seg, NULL, NULL);
	vrb_engine_pushed(e, p);
	return true;
}

static void carried(struct vrb_engine *e, struct vrb_peer *p)
{
	struct vrb_list *n = p->carry.next;

	vrb_list_del(n);
	vrb_list_add_tail(&e->wire->kept_free, n);
	if (--p->n_carry)
		return;
	vrb_list_del(&p->carry_node);
	give_back(e->wire);
}

void vrb_wire_carry_forget(struct vrb_engine *e, struct vrb_peer *p)
{
	while (p->n_carry)
		carried(e, p);
}

static void carry_on(struct vrb_engine *e, struct vrb_peer *p)
{
	vrb_ns now = vrb_peek(&e->now);

	while (p->n_carry) {
		struct vrb_wire_kept *k = vrb_list_entry(p->carry.next, struct vrb_wire_kept, node);
		struct vrb_udp_packet packet = {.net = k->net, .bytes = k->bytes, .len = k->len};

		if (!try_carry(e, p, k->qpn, &packet)) {
			struct vrb_report r = {.verdict = VRB_V_DROP_SLOT, .val = {k->qpn}};

			vrb_work_look_at(e, now + VRB_WIRE_WAIT_NS);
			if (!vrb_stall_lasts(e, p, now, CARRY_NS))
				return;
			vrb_hca_refuse(&r);
		}
		carried(e, p);
	}
}

bool vrb_wire_carry(struct vrb_engine *e, struct vrb_peer *p, vrb_qpn qpn,
		    const struct vrb_udp_packet *packet)
{
	struct vrb_wire_kept *k;

	if (p->n_carry)
		carry_on(e, p);
	if (!p->n_carry && try_carry(e, p, qpn, packet))
		return true;
	k = p->n_carry < CARRY_EACH ? take_free(e->wire) : NULL;
	if (!k)
		return false;
	k->qpn = qpn;
	k->net = packet->net;
	k->len = packet->len;
	memcpy(k->bytes, packet->bytes, packet->len);
	vrb_list_add_tail(&p->carry, &k->node);
	if (!p->n_carry++)
		vrb_list_add_tail(&e->wire->carriers, &p->carry_node);
	vrb_work_look_at(e, vrb_peek(&e->now) + VRB_WIRE_WAIT_NS);
	return true;
}

/* Answers to what has been taken leave. */
static void flush(struct vrb_engine *e)
{
	if (!e->wire->held)
		vrb_wire_flush(e);
}

void vrb_wire_keep_run(struct vrb_engine *e, struct vrb_hqp *q)
{
	go_on(e, q, false);
	flush(e);
}

void vrb_wire_keep_run_all(struct vrb_engine *e)
{
	struct vrb_list *n, *next;

	for (n = e->wire->keepers.next; n != &e->wire->keepers; n = next) {
		next = n->next;
		go_on(e, vrb_list_entry(n, struct vrb_hqp, kept.node), false);
	}
	for (n = e->wire->carriers.next; n != &e->wire->carriers; n = next) {
		next = n->next;
		carry_on(e, vrb_list_entry(n, struct vrb_peer, carry_node));
	}
	flush(e);
}

enum vrb_wire_fate vrb_wire_keep(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_wire_addr *a,
				 const struct vrb_udp_packet *p, const struct vrb_pkt *pkt)
{
	vrb_ns now = vrb_peek(&e->now);
	struct vrb_wire_kept *k = NULL;

	if (!vrb_wire_flow_takes(&q->core, pkt) ||
	    (!has_overtaken(e, q, pkt) && !finds_no_receive(q, pkt, now)))
		return VRB_WIRE_GOES;
	if (q->kept.n < KEPT_EACH && p->len <= sizeof(k->bytes))
		k = take_free(e->wire);
	if (k) {
		k->addr = a;
		k->psn = pkt->psn;
		put(q, k, p);
		go_on(e, q, false);
		vrb_engine_timer(e, q);
		return VRB_WIRE_KEPT;
	}
	/* From here on others would wait with it: not as long. */
	if (vrb_engine_may_wait(q, pkt->op, now, false))
		return VRB_WIRE_STAYS;
	go_on(e, q, true);
	return VRB_WIRE_GOES;
}
