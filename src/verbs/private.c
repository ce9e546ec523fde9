/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node IBVERBS_PRIVATE_34. The distribution's provider libraries (libmlx5, libefa), which
 * programs link, are bound to it at start; none of their devices exists here, so registering a
 * driver does nothing and every command answers EOPNOTSUPP. Only ibv_query_gid_type has users among
 * programs and is real. The arguments of the others are never looked at.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

/* Sysfs numbering: 0 is InfiniBand and RoCEv1, 1 is RoCEv2. */
enum { GID_TYPE_IB_ROCE_V1, GID_TYPE_ROCE_V2 };

VV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
				 int *type);

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	const struct vrb_hdev *dev = vv_context(context)->dev;

	if (port < 1 || port > VV_PORTS || index >= VRB_GIDS_MAX) {
		errno = EINVAL;
		return -1;
	}
	/* an empty entry has no type and answers as the kernel's table does: the first */
	*type = index < dev->n_gids && dev->gid[index].valid && !dev->gid[index].is_v1
			? GID_TYPE_ROCE_V2
			: GID_TYPE_IB_ROCE_V1;
	return 0;
}

/* One byte: whether a provider may let objects outlive an unplugged device. */
VV_EXPORT extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

#define NOTHING(name)                                                                              \
	VV_EXPORT void name(void);                                                                 \
	void name(void)                                                                            \
	{                                                                                          \
	}
#define NO_POINTER(name)                                                                           \
	VV_EXPORT void *name(void);                                                                \
	void *name(void)                                                                           \
	{                                                                                          \
		return vv_null(EOPNOTSUPP);                                                        \
	}
#define NUMBER(name, value)                                                                        \
	VV_EXPORT int name(void);                                                                  \
	int name(void)                                                                             \
	{                                                                                          \
		return value;                                                                      \
	}
#define REFUSED(name) NUMBER(name, EOPNOTSUPP)

/* clang-format off */
/* called from the constructors of provider libraries */
NOTHING(verbs_register_driver_34)
NOTHING(__verbs_log) /* variadic at the caller */
NOTHING(verbs_init_cq)
NOTHING(verbs_set_ops)
NOTHING(verbs_uninit_context)
NO_POINTER(verbs_open_device)
NO_POINTER(_verbs_init_and_alloc_context)
NUMBER(__ioctl_final_num_attrs, 0)
NUMBER(ibv_cmd_poll_cq, -EOPNOTSUPP) /* a count, or negative */
NUMBER(ibv_read_ibdev_sysfs_file, -1)
REFUSED(execute_ioctl)
REFUSED(ibv_cmd_advise_mr)
REFUSED(ibv_cmd_alloc_dm)
REFUSED(ibv_cmd_alloc_mw)
REFUSED(ibv_cmd_alloc_pd)
REFUSED(ibv_cmd_attach_mcast)
REFUSED(ibv_cmd_close_xrcd)
REFUSED(ibv_cmd_create_ah)
REFUSED(ibv_cmd_create_counters)
REFUSED(ibv_cmd_create_cq)
REFUSED(ibv_cmd_create_cq_ex)
REFUSED(ibv_cmd_create_flow)
REFUSED(ibv_cmd_create_flow_action_esp)
REFUSED(ibv_cmd_create_qp)
REFUSED(ibv_cmd_create_qp_ex)
REFUSED(ibv_cmd_create_qp_ex2)
REFUSED(ibv_cmd_create_rwq_ind_table)
REFUSED(ibv_cmd_create_srq)
REFUSED(ibv_cmd_create_srq_ex)
REFUSED(ibv_cmd_create_wq)
REFUSED(ibv_cmd_dealloc_mw)
REFUSED(ibv_cmd_dealloc_pd)
REFUSED(ibv_cmd_dereg_mr)
REFUSED(ibv_cmd_destroy_ah)
REFUSED(ibv_cmd_destroy_counters)
REFUSED(ibv_cmd_destroy_cq)
REFUSED(ibv_cmd_destroy_flow)
REFUSED(ibv_cmd_destroy_flow_action)
REFUSED(ibv_cmd_destroy_qp)
REFUSED(ibv_cmd_destroy_rwq_ind_table)
REFUSED(ibv_cmd_destroy_srq)
REFUSED(ibv_cmd_destroy_wq)
REFUSED(ibv_cmd_detach_mcast)
REFUSED(ibv_cmd_free_dm)
REFUSED(ibv_cmd_get_context)
REFUSED(ibv_cmd_modify_cq)
REFUSED(ibv_cmd_modify_flow_action_esp)
REFUSED(ibv_cmd_modify_qp)
REFUSED(ibv_cmd_modify_qp_ex)
REFUSED(ibv_cmd_modify_srq)
REFUSED(ibv_cmd_modify_wq)
REFUSED(ibv_cmd_open_qp)
REFUSED(ibv_cmd_open_xrcd)
REFUSED(ibv_cmd_post_recv)
REFUSED(ibv_cmd_post_send)
REFUSED(ibv_cmd_post_srq_recv)
REFUSED(ibv_cmd_query_context)
REFUSED(ibv_cmd_query_device_any)
REFUSED(ibv_cmd_query_mr)
REFUSED(ibv_cmd_query_port)
REFUSED(ibv_cmd_query_qp)
REFUSED(ibv_cmd_query_srq)
REFUSED(ibv_cmd_read_counters)
REFUSED(ibv_cmd_reg_dm_mr)
REFUSED(ibv_cmd_reg_dmabuf_mr)
REFUSED(ibv_cmd_reg_mr)
REFUSED(ibv_cmd_req_notify_cq)
REFUSED(ibv_cmd_rereg_mr)
REFUSED(ibv_cmd_resize_cq)
/* clang-format on */
