/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of this user that have the software HCA open, by their slots (base/meet.h). */
#ifndef VRB_TOOLS_SLOT_H
#define VRB_TOOLS_SLOT_H

#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

#include "base/meet.h"

#define VRB_SLOT_FDS 3 /* descriptors of an answer, at most */

/* A connection to the owner of a slot, or -1. pid: only when it is that process; 0: whichever.
 * Sending to one that is stopped, with its queue full, gives up after patience. */
int vrb_slot_connect(uint32_t slot, pid_t pid, struct timeval patience);

/* The same without any waiting: a connection to the owner of a slot, or -errno; -EAGAIN: somebody
 * owns it, and takes no connections now. */
int vrb_slot_call(uint32_t slot, pid_t *owner);

/* The owner's answer: how many descriptors came with it, the caller's to close, at most max. One
 * that is not of a hello's size is all zeros. flags: of recvmsg. */
int vrb_slot_hear(int sock, struct vrb_meet_hello *hello, int *fds, unsigned max, int flags);

#endif
