/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one place where a verdict or -errno of the layers below becomes what verbs.h promises: calls
 * that return int give a positive errno, calls that return a pointer give NULL and set errno; slots
 * of extended objects (start_poll, wr_complete) give an errno, whatever the profile says.
 */
#ifndef VRB_VERBS_RET_H
#define VRB_VERBS_RET_H

#include "hca/hca.h"
#include <errno.h>

/* The errno a refused call shows, by the rule that was broken. */
static inline int vv_errno(enum vrb_verdict v)
{
	if (v == VRB_V_POST_SQ_FULL || v == VRB_V_POST_SQ_DEAD_END || v == VRB_V_POST_RQ_FULL ||
	    v == VRB_V_REG_MEMLOCK || v == VRB_V_CREATE_MANY)
		return ENOMEM;
	if (v == VRB_V_UNSUPPORTED || v == VRB_V_CREATE_QP_TYPE || v == VRB_V_MODIFY_ALT_PATH)
		return EOPNOTSUPP;
	if (v == VRB_V_BUSY)
		return EBUSY;
	if (v == VRB_V_MODIFY_UNREACHABLE)
		return EHOSTUNREACH;
	if (v == VRB_V_POST_DEVICE_GONE)
		return EIO;
	return EINVAL;
}

/* Counts and explains the refusal; returns its errno. */
static inline int vv_reason(const struct vrb_report *r)
{
	vrb_hca_refuse(r);
	return vv_errno(r->verdict);
}

/* What a call that returns int gives for an errno. With the profile's minus_one it is -1, as some
 * libraries do and programs forget. */
static inline int vv_int(int err)
{
	if (vrb_likely(!err) || !vrb_hca_profile()->minus_one)
		return err;
	errno = err;
	return -1;
}

/* The two together. */
static inline int vv_refuse(const struct vrb_report *r)
{
	return vv_int(vv_reason(r));
}

/* 0 or -errno of hca. */
static inline int vv_ret(int err)
{
	return vv_int(err < 0 ? -err : 0);
}

/* For calls that return pointers. */
static inline void *vv_null(int err)
{
	errno = err < 0 ? -err : err;
	return NULL;
}

#endif
