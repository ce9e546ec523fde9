/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process has done, in a file of its own (base/totals.h) when VERBENA_STAT says where.
 * Nothing is counted for it that is not counted anyway: it is read off the objects ten times a
 * second by the helper, and when the engine ends or the program exits, so that a process that is
 * killed has written what it did until then. It is written, not mapped: a full disk or a
 * truncation must not raise a signal in the program. The file is the process's: with a second
 * engine it goes on. A file that cannot be written ends it, never the program.
 */
#ifndef VRB_HCA_TOTALS_H
#define VRB_HCA_TOTALS_H

#include "base/totals.h"
#include "hca/engine.h"

#define VRB_TOTALS_NS (100 * VRB_NS_PER_MS)

/* As engines begin and end, one after the other. */
void vrb_totals_open(struct vrb_engine *e);
void vrb_totals_close(struct vrb_engine *e);
/* With e->totals set, lock held. */
void vrb_totals_tick(struct vrb_engine *e, vrb_ns now);
void vrb_totals_write(struct vrb_engine *e);
/* The program exits and has no engine any more: its CPU time. */
void vrb_totals_exit(void);
void vrb_totals_disown(void); /* in a forked child */

#endif
