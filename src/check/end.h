/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of the program, and of its copies. */
#ifndef VRB_CHECK_END_H
#define VRB_CHECK_END_H

/* Has exit() and fork() looked at. */
void vrb_chk_end_watch(void);
/* Says how often what was printed once came again. */
void vrb_chk_report_rest(void);
/* The child of a fork: what was seen is its parent's to tell. */
void vrb_chk_report_forget(void);

#endif
