/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking aside why a reliable queue pair gets no answers (wire/ask.h), so that status 12 comes with
 * its reason (core/cause.h). The question leaves with the first ACK timeout of a packet, so the
 * answer is mostly there when the retries are used up; else the reason is said when it has come, or
 * ASK_NS later. Nothing of this runs while packets are acknowledged.
 */
#ifndef VRB_HCA_ASK_H
#define VRB_HCA_ASK_H

#include "core/cause.h"
#include "hca/peer.h"
#include "hca/wire.h"

struct vrb_asks; /* ask.c */

struct vrb_asks *vrb_asks_create(void);
/* una was not acknowledged in time. Lock held, like all but the last. */
void vrb_ask_on_timeout(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_psn una);
/* Status 12 for the packet una. */
void vrb_ask_on_end(struct vrb_engine *e, struct vrb_hqp *q, struct vrb_psn una);
void vrb_ask_on_event(struct vrb_engine *e, int fd);
void vrb_ask_run(struct vrb_engine *e, vrb_ns now);
void vrb_asks_close(struct vrb_engine *e, bool in_child);
/* Before the end: waits, bounded, for reasons that are still due, when anybody reads them. No
 * lock. */
void vrb_ask_linger(struct vrb_engine *e);

/* A connection to the owner of a slot, or -errno; -EAGAIN: it does not look. Never waits. */
int vrb_ask_call(uint32_t slot);

/* ask_answer.c: what this process says of its queue pair a->qpn; src: who asks by the wire, NULL a
 * process of this user */
void vrb_ask_answer(struct vrb_engine *e, const struct vrb_gid *src, struct vrb_ask *a);
/* A question has come by the wire; by the socket of the slot. */
void vrb_ask_on_packet(struct vrb_engine *e, struct vrb_wire_addr *a,
		       const struct vrb_udp_packet *p);
void vrb_ask_on_hello(struct vrb_engine *e, int sock, const struct vrb_meet_hello *h);

#endif
