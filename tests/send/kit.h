/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes with a channel between them: the child is the client and runs one function, the
 * parent the server. A check that fails prints where, with libverbena's own words, and ends its
 * process.
 */
#ifndef VRB_TESTS_SEND_KIT_H
#define VRB_TESTS_SEND_KIT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <verbena/verbena.h>

#include "support/patience.h"

#define S    (1000000000ll)
#define MS   (1000000ll)
#define WAIT (WAIT_MS * MS)

#define CHECK(e)                                                                                   \
	do {                                                                                       \
		if (!(e)) {                                                                        \
			fprintf(stderr, "%s:%d: %s [%s]\n", __FILE__, __LINE__, #e,                \
				vrb_error_text());                                                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct end {
	struct vrb_domain *d;
	struct vrb_channel *ch;
};

typedef void side(struct end *e);

/* Options of each side; NULL: defaults. */
struct pair {
	const struct vrb_domain_options *domain;
	const struct vrb_channel_options *server, *client;
};

/* Runs both sides, each with its channel made; ends the process when one of them fails. */
void run_pair(const struct pair *p, side *server, side *client);
extern int child_pid; /* in the server */

/* The next event, or of this kind after others. */
struct vrb_event next_event(struct end *e);
struct vrb_event want_event(struct end *e, enum vrb_event_kind kind);

/* Sends, polling for room as long as it takes; events met on the way must be ROOM. */
void send_all(struct end *e, const void *data, size_t len, const struct vrb_send_options *o);

/* Calls a way to send until there is room. */
#define UNTIL_ROOM(e, call)                                                                        \
	do {                                                                                       \
		int r_;                                                                            \
		while ((r_ = (call)) == -EAGAIN)                                                   \
			want_event(e, VRB_EV_ROOM);                                                \
		CHECK(!r_);                                                                        \
	} while (0)

uint64_t now_ns(void);
uint8_t pattern(uint64_t seed, uint64_t i);
void fill(void *at, uint64_t seed, size_t len);
int is_filled(const void *at, uint64_t seed, size_t len);

#endif
