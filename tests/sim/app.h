/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application on top of simnet: two sides of up to four connections, each with a list of
 * messages to post and receives to supply, and the checkers: every message exactly once, in order
 * and byte for byte; completions in order and once each; none before the peer has what it
 * acknowledges; memory of completed messages not touched again; atomics exact; all done in bounded
 * time after the faults have ended.
 *
 * The bytes of message `id` are a function of id and offset, so nothing need be remembered.
 */
#ifndef VRB_TESTS_SIM_APP_H
#define VRB_TESTS_SIM_APP_H

#include "base/prng.h"
#include "sim/simnet.h"

#define APP_MSGS_MAX  40u
#define APP_RECVS_MAX 192u
#define APP_NONE      UINT32_MAX

struct app_msg {
	uint8_t op;    /* enum vrb_wr_op */
	uint8_t flags; /* VRB_WRF_ */
	uint32_t id, len;
	uint8_t *local;	 /* SRC slot; DST for READ and atomics */
	uint8_t *remote; /* REM slot of the peer */
	uint32_t shown;	 /* the id whose bytes a READ must show */
	bool kept;	 /* a later READ looks at this WRITE's bytes */
	uint64_t expect; /* atomics: the old value */
	uint64_t swap_add, compare;
	uint32_t inv_rkey;
	bool spoiled; /* its memory has been overwritten after completion */
};

struct app_recv {
	uint8_t *buf;
	uint32_t room;
	bool done, spoiled;
};

/* A receive queue: of one QP, or the SRQ of an end. */
struct app_rq {
	struct app_recv recv[APP_RECVS_MAX];
	uint32_t n, posted, n_done, cap;
	vrb_ns next_at; /* when to post more */
};

struct app_side {
	struct app_msg msg[APP_MSGS_MAX];
	uint32_t n, posted, done;
	uint32_t unsignaled; /* posted since the last signaled one */
	vrb_ns next_at;
	uint8_t error;	      /* status of the first failed completion */
	uint32_t next_in;     /* the peer's first message that has not arrived here */
	uint32_t n_in;	      /* arrived */
	uint8_t *counter;     /* REM slot that the peer's atomics go to */
	uint64_t counter_end; /* its value when all are done */
	struct app_rq *rq;
};

struct app_faults {
	uint32_t loss, duplicate, reorder, corrupt, delay; /* per million */
	uint32_t spread_ns, delay_ns;
};

struct app_plan {
	uint64_t seed;
	uint32_t n_qp, n_msgs[2], len_max;
	bool len_fixed; /* all messages have len_max bytes */
	struct sn_qp_conf qp[SN_QPS_MAX];
	bool ipv6, srq[2];
	bool harsh;   /* errors of exhausted retries are in order */
	bool ordered; /* no duplication, no reordering */
	uint32_t ops; /* bits of enum vrb_wr_op that RC may use */
	uint32_t latency_ns, ps_per_byte, queue_max;
	struct app_faults faults[2]; /* towards end 0, towards end 1 */
	vrb_ns until;		     /* of the faults */
	vrb_ns ack_delay[2], cq_pause[2], post_pause[2], recv_pause[2];
	uint32_t tx_burst[2];
	bool requests_first[2], fast[2];
	uint8_t arm[2]; /* how the receive CQ is armed: VRB_CQ_ */
};

struct app {
	struct sn sn;
	struct app_plan plan;
	struct vrb_prng rng;
	struct app_side side[2][SN_QPS_MAX];
	struct app_rq own_rq[2][SN_QPS_MAX], srq[2];
	vrb_ns cq_at[2];
	uint32_t notified[2]; /* notifications seen */
	bool awaited[2];      /* what has been polled must have fired the arm */
	bool ending;	      /* all QPs are being moved to ERR */
};

/* Draws a plan from a seed. */
void app_plan_draw(struct app_plan *p, uint64_t seed);
void app_plan_print(const struct app_plan *p);

/* Makes QPs, messages and receives for app->plan on fresh links (the app takes them). */
void app_start(struct app *a, struct vrb_link *link[2]);

/* Runs to the end with all checks. False: a->sn.why says what was wrong. */
bool app_run(struct app *a);

/* ---- inside: app_check.c */
uint8_t app_byte(uint32_t id, uint32_t off);
void app_fill(uint8_t *p, uint32_t id, uint32_t len);
bool app_takes_receive(uint8_t op);
bool app_poll(struct app *a); /* true when there was anything */
void app_arm(struct app *a, unsigned k);
void app_check_end(struct app *a);
bool app_side_finished(const struct app *a, unsigned k, unsigned i);

/* ---- app_make.c */
void app_make(struct app *a);
void app_post_send(struct app *a, unsigned k, unsigned i);
void app_post_recv(struct app *a, unsigned k, struct app_rq *rq, struct sn_qp *q);

#endif
