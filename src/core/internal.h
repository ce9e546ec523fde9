/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the core share and nobody else sees. Every public step ends in vrb_qp_settle,
 * which ends an entry that waits to fail or whose peer is gone, turns a dead CQ into a failed QP,
 * notices a drained send queue and keeps slow_tx and slow_rx; the functions here may leave those to
 * it.
 */
#ifndef VRB_CORE_INTERNAL_H
#define VRB_CORE_INTERNAL_H

#include "base/checks.h"
#include "core/qp.h"

#define VRB_PKEY_DEFAULT 0xffffu
#define VRB_GRH_LEN	 40u
/* In flight at most; keeps every PSN distance inside a window far from 2^23. */
#define VRB_WINDOW_CLAMP  0x200000u
#define VRB_ACK_RUN_MAX	  64u /* AckReq at least once in so many packets of a message */
#define VRB_ACK_RUN_SHORT 8u  /* and in so many short unsignaled messages, */
#define VRB_ACK_LAZY_NS	  (50 * VRB_NS_PER_US) /* and after so long: less than a probe waits */

/* Why a request packet could not be executed: what to answer and how its receive WQE ends. */
struct vrb_fault {
	uint8_t syndrome; /* VRB_NAK_, VRB_AETH_RNR (no receive), 0: no answer at all */
	enum vrb_wc_status status;
	struct vrb_report r;
};

/* a - b modulo 2^24 */
static inline uint32_t vrb_psn_dist(struct vrb_psn a, struct vrb_psn b)
{
	return (a.v - b.v) & VRB_PSN_MASK;
}

static inline struct vrb_swqe *vrb_qp_swqe(const struct vrb_qp *qp, uint32_t i)
{
	return vrb_wq_entry(&qp->sq, i);
}

static inline bool vrb_swqe_is_local(const struct vrb_swqe *w)
{
	return w->op == VRB_WR_LOCAL_INV || w->op == VRB_WR_BIND_MW;
}

static inline bool vrb_swqe_is_rd(const struct vrb_swqe *w)
{
	return w->op == VRB_WR_READ || w->op == VRB_WR_CMP_SWAP || w->op == VRB_WR_FETCH_ADD;
}

/* One past the newest entry that has been started. */
static inline uint32_t vrb_qp_started_end(const struct vrb_qp *qp)
{
	return qp->rewound ? qp->sq_started : qp->sq_send + (qp->send_off > 0);
}

/* One past the newest PSN ever sent. */
static inline struct vrb_psn vrb_qp_sent(const struct vrb_qp *qp)
{
	return qp->rewound ? qp->high_psn : qp->next_psn;
}

static inline uint32_t vrb_n_packets(uint32_t len, uint32_t mtu)
{
	return len == 0 ? 1 : (len - 1) / mtu + 1;
}

static inline struct vrb_report vrb_report1(const struct vrb_qp *qp, enum vrb_verdict v, uint64_t a,
					    uint64_t b)
{
	return (struct vrb_report){.verdict = v, .qpn = qp->qpn, .val = {a, b}};
}

static inline void vrb_qp_report(const struct vrb_qp *qp, struct vrb_fx *fx, enum vrb_verdict v,
				 uint64_t a, uint64_t b)
{
	struct vrb_report r = vrb_report1(qp, v, a, b);

	vrb_fx_report(fx, &r);
}

/* sgl.c */
struct vrb_sgl {
	const struct vrb_keytab *keys;
	const struct vrb_sge *sge;
	uint32_t n, pd;
};
bool vrb_sgl_check(const struct vrb_sgl *l, uint32_t need, struct vrb_report *r);
bool vrb_sgl_gather(const struct vrb_sgl *l, uint32_t off, uint32_t len, struct vrb_tx *tx,
		    struct vrb_report *r);
/* Adds placements of the bytes of src to offset off of the list; none when it fails. */
bool vrb_sgl_scatter(const struct vrb_sgl *l, uint32_t off, struct vrb_seg src, struct vrb_fx *fx,
		     struct vrb_report *r);
bool vrb_fx_copy(struct vrb_fx *fx, uint64_t dst, const void *src, uint32_t len);

/* mr.c, mw.c */
void vrb_key_give_back(struct vrb_keytab *t, uint32_t i);
bool vrb_mw_bind(struct vrb_keytab *t, const struct vrb_swqe *w, uint32_t pd, vrb_qpn qpn,
		 uint64_t *reason);
bool vrb_mw_invalidate(struct vrb_keytab *t, uint32_t rkey, uint32_t pd, vrb_qpn qpn);

/* queue.c */
void vrb_qp_settle(struct vrb_qp *qp, struct vrb_fx *fx);
void vrb_qp_complete_send(struct vrb_qp *qp, uint32_t i, enum vrb_wc_status status,
			  struct vrb_fx *fx);
/* The entry at sq_una ends in status: RC to ERR with everything flushed, UC and UD to SQE. */
void vrb_qp_send_error(struct vrb_qp *qp, enum vrb_wc_status status, struct vrb_fx *fx);
void vrb_qp_to_err(struct vrb_qp *qp, struct vrb_fx *fx);
void vrb_qp_flush_send(struct vrb_qp *qp, struct vrb_fx *fx);
void vrb_qp_flush_recv(struct vrb_qp *qp, struct vrb_fx *fx);
void vrb_qp_forget_responses(struct vrb_qp *qp);

/* receive.c: the receive WQE of the message in progress, and its completion */
const struct vrb_rwqe *vrb_rx_peek(const struct vrb_qp *qp);
const struct vrb_rwqe *vrb_rx_take(struct vrb_qp *qp, struct vrb_fx *fx);
bool vrb_rx_is_bound(const struct vrb_qp *qp);
struct vrb_sgl vrb_rx_sgl(const struct vrb_qp *qp, const struct vrb_rwqe *w);
void vrb_rx_complete(struct vrb_qp *qp, struct vrb_cqe *cqe, bool solicited, struct vrb_fx *fx);
void vrb_rx_error(struct vrb_qp *qp, enum vrb_wc_status status, struct vrb_fx *fx);
/* SEND and WRITE packets whose PSN and place in the message are good (RC and UC). */
bool vrb_rx_execute(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx,
		    struct vrb_fault *f);
bool vrb_rx_seq_ok(const struct vrb_qp *qp, struct vrb_opcode op);
bool vrb_rx_fault(struct vrb_fault *f, uint8_t syndrome, enum vrb_wc_status status,
		  struct vrb_report r);

/* responder.c, rd_atomic.c, completer.c, retry.c, uc.c, ud.c */
void vrb_responder_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx);
void vrb_responder_fault(struct vrb_qp *qp, const struct vrb_pkt *pkt, const struct vrb_fault *f,
			 struct vrb_fx *fx);
bool vrb_rd_accept(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx,
		   struct vrb_fault *f);
void vrb_rd_abandon(struct vrb_qp *qp);
void vrb_rd_duplicate(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx);
void vrb_completer_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, vrb_ns now,
			     struct vrb_fx *fx);
void vrb_retry_rewind(struct vrb_qp *qp, struct vrb_psn psn);
bool vrb_retry_spend(struct vrb_qp *qp, struct vrb_fx *fx);
void vrb_retry_rnr(struct vrb_qp *qp, uint8_t code, vrb_ns now, struct vrb_fx *fx);
void vrb_retry_progress(struct vrb_qp *qp, vrb_ns now);
void vrb_retry_arm(struct vrb_qp *qp, vrb_ns now);
bool vrb_retry_again(struct vrb_qp *qp, vrb_ns now, vrb_ns answer_ns);
void vrb_retry_rest_lost(struct vrb_qp *qp);
void vrb_uc_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx);
void vrb_ud_on_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_fx *fx);
bool vrb_ud_poll_request(struct vrb_qp *qp, struct vrb_tx *tx, struct vrb_fx *fx);
/* The entry at sq_send cannot be sent: it ends in status when all before it are complete. */
void vrb_requester_fail(struct vrb_qp *qp, enum vrb_wc_status status, struct vrb_report *r,
			struct vrb_fx *fx);
/* The entry at sq_una is complete and was successful. */
void vrb_requester_retire(struct vrb_qp *qp, struct vrb_fx *fx);

#endif
