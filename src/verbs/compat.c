/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IBVERBS_1.0 versions of functions whose structs changed in 2007 (and ibv_register_driver,
 * which never did anything for programs). No program in a current distribution imports them; they
 * exist so that the list of symbols is complete, and refuse. The few whose meaning does not depend
 * on a struct are served.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <endian.h>

#define COMPAT(ours, name, node) __asm__(".symver " #ours "," #name "@" node)
#define OLD(name)		 COMPAT(vv_old_##name, name, "IBVERBS_1.0")

#define OLD_POINTER(name)                                                                          \
	VV_EXPORT void *vv_old_##name(void);                                                       \
	void *vv_old_##name(void)                                                                  \
	{                                                                                          \
		return vv_null(ENOSYS);                                                            \
	}                                                                                          \
	OLD(name)
#define OLD_ERRNO(name)                                                                            \
	VV_EXPORT int vv_old_##name(void);                                                         \
	int vv_old_##name(void)                                                                    \
	{                                                                                          \
		return ENOSYS;                                                                     \
	}                                                                                          \
	OLD(name)
#define OLD_MINUS_ONE(name)                                                                        \
	VV_EXPORT int vv_old_##name(void);                                                         \
	int vv_old_##name(void)                                                                    \
	{                                                                                          \
		errno = ENOSYS;                                                                    \
		return -1;                                                                         \
	}                                                                                          \
	OLD(name)
#define OLD_VOID(name)                                                                             \
	VV_EXPORT void vv_old_##name(void);                                                        \
	void vv_old_##name(void)                                                                   \
	{                                                                                          \
	}                                                                                          \
	OLD(name)

/* clang-format off */
OLD_VOID(ibv_ack_async_event);
OLD_VOID(ibv_ack_cq_events);
OLD_POINTER(ibv_alloc_pd);
OLD_ERRNO(ibv_attach_mcast);
OLD_ERRNO(ibv_close_device);
OLD_POINTER(ibv_create_ah);
OLD_POINTER(ibv_create_cq);
OLD_POINTER(ibv_create_qp);
OLD_POINTER(ibv_create_srq);
OLD_ERRNO(ibv_dealloc_pd);
OLD_ERRNO(ibv_dereg_mr);
OLD_ERRNO(ibv_destroy_ah);
OLD_ERRNO(ibv_destroy_cq);
OLD_ERRNO(ibv_destroy_qp);
OLD_ERRNO(ibv_destroy_srq);
OLD_ERRNO(ibv_detach_mcast);
OLD_VOID(ibv_free_device_list);
OLD_MINUS_ONE(ibv_get_async_event);
OLD_MINUS_ONE(ibv_get_cq_event);
OLD_POINTER(ibv_get_device_list);
OLD_ERRNO(ibv_modify_qp);
OLD_ERRNO(ibv_modify_srq);
OLD_POINTER(ibv_open_device);
OLD_ERRNO(ibv_query_device);
OLD_MINUS_ONE(ibv_query_gid);
OLD_MINUS_ONE(ibv_query_pkey);
OLD_ERRNO(ibv_query_port);
OLD_ERRNO(ibv_query_qp);
OLD_ERRNO(ibv_query_srq);
OLD_POINTER(ibv_reg_mr);
OLD_ERRNO(ibv_resize_cq);
/* clang-format on */

/* The old list held other structs, and none were ever given out: there is nothing to name. */
VV_EXPORT const char *vv_old_ibv_get_device_name(void *device);
const char *vv_old_ibv_get_device_name(void *device)
{
	(void)device;
	return NULL;
}
OLD(ibv_get_device_name);

VV_EXPORT __be64 vv_old_ibv_get_device_guid(void *device);
__be64 vv_old_ibv_get_device_guid(void *device)
{
	(void)device;
	return htobe64(0);
}
OLD(ibv_get_device_guid);

VV_EXPORT void vv_old_ibv_register_driver(void);
void vv_old_ibv_register_driver(void)
{
}
COMPAT(vv_old_ibv_register_driver, ibv_register_driver, "IBVERBS_1.1");
