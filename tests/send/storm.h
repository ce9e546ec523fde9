/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends send by all ways at once, and keep books: each message that was taken ends once, none
 * that was refused ends at all, memory is released where that was promised, and no buffer is left
 * outside of the pool. What else happens meanwhile is the test's.
 */
#ifndef VRB_TESTS_SEND_STORM_H
#define VRB_TESTS_SEND_STORM_H

#include "send/kit.h"

struct storm {
	uint32_t n;		       /* messages from each end */
	uint32_t trouble_at;	       /* so many have ended: */
	void (*trouble)(struct end *); /* NULL: none from this end */
	uint64_t timeout_ns;	       /* of each message; 0: none */
	bool may_lose;		       /* queue pairs may fail, and the channel goes on */
	bool may_end;		       /* the channel may break, else all must arrive */
};

struct books {
	uint32_t posted, ended, done, timed_out, failed, flushed, received;
	uint32_t lanes_down, lanes_up, lost, away, back, ports;
	char why[512]; /* the channel broke */
};

/* The channel is freed. */
void storm(struct end *e, const struct storm *s, struct books *b);

#endif
