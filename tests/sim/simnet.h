/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two endpoints on a simulated wire, on virtual time. An endpoint does what hca does with the core:
 * it turns packets into frames and back (ICRC included), executes placements, keeps timers, and
 * checks on the way what must hold at every step: placements only into slots of registered memory,
 * the PSN window, the sizes of packets. The first thing that is wrong is kept in sn->why and stops
 * everything.
 *
 * Memory of an endpoint is three regions of slots with guard bytes between them: SRC (to send
 * from; not writable), DST (receives, results) and REM (target of WRITE, READ and atomics).
 */
#ifndef VRB_TESTS_SIM_SIMNET_H
#define VRB_TESTS_SIM_SIMNET_H

#include <stdio.h>

#include "core/qp_fast.h"
#include "core/window.h"
#include "link/link.h"
#include "wire/net.h"
#include "wire/roce.h"

#define SN_QPS_MAX    4u
#define SN_KEYS	      256u
#define SN_REGION_LEN (1u << 20)
#define SN_SLOTS_MAX  2048u
#define SN_SQ_MAX     64u
#define SN_RQ_MAX     64u
#define SN_SGE_MAX    4u
#define SN_INLINE_MAX 64u
#define SN_CQ_LEN     4096u
#define SN_PD	      7u
#define SN_GUARD      0xa5u
#define SN_TURNS_MAX  100000u /* at one instant */

enum sn_region_kind { SN_SRC, SN_DST, SN_REM, SN_N_REGIONS };

struct sn_slot {
	uint32_t off, len;
};

struct sn_region {
	uint8_t *mem;
	uint32_t used, n_slots, lkey, rkey;
	struct sn_slot slot[SN_SLOTS_MAX];
};

struct sn_end;
struct sn;

struct sn_qp {
	struct vrb_qp core;
	struct vrb_window window;
	bool adapts;		     /* the window follows losses and round trips (core/window.h) */
	uint64_t n_requests, n_lost; /* packets made; losses that the window saw */
	vrb_ns ack_due;
	uint8_t *sq_mem, *rq_mem;
	struct vrb_rwqe *rwqe;
	struct vrb_rd_res *rd;
};

struct sn_end {
	struct sn *sn;
	struct vrb_link *link;
	struct vrb_gid gid;
	struct vrb_keytab keys;
	struct vrb_key key_mem[SN_KEYS];
	struct vrb_cq scq, rcq;
	struct vrb_srq srq;
	uint8_t *srq_mem;
	struct sn_region region[SN_N_REGIONS];
	struct sn_qp qp[SN_QPS_MAX];
	uint32_t n_qp;
	struct vrb_av to_peer;

	/* how it behaves */
	vrb_ns ack_delay;
	bool requests_first;
	bool fast;	   /* takes the straight line (core/qp_fast.h) where it can */
	uint32_t tx_burst; /* packets of one QP before the next one's turn */

	uint32_t stuck_len; /* a frame that the link had no room for */
	uint8_t stuck[VRB_FRAME_MAX];
	uint16_t ip_id;
	uint32_t n_async[32], n_notified;
	uint64_t n_fast[3]; /* sends, receives, acknowledgements on the straight line */
	uint64_t n_verdict[VRB_N_VERDICTS];
};

struct sn_qp_conf {
	enum vrb_qp_type type;
	uint32_t mtu_code, window_max;
	bool adapts;	 /* window_max is the most that the window grows to */
	uint32_t psn[2]; /* each end's first */
	uint32_t sq_cap, rq_cap;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic;
	bool srq[2]; /* that end takes its receives from the SRQ */
};

struct sn {
	struct sn_end end[2];
	vrb_ns now;
	struct vrb_fx fx;
	bool trace, failed;
	char why[512];
	FILE *pcap;
	uint64_t n_frames;
};

/* Once per process: allocates; false without memory. */
bool sn_init(struct sn *sn);
void sn_fini(struct sn *sn);

/* A new run: memory to guard bytes, no QPs, time 0. Takes the links. */
void sn_start(struct sn *sn, struct vrb_link *link[2], bool ipv6);
void sn_stop(struct sn *sn);

/* A slot of fresh memory of len bytes; its host address (which is its virtual address too). */
uint8_t *sn_slot(struct sn_end *e, enum sn_region_kind kind, uint32_t len, uint32_t align);
/* Every byte between slots is still a guard byte. */
void sn_check_guards(struct sn *sn);

/* Makes QP number n_qp at both ends and connects the two: RTS. */
void sn_connect(struct sn *sn, const struct sn_qp_conf *conf);
void sn_srq(struct sn_end *e, uint32_t cap);
struct sn_qp *sn_find_qp(struct sn_end *e, vrb_qpn qpn);

/* Commits the filled entries at the tail; moves to ERR. */
void sn_post(struct sn_end *e, struct sn_qp *q);
void sn_post_recv(struct sn_end *e, struct sn_qp *q);
void sn_to_err(struct sn_end *e, struct sn_qp *q);

/* Everything the endpoints can do at sn->now. */
void sn_turn(struct sn *sn);
/* When something will be to do; VRB_NS_NEVER. */
vrb_ns sn_next_time(const struct sn *sn);

__attribute__((format(printf, 2, 3))) void sn_fail(struct sn *sn, const char *fmt, ...);

#endif
