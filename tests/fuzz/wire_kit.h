/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	input ---> packets ---> [ receive ] ---> link/udp_rx.c, hca/wire_io.c, core
 *	                        [ send    ] <--- answers and requests, checked
 *	                        [ clock   ] <--- input
 *
 * The engine is the real one without its helper thread; the three calls in brackets are replaced at
 * link time, so that every byte comes from the input and all happens in its order. The target runs
 * in a network namespace of its own.
 *
 * Around every look at the sockets the kit keeps a copy of what must not change: queue pairs that
 * no good packet names, memory that nobody may write, numbers that may only go forward.
 */
#ifndef VRB_TESTS_FUZZ_WIRE_KIT_H
#define VRB_TESTS_FUZZ_WIRE_KIT_H

#include "fuzz/fuzz.h"
#include "hca/kit.h"
#include "hca/wire.h"

#define WK_SLOTS     32u
#define WK_SLOT	     1024u /* bytes of each */
#define WK_AREA	     (WK_SLOTS * WK_SLOT)
#define WK_BURST_MAX 60000u
#define WK_PEER_QPN  0x00f100u /* and which of ours it is connected to */

enum wk_which { WK_RC, WK_RC_RTR, WK_UC, WK_UD, WK_RC_SRQ, WK_RC_INIT, WK_RC_CLOSED, WK_N_QPS };

struct wk_mem {
	uint8_t *open;	/* the peer may read, write and do atomics: no more than the bytes of it */
	uint8_t *fixed; /* the peer may read it, and we send from it: never changes */
	uint8_t *landing; /* slots of receives and results: written only while one is posted */
	struct vrb_hmr *open_mr, *fixed_mr, *landing_mr;
};

struct wk {
	struct node node;
	struct vrb_hsrq *srq;
	struct vrb_hqp *qp[WK_N_QPS];
	struct vrb_av av;
	struct wk_mem mem;
	struct vrb_gid self, peer;
	bool v6;
	uint32_t mtu;
	vrb_ns now;
	uint32_t held, n_held; /* packets behind one that waits for a receive: whose, as bits */
	uint32_t last_len, last_which; /* what was sent last, from the BTH to the pad */
	uint8_t last[VRB_ROCE_PACKET_MAX];
};

extern struct wk wk;

void wk_start(bool v6, uint8_t mtu_code); /* once for an input: queue pairs and memory anew */
void wk_end(void);
struct vrb_engine *wk_engine(void);
struct vrb_hqp *wk_make_qp(enum wk_which which);
void wk_end_qp(enum wk_which which);

/* ---- what comes in */
struct wk_from {
	struct vrb_gid src;
	uint16_t sport;
	uint8_t ttl, tclass;
};
/* One buffer of the socket: seg_len 0: not merged. */
void wk_arrive(const uint8_t *bytes, uint32_t len, uint32_t seg_len, const struct wk_from *from);
/* The ICRC that belongs behind a packet of len bytes (BTH to pad). */
void wk_seal(uint8_t *packet, uint32_t len, uint16_t ip_id, const struct wk_from *from);
/* One look at the sockets, with all checks. named: queue pairs that good packets name, as bits. */
void wk_look(uint32_t named, uint32_t n_packets);
/* A whole turn: timers, requests, answers. */
void wk_turn(void);

/* ---- QP 1 (wire_gsi.c) */
void wk_gsi_begin(void); /* once: a service id is claimed */
/* A packet to it, up to its pad, but for the lies; its length. */
uint32_t wk_gsi_invent(struct fz *f, uint8_t *at);
/* True: it is an answer of QP 1's, as it should be. */
bool wk_gsi_sent(const struct vrb_pkt *pkt);

/* ---- slots of the landing area; a work request's id names its slot */
/* len: bytes that may be written until the completion. False: all are taken. */
bool wk_slot_take(uint32_t len, uint64_t *id, uint64_t *addr);
void wk_poll(void);
void wk_check_memory(void);

#endif
