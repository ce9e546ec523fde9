/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair: its state and the calls that step it. No logic here. The caller holds the engine's
 * lock, owns all memory and passes the time; `now` need only be monotonic (a coarse clock makes
 * timers late, never early by more than its grain).
 *
 * Send queue, absolute indices:   sq_free <= sq_una <= sq_send <= sq.tail
 *   sq_free  oldest entry whose slot is taken (released by polling its completion, or a later one)
 *   sq_una   oldest entry not completed         sq_send  entry whose packets are being made
 */
#ifndef VRB_CORE_QP_H
#define VRB_CORE_QP_H

#include "base/list.h"
#include "base/psn.h"
#include "core/cq.h"
#include "core/effects.h"
#include "core/mr.h"
#include "core/srq.h"
#include "core/wqe.h"
#include "rules/attr.h"

#define VRB_RD_ATOMIC_MAX 16

/* A READ or atomic that was accepted: kept for the response and for replay (IBA 9.7.5.1.1). */
struct vrb_rd_res {
	struct vrb_psn first, last;
	struct vrb_opcode op;
	bool done; /* response made completely */
	uint32_t rkey;
	uint64_t va;
	uint32_t len;  /* READ */
	uint64_t orig; /* atomic: the old value, filled by the placement */
};

struct vrb_qp {
	/* what the fast path reads */
	uint8_t state, type; /* enum vrb_qp_state, vrb_qp_type */
	uint8_t sig_all;
	bool ack_pending;  /* a plain ACK for ack_psn is owed; the caller chooses when (coalescing)
			    */
	bool resp_pending; /* something other than a plain ACK is owed: NAK, READ response, atomic
			      ack */
	bool peer_gone;	   /* the link says the peer is dead: the next thing outstanding ends in
			      RETRY_EXC */
	vrb_qpn qpn, dqpn;
	uint32_t pd, mtu, access; /* mtu: bytes of payload per packet on this link */
	struct vrb_psn next_psn;  /* PSN of the next new request packet */
	struct vrb_psn una_psn;	  /* oldest unacknowledged */
	struct vrb_psn epsn;	  /* expected from the peer */
	struct vrb_psn ack_psn;	  /* newest request completed by the responder */
	uint32_t msn;
	uint32_t sq_free, sq_una, sq_send;
	struct vrb_wq sq, rq;
	struct vrb_cq *scq, *rcq;
	struct vrb_srq *srq;
	struct vrb_keytab *keys;
	uint32_t max_inline;
	uint32_t prefetch; /* WQEs ahead of sq_send to prefetch; VERBENA_WQE_PREFETCH */

	struct vrb_qp_attr attr; /* as last set */

	/* requester */
	uint32_t send_off;	 /* bytes of the message at sq_send already made into packets */
	uint32_t window_max;	 /* PSNs in flight that the link bears */
	uint32_t n_rd_out;	 /* READs and atomics outstanding */
	uint32_t unsignaled_run; /* posted since the last signaled one; for the dead-end verdict */
	uint8_t retry_left, rnr_left;
	bool rnr_wait;
	vrb_ns ack_deadline, rnr_deadline; /* VRB_NS_NEVER when not running */

	/* responder */
	uint8_t rx_seq; /* which message is in progress: 0 none, else the First's operation */
	bool nak_sent;	/* one NAK per gap */
	bool comm_est_done;
	bool have_rwqe; /* cur_rwqe is bound to the message in progress */
	uint64_t rx_va; /* WRITE in progress: next address */
	uint32_t rx_rkey, rx_left, rx_len;
	uint8_t nak_syndrome; /* owed NAK or RNR NAK, 0 none */
	struct vrb_psn nak_psn;
	struct vrb_rd_res rd[VRB_RD_ATOMIC_MAX];
	uint32_t rd_head, rd_tail, rd_send;
	struct vrb_rwqe
		*cur_rwqe; /* memory for one receive WQE of rq.max_sge (or the SRQ's) SGEs */

	/* for the caller */
	struct vrb_list active_node; /* has packets to make */
	struct vrb_list timer_node;  /* has a deadline */
	struct vrb_list ack_node;    /* owes an ACK */
	void *owner;
};

struct vrb_qp_conf {
	enum vrb_qp_type type;
	vrb_qpn qpn;
	uint32_t pd;
	bool sig_all;
	struct vrb_cq *scq, *rcq;
	struct vrb_srq *srq; /* or NULL */
	struct vrb_keytab *keys;
	struct vrb_wq sq, rq; /* memory set up, head and tail 0 */
	struct vrb_rwqe *cur_rwqe;
	uint32_t max_inline, prefetch;
	void *owner;
};

/* qp is zeroed memory of the caller. State RESET. */
void vrb_qp_init(struct vrb_qp *qp, const struct vrb_qp_conf *conf);

/* Applies attributes that src/rules has accepted; mtu and window_max come from the link (0: leave).
 * To ERR: flushes. */
void vrb_qp_modify(struct vrb_qp *qp, const struct vrb_qp_attr *attr, uint32_t mask, uint32_t mtu,
		   uint32_t window_max, struct vrb_fx *fx);
void vrb_qp_query(const struct vrb_qp *qp, struct vrb_qp_attr *attr);

/* Fails the QP from outside (CQ overrun, fault of user memory): event QP_FATAL, all queues flushed.
 */
void vrb_qp_fail(struct vrb_qp *qp, const struct vrb_report *why, struct vrb_fx *fx);

/* Before destroy: takes the QP's completions out of its CQs. */
void vrb_qp_fini(struct vrb_qp *qp);

/* Commits the entries filled at sq.tail / rq.tail (n of them). In ERR (and SQE) they are flushed at
 * once. */
void vrb_qp_post(struct vrb_qp *qp, uint32_t n, struct vrb_fx *fx);
void vrb_qp_post_recv(struct vrb_qp *qp, uint32_t n, struct vrb_fx *fx);

/* A packet for this QP (the caller has matched QPN and peer address). */
void vrb_qp_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, vrb_ns now, struct vrb_fx *fx);

/*
 * One packet to send, or false. Responses before requests is the caller's choice; the two are
 * independent streams. The caller must have room for the packet: what is polled counts as sent. The
 * gather list is valid until the next call on this QP. poll_response makes plain ACKs too (and
 * clears ack_pending): call it for them when coalescing has gone on long enough.
 */
bool vrb_qp_poll_response(struct vrb_qp *qp, vrb_ns now, struct vrb_tx *tx, struct vrb_fx *fx);
bool vrb_qp_poll_request(struct vrb_qp *qp, vrb_ns now, struct vrb_tx *tx, struct vrb_fx *fx);

/* True when poll_request may make a packet or complete a WQE now (not merely waiting for answers,
 * timers or window). */
bool vrb_qp_can_send(const struct vrb_qp *qp, vrb_ns now);

void vrb_qp_on_deadline(struct vrb_qp *qp, vrb_ns now, struct vrb_fx *fx);
vrb_ns vrb_qp_next_deadline(const struct vrb_qp *qp);

/* The link says that the peer process is dead: what is outstanding, or posted later, ends in
 * RETRY_EXC with this reason. */
void vrb_qp_on_peer_gone(struct vrb_qp *qp, const struct vrb_report *why, struct vrb_fx *fx);

/* Entries of the send queue that are taken (for ENOMEM). */
static inline uint32_t vrb_qp_sq_used(const struct vrb_qp *qp)
{
	return qp->sq.tail - qp->sq_free;
}

static inline uint32_t vrb_qp_rq_used(const struct vrb_qp *qp)
{
	return qp->rq.tail - qp->rq.head;
}

#endif
