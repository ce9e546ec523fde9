/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A channel is a TCP connection and some lanes, each of them one queue pair with its accounts. Used
 * by one thread at a time: nothing here is atomic.
 *
 *   UP ------ an error, ours or the peer's ----> ENDING -- all work requests are back --> DOWN
 *    \------- the peer says BYE, and all that it had sent has come --^                  or AWAY,
 *    ^------------------------- a new connection (reconnect.c) ------------------------------/
 *
 * In ENDING the queue pairs are in the error state and the adapter gives back every work request,
 * one by one: so each message ends once, with its own outcome, and no buffer is put back that the
 * adapter still uses.
 */
#ifndef VRB_SEND_CHANNEL_H
#define VRB_SEND_CHANNEL_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "base/verdict.h"
#include "send/credit.h"
#include "send/domain.h"
#include "send/frame.h"
#include "send/shared.h"
#include "send/sq.h"
#include "send/ticks.h"

#define VRB_BATCH      32u		  /* work requests behind one doorbell */
#define VRB_SGES_MAX   16u		  /* per work request, at most */
#define VRB_SCRATCH    272u		  /* inline bytes, with the frame */
#define VRB_OFFERS_MAX 32u		  /* large messages under way per lane and direction */
#define VRB_REFILL_MAX 32u		  /* receives posted by one call */
#define VRB_FLOWS      128u		  /* entries of the indirection table */
#define VRB_ENDING_NS  (2 * VRB_NS_PER_S) /* for the adapter to give everything back */

enum vrb_state { VRB_UP, VRB_ENDING, VRB_AWAY, VRB_DOWN };

enum vrb_lane_state { VRB_LANE_UP, VRB_LANE_FAILING, VRB_LANE_OUT, VRB_LANE_BUILDING };

/* Of a queue pair on an SRQ in the error state: the adapter has said that it takes no more
 * receives, and all that had come by it has been polled. */
enum { VRB_LAST_TAKEN = 1, VRB_LAST_POLLED };

enum vrb_sent_kind {
	VRB_SENT_MESSAGE,
	VRB_SENT_OFFER,	  /* ends with the peer's TAKEN, not with its completion */
	VRB_SENT_CONTROL, /* buf is the lane's control buffer, or NULL */
	VRB_SENT_FETCH,	  /* a READ of a large message; arg: its slot */
	VRB_SENT_PART,	  /* of a WRITE or READ that goes on */
	VRB_SENT_RDMA	  /* its end */
};

enum { VRB_SENT_REPORT = 1, VRB_SENT_USERS = 2, VRB_SENT_LATE = 4, VRB_SENT_FILE = 8 };

/* A work request under way; what is to be done when it ends. */
struct vrb_sent {
	void *cookie;
	struct vrb_buf *buf;  /* put back */
	uint64_t deadline_ns; /* 0: none */
	uint64_t posted_ns;   /* 0: not timed */
	uint8_t kind, flags;
	uint16_t arg;
};

/* A large message that waits for the peer to READ it. */
struct vrb_offered {
	void *cookie;
	struct vrb_buf *buf;
	uint64_t deadline_ns;
	uint32_t id; /* 0: the slot is free */
	uint8_t flags;
};

/* A large message that is being READ. */
struct vrb_fetch {
	struct vrb_buf *offer; /* NULL: the slot is free */
	struct vrb_buf *into;  /* NULL: the pool had none yet */
	uint32_t id, n, piece, piece_off, filled, len;
	uint32_t under_way;   /* READs */
	uint64_t waits_since; /* what vrb_pool_freed said, plus 1, when the pool had none; or 0 */
	bool refused, is_file;
};

/* What a call that returned -EAGAIN waits for. wrs is 0: nobody waits. */
struct vrb_want {
	uint32_t wrs;
	bool credit, offer, file, memory;
	uint64_t bytes; /* of memory */
};

struct vrb_slot {
	struct ibv_sge sge[VRB_SGES_MAX];
	uint8_t scratch[VRB_SCRATCH];
};

struct vrb_lane {
	struct vrb_channel *ch;
	struct ibv_qp *qp;
	uint32_t index, psn, peer_qpn, peer_psn;
	struct vrb_sq sq;
	struct vrb_sent *sent; /* by number & sent_mask */
	uint32_t sent_mask;
	struct vrb_credit credit;
	struct vrb_buf **rq; /* receives the adapter has, which takes them in order */
	uint32_t rq_head, rq_tail, rq_mask;
	uint32_t missing, bare; /* receives to be posted: for messages, for bare ones */
	struct vrb_want want;
	struct vrb_rdma *rdma; /* NULL, or a WRITE or READ longer than the queue */
	uint32_t n_batch;
	bool batch_wants; /* one of the batch wants to be reported */
	bool control_busy;
	/* repair.c */
	enum vrb_lane_state state;
	bool resting;		    /* takes no message until all of it is done */
	uint8_t last;		    /* VRB_LAST_... */
	bool has_share;		    /* of the SRQ */
	bool over, peer_over, told; /* our end, and the peer's, has let go of the queue pair */
	uint32_t lost, stall_head;
	uint32_t mark; /* what vrb_drain waits for: work requests in front of this number */
	uint64_t since_ns, moved_ns, stall_ns, retry_ns, back_off_ns;
	struct vrb_buf *control; /* for bare credits where the adapter takes nothing inline */
	uint32_t sent_count, got_count;
	struct vrb_buf *held_first,
		*held_last; /* came behind a large message that is not there yet */
	uint32_t n_held;    /* no more than the receives: what is held takes no credit back */
	uint32_t n_fetching, fetch_next, n_offered, offer_id;
	uint32_t answers[VRB_OFFERS_MAX * 2], n_answers; /* TAKEN to be sent: id, refused */
	struct vrb_fetch fetch[VRB_OFFERS_MAX];
	struct vrb_offered offered[VRB_OFFERS_MAX];
	char text[256]; /* why it was taken out */
	struct ibv_send_wr batch[VRB_BATCH];
	struct vrb_slot slot[VRB_BATCH];
};

/* A client that connects again (reconnect.c). */
struct vrb_again {
	struct sockaddr_storage to;
	socklen_t to_len;
	struct vrb_channel *made; /* the next connection; NULL: it is not time yet */
	uint32_t step, got, attempts;
	uint64_t at_ns, back_off_ns, up_ns;
};

struct vrb_channel {
	struct vrb_domain *d;
	struct vrb_channel_options opt; /* with all defaults filled in */
	enum vrb_state state;
	bool peer_bye, peer_broke, want_room, freed, heard, closed, armed;
	bool is_client, failover, repairing, cq_dead;
	bool draining; /* events go to the ring, and more is done when that has some */
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex; /* the same one; NULL: without timestamps */
	struct vrb_ticks ticks;
	uint64_t wc_ns; /* of the completion that is handled */
	enum vrb_by moderation;
	bool napped;
	uint64_t nap_ns, nap_from; /* from: completions when it began */
	struct vrb_shared *shared; /* NULL: each lane has receives of its own */
	uint32_t lane_depth;	   /* receives of a lane, for messages */
	uint32_t n_lanes;
	struct vrb_lane *lane[VRB_LANES_MAX];
	uint32_t inline_max, sges, peer_recv_size, mtu;
	uint64_t max_message;
	bool peer_reads;
	struct vrb_gid_entry gid;
	struct vrb_hello peer;
	uint8_t flow_lane[VRB_FLOWS];
	uint32_t flow_table[4][256]; /* the Toeplitz hash of 4 bytes, taken apart */
	uint8_t flow_key[40];
	int tcp, epoll, wake, timer;
	struct vrb_channel *next;	  /* of the domain's; the news: async.h */
	_Atomic uint32_t news, news_last; /* last: lanes whose queue pair takes no more receives */
	_Atomic uint8_t news_event;
	struct vrb_again again;
	struct vrb_note note_in;
	uint32_t note_got;
	uint32_t bye_count[VRB_LANES_MAX];
	uint64_t dark_ns; /* since when no lane has worked; 0: one does */
	uint64_t heard_ns, asked_ns, tick_ns, ending_ns, broke_ns;
	uint32_t idle_polls, n_deadlines, unacked;
	uint64_t wait_ns; /* how long waiting took lately */
	/* where events go: the caller's array, and what did not fit */
	struct vrb_event *out;
	int out_n, out_max;
	struct vrb_event *ring;
	uint32_t ring_head, ring_tail, ring_mask;
	struct vrb_hit hit;
	struct vrb_channel_stats st;
	struct vrb_file *file;	       /* NULL: none is sent */
	struct vrb_histogram *latency; /* NULL: not wanted */
	char text[512], port_text[256];
};

/* Where the frame of the message in b is. */
static inline void *vrb_frame_at(const struct vrb_buf *b)
{
	return (uint8_t *)b->data + b->len;
}

static inline bool vrb_lane_is_up(const struct vrb_lane *l)
{
	return l->ch->state == VRB_UP && l->state == VRB_LANE_UP;
}

static inline uint64_t vrb_wr_id(const struct vrb_lane *l, uint32_t number)
{
	return (uint64_t)number << 8 | (uint64_t)l->index << 1 | 1;
}

/* channel.c */
int vrb_channel_make(struct vrb_domain *d, const struct vrb_channel_options *o,
		     struct vrb_channel **channel);
void vrb_channel_free(struct vrb_channel *ch);
int vrb_options_fill(const struct vrb_channel_options *in, const struct vrb_domain *d,
		     struct vrb_channel_options *out);
void vrb_emit(struct vrb_channel *ch, const struct vrb_event *e);

/* connect.c: what a client does, between the times it has to wait */
int vrb_client_begin(struct vrb_channel *ch);
int vrb_client_agree(struct vrb_channel *ch);
int vrb_client_ready(const struct vrb_note *n);
int vrb_channel_watch(struct vrb_channel *ch);
void vrb_flows_spread(struct vrb_channel *ch);

/* qp.c */
int vrb_lanes_create(struct vrb_channel *ch, uint32_t n);
int vrb_lanes_connect(struct vrb_channel *ch);
void vrb_lanes_error(struct vrb_channel *ch);
int vrb_lane_renew(struct vrb_lane *l);
int vrb_lane_connect(struct vrb_lane *l, uint32_t qpn, uint32_t psn);
void vrb_lane_error(struct vrb_lane *l);
void vrb_lane_drop_qp(struct vrb_lane *l);
void vrb_lane_free(struct vrb_lane *l);

/* repair.c: a lane fails, alone where the channel can do without it */
void vrb_lane_break(struct vrb_lane *l, enum vrb_verdict v, uint64_t a, uint64_t b, uint64_t c);
bool vrb_lanes_any_up(const struct vrb_channel *ch);
void vrb_repair_move(struct vrb_channel *ch, uint64_t now);
void vrb_repair_note(struct vrb_channel *ch, enum vrb_note_kind kind, const struct vrb_note *n);

/* reconnect.c */
bool vrb_away_begin(struct vrb_channel *ch);
void vrb_away_move(struct vrb_channel *ch, uint64_t now);
void vrb_away_end(struct vrb_channel *ch);

/* post.c: the frame stands behind what is sent already */
int vrb_post_buf(struct vrb_lane *l, struct vrb_buf *b, const struct vrb_sent *what,
		 unsigned flags);
int vrb_lane_flush(struct vrb_lane *l);
struct vrb_slot *vrb_lane_slot(struct vrb_lane *l);
int vrb_lane_commit(struct vrb_lane *l, struct ibv_send_wr *wr, const struct vrb_sent *what,
		    unsigned flags);
void vrb_lane_frame(struct vrb_lane *l, void *at, struct vrb_frame *f);
int vrb_post_control(struct vrb_lane *l, struct vrb_frame *f, const void *payload, uint32_t len);

/* receive.c */
void vrb_on_receive(struct vrb_lane *l, struct vrb_buf *b, uint32_t len);
int vrb_lane_refill(struct vrb_lane *l, bool all);
void vrb_lane_tell(struct vrb_lane *l);
void vrb_lane_prompt(struct vrb_lane *l);
void vrb_lane_probe(struct vrb_lane *l);
void vrb_deliver(struct vrb_lane *l, struct vrb_buf *b);

/* large.c */
int vrb_offer_send(struct vrb_lane *l, const struct vrb_piece *piece, uint32_t n,
		   const struct vrb_sent *what, struct vrb_frame *f);
void vrb_on_offer(struct vrb_lane *l, struct vrb_buf *b, const struct vrb_frame *f, uint32_t len);
void vrb_on_taken(struct vrb_lane *l, const void *payload, uint32_t len);
void vrb_on_fetched(struct vrb_lane *l, uint32_t slot);
void vrb_large_move(struct vrb_lane *l);
void vrb_large_settle(struct vrb_lane *l);
void vrb_deliver_held(struct vrb_lane *l);

/* rdma.c */
void vrb_rdma_move(struct vrb_lane *l);
void vrb_rdma_settle(struct vrb_lane *l);

/* end.c */
void vrb_channel_break(struct vrb_channel *ch, enum vrb_verdict v, uint64_t a, uint64_t b,
		       uint64_t c);
void vrb_channel_ending(struct vrb_channel *ch);
void vrb_channel_closed(struct vrb_channel *ch);
void vrb_lane_retire(struct vrb_lane *l, uint32_t number, enum vrb_outcome outcome);
void vrb_lane_settle(struct vrb_lane *l);
void vrb_sent_over(struct vrb_lane *l, struct vrb_sent *s, enum vrb_outcome outcome);
void vrb_lane_drop(struct vrb_lane *l);
void vrb_offer_over(struct vrb_channel *ch, struct vrb_offered *o, enum vrb_outcome outcome);
void vrb_deadlines(struct vrb_channel *ch, uint64_t now);

/* side.c */
int vrb_note_send(struct vrb_channel *ch, enum vrb_note_kind kind);
int vrb_lane_note(const struct vrb_lane *l, enum vrb_note_kind kind);
void vrb_notes_read(struct vrb_channel *ch);
void vrb_keepalive(struct vrb_channel *ch, uint64_t now);

/* poll.c */
uint64_t vrb_now(void);
bool vrb_progress(struct vrb_channel *ch);
void vrb_wait_once(struct vrb_channel *ch, uint64_t most_ns);

#endif
