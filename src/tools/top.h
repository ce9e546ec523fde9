/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `verbena top` shows of two samples (tools/live.h), as text or as JSON, and the terminal it
 * is shown on. Whatever has no older sample has no rate.
 */
#ifndef VRB_TOOLS_TOP_H
#define VRB_TOOLS_TOP_H

#include <jansson.h>
#include <stdio.h>

#include "tools/live.h"

struct vrb_top {
	const struct vrb_live *now, *old; /* old: NULL before the second sample */
	bool regions;			  /* of text: they are listed, too */
};

/* top_rate.c */
#define VRB_NO_RATE (-1.0)
/* Per second, or VRB_NO_RATE. */
double vrb_top_rate(const struct vrb_live_proc *p, const struct vrb_live_proc *old, uint64_t now,
		    uint64_t then);
enum { VRB_SENT, VRB_TAKEN, VRB_TX_BYTES, VRB_RX_BYTES, VRB_N_RATES };
struct vrb_top_rates {
	double of[VRB_N_RATES];
};
void vrb_top_qp_rates(struct vrb_top_rates *r, const struct vrb_live_proc *p,
		      const struct vrb_live_proc *old, const struct vrb_row_qp *q);
/* Of all its queue pairs on a device. */
void vrb_top_device_rates(struct vrb_top_rates *r, const struct vrb_live_proc *p,
			  const struct vrb_live_proc *old, uint32_t device);
/* The fuller one of the CQs of a queue pair, in percent; -1: not known. */
int vrb_top_cq_fill(const struct vrb_live_proc *p, const struct vrb_row_qp *q);
const char *vrb_top_answer(enum vrb_live_answer a);
/* "RC", "RTS". */
const char *vrb_top_name(char *out, size_t size, char kind, uint32_t v);
/* "memory", "wire", or "-". */
const char *vrb_top_link(const struct vrb_row_qp *q);
/* Where the other end is: "process 12", an address, or "-". */
const char *vrb_top_peer(char *out, size_t size, const struct vrb_row_qp *q);

/* top_where.c: which code of a process an address is, "file+0x12", or "-". */
struct vrb_maps;
struct vrb_maps *vrb_maps_read(pid_t pid); /* NULL: not to be seen */
const char *vrb_maps_name(char *out, size_t size, const struct vrb_maps *m, uint64_t addr);
void vrb_maps_free(struct vrb_maps *m);

json_t *vrb_top_json(const struct vrb_top *t);
void vrb_top_text(FILE *f, const struct vrb_top *t);

/* top_screen.c: the terminal, while something is shown on it */
void vrb_screen_enter(void);
void vrb_screen_leave(void); /* as it was */
void vrb_screen_show(const char *text);

#endif
