/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/cq.h"

#include <errno.h>

#include "send/channel.h"
#include "send/fail.h"

enum { OBJ_CHANNEL = 5, OBJ_CQ }; /* names of the verdict's sentence */

#define NAP_LEAST (4 * VRB_NS_PER_US)

static bool has_clock(struct vrb_channel *ch)
{
	struct ibv_device_attr_ex a = {0};

	if (ibv_query_device_ex(ch->d->ctx, NULL, &a) || !a.completion_timestamp_mask ||
	    !a.hca_core_clock)
		return false;
	ch->ticks =
		(struct vrb_ticks){.mask = a.completion_timestamp_mask, .khz = a.hca_core_clock};
	return true;
}

/* An adapter without such CQs gives an ordinary one, and no times. */
static void create_stamped(struct vrb_channel *ch, uint64_t entries)
{
	struct ibv_cq_init_attr_ex a = {.cqe = (uint32_t)entries,
					.channel = ch->comp,
					.wc_flags = IBV_WC_EX_WITH_BYTE_LEN |
						    IBV_WC_EX_WITH_QP_NUM |
						    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

	if (has_clock(ch))
		ch->cq_ex = ibv_create_cq_ex(ch->d->ctx, &a);
	if (ch->cq_ex)
		ch->cq = ibv_cq_ex_to_cq(ch->cq_ex);
}

int vrb_cq_create(struct vrb_channel *ch, uint64_t entries)
{
	ch->comp = ibv_create_comp_channel(ch->d->ctx);
	if (!ch->comp)
		return vrb_fail(errno, VRB_V_SEND_CREATE, OBJ_CHANNEL, (uint64_t)errno, 0);
	if (ch->opt.timestamps)
		create_stamped(ch, entries);
	if (!ch->cq)
		ch->cq = ibv_create_cq(ch->d->ctx, (int)entries, NULL, ch->comp, 0);
	if (!ch->cq)
		return vrb_fail(errno, VRB_V_SEND_CREATE, OBJ_CQ, (uint64_t)errno, 0);
	if (ch->opt.moderate_count)
		vrb_cq_moderate(ch);
	return 0;
}

void vrb_cq_destroy(struct vrb_channel *ch)
{
	if (ch->unacked)
		ibv_ack_cq_events(ch->cq, ch->unacked);
	if (ch->cq)
		ibv_destroy_cq(ch->cq);
	if (ch->comp)
		ibv_destroy_comp_channel(ch->comp);
	ch->unacked = 0;
	ch->cq = NULL;
	ch->cq_ex = NULL;
	ch->comp = NULL;
}

static int poll_stamped(struct vrb_channel *ch, struct ibv_wc *wc, uint64_t *ns, int n)
{
	struct ibv_poll_cq_attr a = {0};
	struct ibv_cq_ex *cq = ch->cq_ex;
	int r = ibv_start_poll(cq, &a), got = 0;

	if (r)
		return r == ENOENT ? 0 : -1;
	do {
		wc[got].wr_id = cq->wr_id;
		wc[got].status = cq->status;
		wc[got].vendor_err = ibv_wc_read_vendor_err(cq);
		wc[got].qp_num = ibv_wc_read_qp_num(cq);
		wc[got].byte_len = ibv_wc_read_byte_len(cq);
		ns[got] = vrb_ticks_ns(&ch->ticks, ibv_wc_read_completion_ts(cq));
	} while (++got < n && !ibv_next_poll(cq)); /* an error shows again at the next start */
	ibv_end_poll(cq);
	return got;
}

int vrb_cq_poll(struct vrb_channel *ch, struct ibv_wc *wc, uint64_t *ns, int n)
{
	if (vrb_unlikely(ch->cq_ex != NULL))
		return poll_stamped(ch, wc, ns, n);
	return ibv_poll_cq(ch->cq, n, wc);
}

/* ---- events held back */

static uint16_t at_most(uint16_t value, uint16_t max)
{
	return max && value > max ? max : value;
}

void vrb_cq_moderate(struct vrb_channel *ch)
{
	struct ibv_modify_cq_attr m = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	struct ibv_device_attr_ex a = {0};
	uint16_t count = ch->opt.moderate_count, us = ch->opt.moderate_us;
	bool was_adapters = ch->moderation == VRB_BY_ADAPTER;

	if (ibv_query_device_ex(ch->d->ctx, NULL, &a))
		a.cq_mod_caps = (struct ibv_cq_moderation_caps){0};
	m.moderate.cq_count = at_most(count, a.cq_mod_caps.max_cq_count);
	m.moderate.cq_period = at_most(us, a.cq_mod_caps.max_cq_period);
	ch->moderation = VRB_ABSENT;
	if ((count || was_adapters) && !ibv_modify_cq(ch->cq, &m))
		ch->moderation = count ? VRB_BY_ADAPTER : VRB_ABSENT;
	else if (count)
		ch->moderation = VRB_BY_LIBRARY;
	ch->nap_ns = us * VRB_NS_PER_US;
	ch->napped = false;
}

int vrb_moderate(struct vrb_channel *ch, uint16_t count, uint16_t period_us)
{
	if (!count != !period_us) {
		(void)vrb_fail(EINVAL, VRB_V_SEND_OPTION, 0, 1, UINT16_MAX);
		return vrb_about("moderate_count and moderate_us");
	}
	ch->opt.moderate_count = count;
	ch->opt.moderate_us = period_us;
	if (ch->cq && ch->state != VRB_AWAY && ch->state != VRB_DOWN)
		vrb_cq_moderate(ch);
	return 0;
}

uint64_t vrb_cq_nap(const struct vrb_channel *ch)
{
	return ch->moderation == VRB_BY_LIBRARY ? ch->nap_ns : 0;
}

/* A nap that `count` completions ended too late was too long. */
void vrb_cq_learn(struct vrb_channel *ch)
{
	uint64_t came = ch->st.completions - ch->nap_from,
		 most = ch->opt.moderate_us * VRB_NS_PER_US;

	if (!ch->napped)
		return;
	ch->napped = false;
	if (came > ch->opt.moderate_count)
		ch->nap_ns = ch->nap_ns * ch->opt.moderate_count / came;
	else
		ch->nap_ns *= 2;
	if (ch->nap_ns < NAP_LEAST)
		ch->nap_ns = NAP_LEAST;
	if (ch->nap_ns > most)
		ch->nap_ns = most;
}

/* ---- the clock of the times */

int vrb_channel_clock(struct vrb_channel *ch, uint64_t *ns)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	if (!ch->cq_ex || ibv_query_rt_values_ex(ch->d->ctx, &v))
		return vrb_fail(EOPNOTSUPP, VRB_V_SEND_NO_CLOCK, ch->opt.timestamps, 0, 0);
	*ns = vrb_ticks_ns(&ch->ticks, (uint64_t)v.raw_clock.tv_sec * VRB_NS_PER_S +
					       (uint64_t)v.raw_clock.tv_nsec);
	return 0;
}
