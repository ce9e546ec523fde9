/* SPDX-License-Identifier: BSD-2-Clause */
/* One piece of a gather list: bytes in user memory that the holder of the list may read. */
#ifndef VRB_BASE_IOV_H
#define VRB_BASE_IOV_H

#include "base/types.h"

struct vrb_seg {
	const void *base;
	uint32_t len;
};

#endif
