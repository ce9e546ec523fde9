/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: the one place of a process where core, links, clock and threads meet. All state below
 * is guarded by `lock` unless a comment says otherwise. Who makes progress: whoever polls or posts
 * takes the lock and runs a turn; the helper thread (helper.c) does when nobody has for a tick; a
 * thread blocked in ibv_get_cq_event (event_wait.c) drives too.
 *
 * A process has at most one engine; it is made by the first ibv_open_device and ends with the last
 * context. It owns one slot (base/meet.h), and with it 65,535 queue pair numbers.
 */
#ifndef VRB_HCA_ENGINE_H
#define VRB_HCA_ENGINE_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/meet.h"
#include "base/checks.h"
#include "hca/grh.h"
#include "hca/hca.h"
#include "hca/qp.h"
#include "link/shm.h"
#include "verbena/stats.h"

#define VRB_ACK_BATCH	64	      /* messages acknowledged together at most */
#define VRB_TURN_FRAMES 64	      /* frames handled in one turn per peer */
#define VRB_TICK_NS	VRB_NS_PER_MS /* the helper's period while the application is active */
#define VRB_TIMER_SLACK (2 * VRB_NS_PER_MS) /* the coarse clock may be this old */
#define VRB_PEERS	(VRB_SLOTS + 1)
#define VRB_BELL_SIZE	4096u
#define VRB_BURIED	32u /* stories of destroyed queue pairs that are kept */
#define VRB_PENDING_MAX 320 /* connections that have not said what they want; every process may */

/* What a peer process reads before it wakes us; in a memfd of its own. */
struct vrb_bell {
	_Alignas(64) _Atomic uint32_t sleepers; /* VRB_SLEEP_ bits; whoever wakes clears them */
	_Atomic uint32_t seq;			/* futex word */
};
enum { VRB_SLEEP_HELPER = 1, VRB_SLEEP_FUTEX = 2 };

struct vrb_export; /* hca/direct.h */
struct vrb_wire;   /* hca/wire.h */
struct vrb_tap;	   /* hca/tap.h */
struct vrb_trace;  /* hca/trace.h */
struct vrb_totals; /* hca/totals.h */
struct vrb_faults; /* hca/faults.h */
struct vrb_story;  /* hca/story.h */
struct vrb_asks;   /* hca/ask.h */
struct vrb_gsi;	   /* hca/gsi.h */

/* The channel to one other process (or to ourselves). Never freed while the engine lives: pollers
 * peek without the lock. */
struct vrb_peer {
	struct vrb_shm_tx tx;
	struct vrb_shm_rx rx;
	bool tx_open, rx_open; /* rings attached */
	bool self;
	bool welcomed; /* the receiver's welcome has come */
	uint32_t tap;  /* the capture file it records into, as it says; 0 none */
	uint8_t slot;
	int owner; /* process id of the slot's owner, as the kernel says; 0: not to be seen from
		      here */
	int tx_sock, rx_sock;	 /* our connection to its slot; its connection to ours; -1 none */
	struct vrb_bell *bell;	 /* the peer's; NULL until it has been received */
	int bell_fd;		 /* the eventfd its helper sleeps on */
	bool ring_bell;		 /* frames were pushed since the last doorbell */
	struct vrb_list qps;	 /* connected queue pairs */
	struct vrb_list stalled; /* queue pairs that wait for room in tx */
	struct vrb_list carry, carry_node; /* packets of the wire that do (hca/wire_keep.c) */
	uint32_t n_carry;
	uint32_t hot_index;
	const struct vrb_export *export; /* the peer's keys and queue pairs, or NULL */
	int mem_fd;			 /* the peer's memory */
	uint32_t direct_hung; /* value of its direct_seq that never changed; even: none */
	uint64_t full_used;   /* what it had taken of our ring when somebody first found no room */
	vrb_ns full_since;    /* when that was; 0: never */
};

/* What a device's objects have done that no row of the counters page has: vrb_stats_sum. */
struct vrb_stats_sum {
	uint64_t sent, taken, completions, failed, events, async_events;
};

struct vrb_engine {
	_Alignas(64) _Atomic uint32_t lock;
	/* read by unlocked peeks */
	struct vrb_peer *_Atomic hot[VRB_PEERS];     /* peers with an rx ring, first n_hot */
	struct vrb_shm_ctl *_Atomic wish[VRB_PEERS]; /* by slot: tx rings on which somebody waits */
	_Atomic uint32_t n_hot;
	_Atomic uint32_t n_polls; /* activity of the application */
	_Atomic uint32_t n_work;  /* active or ack-owing queue pairs: a poll should take the lock */
	_Atomic uint32_t n_wire;  /* warm sockets (hca/wire.h): an empty poll looks at them */
	_Atomic uint32_t n_drivers;	/* threads blocked in get_cq_event that drive */
	_Atomic bool sockets_watched;	/* one of them sleeps on the sockets */
	_Atomic uint32_t n_watches;	/* how often one has begun to */
	_Atomic bool watches_often;	/* as the helper has found: it need not hear of packets */
	_Atomic vrb_ns helper_wakes_at; /* when the helper looks again; VRB_NS_NEVER: deep sleep */
	_Atomic bool helper_deep;	/* the helper sleeps without a tick: `now` may be old */
	bool one_cpu;			/* all threads share one CPU: whoever spins must yield */
	bool foreign;			/* we are a forked child, this engine is the parent's */
	bool detour;			/* foreign, or traced: polls look closer */

	uint32_t slot;
	uint32_t n_ctx; /* open contexts */
	struct vrb_bell *bell;
	int bell_mem_fd, bell_fd, listen_fd, epoll_fd, stats_fd;
	int spare_fd;	    /* given up to turn a connection away when no other is left */
	vrb_ns muted_until; /* listen_fd is not watched until then; 0: it is */
	bool wire_busy;	    /* the helper goes on ticking; its own */
	uint32_t n_pending;
	struct vrb_pending {
		int fd;
		vrb_ns since;
	} pending[VRB_PENDING_MAX]; /* oldest first */
	struct vrb_watch { /* of the thread that sleeps on the sockets; -1 until the first */
		int wake_fd, signal_fd;
		sigset_t mask; /* signal_fd is for the others */
	} watch;
	pthread_t helper;
	bool helper_runs;
	_Atomic bool stopping;

	vrb_ns now;		 /* coarse clock: as of the last slow step or tick; peeked at */
	uint32_t empty_polls;	 /* counted without the lock */
	uint32_t cpu, cpu_peers; /* as published, and to how many peers; without the lock */
	struct vrb_fx fx;
	struct vrb_tx tx;
	struct vrb_list active;		  /* queue pairs that may make request packets */
	struct vrb_list acks;		  /* queue pairs that owe an answer */
	struct vrb_list timers;		  /* queue pairs with a deadline */
	struct vrb_peer *rung[VRB_PEERS]; /* peers with ring_bell set */
	bool acks_urgent;		  /* a peer waits for one of them */
	const struct vrb_peer *gone;	  /* nothing of it waits for a receive */
	struct vrb_shm_line *held;	  /* first frame of a list being posted (hca/fast.h) */
	uint64_t held_word;
	uint32_t n_rung;
	uint32_t n_stalled;   /* queue pairs on stalled lists; peeked at */
	vrb_ns next_deadline; /* peeked at */

	struct vrb_hqp **qp; /* by the low 16 bits of the QPN */
	uint32_t qp_cursor, n_qps;
	struct vrb_keytab keys;
	struct vrb_peer *peer[VRB_PEERS];
	struct vrb_list contexts;
	uint32_t next_pd, next_cq;
	uint32_t prefetch;
	struct vrb_stats_page *stats;
	struct vrb_hqp_counts gone_counts[VRB_STATS_DEVICES]; /* of destroyed queue pairs */
	struct vrb_stats_sum sum[VRB_STATS_DEVICES];	      /* of destroyed objects; all events */
	vrb_ns tally_at;				      /* the next look at their messages */
	struct vrb_export *export;
	int export_fd;
	struct vrb_wire *_Atomic wire; /* NULL until the first use */
	struct vrb_tap *tap;	       /* every packet is recorded; NULL: no */
	struct vrb_trace *trace;       /* hca/trace.h; NULL: none asked for */
	struct vrb_totals *totals;     /* hca/totals.h; NULL: none asked for */
	struct vrb_faults *faults;     /* hca/faults.h; NULL: none asked for */

	struct vrb_story *buried[VRB_BURIED];
	uint32_t n_buried;
	int story_fd;	/* the file that keeps stories; -1: none */
	bool story_due; /* something for it has happened */

	struct vrb_gsi *gsi; /* NULL until the first use */
	struct vrb_asks *asks;
	vrb_ns answered_in; /* the second in which n_answered questions were */
	uint32_t n_answered;

	uint64_t pinned; /* bytes of pages that are registered */

	/* CQs that hold an event back (moderate.c) */
	struct vrb_list held_cqs;
	vrb_ns held_first;   /* when the first is due, NEVER: none; peeked at */
	int held_fd;	     /* a timer, for when nobody drives; -1 until a CQ is moderated */
	vrb_ns held_fd_at;   /* what it is set to, NEVER: nothing */
	bool is_driver_turn; /* a turn by a thread that waits in get_cq_event */
};

/* The process's engine, or NULL. */
extern struct vrb_engine *_Atomic vrb_engine_current;

int vrb_engine_get(struct vrb_engine **out);
void vrb_engine_put(struct vrb_engine *e);

void vrb_engine_lock_slow(struct vrb_engine *e);

static inline void vrb_engine_lock(struct vrb_engine *e)
{
	if (vrb_unlikely(atomic_exchange_explicit(&e->lock, 1, memory_order_acquire)))
		vrb_engine_lock_slow(e);
}

static inline bool vrb_engine_trylock(struct vrb_engine *e)
{
	return !atomic_load_explicit(&e->lock, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&e->lock, 1, memory_order_acquire);
}

static inline void vrb_engine_unlock(struct vrb_engine *e)
{
	atomic_store_explicit(&e->lock, 0, memory_order_release);
}

/*
 * A thread must not be cancelled (pthread_cancel) while it holds the engine's lock, so no call that
 * POSIX makes a cancellation point is made with the lock held: either between these two, or as a
 * bare system call.
 */
static inline int vrb_cancel_off(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static inline void vrb_cancel_restore(int old)
{
	pthread_setcancelstate(old, NULL);
}

/* Adds to an eventfd; false when that would block. */
static inline bool vrb_event_fd_add(int fd, uint64_t n)
{
	return syscall(SYS_write, fd, &n, sizeof(n)) == sizeof(n);
}

/* clock.c: the clock of the software HCA, and the times that cq wants */
vrb_ns vrb_clock_now(void);
struct vrb_stamp vrb_clock_stamp(const struct vrb_hcq *cq);

/* A time for deadlines: the coarse clock, which lags by less than the slack that is added. Lock
 * held. */
static inline vrb_ns vrb_engine_timer_base(struct vrb_engine *e)
{
	if (vrb_unlikely(atomic_load_explicit(&e->helper_deep, memory_order_relaxed)))
		vrb_poke(&e->now, vrb_clock_now());
	return vrb_peek(&e->now) + VRB_TIMER_SLACK;
}

/* apply.c, work.c, in.c, out.c and progress.c, under the lock. */
/* Executes and empties e->fx. dev: for the counters. */
void vrb_engine_apply(struct vrb_engine *e);
/* One turn: rings in, requests and answers out, bells. Returns the number of things done. */
uint32_t vrb_engine_turn(struct vrb_engine *e, vrb_ns now);
/* Requests of one queue pair out; leaves it on the active list when more waits. posted: more may
 * come at once, so what the wire may hold is held (hca/wire.h). */
void vrb_engine_pump(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now, bool posted);
/* A packet for q, wherever it came from. */
void vrb_engine_take(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_pkt *pkt,
		     vrb_ns now);
/* q will answer no more. A message of the fast path that nobody waits for has not asked for an
 * acknowledgement; it is acknowledged all the same, lest its sender take it for lost. */
void vrb_engine_last_ack(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now);
/* All answers owed, plain ACKs included; if_urgent: only when somebody waits for one. */
void vrb_engine_flush_acks(struct vrb_engine *e, vrb_ns now, bool if_urgent);
void vrb_engine_run_timers(struct vrb_engine *e, vrb_ns now);
/* The queue pair's deadline may have changed. */
void vrb_engine_timer(struct vrb_engine *e, struct vrb_hqp *q);
/* Wakes the peers whose rings got frames. */
void vrb_engine_ring_bells(struct vrb_engine *e);
/* True when a turn would find something (rings, pending lists). No lock. */
bool vrb_engine_has_work(struct vrb_engine *e);
/* A queue pair's work lists changed. */
void vrb_engine_activate(struct vrb_engine *e, struct vrb_hqp *q);
/* urgent: somebody waits for the answer; else it may wait for company or the helper's tick. */
void vrb_engine_owes(struct vrb_engine *e, struct vrb_hqp *q, bool urgent);
void vrb_engine_owes_none(struct vrb_engine *e, struct vrb_hqp *q);
/* Sends the acknowledgement that q owes. */
void vrb_engine_ack_now(struct vrb_engine *e, struct vrb_hqp *q);
void vrb_engine_unstall(struct vrb_engine *e, struct vrb_hqp *q);
void vrb_engine_unstall_peer(struct vrb_engine *e, struct vrb_peer *p);
void vrb_engine_forget(struct vrb_engine *e, struct vrb_hqp *q);

/* meet.c, under the lock. */
int vrb_meet_open(struct vrb_engine *e); /* claims a slot, listens */
void vrb_meet_close(struct vrb_engine *e, bool in_child);
void vrb_meet_tick(struct vrb_engine *e, vrb_ns now); /* by the helper */

/* peer.c and peer_end.c, under the lock. */
/* The channel to a slot, connecting when there is none; -ECONNREFUSED: nobody owns the slot. */
int vrb_peer_get(struct vrb_engine *e, uint32_t slot, struct vrb_peer **p);
/* The same for a queue pair that is about to be connected. */
int vrb_peer_bind(struct vrb_engine *e, uint32_t slot, struct vrb_peer **p);
void vrb_peer_all(struct vrb_engine *e); /* connects to every slot in use (multicast) */
void vrb_peer_on_event(struct vrb_engine *e, uint32_t what, int fd);
void vrb_peer_wake(struct vrb_peer *p);
void vrb_peer_cut(struct vrb_peer *p); /* it lies, or does not answer: ends the channel, soon */
/* Before the end: waits, bounded, for receivers that have not seen our last frames. No lock. */
void vrb_peer_linger(struct vrb_engine *e);
void vrb_peer_close_all(struct vrb_engine *e);
void vrb_peer_disown(struct vrb_peer *p); /* in a forked child */
enum { VRB_ROUTE_NONE, VRB_ROUTE_LOCAL, VRB_ROUTE_WIRE };
enum {
	VRB_EV_LISTEN,
	VRB_EV_ACCEPTED,
	VRB_EV_RX_SOCK,
	VRB_EV_TX_SOCK,
	VRB_EV_BELL,
	VRB_EV_WIRE,
	VRB_EV_TAP,
	VRB_EV_HELD,
	VRB_EV_ASK,
	VRB_EV_CLAIM
};

/* helper.c */
int vrb_helper_start(struct vrb_engine *e);
void vrb_helper_stop(struct vrb_engine *e);
void vrb_helper_kick(struct vrb_engine *e);
/* Marks us asleep; false when there is work after all (then not asleep). */
bool vrb_engine_arm(struct vrb_engine *e, uint32_t bit);

/* event.c, under the lock */
void vrb_event_completion(struct vrb_hcq *cq);
/* Threads of this process that sleep in get_cq_event look again. */
void vrb_event_wake_drivers(struct vrb_engine *e);
void vrb_event_close_watch(struct vrb_engine *e);
void vrb_event_purge_cq(struct vrb_hcq *cq);
void vrb_hchan_ref(struct vrb_hchan *c, int n);

/* moderate.c, under the lock: events of CQs that are held back for company */
void vrb_moderate_begin(struct vrb_hcq *cq);
void vrb_moderate_end(struct vrb_hcq *cq);
/* Those that are due. */
void vrb_moderate_run(struct vrb_engine *e, vrb_ns now);
/* The last thread that drove leaves: the timer takes over. */
void vrb_moderate_watch(struct vrb_engine *e);
void vrb_moderate_on_event(struct vrb_engine *e);
void vrb_moderate_close(struct vrb_engine *e, bool in_child);
static inline bool vrb_moderate_is_due(struct vrb_engine *e, vrb_ns now)
{
	return vrb_unlikely(vrb_peek(&e->held_first) <= now);
}
void vrb_event_async(struct vrb_hctx *ctx, const struct vrb_hasync *ev);
void vrb_event_purge_async(struct vrb_hctx *ctx, const void *user);

/* profile.c: the pages of a range, and whether so much more may be registered; lock held */
uint64_t vrb_hca_pinned_bytes(uint64_t addr, uint64_t len);
bool vrb_hca_may_pin(struct vrb_engine *e, uint64_t bytes);

/* stats.c */
int vrb_stats_open(struct vrb_engine *e);
void vrb_stats_close(struct vrb_engine *e);
struct vrb_stats_device *vrb_stats_device(struct vrb_engine *e, const struct vrb_hdev *dev);
/* Lock held, like the rest: q ends, what it has counted stays. */
void vrb_stats_bury(struct vrb_engine *e, struct vrb_hqp *q);
void vrb_stats_bury_cq(const struct vrb_hcq *cq);
/* A device's own, where events are counted. */
static inline struct vrb_stats_sum *vrb_stats_sum_of(const struct vrb_hctx *ctx)
{
	return &ctx->e->sum[ctx->stats - ctx->e->stats->device];
}
/* Of all objects, by row of the counters page. */
void vrb_stats_sum(struct vrb_engine *e, struct vrb_stats_sum all[VRB_STATS_DEVICES]);
/* Before somebody reads the page. */
void vrb_stats_fold(struct vrb_engine *e);
/* What q's messages are since the last look; the indices jump: they begin from where they are. */
void vrb_stats_tally(struct vrb_hqp *q);
void vrb_stats_tally_from(struct vrb_hqp *q);
void vrb_stats_tick(struct vrb_engine *e, vrb_ns now); /* by the helper */

/* device.c */
bool vrb_gid_is_local(const struct vrb_gid *gid);
void vrb_devices_lock(bool lock); /* around fork */

/* queue.c: sets cap, stride and mask; returns the bytes the ring needs */
size_t vrb_wq_shape(struct vrb_wq *q, uint32_t cap, uint32_t max_sge, uint32_t entry_bytes);
uint32_t vrb_rwqe_bytes(uint32_t max_sge);

/* mem.c: gives the key table's memory back */
void vrb_keys_close(struct vrb_engine *e);
/* mem.c: copy in ascending order with the last byte last */
void vrb_place_copy(void *dst, const void *src, size_t len);

/* Says in all rings on which CPU we look for work; returns it (counted from 1). No lock. */
uint32_t vrb_engine_publish_cpu(struct vrb_engine *e);

/* A frame was pushed to p: its bell is rung at the end of the batch. */
static inline void vrb_engine_pushed(struct vrb_engine *e, struct vrb_peer *p)
{
	if (!p->ring_bell) {
		p->ring_bell = true;
		e->rung[e->n_rung++] = p;
	}
}

#endif
