/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How libverbena says what went wrong.
 *
 * A call that fails returns a negative errno, so that strerror(-r) has a word for it, and leaves a
 * sentence with the values and a hint in vrb_error_text() of the calling thread. -EAGAIN is no
 * failure but back-pressure: it leaves no sentence.
 *
 * A message ends with an outcome, once. Why a channel ended is in the text of its event.
 */
#ifndef VERBENA_ERROR_H
#define VERBENA_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum vrb_outcome {
	VRB_DONE,      /* the peer's adapter has it (large messages: the peer's library has it) */
	VRB_TIMED_OUT, /* the message's own deadline passed; it may still arrive */
	VRB_REFUSED,   /* the peer's library refused it: too large for its pool */
	VRB_FAILED,    /* this message ended the queue pair */
	VRB_FLUSHED,   /* the queue pair had ended before it was sent, or acknowledged */
	VRB_SHRUNK     /* the file became shorter while it was sent */
};

/* A short English word or two; never NULL. Any thread. */
const char *vrb_outcome_str(enum vrb_outcome outcome);

/* "name: sentence (hint)" of the last call of this thread that failed, "" before the first one.
 * Valid until the next failing call of the thread. */
const char *vrb_error_text(void);

/* Its name alone, as `verbena explain` takes it. */
const char *vrb_error_name(void);

/* How often calls of this process have failed for the reason of that name. Any thread. */
uint64_t vrb_error_count(const char *name);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
