/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events of the adapter. Whoever reads them (a thread of the library's, the caller's
 * loop, or any channel that polls) leaves news at the channels that they concern; each channel acts
 * on its news in its own thread.
 */
#ifndef VRB_SEND_ASYNC_H
#define VRB_SEND_ASYNC_H

#include <pthread.h>

#include <verbena/verbena.h>

struct vrb_async {
	struct vrb_channel *channels; /* under the domain's lock, as are their queue pairs */
	pthread_t thread;
	int stop_fd; /* -1: there is no thread */
};

/* In a channel's news; the lower bits are lanes whose queue pair has failed. */
enum {
	VRB_NEWS_CQ = 1u << 16,
	VRB_NEWS_DEVICE = 1u << 17,
	VRB_NEWS_PORT_DOWN = 1u << 18,
	VRB_NEWS_PORT_UP = 1u << 19,
	VRB_NEWS_LAST = 1u << 20, /* see news_last */
	VRB_NEWS_LIMIT = 1u << 21,
	VRB_NEWS_SRQ = 1u << 22 /* it has failed */
};

/* The events no longer block their reader; starts the thread where one was asked for. */
int vrb_async_init(struct vrb_domain *d, const struct vrb_domain_options *o);
void vrb_async_fini(struct vrb_domain *d);

/* From enter to leave the channel gets news. */
int vrb_async_enter(struct vrb_channel *ch);
void vrb_async_leave(struct vrb_channel *ch);

/* Reads what there is, where no thread does, and acts on the channel's news. */
void vrb_async_look(struct vrb_channel *ch);

#endif
