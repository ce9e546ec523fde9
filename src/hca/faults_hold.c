/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that a fault plan holds back: copies with the time at which they go on, in two lists by
 * time. Memory for all is taken when the plan is read; it is touched only as far as it is used.
 */
#include "hca/faults_parts.h"
#include "hca/wire_parts.h"
#include "hca/work.h"

#include <stdlib.h>
#include <string.h>

struct held {
	struct vrb_list node;
	vrb_ns due;
	struct vrb_wire_addr *addr;
	bool corrupt;
	uint64_t random;
	struct vrb_pkt pkt; /* tx */
	struct vrb_udp_flow flow;
	struct vrb_net net; /* rx */
	uint32_t len;
	uint8_t bytes[VRB_ROCE_PACKET_MAX]; /* tx: payload; rx: from the BTH to the pad */
};

static struct held *of_node(struct vrb_list *n)
{
	return vrb_list_entry(n, struct held, node);
}

bool vrb_faults_hold_open(struct vrb_faults *f)
{
	vrb_list_init(&f->held_tx);
	vrb_list_init(&f->held_rx);
	vrb_list_init(&f->spare);
	f->slots = calloc(VRB_FAULTS_HELD_MAX, sizeof(struct held));
	return f->slots != NULL;
}

/* An empty slot, or NULL: the packet is lost. */
static struct held *take(struct vrb_faults *f)
{
	struct vrb_report r = {.verdict = VRB_V_FAULT_FULL, .val = {VRB_FAULTS_HELD_MAX}};
	struct held *h;

	if (!vrb_list_empty(&f->spare)) {
		h = of_node(f->spare.next);
		vrb_list_del(&h->node);
	} else if (f->n_slots < VRB_FAULTS_HELD_MAX) {
		h = (struct held *)f->slots + f->n_slots++;
		vrb_list_init(&h->node);
	} else {
		f->n_lost++;
		vrb_hca_refuse(&r);
		return NULL;
	}
	return h;
}

static void give_back(struct vrb_faults *f, struct held *h)
{
	vrb_list_del(&h->node);
	vrb_list_add_tail(&f->spare, &h->node);
}

void vrb_faults_hold_forget(struct vrb_faults *f)
{
	while (!vrb_list_empty(&f->held_rx))
		give_back(f, of_node(f->held_rx.next));
	while (!vrb_list_empty(&f->held_tx))
		give_back(f, of_node(f->held_tx.next));
}

/* By time, behind those of the same time. */
static void put(struct vrb_engine *e, struct vrb_list *list, struct held *h, vrb_ns due)
{
	struct vrb_list *before = list->prev;

	h->due = due;
	while (before != list && of_node(before)->due > due)
		before = before->prev;
	vrb_list_add_tail(before->next, &h->node);
	vrb_work_look_at(e, due);
}

void vrb_faults_hold_tx(struct vrb_engine *e, const struct vrb_faults_out *out,
			const struct vrb_fault_hit *hit)
{
	struct held *h = take(e->faults);

	if (!h)
		return;
	h->addr = out->addr;
	h->flow = *out->flow;
	h->pkt = *out->pkt;
	h->corrupt = hit->corrupt;
	h->random = hit->random;
	h->len = 0;
	for (const struct vrb_seg *s = out->seg; h->len < out->pkt->len; s++) {
		memcpy(h->bytes + h->len, s->base, s->len);
		h->len += s->len;
	}
	put(e, &e->faults->held_tx, h, hit->due);
}

bool vrb_faults_hold_rx(struct vrb_engine *e, const struct vrb_faults_in *in, vrb_ns due)
{
	struct held *h;

	if (in->p->len > sizeof(h->bytes))
		return false;
	h = take(e->faults);
	if (!h)
		return true;
	h->addr = in->addr;
	h->net = in->p->net;
	h->len = in->p->len;
	memcpy(h->bytes, in->p->bytes, h->len);
	put(e, &e->faults->held_rx, h, due);
	return true;
}

void vrb_faults_release_tx(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_faults *f = e->faults;

	while (!vrb_list_empty(&f->held_tx) && of_node(f->held_tx.next)->due <= now) {
		struct held *h = of_node(f->held_tx.next);
		const struct vrb_seg seg = {h->bytes, h->len};

		vrb_udp_push(&e->wire->batch, h->addr->udp, &h->flow, &h->pkt, &seg);
		if (h->corrupt)
			vrb_udp_damage(&e->wire->batch, h->random);
		give_back(f, h);
	}
}

void vrb_faults_release_rx(struct vrb_engine *e, vrb_ns now)
{
	struct vrb_faults *f = e->faults;

	while (!vrb_list_empty(&f->held_rx) && of_node(f->held_rx.next)->due <= now) {
		struct held *h = of_node(f->held_rx.next);
		const struct vrb_udp_packet p = {.net = h->net, .bytes = h->bytes, .len = h->len};

		vrb_list_del(&h->node);
		vrb_wire_again(e, h->addr, &p);
		give_back(f, h);
	}
}

/* When the next one is due. */
vrb_ns vrb_faults_next_due(const struct vrb_faults *f)
{
	vrb_ns tx = VRB_NS_NEVER, rx = VRB_NS_NEVER;

	if (!vrb_list_empty(&f->held_tx))
		tx = of_node(f->held_tx.next)->due;
	if (!vrb_list_empty(&f->held_rx))
		rx = of_node(f->held_rx.next)->due;
	return tx < rx ? tx : rx;
}
