/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair: its state and the calls that step it. No logic here. The caller holds the engine's
 * lock, owns all memory and passes the time; `now` need only be monotonic (a coarse clock makes
 * timers late, never early by more than its grain).
 *
 * Send queue, absolute indices:   sq_free <= sq_una <= sq_send <= sq.tail
 *   sq_free  oldest entry whose slot is taken (released by polling its completion, or a later one)
 *   sq_una   oldest entry not completed         sq_send  entry whose packets are being made
 * PSNs of the requester:          una_psn <= next_psn <= high_psn
 *   next_psn is the PSN of the next packet to be made. Going back after a loss (rewound) moves it,
 *   sq_send and send_off back; high_psn and sq_started then say how far sending had come. When not
 *   rewound, high_psn and sq_started mean nothing: next_psn and sq_send are the frontier.
 * On a link that loses packets (probe_ns set, core/window.h) the packet at una_psn is sent once
 * more, beside the stream, when nothing has been heard for a while: a probe (core/retry.c).
 * A started entry has first and last set. Local operations (bind, invalidate) take no PSN: their
 * first and last are that of the next packet.
 *
 * The straight line. slow_tx == 0 says: RC, RTS, send_off == 0, a lossless link (no probes) and
 * none of rewound, rnr_wait, failing, peer_gone, tapped. Then an unfenced SEND of one packet at
 * sq_send (sq_send != sq.tail), in flight below window_max, its SGEs good, is sent by: wqe->first =
 * wqe->last = next_psn; next_psn + 1; sq_send + 1; ack_deadline = now + timeout_ns if it is
 * VRB_NS_NEVER (timeout_ns is NEVER when there is no timer; add with vrb_ns_add); the packet has
 * AckReq. Nothing else changes.
 *
 * slow_rx == 0 says: RC, RTS or SQD (or RTR with COMM_EST made), rx_seq == 0, nak_sent == false,
 * nak_syndrome == 0, no SRQ, not tapped. Then a SEND Only with psn == epsn whose receive (rq.head
 * != rq.tail) has room and good keys is taken by: placement; epsn + 1; ack_psn = psn; msn + 1;
 * ack_pending |= AckReq; rq.head + 1; the completion pushed. Nothing else changes. Both CQs
 * must not be dead and have room (the full step handles overrun).
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

#define VRB_RD_ATOMIC_MAX 128 /* powers of two */
#define VRB_RD_ATOMIC_OWN 16  /* held without vrb_qp_give_rd */

/* A READ or atomic that was accepted: kept for the response and for replay (IBA 9.7.5.1.1). */
struct vrb_rd_res {
	struct vrb_psn first, last;
	struct vrb_opcode op;
	bool pending; /* a response (the first or a repetition) is owed */
	bool done;    /* the response was made completely at least once */
	uint32_t rkey;
	uint64_t va;
	uint32_t len; /* READ */
	uint32_t beg; /* READ: where the response owed begins */
	union {
		struct {
			uint32_t off, end; /* READ: the next byte of it, and where it ends */
		};
		uint64_t orig; /* atomic: the old value, filled by the placement */
	};
};

enum { VRB_RX_IDLE, VRB_RX_SEND, VRB_RX_WRITE }; /* rx_seq */

enum { VRB_PROBE_NONE, VRB_PROBE_DUE, VRB_PROBE_DATA, VRB_PROBE_RD }; /* probe */

enum { /* slow_tx: why the straight line for sending is barred */
       VRB_SLOW_STATE = 1,
       VRB_SLOW_MIDDLE = 2,
       VRB_SLOW_REWOUND = 4,
       VRB_SLOW_RNR = 8,
       VRB_SLOW_FAILING = 16,
       VRB_SLOW_GONE = 32,
       VRB_SLOW_TAPPED = 64,
       VRB_SLOW_PROBED = 128,
       /* slow_rx: STATE, MIDDLE, TAPPED and */
       VRB_SLOW_NAK = 4,
       VRB_SLOW_SRQ = 8,
};

struct vrb_qp {
	/* what the fast path reads */
	uint8_t state, type;	  /* enum vrb_qp_state, vrb_qp_type */
	uint8_t slow_tx, slow_rx; /* 0: the straight line may be taken (above) */
	uint8_t sig_all;
	bool ack_pending;  /* a plain ACK for ack_psn is owed; the caller chooses when (coalescing),
			      but never while resp_pending */
	bool resp_pending; /* something other than a plain ACK is owed: NAK, READ response, atomic
			      ack */
	bool peer_gone;	   /* the link says the peer is dead: the next thing outstanding ends in
			      RETRY_EXC */
	vrb_qpn qpn, dqpn;
	uint32_t pd, mtu, access; /* mtu: bytes of payload per packet on this link */
	struct vrb_psn next_psn;  /* PSN of the next new request packet */
	struct vrb_psn una_psn;	  /* oldest unacknowledged */
	struct vrb_psn epsn;	  /* expected from the peer */
	struct vrb_psn ack_psn;	  /* epsn - 1 (until ERR): what a plain ACK says */
	uint32_t msn;		  /* messages taken since RTR; packets carry the low 24 bits */
	uint32_t sq_free, sq_una, sq_send;
	struct vrb_wq sq, rq;
	struct vrb_cq *scq, *rcq;
	struct vrb_srq *srq;
	struct vrb_keytab *keys;
	vrb_ns ack_deadline;	 /* VRB_NS_NEVER when not running */
	vrb_ns timeout_ns;	 /* VRB_NS_NEVER: no ACK timer */
	uint32_t window_max;	 /* PSNs in flight that the link bears */
	uint32_t n_rd_out;	 /* READ and atomic requests outstanding */
	uint32_t unsignaled_run; /* posted since the last signaled one; for the dead-end verdict */
	uint8_t retry_left, rnr_left;
	bool resend_guard; /* gone back to resend_psn, no progress since: more NAKs for it are
			      echoes */
	bool tapped;	   /* the caller wants to see every packet */

	/* for the caller, hot too */
	struct vrb_list timer_node; /* has a deadline */
	struct vrb_list ack_node;   /* owes an ACK */

	struct vrb_qp_attr attr; /* as last set */
	uint32_t max_inline;
	uint32_t prefetch; /* WQEs ahead of sq_send to prefetch; VERBENA_WQE_PREFETCH */

	/* requester */
	uint32_t send_off;   /* bytes of the message at sq_send already made into packets */
	uint32_t read_chunk; /* a longer READ is asked for in requests of so many packets */
	bool rnr_wait;
	bool rewound;
	bool failing; /* entry fail_at ends in fail_status once all before it are complete */
	uint8_t fail_status;
	uint32_t fail_at;
	uint32_t sq_started; /* rewound: entries before it have been started */
	uint32_t ack_run;    /* packets since the last with AckReq, */
	vrb_ns asked_at;     /* and when that one was made */
	struct vrb_psn high_psn, resend_psn;
	struct vrb_psn ackreq_psn, ackreq_before; /* the newest two packets with AckReq */
	vrb_ns rnr_deadline;			  /* VRB_NS_NEVER when not running */
	struct vrb_report gone_why;
	bool resend_made;	 /* rewound: the packet at resend_psn has been sent, at resend_at */
	uint8_t probe, n_probes; /* due, or what was sent; probes since the last progress */
	struct vrb_psn probe_end; /* the last PSN that the probe stands for */
	vrb_ns probe_at;	  /* when it was made */
	vrb_ns resend_at, probe_deadline;
	vrb_ns probe_ns;   /* set by core/window.h; VRB_NS_NEVER: the link loses nothing */
	vrb_ns rtt_min_ns; /* the same; 0: not known */

	/* responder */
	uint8_t rx_seq;		  /* which message is in progress: VRB_RX_ */
	bool nak_sent;		  /* one NAK per gap and round */
	struct vrb_psn nak_round; /* the PSN that brought it; epsn for an RNR NAK */
	bool comm_est_done;
	bool last_wqe_done;
	bool have_rwqe;		   /* SRQ: cur_rwqe is bound to the message in progress */
	uint64_t rx_va;		   /* WRITE in progress: next address */
	uint32_t rx_rkey, rx_left; /* WRITE: bytes still to come */
	uint32_t rx_len;	   /* bytes of the message so far */
	uint8_t nak_syndrome;	   /* owed NAK or RNR NAK, 0 none */
	uint8_t refuse_next; /* the caller's, for one packet: a request in order is answered so */
	struct vrb_psn nak_psn;
	struct vrb_rd_res rd_own[VRB_RD_ATOMIC_OWN];
	struct vrb_rd_res *rd_more; /* in their place, or NULL */
	uint32_t rd_tail, rd_n;	    /* rd_n requests are stored, the newest before rd_tail */
	uint32_t rd_next;	    /* those before it are not pending */
	uint32_t n_rd_pending;	    /* entries with pending */
	uint32_t n_rd_unanswered;   /* entries without done */
	struct vrb_rwqe *cur_rwqe;  /* SRQ: memory for one receive WQE of the SRQ's max_sge SGEs */

	/* for the caller */
	uint32_t n_timeouts, n_probes_sent; /* only grow */
	struct vrb_list active_node;	    /* has packets to make */
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

/*
 * Applies attributes that src/rules has accepted; mtu and window_max come from the link (0: leave).
 * To ERR: flushes; an ACK that is owed for messages that the user has seen stays owed, and the
 * caller may still send it (poll_response). To RESET or before fini: the caller sends it first.
 */
void vrb_qp_modify(struct vrb_qp *qp, const struct vrb_qp_attr *attr, uint32_t mask, uint32_t mtu,
		   uint32_t window_max, struct vrb_fx *fx);
void vrb_qp_query(const struct vrb_qp *qp, struct vrb_qp_attr *attr);

/* Zeroed memory for VRB_RD_ATOMIC_MAX READs and atomics, in rd_more from now on: before a modify
 * that sets max_dest_rd_atomic above VRB_RD_ATOMIC_OWN, which else is cut to that. The caller's
 * still, to be freed after fini. */
void vrb_qp_give_rd(struct vrb_qp *qp, struct vrb_rd_res *mem);

static inline uint32_t vrb_qp_rd_max(const struct vrb_qp *qp)
{
	return qp->rd_more ? VRB_RD_ATOMIC_MAX : VRB_RD_ATOMIC_OWN;
}

static inline struct vrb_rd_res *vrb_qp_rd(struct vrb_qp *qp, uint32_t i)
{
	return (qp->rd_more ? qp->rd_more : qp->rd_own) + i % vrb_qp_rd_max(qp);
}

/* From now on every packet takes the full step, or need not any more. */
void vrb_qp_tap(struct vrb_qp *qp, bool on);

static inline bool vrb_qp_is_plain_tx(const struct vrb_qp *qp)
{
	return qp->slow_tx == 0;
}

static inline bool vrb_qp_is_plain_rx(const struct vrb_qp *qp)
{
	return qp->slow_rx == 0;
}

static inline vrb_ns vrb_ns_add(vrb_ns now, vrb_ns d)
{
	return d >= VRB_NS_NEVER - now ? VRB_NS_NEVER : now + d;
}

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

/*
 * The link has no room for this QP's next packet: the ACK timer runs all the same, so that a peer
 * that never makes room ends in RETRY_EXC. There is room again: a timer that ran for nothing sent
 * stops.
 */
void vrb_qp_on_stall(struct vrb_qp *qp, vrb_ns now);
void vrb_qp_on_unstall(struct vrb_qp *qp);

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
