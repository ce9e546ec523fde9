/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plan from a seed: which connections, how large, how the ends behave and what the network does
 * to them. Most seeds are mild enough that no retry count can run out; some are harsh, and then
 * exhausted retries are a legal end.
 */
#include "sim/app.h"

#define CHANCE(percent) vrb_prng_chance(rng, (percent)*10000u)

#define RC_OPS                                                                                     \
	(1u << VRB_WR_SEND | 1u << VRB_WR_SEND_IMM | 1u << VRB_WR_SEND_INV | 1u << VRB_WR_WRITE |  \
	 1u << VRB_WR_WRITE_IMM | 1u << VRB_WR_READ | 1u << VRB_WR_CMP_SWAP |                      \
	 1u << VRB_WR_FETCH_ADD)

static uint32_t pick(struct vrb_prng *rng, const uint32_t *list, uint32_t n)
{
	return list[vrb_prng_below(rng, n)];
}
#define PICK(...)                                                                                  \
	pick(rng, (const uint32_t[]){__VA_ARGS__},                                                 \
	     (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static void draw_faults(struct app_plan *p, struct app_faults *f, struct vrb_prng *rng)
{
	if (CHANCE(60))
		f->loss = vrb_prng_below(rng, p->harsh ? 400000 : 40000);
	if (CHANCE(40))
		f->duplicate = vrb_prng_below(rng, 200000);
	if (CHANCE(40))
		f->reorder = vrb_prng_below(rng, p->harsh ? 300000 : 50000);
	if (CHANCE(40))
		f->corrupt = vrb_prng_below(rng, p->harsh ? 200000 : 20000);
	if (CHANCE(30))
		f->delay = vrb_prng_below(rng, 50000);
	f->spread_ns = PICK(1000, 20000, 200000, 900000);
	f->delay_ns = PICK(0, 500, 30000, 300000);
	if (f->duplicate || f->reorder)
		p->ordered = false;
}

/*
 * On an SRQ the unreliable QPs, whose duplicates take receives too, must not starve the reliable
 * ones: all of one kind.
 */
static void draw_type(const struct app_plan *p, struct sn_qp_conf *c, struct vrb_prng *rng)
{
	c->type = CHANCE(75) ? VRB_QPT_RC : CHANCE(50) ? VRB_QPT_UC : VRB_QPT_UD;
	if (c != p->qp && (p->srq[0] || p->srq[1]))
		c->type = p->qp[0].type;
}

static void draw_qp(struct app_plan *p, struct sn_qp_conf *c, struct vrb_prng *rng)
{
	static const uint32_t near_wrap[] = {0,	       1,	 0xffffff, 0xfffffe,
					     0xfffff0, 0x7fffff, 0x800000};

	draw_type(p, c, rng);
	c->mtu_code = p->qp[0].mtu_code ? p->qp[0].mtu_code : PICK(1, 1, 1, 2, 3, 3, 4, 5);
	c->window_max = PICK(1, 2, 3, 8, 16, 64, 256);
	for (unsigned k = 0; k < 2; k++)
		c->psn[k] = CHANCE(50) ? pick(rng, near_wrap, 7) : vrb_prng_below(rng, 1 << 24);
	c->sq_cap = PICK(2, 4, 8, 16, 64);
	c->rq_cap = PICK(1, 2, 4, 16, 64);
	c->timeout = (uint8_t)PICK(8, 9, 10, 11);
	c->retry_cnt = p->harsh ? (uint8_t)vrb_prng_below(rng, 8) : 7;
	c->rnr_retry = p->harsh ? (uint8_t)vrb_prng_below(rng, 8) : 7;
	c->min_rnr_timer = (uint8_t)PICK(1, 2, 4, 8, 12, 14);
	c->rd_atomic = (uint8_t)PICK(1, 2, 128, 4, 8, 16);
	c->srq[0] = p->srq[0];
	c->srq[1] = p->srq[1];
}

void app_plan_draw(struct app_plan *p, uint64_t seed)
{
	struct vrb_prng state = vrb_prng_seed(seed), *rng = &state;

	*p = (struct app_plan){.seed = seed, .ordered = true, .ops = RC_OPS};
	p->harsh = CHANCE(15);
	p->ipv6 = CHANCE(20);
	p->srq[0] = CHANCE(20);
	p->srq[1] = CHANCE(20);
	p->latency_ns = PICK(0, 500, 5000, 50000);
	p->ps_per_byte = PICK(0, 80, 800, 8000);
	p->queue_max = PICK(2, 16, 256, 256);
	p->until = CHANCE(30) ? VRB_NS_PER_S : vrb_prng_below(rng, 20000000);
	draw_faults(p, &p->faults[0], rng);
	draw_faults(p, &p->faults[1], rng);
	p->n_qp = PICK(1, 1, 1, 2, 3);
	for (unsigned k = 0; k < 2; k++)
		p->n_msgs[k] = 1 + vrb_prng_below(rng, p->n_qp == 1 ? APP_MSGS_MAX : 12);
	for (uint32_t i = 0; i < p->n_qp; i++)
		draw_qp(p, &p->qp[i], rng);
	p->len_max = 1 + vrb_prng_below(rng, (128u << p->qp[0].mtu_code) * PICK(1, 2, 5, 9));
	for (uint32_t i = 0; i < p->n_qp; i++)
		if ((p->srq[0] || p->srq[1] || p->qp[i].type != VRB_QPT_RC) && p->len_max > 8192)
			p->len_max = 8192; /* each receive has room for any message */
	if (CHANCE(30))
		p->ops &= (uint32_t)vrb_prng_next(rng) | 1u << VRB_WR_SEND;
	for (unsigned k = 0; k < 2; k++) {
		p->ack_delay[k] = PICK(0, 0, 2000, 100000);
		p->cq_pause[k] = PICK(0, 0, 10000, 300000);
		p->post_pause[k] = PICK(0, 0, 5000, 200000);
		p->recv_pause[k] = PICK(0, 0, 0, 20000, 400000);
		p->tx_burst[k] = PICK(1, 2, 8, 32);
		p->requests_first[k] = CHANCE(50);
		p->fast[k] = CHANCE(30);
		p->arm[k] = (uint8_t)PICK(VRB_CQ_UNARMED, VRB_CQ_UNARMED, VRB_CQ_ARMED_SOLICITED,
					  VRB_CQ_ARMED_ANY);
	}
	for (uint32_t i = 0; i < p->n_qp; i++)
		p->qp[i].adapts = CHANCE(50);
}

static const char *type_name(enum vrb_qp_type t)
{
	return t == VRB_QPT_RC ? "RC" : t == VRB_QPT_UC ? "UC" : "UD";
}

void app_plan_print(const struct app_plan *p)
{
	printf("seed %llu: %u QPs, %u and %u messages up to %u bytes, IPv%c%s, ops 0x%x\n",
	       (unsigned long long)p->seed, p->n_qp, p->n_msgs[0], p->n_msgs[1], p->len_max,
	       p->ipv6 ? '6' : '4', p->harsh ? ", harsh" : "", p->ops);
	printf("wire: latency %u ns, %u ps/byte, queue %u, faults until %llu us\n", p->latency_ns,
	       p->ps_per_byte, p->queue_max, (unsigned long long)p->until / 1000);
	for (unsigned k = 0; k < 2; k++) {
		const struct app_faults *f = &p->faults[k];

		printf("towards %c: per million lost %u, duplicated %u, reordered %u, "
		       "corrupted %u, delayed %u; spread %u ns, delay %u ns\n",
		       'A' + k, f->loss, f->duplicate, f->reorder, f->corrupt, f->delay,
		       f->spread_ns, f->delay_ns);
		printf("end %c: ack delay %llu, CQ pause %llu, post pause %llu, recv pause "
		       "%llu ns, burst %u%s%s%s\n",
		       'A' + k, (unsigned long long)p->ack_delay[k],
		       (unsigned long long)p->cq_pause[k], (unsigned long long)p->post_pause[k],
		       (unsigned long long)p->recv_pause[k], p->tx_burst[k],
		       p->requests_first[k] ? ", requests first" : "", p->srq[k] ? ", SRQ" : "",
		       p->fast[k] ? ", fast path" : "");
	}
	for (uint32_t i = 0; i < p->n_qp; i++) {
		const struct sn_qp_conf *c = &p->qp[i];

		printf("QP %u: %s, MTU %u, window %u%s, PSN 0x%x and 0x%x, SQ %u, RQ %u, "
		       "timeout %u, retry %u, rnr_retry %u, RNR timer %u, rd_atomic %u\n",
		       i + 1, type_name(c->type), 128u << c->mtu_code, c->window_max,
		       c->adapts ? " at most" : "", c->psn[0], c->psn[1], c->sq_cap, c->rq_cap,
		       c->timeout, c->retry_cnt, c->rnr_retry, c->min_rnr_timer, c->rd_atomic);
	}
}
