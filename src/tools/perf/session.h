/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measuring engine's face: a server that serves one connection, a client that measures one size
 * over it. Both know nothing of options, tables or terminals.
 *
 * A run: the client opens its end and says {"run": parameters, "end": its address}; the server
 * opens its own and answers {"end": its address}, or {"failed": sentence}. Messages flow until the
 * client has had enough and says {"done"}; the server answers {"result": its account}.
 */
#ifndef VRB_PERF_SESSION_H
#define VRB_PERF_SESSION_H

#include <signal.h>

#include "tools/perf/result.h"
#include "tools/perf/talk.h"

struct perf_session {
	struct perf_talk talk;
	char host[256]; /* client: the server's, for libverbena's own connection */
	/* now and then during a run, with what there is so far; may be NULL */
	void (*progress)(const struct perf_result *so_far);
	char why[PERF_WHY_BYTES];
};

/* Serves runs until the client leaves (0). -1: with a sentence in s->why. local: device, port, GID
 * index; whatever else a run has comes from the client. */
int vrb_perf_serve(struct perf_session *s, const struct perf_params *local);

/* One run with settled parameters; r is cleared first. False: with a sentence in s->why, and
 * nothing measured. Ends early with what it has when the signal's flag is set or the server ends.
 */
bool vrb_perf_measure(struct perf_session *s, const struct perf_params *p, struct perf_result *r);

/* ---- for the faces: what a run is made of */

struct perf_usage {
	uint64_t wall_ns, process_ns, thread_ns;
};

uint64_t vrb_perf_now(void);
struct perf_usage vrb_perf_usage(void);

/* The measured part of a run at one end. */
struct perf_run {
	const struct perf_params *p;
	struct perf_talk *talk;
	struct perf_result *r; /* client's; NULL at the server */
	struct perf_side side;
	bool is_client;
	void *end; /* the face's */
	char *why;
	char device[64]; /* as opened by the face */
	uint32_t ib_port;
	/* of the client's loop */
	void (*progress)(const struct perf_result *so_far);
	uint64_t posted, done, base_done; /* messages */
	uint64_t base_completions, base_events, base_polls, base_empty;
	struct perf_usage start;
	uint64_t end_ns, due_ns, told_ns, window_ns, window_done, last_ns;
	bool measuring;
};

/* A sentence into why, the first one counts; returns false. */
bool vrb_perf_fail(struct perf_run *run, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Begins to count when the warm-up is over. */
void vrb_perf_begin(struct perf_run *run, uint64_t now);
void vrb_perf_finish(struct perf_run *run);
/* Tells the clock: windows, progress, a clock that goes back. */
void vrb_perf_tick(struct perf_run *run, uint64_t now);
/* Client: the signal, the time, or the number says that it is enough. */
bool vrb_perf_is_over(const struct perf_run *run, uint64_t now);
/* Waits, spinning, until n more messages are due; returns the time. */
uint64_t vrb_perf_pace(struct perf_run *run, uint64_t now, uint32_t n);

/* A face: how a run is made. open gives the end's address for the peer; peer is its answer. */
struct perf_face {
	/* client: before the server knows of the run; server: then, peer being the client's */
	void *(*open)(struct perf_run *run, const json_t *peer, json_t **address);
	/* client only: with the server's address; afterwards both can talk */
	bool (*connect)(void *end, const char *host, const json_t *peer);
	bool (*run)(void *end);
	void (*abort)(void *end); /* from another thread: run ends soon */
	void (*close)(void *end);
};

extern const struct perf_face vrb_perf_raw, vrb_perf_library;

#endif
