/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same measurements over libverbena, as its users use it. A short message is copied by
 * vrb_send, one that fits a receive goes in a buffer of the pool, one in pieces or larger than a
 * receive is gathered from registered memory by vrb_sendv.
 */
#ifndef VRB_PERF_LIBRARY_H
#define VRB_PERF_LIBRARY_H

#include <verbena/verbena.h>

#include "tools/perf/session.h"

struct perf_library {
	struct perf_run *run;
	const struct perf_params *p;
	struct vrb_domain *domain;
	struct vrb_listener *listener;
	struct vrb_channel *channel;
	struct vrb_channel_options options;
	uint32_t inline_max;
	uint8_t *mem;
	size_t mem_len;
	struct vrb_region *region;
	struct iovec iov[PERF_SGES_MAX];
	struct vrb_remote peer;
	struct vrb_region *each; /* of the message under way, with --register-each */
	void *each_mem;
	struct vrb_buf *arrived; /* lat: a message that nobody has looked at yet */
	uint64_t sent_events;	 /* ends of sends that were told */
	bool heard;		 /* the last look brought a message, or the end of one */
	uint64_t moved_ns, last_posted;
	bool closed;
	uint64_t stamp_ns; /* 0: no message has a cookie */
};

/* Takes away what the last message was given, with --register-each. */
void vrb_perf_library_drop(struct perf_library *e);

/* library_run.c */
bool vrb_perf_library_run(struct perf_library *e);

#endif
