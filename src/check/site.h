/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places in the program: return addresses, taken cheaply and named only when they are shown. Frames
 * of the verbs libraries and of the checker are left out, so that the first one shown is the call
 * that the user wrote.
 */
#ifndef VRB_CHECK_SITE_H
#define VRB_CHECK_SITE_H

#include <stddef.h>
#include <stdint.h>

#define VRB_CHK_FRAMES 6

struct vrb_chk_site {
	void *pc[VRB_CHK_FRAMES]; /* the innermost of the program first; NULL ends */
};

/* The calling thread's stack. */
void vrb_chk_site_take(struct vrb_chk_site *s);

struct vrb_chk_place {
	const char *object; /* file */
	const char *symbol; /* NULL: not exported */
	uint64_t offset;    /* in the symbol; without one 0 */
	uint64_t address;   /* for addr2line -e object */
};
/* False: nothing is known of pc. */
int vrb_chk_place(const void *pc, struct vrb_chk_place *p);

#endif
