/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of this user that have the software HCA open, as they are at one moment: their
 * counters pages and their objects (include/verbena/stats.h), asked for by their slots all at once.
 * What a process answers may be anything; it is copied, bounded, and names are made printable. One
 * that does not answer in time is there, silent, and costs nothing more than that time.
 */
#ifndef VRB_TOOLS_LIVE_H
#define VRB_TOOLS_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "verbena/stats.h"

#define VRB_LIVE_NAME 40 /* bytes of a name with its zero */

enum vrb_live_answer {
	VRB_LIVE_YES,
	VRB_LIVE_BUSY,	  /* not within the time */
	VRB_LIVE_STOPPED, /* by a signal or a debugger; was not waited for */
	VRB_LIVE_OTHER,	  /* another version of Verbena, or no Verbena */
};

struct vrb_live_proc {
	uint32_t slot;
	pid_t pid;
	enum vrb_live_answer answer; /* not YES: nothing but the name follows */
	char program[VRB_LIVE_NAME];
	bool same_version; /* what page.verdict counts has our names */
	uint64_t now_ns;   /* when the rows were read, by the device's clock */
	struct vrb_stats_page page;
	uint64_t registered_bytes;
	struct vrb_row_qp *qp; /* by number */
	struct vrb_row_cq *cq;
	struct vrb_row_mr *mr;
	uint32_t n_qps, n_cqs, n_mrs;
};

struct vrb_live {
	struct vrb_live_proc *proc; /* by slot */
	uint32_t n;
	uint64_t took_ns; /* to ask them */
};

/* pid: only this process; 0: all. False: no memory. */
bool vrb_live_ask(struct vrb_live *l, pid_t pid);
void vrb_live_free(struct vrb_live *l);

/* live_read.c: adds what the answer's descriptors hold. *next: from where to ask on; 0: that is
 * all. False: it is no answer. */
bool vrb_live_read(struct vrb_live_proc *p, int rows_fd, int page_fd, uint32_t *next);
void vrb_live_sort(struct vrb_live_proc *p);
/* Makes a name printable, with a zero in its last byte. */
void vrb_live_clean(char *s, size_t size);

/* The same process, queue pair or CQ in an older sample, or NULL. */
const struct vrb_live_proc *vrb_live_proc_in(const struct vrb_live *old,
					     const struct vrb_live_proc *p);
const struct vrb_row_qp *vrb_live_qp_in(const struct vrb_live_proc *old,
					const struct vrb_row_qp *q);
const struct vrb_row_cq *vrb_live_cq_in(const struct vrb_live_proc *old,
					const struct vrb_row_cq *q);

#endif
