/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena demo`: one process sends, one receives. They meet over a TCP socket on loopback,
 * exchange what a verbs tutorial exchanges, and from then on use the public verbs API only. Both
 * walk through the same list of steps; the sender prints what both found.
 */
#ifndef VRB_TOOLS_DEMO_H
#define VRB_TOOLS_DEMO_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define DEMO_BUF_BYTES	 (4u << 20)
#define DEMO_RECV_OFFSET (2u << 20) /* below: what is sent, above: what is received */
#define DEMO_SQ_DEPTH	 256u
#define DEMO_RQ_DEPTH	 512u
#define DEMO_SGE	 4u
#define DEMO_INLINE	 128u
#define DEMO_BATCH	 64u /* messages to a signal, a credit, a poll */
#define DEMO_LIST	 16u
#define DEMO_WHY_BYTES	 160
#define DEMO_WAIT_S	 5  /* no single wait is longer */
#define DEMO_LIMIT_S	 20 /* the watchdog */

/* What the two tell each other over TCP; both run on this host, so no byte order matters. */
struct demo_address {
	uint32_t qpn, psn, rkey, reserved;
	uint64_t addr;
	union ibv_gid gid;
};

struct demo {
	bool is_sender, json;
	int sock;
	const char *device_wanted; /* or NULL: the first */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf; /* DEMO_BUF_BYTES, all of it in mr */
	struct demo_address local, remote;
	uint32_t max_inline;
	bool settled_early;	  /* the peer's finding came while we waited for it */
	char why[DEMO_WHY_BYTES]; /* what went wrong in the step that failed */
	json_t *report;
};

/* demo_connect.c: everything up to RTS on both sides; false with d->why set. */
bool vrb_demo_connect(struct demo *d);
void vrb_demo_disconnect(struct demo *d);
bool vrb_demo_tcp_write(struct demo *d, const void *data, size_t len);
bool vrb_demo_tcp_read(struct demo *d, void *data, size_t len);
/* Returns when the peer has called it too. */
bool vrb_demo_sync(struct demo *d);
/* After a step the receiver tells the sender what it found; the sender learns whether both are
 * content, or why not. */
bool vrb_demo_settle_write(struct demo *d, bool ok);
bool vrb_demo_settle_read(struct demo *d, bool ok);

/* demo_verbs.c: the few calls that all steps share. */
bool vrb_demo_fail(struct demo *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct ibv_sge vrb_demo_sge(const struct demo *d, uint32_t offset, uint32_t len);
bool vrb_demo_post_send(struct demo *d, struct ibv_send_wr *wr);
bool vrb_demo_post_recv(struct demo *d, uint64_t wr_id, uint32_t offset, uint32_t len);
/* Waits for one completion and demands that it is a success. */
bool vrb_demo_wait(struct demo *d, struct ibv_cq *cq, struct ibv_wc *wc);
/* Waits for one completion, of whatever status. */
bool vrb_demo_wait_any(struct demo *d, struct ibv_cq *cq, struct ibv_wc *wc);
uint64_t vrb_demo_now_ns(void);

/* demo_stream.c: n messages (a multiple of DEMO_BATCH) of size bytes, list of them in one post (1
 * or DEMO_LIST); *ns is how long it took the sender. */
bool vrb_demo_stream(struct demo *d, uint32_t size, uint32_t n, uint32_t list, uint64_t *ns);

/* demo_steps.c, demo_measure.c, demo_wrong.c: called on both sides; true when all was as expected.
 */
bool vrb_demo_steps(struct demo *d);
bool vrb_demo_measure(struct demo *d);
bool vrb_demo_wrong(struct demo *d);

#endif
