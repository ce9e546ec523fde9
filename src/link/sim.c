/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two rings of frames, one per direction, in the end that receives. A frame leaves the sender when
 * the wire is free and arrives latency later; arrival times never decrease, so the ring's head is
 * the next one. Ends find each other by pointer; the one closed last has nobody to find.
 */
#include "link/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct slot {
	vrb_ns arrives;
	uint32_t len;
};

struct sim_end {
	struct vrb_link link;
	struct sim_end *peer; /* NULL: closed */
	struct vrb_sim_conf conf;
	vrb_ns wire_free;	    /* when the last frame towards this end has left its sender */
	uint32_t head, tail, given; /* given: head frames handed out, freed by the next recv */
	struct slot *slot;
	uint8_t *bytes;
};

static struct sim_end *sim_of(struct vrb_link *l)
{
	return vrb_container_of(l, struct sim_end, link);
}

static uint8_t *slot_bytes(struct sim_end *s, uint32_t i)
{
	return s->bytes + (size_t)(i % s->conf.queue_max) * s->conf.frame_max;
}

static uint32_t frame_len(const struct vrb_link_tx *f)
{
	uint32_t len = 0;

	for (uint32_t i = 0; i < f->n_seg; i++)
		len += f->seg[i].len;
	return len;
}

static void put(struct sim_end *to, const struct vrb_link_tx *f, uint32_t len, vrb_ns now)
{
	struct slot *slot = &to->slot[to->tail % to->conf.queue_max];
	uint8_t *out = slot_bytes(to, to->tail);
	vrb_ns leaves = now > to->wire_free ? now : to->wire_free;

	for (uint32_t i = 0; i < f->n_seg; i++) {
		if (f->seg[i].len)
			memcpy(out, f->seg[i].base, f->seg[i].len);
		out += f->seg[i].len;
	}
	leaves += (uint64_t)len * to->conf.ps_per_byte / 1000;
	to->wire_free = leaves;
	slot->arrives = leaves + to->conf.latency_ns;
	slot->len = len;
	to->tail++;
}

static uint32_t sim_send(struct vrb_link *l, const struct vrb_link_tx *frames, uint32_t n,
			 vrb_ns now)
{
	struct sim_end *to = sim_of(l)->peer;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t len = frame_len(&frames[i]);

		if (!to || len > l->caps.frame_max) {
			l->n_dropped++;
			continue;
		}
		if (to->tail - to->head >= to->conf.queue_max)
			break;
		put(to, &frames[i], len, now);
	}
	return i;
}

static uint32_t sim_recv(struct vrb_link *l, struct vrb_link_rx *frames, uint32_t n, vrb_ns now)
{
	struct sim_end *s = sim_of(l);
	uint32_t i;

	s->head += s->given;
	for (i = 0; i < n && s->head + i != s->tail; i++) {
		const struct slot *slot = &s->slot[(s->head + i) % s->conf.queue_max];

		if (slot->arrives > now)
			break;
		frames[i].bytes = slot_bytes(s, s->head + i);
		frames[i].len = slot->len;
	}
	s->given = i;
	return i;
}

static vrb_ns sim_next_deadline(const struct vrb_link *l)
{
	const struct sim_end *s = vrb_container_of(l, struct sim_end, link);
	uint32_t next = s->head + s->given;

	return next == s->tail ? VRB_NS_NEVER : s->slot[next % s->conf.queue_max].arrives;
}

static int sim_fd(const struct vrb_link *l)
{
	(void)l;
	return -1;
}

static void sim_close(struct vrb_link *l)
{
	struct sim_end *s = sim_of(l);

	if (s->peer)
		s->peer->peer = NULL;
	free(s->slot);
	free(s->bytes);
	free(s);
}

static const struct vrb_link_ops sim_ops = {
	.name = "sim",
	.send = sim_send,
	.recv = sim_recv,
	.next_deadline = sim_next_deadline,
	.fd = sim_fd,
	.close = sim_close,
};

static struct sim_end *end_create(const struct vrb_sim_conf *conf)
{
	struct sim_end *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->link.ops = &sim_ops;
	s->link.caps = (struct vrb_link_caps){conf->frame_max, true, true};
	s->conf = *conf;
	s->slot = calloc(conf->queue_max, sizeof(*s->slot));
	s->bytes = malloc((size_t)conf->queue_max * conf->frame_max);
	if (s->slot && s->bytes)
		return s;
	sim_close(&s->link);
	return NULL;
}

int vrb_sim_open(const struct vrb_sim_conf *conf, struct vrb_link *end[2])
{
	struct sim_end *a, *b;

	if (!conf->frame_max || !conf->queue_max)
		return -EINVAL;
	a = end_create(conf);
	b = end_create(conf);
	if (!a || !b) {
		if (a)
			sim_close(&a->link);
		if (b)
			sim_close(&b->link);
		return -ENOMEM;
	}
	a->peer = b;
	b->peer = a;
	end[0] = &a->link;
	end[1] = &b->link;
	return 0;
}
