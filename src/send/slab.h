/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Size classes up to 4 KiB: what a request is rounded up to, and how a run of pages is cut into
 * objects. An object is a buffer's front (struct vrb_buf, one cache line) and its data.
 */
#ifndef VRB_SEND_SLAB_H
#define VRB_SEND_SLAB_H

#include "base/types.h"

#define VRB_PAGE	 4096u
#define VRB_SLAB_CLASSES 12u
#define VRB_SLAB_MAX	 4096u /* more than that is cut from whole pages */
#define VRB_SLAB_PAGES	 16u   /* a run that is cut into objects of one class */
#define VRB_FRONT	 64u   /* bytes in front of the data */
#define VRB_TAIL	 16u /* behind it: the front of the next one begins with so many for that */

extern const uint16_t vrb_slab_size[VRB_SLAB_CLASSES]; /* data bytes of a class */

/* The class for len <= VRB_SLAB_MAX bytes. */
static inline uint32_t vrb_slab_class(uint32_t len)
{
	uint32_t top;

	if (len <= 256)
		return len <= 64 ? 0 : (len - 1) / 64;
	/* Two classes for each power of two: 1.5 times the one below, and itself. */
	top = 31 - (uint32_t)__builtin_clz(len - 1);
	return 2 * (top - 8) + 4 + (len > (3u << (top - 1)));
}

static inline uint32_t vrb_slab_objects(uint32_t cls)
{
	return (VRB_SLAB_PAGES * VRB_PAGE - VRB_TAIL) / (VRB_FRONT + vrb_slab_size[cls]);
}

/* Pages for a buffer of len bytes above VRB_SLAB_MAX. */
static inline uint64_t vrb_slab_pages(uint64_t len)
{
	return (len + VRB_FRONT + VRB_TAIL + VRB_PAGE - 1) / VRB_PAGE;
}

#endif
