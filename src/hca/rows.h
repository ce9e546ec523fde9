/* SPDX-License-Identifier: BSD-2-Clause */
/* What the objects of this process are doing, for a tool that asks (include/verbena/stats.h). */
#ifndef VRB_HCA_ROWS_H
#define VRB_HCA_ROWS_H

#include "hca/engine.h"

/* Answers on sock, with queue pairs whose number's low bits are `from` or more; lock held. */
void vrb_rows_tell(struct vrb_engine *e, int sock, uint32_t from);

#endif
