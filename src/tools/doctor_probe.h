/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The datagrams between `doctor HOST` and `doctor --serve`. An answer is as long as its question
 * and goes back to where that came from, so that nobody is answered with more than he sent.
 *
 *    0       magic
 *    4       1 question, 2 answer
 *    5       TOS or traffic class as the question arrived (answer)
 *    6       length of the question as it arrived (answer)
 *    8       session: questions that are counted together
 *   12       number of the question in its session, from 1
 *   16       questions of the session that arrived so far (answer)
 *   20       those of them that arrived behind a later one (answer)
 *   24       zeros to the wanted length
 */
#ifndef VRB_TOOLS_DOCTOR_PROBE_H
#define VRB_TOOLS_DOCTOR_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define VRB_PROBE_MAGIC	    0x56504231u
#define VRB_PROBE_QUESTION  1
#define VRB_PROBE_ANSWER    2
#define VRB_PROBE_BYTES	    24
#define VRB_PROBE_BYTES_MAX 9216
#define VRB_PROBE_PORT	    4791

/* The client's end: a connected socket that never fragments. */
struct vrb_probe {
	int fd, family;
	uint32_t session, seq;
	int wait_ms; /* for an answer */
};

struct vrb_answer {
	uint32_t seq, arrived, reordered;
	uint8_t tos;
};

/* 0 or -errno. */
int vrb_probe_open(struct vrb_probe *p, const struct sockaddr *to, socklen_t len);
void vrb_probe_session(struct vrb_probe *p);
/* Sends one question of so many bytes of UDP payload; 0 or -errno. */
int vrb_probe_ask(struct vrb_probe *p, int bytes);
/* An answer of this session within so many milliseconds: 1, or 0 for none, or -errno. */
int vrb_probe_hear(struct vrb_probe *p, struct vrb_answer *a, int wait_ms);
/* Asks up to `tries` times: 1, 0 or -errno. */
int vrb_probe_once(struct vrb_probe *p, struct vrb_answer *a, int bytes, int tries);

/* Answers until a signal ends it. The exit status. */
int vrb_doctor_serve(int port);

#endif
