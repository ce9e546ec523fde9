/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One queue pair, its queues and its memory, driven like a trace: give(k, packet) is an arrival,
 * want(k, packet) the next packet it must send, want_wc the next completion, and what a step
 * reported must be named by want_event and want_verdict before the next `want_quiet`. Packets are
 * templates: only what matters is written, the rest is 0; payload bytes come from k->wire.
 *
 * Memory of the kit, all registered on PD 1 unless said: mem (all rights), ro (no rights), other
 * (all rights, PD 2).
 */
#ifndef VRB_TESTS_CORE_KIT_H
#define VRB_TESTS_CORE_KIT_H

#include "support/test.h"

#include "core/qp.h"

#define KIT_MEM	   65536u
#define KIT_RO	   4096u
#define KIT_SQ	   64u
#define KIT_RQ	   64u
#define KIT_STRIDE (64u + 16u * VRB_MAX_SGE)
#define KIT_CQ	   128u
#define KIT_KEYS   64u
#define KIT_QPN	   0x010005u
#define KIT_PEER   0x020007u
#define KIT_SQ_PSN 100u
#define KIT_RQ_PSN 200u
#define KIT_MTU	   256u
#define KIT_RNR	   12u /* 0.64 ms */

struct kit {
	struct vrb_qp qp;
	struct vrb_cq scq, rcq;
	struct vrb_srq srq;
	struct vrb_keytab keys;
	struct vrb_fx fx;
	struct vrb_tx tx;
	vrb_ns now;
	uint32_t lkey, rkey, ro_lkey, ro_rkey, other_lkey, other_rkey;
	uint32_t n_event, n_report, n_notified;
	struct vrb_async event[64];
	struct vrb_report report[64];
	struct vrb_report last; /* the report that want_verdict found */
	struct vrb_cqe scq_ring[KIT_CQ], rcq_ring[KIT_CQ];
	struct vrb_key key_mem[KIT_KEYS];
	uint64_t sq_ring[KIT_SQ * KIT_STRIDE / 8], rq_ring[KIT_RQ * KIT_STRIDE / 8];
	uint64_t srq_ring[KIT_RQ * KIT_STRIDE / 8], cur[KIT_STRIDE / 8];
	uint64_t av_space;
	struct vrb_av av;
	uint8_t mem[KIT_MEM] __attribute__((aligned(64)));
	uint8_t ro[KIT_RO] __attribute__((aligned(64)));
	uint8_t other[4096] __attribute__((aligned(64)));
	uint8_t wire[KIT_MEM]; /* what payloads carry: byte i is (7 * i + 1) */
	uint8_t grh[40];
};

struct kit_opts {
	enum vrb_qp_type type; /* 0: RC */
	bool srq;
	uint32_t mtu, window;	  /* 0: KIT_MTU, 64 */
	uint32_t sq_psn, rq_psn;  /* 0: KIT_ */
	uint8_t rd_atomic;	  /* 0: 4, both directions */
	uint8_t timeout;	  /* 0: 14 (67.1 ms) */
	uint8_t retry, rnr_retry; /* 0: 3, 3; 255: 0 */
	uint32_t scq_cap, rcq_cap;
	enum vrb_qp_state state; /* 0: RTS */
	uint32_t access;	 /* 0: all remote rights; 1: none */
};

struct kit *kit_new(const struct kit_opts *o);
#define kit(...) kit_new(&(struct kit_opts){__VA_ARGS__})
void kit_free(struct kit *k);
void kit_to(struct kit *k, enum vrb_qp_state state);
struct kit_keys {
	uint32_t l, r;
};
/* A region over [host, host + len). */
struct kit_keys kit_reg(struct kit *k, void *host, uint64_t len, uint32_t pd, uint32_t access);

/* ---- posting: w is a template; len is the sum of the SGEs unless it is set */
#define SGE(k, off, n) ((struct vrb_sge){(uintptr_t)((k)->mem + (off)), (n), (k)->lkey})
void post(struct kit *k, struct vrb_swqe w, const struct vrb_sge *sge, uint32_t n);
void post_inline(struct kit *k, struct vrb_swqe w, const void *bytes, uint32_t len);
/* One signaled request over mem[off, off + len). */
void post_op(struct kit *k, uint64_t wr_id, enum vrb_wr_op op, uint32_t off, uint32_t len);
void post_recv(struct kit *k, uint64_t wr_id, uint32_t off, uint32_t len);
void post_recv_sg(struct kit *k, uint64_t wr_id, const struct vrb_sge *sge, uint32_t n);

/* ---- arrivals */
#define P(o, p, ...)                                                                               \
	(&(struct vrb_pkt){.op = {(uint8_t)(o)}, .pkey = 0xffff, .psn = {(p)}, __VA_ARGS__})
#define ACK(p)	    P(VRB_OP_ACK, p, .syndrome = 0x1f)
#define NAK(p, syn) P(VRB_OP_ACK, p, .syndrome = (syn))
void give(struct kit *k, const struct vrb_pkt *pkt);
/* The payload starts at wire[at]. */
void give_at(struct kit *k, const struct vrb_pkt *pkt, uint32_t at);
void pass(struct kit *k, vrb_ns dt); /* time passes; runs the deadline if it is reached */

/* ---- what must come */
enum kit_side { REQ, RESP };
void want(struct kit *k, enum kit_side side, const struct vrb_pkt *pkt);
void want_none(struct kit *k, enum kit_side side);
/* The payload of the packet wanted last is n bytes equal to p. */
void want_payload(struct kit *k, const void *p, uint32_t n);
void want_wc(struct kit *k, uint64_t wr_id, enum vrb_wc_status status);
void want_recv(struct kit *k, uint64_t wr_id, enum vrb_wc_status status, uint32_t byte_len);
struct vrb_wc kit_wc(struct vrb_cq *cq);
void want_no_wc(struct kit *k);
void want_event(struct kit *k, enum vrb_async_kind kind);
void want_verdict(struct kit *k, enum vrb_verdict v);
void want_quiet(struct kit *k); /* no event, report or completion is left */
void kit_forget(struct kit *k); /* drops events and reports */

#endif
