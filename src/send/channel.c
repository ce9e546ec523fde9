/* SPDX-License-Identifier: BSD-2-Clause */
/* Options with their defaults, and what a channel is made of apart from its queue pairs. */
#include "send/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/toeplitz.h"
#include "send/async.h"
#include "send/cq.h"
#include "send/fail.h"
#include "send/file.h"

struct limit {
	const char *name;
	uint32_t *value;
	uint32_t def, min, max;
};

static uint32_t cores(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > (long)VRB_LANES_MAX ? VRB_LANES_MAX : (uint32_t)n;
}

static uint32_t least(uint32_t a, int device)
{
	return device > 0 && (uint32_t)device < a ? (uint32_t)device : a;
}

/* The queues of all queue pairs must fit one CQ: fewer of them, and where nothing was asked for,
 * shorter. */
static bool fit_cq(const struct vrb_channel_options *in, const struct vrb_domain *d,
		   struct vrb_channel_options *o)
{
	uint32_t room = d->attr.max_cqe > 0 ? (uint32_t)d->attr.max_cqe : 0, each;

	if (room <= VRB_CREDIT_BARE)
		return false;
	if (o->send_depth + o->recv_depth + VRB_CREDIT_BARE > room) {
		if (!in || !in->send_depth)
			o->send_depth = (room - VRB_CREDIT_BARE) / 2;
		if (!in || !in->recv_depth)
			o->recv_depth = (room - VRB_CREDIT_BARE) / 2;
	}
	each = o->send_depth + o->recv_depth + VRB_CREDIT_BARE;
	if (o->qps > room / each)
		o->qps = room / each;
	return o->qps > 0 && o->send_depth > 1 && o->recv_depth;
}

int vrb_options_fill(const struct vrb_channel_options *in, const struct vrb_domain *d,
		     struct vrb_channel_options *o)
{
	const uint32_t wrs = least(1u << 15, d->attr.max_qp_wr); /* and at least 16 */
	const struct limit limits[] = {
		{"qps", &o->qps, cores(), 1, VRB_LANES_MAX},
		{"send_depth", &o->send_depth, 128, 2, wrs},
		{"recv_depth", &o->recv_depth, 128, 1, wrs - VRB_CREDIT_BARE},
		{"recv_size", &o->recv_size, 4096, 64, 1u << 30},
		{"sges", &o->sges, 8, 1, VRB_SGES_MAX},
		{"signal_every", &o->signal_every, 32, 1, 1u << 15},
		{"path_mtu", &o->path_mtu, 4096, 256, 4096},
		{"retries", &o->retries, 7, 1, 7},
		{"connect_ms", &o->connect_ms, 10000, 1, 1u << 30},
		{"stall_ms", &o->stall_ms, 2000, 10, 1u << 30},
		{"reconnect_ms", &o->reconnect_ms, 100, 1, 10000},
		{"engine", (uint32_t *)&o->engine, VRB_ADAPTIVE, VRB_ADAPTIVE, VRB_SLEEPY},
	};

	*o = in ? *in : (struct vrb_channel_options){0};
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct limit *l = &limits[i];

		/* A default that the adapter does not have is lowered; a wish is refused. */
		if (!*l->value)
			*l->value = l->def < l->max ? l->def : l->max;
		if (*l->value >= l->min && *l->value <= l->max)
			continue;
		(void)vrb_fail(EINVAL, VRB_V_SEND_OPTION, *l->value, l->min, l->max);
		return vrb_about("%s", l->name);
	}
	if (!o->moderate_count != !o->moderate_us) {
		(void)vrb_fail(EINVAL, VRB_V_SEND_OPTION, 0, 1, UINT16_MAX);
		return vrb_about("moderate_count and moderate_us");
	}
	if (!fit_cq(in, d, o))
		return vrb_fail(EINVAL, VRB_V_SEND_OPTION, o->send_depth + o->recv_depth, 3,
				(uint64_t)d->attr.max_cqe - VRB_CREDIT_BARE);
	o->sges = least(o->sges, d->attr.max_sge);
	if (!o->inline_bytes)
		o->inline_bytes = 220;
	if (o->inline_bytes == UINT32_MAX)
		o->inline_bytes = 0;
	if (o->inline_bytes > VRB_SCRATCH)
		o->inline_bytes = VRB_SCRATCH;
	return 0;
}

/* The hash of four bytes is the exclusive or of four entries (base/toeplitz.h). */
static void make_flow_table(struct vrb_channel *ch)
{
	memcpy(ch->flow_key, ch->opt.flow_key ? ch->opt.flow_key : vrb_toeplitz_key,
	       sizeof(ch->flow_key));
	ch->opt.flow_key = ch->flow_key;
	for (uint32_t at = 0; at < 4; at++)
		for (uint32_t v = 0; v < 256; v++) {
			uint8_t byte = (uint8_t)v;

			ch->flow_table[at][v] = vrb_toeplitz(ch->flow_key, at, &byte, 1);
		}
}

uint32_t vrb_flow_hash(const struct vrb_channel *ch, const void *tuple, size_t len)
{
	if (len > VRB_TOEPLITZ_MAX)
		len = VRB_TOEPLITZ_MAX;
	return vrb_toeplitz(ch->flow_key, 0, tuple, (uint32_t)len);
}

int vrb_channel_make(struct vrb_domain *d, const struct vrb_channel_options *o,
		     struct vrb_channel **channel)
{
	struct vrb_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*ch), ENOMEM, 0);
	vrb_domain_hold(d);
	ch->d = d;
	ch->opt = *o;
	ch->tcp = -1;
	ch->epoll = ch->wake = ch->timer = -1;
	ch->inline_max = o->inline_bytes;
	ch->sges = o->sges;
	if (o->latency)
		ch->latency = calloc(1, sizeof(*ch->latency)); /* without it, no figures */
	make_flow_table(ch);
	*channel = ch;
	return 0;
}

void vrb_channel_free(struct vrb_channel *ch)
{
	if (ch->state == VRB_UP)
		vrb_lanes_error(ch);
	ch->state = VRB_DOWN;
	vrb_away_end(ch);
	vrb_async_leave(ch);
	ch->out_max = 0; /* what is still delivered goes to the ring */
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		vrb_lane_free(ch->lane[i]);
	vrb_shared_destroy(ch);
	vrb_file_settle(ch);
	/* Messages nobody fetched. */
	for (; ch->ring_head != ch->ring_tail; ch->ring_head++)
		if (ch->ring[ch->ring_head & ch->ring_mask].buf)
			vrb_pool_put(ch->ring[ch->ring_head & ch->ring_mask].buf);
	vrb_cq_destroy(ch);
	if (ch->epoll >= 0)
		close(ch->epoll);
	if (ch->tcp >= 0)
		close(ch->tcp);
	vrb_domain_release(ch->d);
	free(ch->latency);
	free(ch->ring);
	free(ch);
}

void vrb_channel_info(const struct vrb_channel *ch, struct vrb_channel_info *info)
{
	*info = (struct vrb_channel_info){.qps = ch->n_lanes,
					  .path_mtu = ch->mtu,
					  .gid_index = ch->gid.index,
					  .send_depth = ch->opt.send_depth,
					  .recv_depth = ch->opt.recv_depth,
					  .recv_size = ch->opt.recv_size,
					  .inline_bytes = ch->inline_max,
					  .sges = ch->sges,
					  .max_message = ch->max_message,
					  .shared_receives = ch->shared != NULL,
					  .moderation = ch->moderation,
					  .timestamps = ch->cq_ex ? VRB_BY_ADAPTER : VRB_ABSENT};
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		info->qp_num[i] = ch->lane[i]->qp ? ch->lane[i]->qp->qp_num : 0;
}

void vrb_channel_stats(const struct vrb_channel *ch, struct vrb_channel_stats *stats)
{
	*stats = ch->st;
}

const struct vrb_histogram *vrb_channel_latency(const struct vrb_channel *ch)
{
	return ch->latency;
}
