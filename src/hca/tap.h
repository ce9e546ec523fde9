/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording every packet of this process into a capture file (base/pcapng.h): those of the wire as
 * they are there, frames of shared memory as the RoCEv2 packets they stand for. There are two ways
 * to it: VERBENA_CAPTURE names a file that several processes append to, each frame of shared memory
 * being recorded by its sender; or a tool passes a file's descriptor to the running process
 * (VERBENA_MEET_CAPTURE), and frames are recorded both ways until it closes the connection. At most
 * one capture at a time. Everything under the engine's lock; while e->tap is set, every queue pair
 * is tapped (core/qp.h) and closed for direct operations.
 */
#ifndef VRB_HCA_TAP_H
#define VRB_HCA_TAP_H

#include "hca/peer.h"
#include "link/udp.h"

#define VRB_TAP_BUFFER (256u << 10)
#define VRB_TAP_WHYS   16u

struct vrb_tap {
	int fd;
	int sock;      /* the tool's connection; -1: by VERBENA_CAPTURE */
	uint32_t kept; /* bytes of payload of a packet at most */
	uint32_t id;   /* of a file that others append to as well; 0: none */
	int err;       /* the file cannot be written: ends with the next flush */
	uint32_t n;    /* bytes in buf */
	bool has_wr;   /* of the packet that is being handled */
	uint64_t wr_id;
	const struct vrb_udp_packet *wire; /* where it came from: one of the two is set */
	const struct vrb_shm_frame *frame;
	const struct vrb_peer *from;	     /* with frame */
	struct vrb_report why[VRB_TAP_WHYS]; /* newest reasons for NAKs, by QPN */
	uint8_t buf[VRB_TAP_BUFFER];
};

/* tap.c */
/* write(2), or -errno, without the signal of a limit. */
long vrb_tap_append(int fd, const uint8_t *bytes, size_t n);
long vrb_tap_write_at(int fd, const void *bytes, size_t n, uint64_t at);
void vrb_tap_open(struct vrb_engine *e); /* when VERBENA_CAPTURE is set; takes the lock */
/* A tool asks for it. False: refused, the caller closes sock. */
bool vrb_tap_attach(struct vrb_engine *e, int sock, struct vrb_meet_msg *m);
void vrb_tap_on_event(struct vrb_engine *e, int sock);
/* At the end of a batch: what was recorded goes to the file. */
void vrb_tap_flush(struct vrb_engine *e);
void vrb_tap_close(struct vrb_engine *e);
void vrb_tap_disown(struct vrb_engine *e); /* in a forked child */
/* Room for n more bytes in t->buf, or NULL. */
uint8_t *vrb_tap_room(struct vrb_tap *t, size_t n);

/* tap_record.c; all with e->tap set */
/* e->tx leaves by shared memory; ack: with this acknowledgement, or NULL. */
void vrb_tap_out(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_psn *ack);
/* e->tx has been laid into the batch of flow f. why: what a fault on purpose has done, or NULL. */
void vrb_tap_wire_out(struct vrb_engine *e, struct vrb_hqp *q, const struct vrb_udp *u,
		      const struct vrb_udp_flow *f, const struct vrb_report *why);
/* The same for a message of the connection manager, which is no queue pair's. */
struct vrb_tap_gsi {
	const struct vrb_udp *udp;
	const struct vrb_udp_flow *flow;
	const struct vrb_pkt *pkt;
	const struct vrb_seg *seg;
};
void vrb_tap_gsi_out(struct vrb_engine *e, const struct vrb_tap_gsi *out);
/* What arrives next: a frame, or a packet of the wire. */
void vrb_tap_frame(struct vrb_engine *e, const struct vrb_peer *p, const struct vrb_shm_frame *f);
void vrb_tap_arrival(struct vrb_engine *e, const struct vrb_udp_packet *p);
/* Before the core has seen a packet of it for q: whose work request is it? */
void vrb_tap_before(struct vrb_engine *e, const struct vrb_hqp *q, const struct vrb_pkt *pkt);
/* After it, with the reports in e->fx. */
void vrb_tap_in(struct vrb_engine *e, const struct vrb_hqp *q, const struct vrb_pkt *pkt);
/* It reaches no queue pair; why: the reason, or NULL. damaged: a packet of the wire with its ICRC,
 * as it came. */
void vrb_tap_stray(struct vrb_engine *e, const struct vrb_report *why, bool damaged);
/* A reason for a NAK that will be sent, perhaps. */
void vrb_tap_note(struct vrb_engine *e, const struct vrb_report *why);

#endif
