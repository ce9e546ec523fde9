/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the device and its one port report: attributes, the GID table and the P_Key table. Limits
 * are those of the profile; nothing is claimed that is not offered. Error conventions differ from
 * call to call and are what programs test for: ibv_query_gid of an empty entry succeeds with zeros,
 * ibv_query_gid_ex gives ENODATA, the table gives a negative errno.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <pthread.h>
#include <time.h>

#define TICKS_KHZ 1000000 /* timestamps are nanoseconds */

struct vrb_rules_limits vv_limits;
struct vrb_post_states vv_posting;

static void take_profile(void)
{
	const struct vrb_profile *p = vrb_hca_profile();

	vv_limits = (struct vrb_rules_limits){
		.max_qp_wr = p->max_qp_wr,
		.max_send_sge = p->max_send_sge,
		.max_recv_sge = p->max_recv_sge,
		.max_inline = p->max_inline,
		.max_cqe = p->max_cqe,
		.max_srq_wr = p->max_srq_wr,
		.max_srq_sge = p->max_recv_sge,
		.n_comp_vectors = VV_COMP_VECTORS,
	};
	vv_posting = (struct vrb_post_states){VRB_POST_NO_SEND, VRB_POST_NO_RECV};
	if (!p->post_in_err) {
		vv_posting.no_send |= 1u << VRB_QPS_ERR;
		vv_posting.no_recv |= 1u << VRB_QPS_ERR;
	}
}

uint64_t vv_max_mr_size(void)
{
	uint32_t max = vrb_hca_profile()->max_mr_size;

	return max == VRB_PROFILE_ANY_SIZE ? UINT64_MAX : max;
}

void vv_take_profile(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, take_profile);
}

void vv_rules_port(const struct vrb_hdev *dev, struct vrb_rules_port *port)
{
	*port = (struct vrb_rules_port){
		.n_gids = VRB_GIDS_MAX,
		.n_ports = VV_PORTS,
		.n_pkeys = VV_PKEYS,
		/* frames on the same host are not bound to the interface's MTU */
		.max_mtu = IBV_MTU_4096,
		.max_rd_atomic = (uint8_t)vrb_hca_profile()->max_rd_atomic,
		.no_reset_to_reset = !vrb_hca_profile()->reset_to_reset,
	};
	for (uint32_t i = 0; i < dev->n_gids && i < VRB_GIDS_MAX; i++) {
		port->gid_valid |= (uint64_t)dev->gid[i].valid << i;
		port->gid_v4 |= (uint64_t)dev->gid[i].is_v4 << i;
		port->gid_v1 |= (uint64_t)dev->gid[i].is_v1 << i;
	}
}

static const unsigned int device_caps =
	IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_UD_AV_PORT_ENFORCE |
	IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
	IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
	IBV_DEVICE_MEM_MGT_EXTENSIONS;

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *a)
{
	const struct vrb_hdev *dev = vv_context(context)->dev;
	const struct vrb_profile *p = vrb_hca_profile();
	uint32_t max_sge = p->max_send_sge < p->max_recv_sge ? p->max_send_sge : p->max_recv_sge;

	*a = (struct ibv_device_attr){
		.node_guid = dev->guid,
		.sys_image_guid = dev->guid,
		.max_mr_size = vv_max_mr_size(),
		.page_size_cap = 0xfffff000,
		.vendor_id = 0xffffff, /* no OUI of our own; clients want it not to be 0 */
		.vendor_part_id = 1,
		.max_qp = (int)p->max_qp,
		.max_qp_wr = (int)p->max_qp_wr,
		.device_cap_flags = device_caps,
		.max_sge = (int)max_sge,
		.max_sge_rd = (int)max_sge,
		.max_cq = (int)p->max_cq,
		.max_cqe = (int)p->max_cqe,
		.max_mr = (int)p->max_mr,
		.max_pd = (int)p->max_pd,
		.max_qp_rd_atom = (int)p->max_rd_atomic,
		.max_res_rd_atom = (int)p->max_rd_atomic * VRB_MAX_QP,
		.max_qp_init_rd_atom = (int)p->max_rd_atomic,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mw = VRB_MAX_MR,
		.max_mcast_grp = 8192,
		.max_mcast_qp_attach = 56,
		.max_total_mcast_qp_attach = 8192 * 56,
		.max_ah = (int)p->max_ah,
		.max_srq = VRB_MAX_QP,
		.max_srq_wr = (int)p->max_srq_wr,
		.max_srq_sge = (int)p->max_recv_sge,
		.max_pkeys = VV_PKEYS,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = VV_PORTS,
	};
	snprintf(a->fw_ver, sizeof(a->fw_ver), "verbena %s", VRB_VERSION);
	return 0;
}

int vv_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size)
{
	const struct vrb_profile *p = vrb_hca_profile();
	uint16_t hold_max = p->cq_moderation ? VV_CQ_HOLD_MAX : 0;
	struct ibv_device_attr_ex a = {
		.completion_timestamp_mask = p->cq_timestamps ? UINT64_MAX : 0,
		.hca_core_clock = p->cq_timestamps ? TICKS_KHZ : 0,
		.device_cap_flags_ex = device_caps,
		.cq_mod_caps = {.max_cq_count = hold_max, .max_cq_period = hold_max},
		.phys_port_cnt_ex = VV_PORTS,
	};
	int err;

	if (input && input->comp_mask)
		return EINVAL;
	if (size < sizeof(a.orig_attr))
		return EINVAL;
	err = ibv_query_device(ctx, &a.orig_attr);
	if (err)
		return err;
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

int vv_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	uint32_t asked = values->comp_mask;
	struct vrb_report r;

	(void)ctx;
	values->comp_mask = 0;
	if (!vrb_hca_profile()->cq_timestamps) {
		vrb_rules_unsupported(VRB_VERB_OTHER, &r);
		return vv_refuse(&r);
	}
	if (asked & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (asked & IBV_VALUES_MASK_RAW_CLOCK) {
		/* As NICs do: the ticks stand in tv_nsec alone, for programs that look nowhere else
		 * and for those that add both. */
		values->raw_clock = (struct timespec){.tv_nsec = (long)vrb_hca_clock()};
		values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	}
	return 0;
}

/* The link speed as width and speed codes of IBA 14.2.5.6, the next step at or above it. */
static void speed_codes(uint32_t mbps, uint8_t *width, uint8_t *speed)
{
	static const struct {
		uint32_t mbps;
		uint8_t width, speed;
	} step[] = {
		{1000, 1, 1},	  /* 1X SDR */
		{10000, 1, 8},	  /* 1X FDR10 */
		{20000, 2, 2},	  /* 4X DDR */
		{25000, 1, 32},	  /* 1X EDR */
		{40000, 2, 8},	  /* 4X FDR10 */
		{50000, 1, 64},	  /* 1X HDR */
		{100000, 2, 32},  /* 4X EDR */
		{200000, 2, 64},  /* 4X HDR */
		{400000, 2, 128}, /* 4X NDR */
	};
	unsigned i = 0;

	if (!mbps) /* not known, as on loopback: the figure of a current NIC */
		mbps = 100000;
	while (i + 1 < sizeof(step) / sizeof(step[0]) && step[i].mbps < mbps)
		i++;
	*width = step[i].width;
	*speed = step[i].speed;
}

enum { PHYS_DISABLED = 3, PHYS_LINK_UP = 5 };

int vv_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	const struct vrb_hdev *dev = vv_context(ctx)->dev;
	struct ibv_port_attr a = {
		.state = dev->up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = dev->active_mtu,
		.gid_tbl_len = VRB_GIDS_MAX,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = VRB_MAX_MSG,
		.pkey_tbl_len = VV_PKEYS,
		.max_vl_num = 1,
		.phys_state = dev->up ? PHYS_LINK_UP : PHYS_DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	struct vrb_report r = {.verdict = VRB_V_MODIFY_PORT, .val = {port, VV_PORTS}};

	if (port < 1 || port > VV_PORTS)
		return vv_refuse(&r);
	speed_codes(dev->speed_mbps, &a.active_width, &a.active_speed);
	memset(attr, 0, len);
	memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
	return 0;
}

/* The struct of programs built before the port attributes could grow: the same, shorter. */
#define COMPAT_PORT_ATTR_SIZE 48

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return vv_query_port(context, port, (struct ibv_port_attr *)attr, COMPAT_PORT_ATTR_SIZE);
}

static bool port_ok(uint32_t port)
{
	return port >= 1 && port <= VV_PORTS;
}

/* The entry, or NULL when it is empty. index is below VRB_GIDS_MAX. */
static const struct vrb_gid_entry *gid_entry(struct ibv_context *ctx, uint32_t index)
{
	const struct vrb_hdev *dev = vv_context(ctx)->dev;

	return index < dev->n_gids && dev->gid[index].valid ? &dev->gid[index] : NULL;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	const struct vrb_gid_entry *e;

	if (!port_ok(port) || index < 0 || index >= VRB_GIDS_MAX) {
		errno = EINVAL;
		return -1;
	}
	e = gid_entry(context, (uint32_t)index);
	memset(gid, 0, sizeof(*gid));
	if (e)
		memcpy(gid->raw, e->gid.raw, sizeof(gid->raw));
	return 0;
}

static struct ibv_gid_entry public_entry(struct ibv_context *ctx, const struct vrb_gid_entry *e,
					 uint32_t index)
{
	struct ibv_gid_entry out = {
		.gid_index = index,
		.port_num = 1,
		.gid_type = e->is_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = vv_context(ctx)->dev->ifindex,
	};

	memcpy(out.gid.raw, e->gid.raw, sizeof(out.gid.raw));
	return out;
}

static void copy_entry(void *dst, const struct ibv_gid_entry *e, size_t size)
{
	memset(dst, 0, size);
	memcpy(dst, e, size < sizeof(*e) ? size : sizeof(*e));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry out;
	const struct vrb_gid_entry *e;

	if (flags)
		return EOPNOTSUPP;
	if (!port_ok(port) || index >= VRB_GIDS_MAX)
		return EINVAL;
	e = gid_entry(context, index);
	if (!e)
		return ENODATA;
	out = public_entry(context, e, index);
	copy_entry(entry, &out, entry_size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	size_t n = 0;

	if (flags)
		return -EOPNOTSUPP;
	for (uint32_t i = 0; i < VRB_GIDS_MAX; i++) {
		const struct vrb_gid_entry *e = gid_entry(context, i);
		struct ibv_gid_entry out;

		if (!e)
			continue;
		if (n == max_entries)
			return -EINVAL;
		out = public_entry(context, e, i);
		copy_entry((char *)entries + n++ * entry_size, &out, entry_size);
	}
	return (ssize_t)n;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (!port_ok(port) || index < 0 || index >= VV_PKEYS) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(VV_PKEY);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	(void)context;
	return port_ok(port) && pkey == htobe16(VV_PKEY) ? 0 : -1;
}
