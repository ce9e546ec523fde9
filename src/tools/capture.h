/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `verbena capture`: the file, and a process that runs already. */
#ifndef VRB_TOOLS_CAPTURE_H
#define VRB_TOOLS_CAPTURE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct vrb_capture {
	const char *path; /* as the user wrote it */
	int fd;		  /* reads and appends */
	/* what has been counted so far */
	off_t at;
	uint64_t n_wire, n_same_host, bytes;
	uint64_t n_gaps; /* blocks that were begun and not ended */
	bool is_stuck;	 /* what follows is not ours to read, and could not be mended */
};

/* Creates the file, or empties it when it is a capture, and writes its head. False: has said why
 * not. */
bool vrb_capture_create(struct vrb_capture *c, const char *path);
/* Counts the whole blocks that have come since, up to max packets altogether; true when there are
 * so many. */
bool vrb_capture_count(struct vrb_capture *c, uint64_t max);
/* When nobody writes any more: mends the file, and says on stderr what was captured. */
void vrb_capture_end(struct vrb_capture *c);

struct vrb_capture_limits {
	uint32_t kept;	  /* bytes of payload of each packet; 0: all */
	uint64_t packets; /* UINT64_MAX: no limit */
	double seconds;	  /* 0: none */
};

/* A connection to process pid, or -1: has said why not. */
int vrb_capture_find(pid_t pid);
/* Has the process record into c until a limit is reached, a signal comes, or it ends. Takes the
 * connection. False: has said why it cannot be. */
bool vrb_capture_attach(struct vrb_capture *c, int sock, pid_t pid,
			const struct vrb_capture_limits *l);

#endif
