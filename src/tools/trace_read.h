/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processes of a command have traced (base/trace.h), as one stream in the order of time,
 * and the two forms in which it is written.
 */
#ifndef VRB_TOOLS_TRACE_READ_H
#define VRB_TOOLS_TRACE_READ_H

#include <stdbool.h>
#include <stdio.h>

#include "base/trace.h"

struct vrb_trace_part {
	struct vrb_trace_head head;
	void *map;
	const struct vrb_trace_rec *rec; /* in it, behind the head */
	size_t size, n, at;
};

struct vrb_trace_set {
	struct vrb_trace_part *part;
	size_t n_parts;
	uint64_t n_records, n_lost;
	uint64_t first_ns; /* the time of the first record; 0: there is none */
};

/* All files of a folder. False: it said what is wrong. Files that hold no head are passed over: the
 * process was killed while it began. */
bool vrb_trace_read(struct vrb_trace_set *s, const char *folder);
/* The next record and whose it is; NULL: that was all. */
const struct vrb_trace_rec *vrb_trace_next(struct vrb_trace_set *s, struct vrb_trace_part **whose);
void vrb_trace_free(struct vrb_trace_set *s);

/* trace_text.c, trace_json.c */
void vrb_trace_write_text(struct vrb_trace_set *s, FILE *f);
void vrb_trace_write_json(struct vrb_trace_set *s, FILE *f);

/* trace_text.c; names that do not exist are numbers */
const char *vrb_trace_kind_name(const struct vrb_trace_rec *r);
const char *vrb_trace_packet_name(const struct vrb_trace_rec *r);
const char *vrb_trace_status_name(const struct vrb_trace_rec *r);
/* SEND, RECV...: of a post or a completion. */
const char *vrb_trace_op_name(const struct vrb_trace_rec *r);
/* A type, a state or a verdict (base/names.h). */
const char *vrb_trace_name(char kind, uint64_t v);

#endif
