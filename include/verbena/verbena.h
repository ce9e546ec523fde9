/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libverbena: messages by RDMA SEND between two processes, without writing the layer over
 * ibv_post_send once more: registered buffers, queue pairs, flow control, completions.
 *
 *	vrb_open(NULL, &domain);                     an adapter, a pool of registered memory
 *	vrb_connect(domain, host, port, NULL, &ch);  or vrb_listen + vrb_accept
 *	vrb_send(ch, "hello", 5, NULL);
 *	n = vrb_poll(ch, events, 16, -1);            messages, ends of sends, the end
 *
 * All numbers are bytes and nanoseconds unless a name says otherwise. Structs of options:
 * zero means the default, NULL means all defaults; clear the whole struct before filling it in.
 *
 * Results: 0 or a count, or a negative errno with a sentence in vrb_error_text() (verbena/error.h).
 *
 * Threads: a domain may be used by all threads at once. A channel or listener is used by one thread
 * at a time and has no lock; different channels of a domain never share one on the way of a
 * message. A buffer belongs to one thread at a time; any thread may put it back.
 */
#ifndef VERBENA_VERBENA_H
#define VERBENA_VERBENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <verbena/error.h>
#include <verbena/histogram.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ibv_context;
struct ibv_pd;
struct vrb_domain;
struct vrb_region;
struct vrb_listener;
struct vrb_channel;
struct vrb_pool;

#define VRB_FOREVER (-1)

/* ---- the domain: an adapter's port, a protection domain, and memory registered with it */

/* Whether a registration that a message needed is kept for the next one; see vrb_forget. */
enum vrb_keep_mode {
	VRB_KEEP_NOTHING, /* memory that is not registered is copied or refused */
	VRB_KEEP_WATCHED, /* where the kernel tells when memory goes; else for one message each */
	VRB_KEEP_PROMISED /* always: the caller calls vrb_forget before memory goes */
};

struct vrb_domain_options {
	const char *device;  /* "verbena0"; NULL: the first one with an active port */
	const char *address; /* our IP address on it; NULL: whatever the TCP connection uses */
	uint8_t port;	     /* 0: the first active one */
	bool huge_pages;     /* for the pool; ordinary pages when there are none */
	bool lock_pool;	     /* mlock the pool; vrb_open fails when that is refused */
	bool any_node;	     /* the pool need not lie on the NUMA node of the device */
	bool no_remote_read; /* peers may not READ the pool: no messages above recv_size */
	bool async_thread;   /* a thread of the library's reads the adapter's events */
	bool bind_thread;    /* that thread stays on the adapter's NUMA node, if it has one */
	size_t pool_bytes; /* 0: 64 MiB, less where the limit of locked memory is lower; registered
			    * at once */
	size_t grow_bytes; /* by how much the pool may grow when a buffer above 4 KiB finds no room;
			    * 0: pool_bytes, SIZE_MAX: not at all */
	enum vrb_keep_mode
		keep; /* of memory that vrb_sendv, vrb_write and vrb_read find unregistered */
	uint32_t keep_regions; /* at most so many at once; 0: 1024 */
	uint64_t keep_bytes;   /* at most so many bytes in them; 0: 256 MiB */
	uint64_t reserved[2];  /* 0 */
};

/* The domain belongs to the caller until vrb_close. */
int vrb_open(const struct vrb_domain_options *options, struct vrb_domain **domain);

/* -EBUSY while it has channels, listeners, regions or buffers outside; then nothing has changed. */
int vrb_close(struct vrb_domain *domain);

/*
 * What an adapter reports on its own (a queue pair or CQ that failed, a port that went down, a
 * device that was removed) becomes an event of the channels that it concerns. Who reads it: a
 * thread of the library's (async_thread), or any channel of the domain in vrb_poll, or the caller's
 * loop: fd is readable when vrb_async_poll has work; that returns how many reports it has handed
 * on. Any thread.
 */
int vrb_async_fd(const struct vrb_domain *domain);
int vrb_async_poll(struct vrb_domain *domain);

/* The calling thread stays on the CPUs of the adapter's NUMA node: its number, or -ENODATA (the
 * adapter has none), or -EINVAL (the thread may not run there). */
int vrb_bind_thread(const struct vrb_domain *domain);

/* What the domain is made of, for calls of one's own. They stay the domain's. */
struct ibv_context *vrb_domain_context(const struct vrb_domain *domain);
struct ibv_pd *vrb_domain_pd(const struct vrb_domain *domain);

/* ---- buffers: registered memory from the pool */

struct vrb_buf {
	uint8_t tail[16]; /* of the buffer in front of this one; the library's */
	void *data;	  /* 64-byte aligned, registered */
	uint32_t len;	  /* of the message in it; set by whoever fills it */
	uint32_t cap;	  /* bytes at data, at least what was asked for */
	uint32_t lkey;	  /* for SGEs of one's own */
	/* The rest is the library's. */
	uint32_t pages;
	struct vrb_pool *pool;
	void *link;
	uint32_t aux;
	uint16_t size_class;
	uint8_t state, flags;
};

/* A buffer for at least cap bytes, len 0. -ENOMEM when the pool is used up. */
int vrb_buf_get(struct vrb_domain *domain, size_t cap, struct vrb_buf **buf);

/* Gives it back: one's own, or a received message. */
void vrb_buf_put(struct vrb_buf *buf);

struct vrb_pool_stats {
	uint64_t bytes, bytes_free; /* free: in whole pages; those of slabs count as used */
	uint64_t gets, puts, refused;
	uint64_t outside;      /* buffers in the hands of callers and channels */
	uint64_t bytes_grown;  /* of bytes: what the pool has grown by */
	uint64_t huge_refused; /* bytes for which there were no huge pages; ordinary ones serve */
	int numa_node; /* that the pool lies on; -1: there is one, or the device's is unknown */
	bool huge_pages, locked;
};
void vrb_pool_stats(struct vrb_domain *domain, struct vrb_pool_stats *stats);

/* ---- the caller's own memory, registered */

enum {
	VRB_LOCAL = 0,	      /* may be sent from, and read into */
	VRB_REMOTE_READ = 1,  /* a peer may READ it */
	VRB_REMOTE_WRITE = 2, /* a peer may WRITE it */
	VRB_READ_ONLY = 4     /* it is not written to: for mappings without PROT_WRITE */
};

/* The memory stays mapped until vrb_unregister, which waits for nothing: no message that uses it
 * may be under way. Any pointer into it can then stand in an iovec. Overlapping regions are refused
 * (-EEXIST). */
int vrb_register(struct vrb_domain *domain, void *addr, size_t len, unsigned access,
		 struct vrb_region **region);
int vrb_unregister(struct vrb_region *region);

/* The same memory with other rights. Keys may change: export it anew. No message may be under way
 * that uses it. On failure it has the rights it had. */
int vrb_reregister(struct vrb_region *region, unsigned access);

/*
 * With keep, vrb_sendv (above the peer's recv_size), vrb_write and vrb_read register what is not
 * registered, up to 64 pieces a message, and keep that, within the bounds, the least lately used
 * goes first. A kept registration must not outlive the memory: an adapter that has pinned pages
 * goes on using them when something else is mapped there.
 *
 * WATCHED: private anonymous memory (malloc, mmap) is kept, and dropped by itself after munmap,
 * mmap over it, mremap, a shrinking brk, and madvise DONTNEED, FREE and REMOVE; other memory, and
 * all of it where the kernel has no userfaultfd for us, is registered for each message. A madvise
 * at the very time when another thread sends from there may go unnoticed: forget it then. PROMISED:
 * everything is kept; before any of these calls, and free() of large blocks is one, comes
 * vrb_forget.
 *
 * 0: nothing of ours is on that memory; -EBUSY: messages still use it, with the last of them it is.
 */
int vrb_forget(struct vrb_domain *domain, const void *addr, size_t len);

struct vrb_keep_stats {
	uint64_t hits, misses, evictions;
	uint64_t invalidated;	 /* dropped because the memory had gone */
	uint64_t once;		 /* registered for one message */
	uint64_t regions, bytes; /* kept now */
	uint64_t events;	 /* of the kernel */
	bool watching;
};
void vrb_keep_stats(struct vrb_domain *domain, struct vrb_keep_stats *stats);

/* The key for len bytes at addr, inside of any region or the pool; -EFAULT with the reason. */
int vrb_lkey(const struct vrb_domain *domain, const void *addr, size_t len, uint32_t *lkey);

/* Where a peer finds a region: sent to it in a message, as it is. */
struct vrb_remote {
	uint64_t addr, len;
	uint32_t rkey, reserved;
};
int vrb_export(const struct vrb_region *region, struct vrb_remote *remote);

/* What is registered, and which buffers are outside, to fd as text: who asked (as addr2line takes
 * it), and how long ago. vrb_error_text() of a vrb_close that fails names the first of them.
 * Returns the number of lines. */
int vrb_leak_report(struct vrb_domain *domain, int fd);

/* ---- channels */

enum vrb_engine {
	VRB_ADAPTIVE, /* vrb_poll spins as long as waiting has lately been worth it, then sleeps */
	VRB_BUSY,     /* spins */
	VRB_SLEEPY    /* sleeps at once */
};

/* Who does what not every adapter offers. */
enum vrb_by { VRB_ABSENT, VRB_BY_ADAPTER, VRB_BY_LIBRARY };

struct vrb_channel_options {
	unsigned qps; /* 0: min(cores, 16); the smaller of both ends holds */
	enum vrb_engine engine;
	uint32_t send_depth;   /* work requests under way per QP; 0: 128 */
	uint32_t recv_depth;   /* receives posted per QP; 0: 128 */
	uint32_t recv_size;    /* bytes per receive; a larger message is fetched by READ; 0: 4096 */
	uint32_t inline_bytes; /* asked for; what is granted holds; 0: 220, UINT32_MAX: none */
	uint32_t sges;	       /* asked for; what is granted holds; 0: 8 */
	uint32_t signal_every; /* 0: 32; at most send_depth / 2 */
	unsigned path_mtu;     /* 256 to 4096; 0: the smaller of both ports */
	uint32_t ack_timeout_us; /* per try, rounded up to 4.096 us x 2^n; 0: 67 ms */
	unsigned retries;	 /* 1 to 7; 0: 7 */
	uint32_t connect_ms;	 /* 0: 10,000 */
	uint32_t keepalive_ms;	 /* a peer that has not polled for twice as long is given up; 0:
				  * never.   One that is gone is noticed in any case. */
	/* With several QPs, when both ends ask for it: one that fails, or completes nothing for
	 * stall_ms while others do, is taken out and built anew; see VRB_EV_LANE. Else, and when
	 * none has worked for connect_ms, the channel ends. */
	bool failover;
	uint32_t stall_ms; /* 0: 2,000 */
	/* Of the end that connected: how often to try it again when the channel breaks; see
	 * VRB_EV_AWAY. The first time after reconnect_ms, then after twice as long each time. */
	unsigned reconnect;    /* 0: never */
	uint32_t reconnect_ms; /* 0: 100 */
	bool latency; /* keep a histogram of how long messages take (two clock readings each) */
	bool solicited_only;	 /* asleep, only solicited messages wake this end */
	const uint8_t *flow_key; /* 40 bytes for the Toeplitz hash; NULL: the published one */
	/* Asleep, this end is told of so many completions at once, or so many microseconds after
	 * the first of them; see vrb_moderate. Both or neither. */
	uint16_t moderate_count, moderate_us;
	/* One shared receive queue for all QPs: recv_depth receives of the channel in all, not per
	 * QP. Refused (-EOPNOTSUPP) where the adapter has none. */
	bool shared_receives;
	bool timestamps;      /* events have time_ns, where the adapter has a clock for it */
	uint64_t reserved[4]; /* 0 */
};

/* Waits for TCP connections on host (NULL: all addresses) and port ("0": any). Each accepted
 * channel gets these options. */
int vrb_listen(struct vrb_domain *domain, const char *host, const char *port,
	       const struct vrb_channel_options *options, struct vrb_listener **listener);
int vrb_listener_port(const struct vrb_listener *listener);
int vrb_listener_fd(const struct vrb_listener *listener); /* readable: vrb_accept has work */
void vrb_unlisten(struct vrb_listener *listener);

/* The next peer. -ETIMEDOUT when nobody came within timeout_ns; another error means that one came
 * and could not be connected: accept again. */
int vrb_accept(struct vrb_listener *listener, int64_t timeout_ns, struct vrb_channel **channel);
int vrb_connect(struct vrb_domain *domain, const char *host, const char *port,
		const struct vrb_channel_options *options, struct vrb_channel **channel);

/* What was agreed on. */
struct vrb_channel_info {
	unsigned qps, path_mtu, gid_index;
	uint32_t send_depth, recv_depth, recv_size, inline_bytes, sges;
	uint64_t max_message;
	uint32_t qp_num[16];
	bool shared_receives;
	enum vrb_by moderation; /* ABSENT: none is wanted */
	enum vrb_by timestamps; /* ABSENT: not wanted, or the adapter has no clock for them */
};
void vrb_channel_info(const struct vrb_channel *channel, struct vrb_channel_info *info);

/* Ends a channel: waits until what was sent has been acknowledged and tells the peer, both within
 * timeout_ns (0: at once, without a word), then frees it whatever came of that. Buffers that
 * vrb_poll handed out stay valid. -ETIMEDOUT, or why it had ended before: something did not arrive.
 */
int vrb_disconnect(struct vrb_channel *channel, int64_t timeout_ns);

/* ---- sending */

enum {
	VRB_IMMEDIATE = 1, /* immediate goes along */
	VRB_SOLICITED = 2, /* wakes a peer that waits for solicited messages only */
	VRB_MORE = 4,	   /* another send follows at once: they may share a doorbell */
	VRB_REPORT = 8,	   /* an event says how it ended (also when cookie is not NULL) */
	VRB_FENCE = 16,	   /* begins after the READs that were posted before it on its QP */
	VRB_HASHED = 32	   /* flow is a hash already (vrb_flow_hash) */
};

struct vrb_send_options {
	void *cookie;	     /* comes back in the event */
	uint64_t timeout_ns; /* 0: none but the transport's; needs VRB_REPORT or a cookie */
	uint32_t flow;	     /* messages of one flow arrive in order */
	uint32_t immediate;
	unsigned flags;
	uint64_t remote_offset; /* of a write or read */
};

/*
 * All return 0, or -EAGAIN when the queue is full, the peer has no receive left or the pool no
 * buffer: nothing was sent, and vrb_poll will give VRB_EV_ROOM when it is worth to try again.
 *
 * vrb_send copies: the caller's memory is free at once. vrb_send_buf takes the buffer (len bytes of
 * it) on success only. vrb_sendv sends registered memory without a copy: it must not change until
 * the message's event (always given) - after VRB_TIMED_OUT until VRB_EV_RELEASED. Up to
 * max_message bytes in any number of pieces; more than the QP's SGEs, or memory that is not
 * registered, are copied when they fit one receive, else -EFAULT for what is not registered.
 */
int vrb_send(struct vrb_channel *channel, const void *data, size_t len,
	     const struct vrb_send_options *options);
int vrb_send_buf(struct vrb_channel *channel, struct vrb_buf *buf,
		 const struct vrb_send_options *options);
int vrb_sendv(struct vrb_channel *channel, const struct iovec *iov, int n,
	      const struct vrb_send_options *options);

/* To and from a region that the peer has exported, at remote_offset of the options; registered
 * memory on our side, which is the library's until the event (always given). The pieces become as
 * many work requests as SGEs demand. */
int vrb_write(struct vrb_channel *channel, const struct iovec *iov, int n,
	      const struct vrb_remote *remote, const struct vrb_send_options *options);
int vrb_read(struct vrb_channel *channel, const struct iovec *iov, int n,
	     const struct vrb_remote *remote, const struct vrb_send_options *options);

/* Sends len bytes of a regular file (UINT64_MAX: all that follows), straight from its mapping, by
 * all queue pairs of the channel; one file at a time (-EAGAIN). The peer gets VRB_EV_FILE for each
 * part, in any order, and VRB_EV_FILE_END at last; here VRB_EV_SENT says how it ended. fd may be
 * closed at once. A file that shrinks meanwhile ends with VRB_SHRUNK at both ends; for that a
 * handler of SIGBUS is installed with the first file, which passes on what is not its own. */
int vrb_send_file(struct vrb_channel *channel, int fd, uint64_t offset, uint64_t len,
		  const struct vrb_send_options *options);

/* Posts what VRB_MORE holds back; vrb_poll does so, too. */
int vrb_flush(struct vrb_channel *channel);

/*
 * Waits until nothing that was sent, written or read before is under way any more: acknowledged,
 * fetched by the peer, or failed; deadlines of messages do not end it. 0: so it is, and how each
 * ended is in its event; -EAGAIN: not within timeout_ns (0: one look), or so many messages have
 * come meanwhile that vrb_poll must take them first; -ENOTCONN: the channel has ended, and
 * everything with it. Events are kept for vrb_poll, in order. What the peer has to fetch it fetches
 * in its own vrb_poll (or vrb_drain).
 */
int vrb_drain(struct vrb_channel *channel, int64_t timeout_ns);

/* The hash of a flow key of up to 36 bytes (addresses and ports in network order, source first),
 * and the QP it leads to. */
uint32_t vrb_flow_hash(const struct vrb_channel *channel, const void *tuple, size_t len);
unsigned vrb_flow_qp(const struct vrb_channel *channel, uint32_t flow, unsigned flags);

/* ---- what happened */

enum vrb_event_kind {
	VRB_EV_MESSAGE,	 /* buf is the caller's now: vrb_buf_put, or send it on */
	VRB_EV_SENT,	 /* a send, write or read ended with outcome */
	VRB_EV_RELEASED, /* the memory of a message that had timed out is free */
	VRB_EV_FILE,	 /* buf is a part of a file: offset, of total bytes */
	VRB_EV_FILE_END, /* outcome says whether all parts together are the file of total bytes */
	VRB_EV_ROOM,	 /* after -EAGAIN */
	/* With failover, a QP (flow is its place in qp_num): VRB_FAILED: it was taken out, total of
	 * the messages on it have not ended with VRB_DONE, reported or not; text says why.
	 * VRB_DONE: it is in use again. */
	VRB_EV_LANE,
	/* With reconnect: the channel is away, text says why. All sends have ended; new ones get
	 * -EAGAIN. Then VRB_EV_BACK, or VRB_EV_BROKEN. The library sends nothing twice. For the
	 * other end the one channel breaks, and another one is to be accepted. */
	VRB_EV_AWAY,
	VRB_EV_BACK,
	VRB_EV_PORT,   /* the adapter's port: VRB_FAILED is down, VRB_DONE is up again */
	VRB_EV_CLOSED, /* the peer has disconnected; all it had sent has been handed out */
	VRB_EV_BROKEN  /* the channel has ended: text says why; outcomes of sends came before */
};

struct vrb_event {
	enum vrb_event_kind kind;
	enum vrb_outcome outcome;
	void *cookie;
	struct vrb_buf *buf;
	uint32_t flow, immediate;
	bool has_immediate;
	uint64_t offset, total; /* of files */
	const char *text;	/* valid while the channel is */
	uint64_t time_ns;	/* with timestamps: of the completion behind it; else 0 */
};

/*
 * Moves the channel on and writes up to n events; returns how many. Waits up to timeout_ns for the
 * first one: 0 looks once, VRB_FOREVER waits on. Nothing moves without this call: a channel that is
 * used only to send must be polled, too.
 */
int vrb_poll(struct vrb_channel *channel, struct vrb_event *events, int n, int64_t timeout_ns);

/* For a loop of one's own: when vrb_arm has returned 0, fd becomes readable when vrb_poll has work;
 * 1 means that it has work already. */
int vrb_fd(struct vrb_channel *channel);
int vrb_arm(struct vrb_channel *channel);

/* May change at any time. */
int vrb_set_engine(struct vrb_channel *channel, enum vrb_engine engine);

/*
 * The same, of moderation: fewer wake-ups for a delay of period_us at most; 0, 0: none. The adapter
 * does it (ibv_modify_cq), within its limits; where it cannot, vrb_poll goes on sleeping after an
 * event, for a time that it learns. Then what is solicited, and errors, wait, too, and who sleeps
 * on vrb_fd has every event. vrb_channel_info says which.
 */
int vrb_moderate(struct vrb_channel *channel, uint16_t count, uint16_t period_us);

/* The clock of time_ns now: the adapter's, so that it can be compared with the times of no other
 * one. -EOPNOTSUPP: the channel has no timestamps. */
int vrb_channel_clock(struct vrb_channel *channel, uint64_t *ns);

struct vrb_channel_stats {
	uint64_t sent, sent_bytes, received, received_bytes;
	uint64_t work_requests, signaled, inlined, copied, posts; /* posts: doorbells */
	uint64_t completions, polls, empty_polls, sleeps, events; /* events: of the CQ */
	uint64_t again_queue, again_credit, again_memory, again_lane;
	uint64_t credit_messages, rendezvous, timed_out;
	uint64_t lanes_failed, lanes_rebuilt, reconnects, port_events;
	uint64_t refills, refilled; /* receives posted, and in how many calls */
	uint64_t srq_limits;	    /* how often the adapter said that shared receives run low */
	uint64_t naps;		    /* moderation by the library: sleeps after an event */
};
void vrb_channel_stats(const struct vrb_channel *channel, struct vrb_channel_stats *stats);

/* Nanoseconds from the send call to the completion, of messages that have a completion of their
 * own; NULL without the option. The channel's. */
const struct vrb_histogram *vrb_channel_latency(const struct vrb_channel *channel);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
