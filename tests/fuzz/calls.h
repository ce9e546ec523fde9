/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system calls of link/udp, replaced at link time (--wrap=syscall): what is received comes from
 * the target, what is sent goes to it.
 */
#ifndef VRB_TESTS_FUZZ_CALLS_H
#define VRB_TESTS_FUZZ_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

extern bool fz_live; /* false: the calls are the system's */

/* The target's: fills up to n buffers; how many. */
unsigned int fz_receive(struct mmsghdr *m, unsigned int n);
/* The target's: what socket fd sends, in pieces of seg_len bytes; to: a socket address. */
struct fz_out {
	int fd;
	const void *to;
	const uint8_t *bytes;
	uint32_t len, seg_len;
};
void fz_sent(const struct fz_out *out);

#endif
