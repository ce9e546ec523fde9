/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of the duty cycle (work.c, out.c, in.c, progress.c); lock held everywhere. */
#ifndef VRB_HCA_WORK_H
#define VRB_HCA_WORK_H

#include "hca/engine.h"

#define VRB_MULTICAST_QPN 0xffffffu

/* The lists changed: n_work follows. */
void vrb_work_count(struct vrb_engine *e);
/* The acknowledgements that are owed, if there are, go out with the next turn. */
void vrb_work_hurry_acks(struct vrb_engine *e);
void vrb_work_drop_active(struct vrb_hqp *q);
void vrb_work_drop_acks(struct vrb_hqp *q);
/* Timers are to be looked at when it is d. */
void vrb_work_look_at(struct vrb_engine *e, vrb_ns d);

/* stall.c */
struct vrb_room_ask {
	struct vrb_peer *peer; /* NULL: the packet has no destination */
	uint32_t len;	       /* payload at most */
	vrb_ns now;
	bool answer; /* may use what requests leave free */
};
/* NOBODY: make the packet, but nobody takes it. STALLED: q waits on the peer's stalled list. */
enum vrb_room { VRB_ROOM, VRB_ROOM_NOBODY, VRB_ROOM_STALLED };
enum vrb_room vrb_stall_room(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_room_ask *a);
/* The peer's ring, just found full, has been so for ns, in which the peer has taken nothing. */
bool vrb_stall_lasts(struct vrb_engine *e, struct vrb_peer *p, vrb_ns now, vrb_ns ns);
/* Unreliable queue pairs that wait for a peer which has turned out to be stuck go on. */
void vrb_stall_run_timers(struct vrb_engine *e, vrb_ns now);
/* True when a peer has answered our wish for credit (vrb_shm_publish clears it). No lock. */
bool vrb_stall_has_credit(struct vrb_engine *e);
/* Queue pairs whose ring has room again go back to work. */
void vrb_stall_use_credit(struct vrb_engine *e);

/* Answers of one queue pair, or of all that owe some. plain: ACKs too, not only what is urgent. */
void vrb_engine_respond(struct vrb_engine *e, struct vrb_hqp *q, vrb_ns now, bool plain);
void vrb_engine_respond_all(struct vrb_engine *e, vrb_ns now, bool plain);

/* True: the message waits until the next look, since its queue pair has no receive. aside: nothing
 * else waits with it. */
bool vrb_engine_may_wait(struct vrb_hqp *q, struct vrb_opcode op, vrb_ns now, bool aside);

/* Frames of one peer in, at most VRB_TURN_FRAMES; returns how many. */
uint32_t vrb_engine_drain(struct vrb_engine *e, struct vrb_peer *p, vrb_ns now);

#endif
