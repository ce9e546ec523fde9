/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended CQ: one completion at a time, taken as by the ordinary poll and read through slots.
 * Slots are filled only for what was asked in wc_flags. A completion's timestamps are the moment it
 * was put into the CQ. From a start_poll that found one until end_poll the CQ is the thread's own,
 * unless the program has promised to poll from one thread.
 */
#include "verbs/verbs.h"
#include "hca/data.h"
#include "verbs/ret.h"

#include <pthread.h>

#define STAMPS                                                                                     \
	((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                          \
		    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
#define FLAGS_DEFINED ((uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS)
#define MASK_OFFERED  ((uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS)

static int take(struct vv_cq *c)
{
	int n = vrb_hcq_poll_stamped(c->h, (struct vrb_wc *)&c->wc, &c->stamp);

	if (n < 1)
		return n ? EIO : ENOENT;
	c->ex.status = c->wc.status;
	c->ex.wr_id = c->wc.wr_id;
	return 0;
}

static int start_poll_alone(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vrb_report r;

	if (vrb_rules_defined(VRB_OA_COMP_MASK, attr->comp_mask, 0, &r) != VRB_OK)
		return vv_reason(&r);
	return take(vv_cq_ex(ex));
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vv_cq *c = vv_cq_ex(ex);
	int err;

	if (vrb_unlikely(c->h->ctx->e->foreign)) /* a thread of the parent may have had the lock */
		return EIO;
	pthread_mutex_lock(&c->poll_lock);
	err = start_poll_alone(ex, attr);
	if (err)
		pthread_mutex_unlock(&c->poll_lock);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take(vv_cq_ex(ex));
}

static void end_poll_alone(struct ibv_cq_ex *ex)
{
	(void)ex;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	pthread_mutex_unlock(&vv_cq_ex(ex)->poll_lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->wc.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->stamp.ns;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return vv_cq_ex(ex)->stamp.wall_ns;
}

static void fill_slots(struct vv_cq *c, uint64_t flags)
{
	struct ibv_cq_ex *ex = &c->ex;

	ex->start_poll = c->single_threaded ? start_poll_alone : start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = c->single_threaded ? end_poll_alone : end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

static bool has_times(void)
{
	return vrb_hca_profile()->cq_timestamps;
}

static uint32_t create_flags(const struct ibv_cq_init_attr_ex *a)
{
	return a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? a->flags : 0;
}

static enum vrb_verdict check(const struct ibv_cq_init_attr_ex *a, struct vrb_report *r)
{
	uint32_t flags = create_flags(a);

	if (vrb_rules_create_cq(a->cqe, a->comp_vector, &vv_limits, r) != VRB_OK ||
	    vrb_rules_defined(VRB_OA_WC_FLAGS, a->wc_flags, FLAGS_DEFINED, r) != VRB_OK ||
	    vrb_rules_defined(VRB_OA_COMP_MASK, a->comp_mask,
			      IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD,
			      r) != VRB_OK ||
	    vrb_rules_defined(VRB_OA_CREATE_FLAGS, flags,
			      IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
				      IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
			      r) != VRB_OK)
		return r->verdict;
	if (a->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS & ~(has_times() ? STAMPS : 0) ||
	    a->comp_mask & ~MASK_OFFERED)
		return vrb_rules_unsupported(VRB_VERB_OTHER, r);
	return VRB_OK;
}

struct ibv_cq_ex *vv_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *a)
{
	struct vv_cq_ask ask = {
		.cqe = a->cqe,
		.cq_context = a->cq_context,
		.channel = a->channel,
		.wc_flags = a->wc_flags,
		.flags = create_flags(a),
	};
	struct vrb_report r;
	struct vv_cq *c;

	if (check(a, &r) != VRB_OK)
		return vv_null(vv_reason(&r));
	c = vv_cq_make(ctx, &ask);
	if (!c)
		return NULL;
	fill_slots(c, a->wc_flags);
	return &c->ex;
}
