/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP connection of the two ends: frames of JSON, each with the protocol's version in front, so
 * that a peer of another version is recognised whatever else it says. During a run a thread watches
 * the connection, so that the measuring one needs no system call to learn that the peer has spoken
 * or is gone.
 */
#ifndef VRB_PERF_TALK_H
#define VRB_PERF_TALK_H

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tools/perf/params.h"

#define PERF_PROTOCOL 1u
#define PERF_PORT     "18600"

struct perf_talk {
	int fd;
	volatile sig_atomic_t *stop; /* set by a signal: waiting ends */
	char why[PERF_WHY_BYTES];
	/* the watch */
	bool watching;
	int wake_fd;
	pthread_t thread;
	atomic_bool ending, spoken, gone; /* gone: the connection has ended, or the peer gave up */
	json_t *said;
	char gone_why[PERF_WHY_BYTES]; /* the thread's, until spoken is set */
	void (*on_gone)(void *arg);    /* from the thread, at most once */
	void *arg;
};

/* Descriptors, or -1 with a sentence. host NULL: all addresses. */
int vrb_perf_tcp_listen(const char *host, const char *port, char why[PERF_WHY_BYTES]);
int vrb_perf_tcp_accept(int listener, volatile sig_atomic_t *stop, char why[PERF_WHY_BYTES]);
int vrb_perf_tcp_connect(const char *host, const char *port, char why[PERF_WHY_BYTES]);
int vrb_perf_tcp_port(int fd);
/* "192.0.2.1", the other end of fd. */
void vrb_perf_tcp_peer(int fd, char *out, size_t size);

/* Takes message over. False with a sentence in t->why. */
bool vrb_perf_tell(struct perf_talk *t, json_t *message);
/* The next message, which is the caller's, or NULL with a sentence. seconds 0: for ever. */
json_t *vrb_perf_hear(struct perf_talk *t, unsigned seconds);

bool vrb_perf_watch(struct perf_talk *t, void (*on_gone)(void *), void *arg);
/* Waits until the peer speaks, for that many seconds; 0: for ever, or until the signal comes. */
void vrb_perf_watch_wait(struct perf_talk *t, unsigned seconds);
/* Ends it. What the peer has said meanwhile, or NULL. */
json_t *vrb_perf_watch_end(struct perf_talk *t);

#endif
