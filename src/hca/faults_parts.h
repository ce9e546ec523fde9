/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the faults share: faults.c, faults_judge.c, faults_hold.c, faults_log.c. */
#ifndef VRB_HCA_FAULTS_PARTS_H
#define VRB_HCA_FAULTS_PARTS_H

#include "base/fault_plan.h"
#include "base/prng.h"
#include "hca/faults.h"

#define VRB_FAULTS_HELD_MAX 2048u /* packets held back at a time */
#define VRB_FAULTS_LOG_MAX  8192u

struct vrb_fault_state { /* of a rule */
	struct vrb_prng rng;
	uint64_t seen, struck;
	vrb_ns last_due[2]; /* out, in: DELAY keeps the order of each */
	vrb_qpn bound;	    /* an exact rule without a queue pair: the first that it saw */
	/* messages of an exact rule */
	uint32_t count;
	bool began, ended;	    /* high means something; last does */
	struct vrb_psn high;	    /* newest seen */
	struct vrb_psn first, last; /* of the message named */
};

struct vrb_fault_log {
	char path[4096]; /* empty: none */
	char buf[VRB_FAULTS_LOG_MAX];
	uint32_t len;
};

struct vrb_faults {
	pid_t pid;
	vrb_ns start;
	uint32_t n_qps;
	char text[VRB_FAULT_TEXT_MAX + 1]; /* one more than a plan may have */
	size_t text_len;
	struct vrb_fault_plan plan;
	struct vrb_fault_state state[VRB_FAULT_RULES_MAX];
	struct vrb_list held_tx, held_rx; /* by time */
	struct vrb_list spare;
	void *slots;
	uint32_t n_slots; /* that have been in use */
	uint64_t n_lost;  /* found no slot */
	struct vrb_fault_log log;
};

/* ---- faults_judge.c */

struct vrb_fault_view { /* what rules look at */
	struct vrb_hqp *q;
	const struct vrb_pkt *pkt;
	uint32_t dir, ip_len;
	vrb_ns now;
};

struct vrb_fault_hit { /* what all rules together want of a packet */
	bool drop, corrupt;
	uint8_t refuse; /* AETH syndrome, or 0 */
	uint32_t rule;	/* the last that struck */
	uint32_t copies;
	uint64_t random; /* CORRUPT: where */
	vrb_ns due;	 /* not before */
};

/* True when anything is to happen to it. */
bool vrb_faults_judge(struct vrb_faults *f, const struct vrb_fault_view *v,
		      struct vrb_fault_hit *out);

/* ---- faults_hold.c */

bool vrb_faults_hold_open(struct vrb_faults *f);
void vrb_faults_hold_forget(struct vrb_faults *f);
void vrb_faults_hold_tx(struct vrb_engine *e, const struct vrb_faults_out *out,
			const struct vrb_fault_hit *h);
/* False: too long to be held, and to be a packet of ours. */
bool vrb_faults_hold_rx(struct vrb_engine *e, const struct vrb_faults_in *in, vrb_ns due);
/* Those due leave; the batch is not flushed. */
void vrb_faults_release_tx(struct vrb_engine *e, vrb_ns now);
void vrb_faults_release_rx(struct vrb_engine *e, vrb_ns now);
vrb_ns vrb_faults_next_due(const struct vrb_faults *f);

/* ---- faults_log.c */

void vrb_faults_log_open(struct vrb_faults *f);
void vrb_faults_log_name(struct vrb_faults *f, const struct vrb_hqp *q);
/* Rule i has struck. */
void vrb_faults_log_strike(struct vrb_faults *f, uint32_t i, const struct vrb_fault_view *v);
/* At the end: what each rule saw and did. */
void vrb_faults_log_close(struct vrb_faults *f);

#endif
