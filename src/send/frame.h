/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libverbena's two ends say to each other.
 *
 *   on a queue pair, each SEND:   | payload | frame 16 bytes |
 *   on the TCP connection:        notes of a fixed size; two hellos first
 *
 * Multi-byte fields are little-endian. The frame comes last, so that the payload begins where a
 * packet does, aligned at both ends; a buffer has room for it behind its data, so that both are one
 * SGE.
 */
#ifndef VRB_SEND_FRAME_H
#define VRB_SEND_FRAME_H

#include <endian.h>
#include <string.h>

#include "base/types.h"

enum vrb_frame_kind {
	VRB_FRAME_MESSAGE = 1, /* the payload is the message */
	VRB_FRAME_OFFER,       /* it says where to READ it: struct vrb_offer */
	VRB_FRAME_TAKEN,       /* an offer was read or refused: struct vrb_taken */
	VRB_FRAME_CREDITS      /* nothing but credits */
};

#define VRB_FRAME_IMMEDIATE                                                                        \
	1u /* in flags; the upper half: receives for bare messages given back                      \
	    */
#define VRB_FRAME_FILE                                                                             \
	2u /* an offer: its last piece says where in a file; a message: the end of one */
#define VRB_FRAME_BARE_SHIFT 4u

struct vrb_frame {
	uint8_t kind, flags;
	uint16_t credits;
	uint32_t len; /* of the message; that of an offer is what will be read */
	uint32_t flow, immediate;
};

struct vrb_piece {
	uint64_t addr;
	uint32_t len, rkey;
};

struct vrb_offer {
	uint32_t id, n;
	struct vrb_piece piece[];
};

struct vrb_taken {
	uint32_t id, refused;
};

#define VRB_HELLO_MAGIC	   0x4256524542u
#define VRB_HELLO_VERSION  2u
#define VRB_HELLO_FAILOVER 1u /* in flags: the channel goes on without a queue pair */
#define VRB_LANES_MAX	   16u

struct vrb_hello_lane {
	uint32_t qpn, psn;
};

struct vrb_hello {
	uint64_t magic;
	uint32_t version, status; /* status: 0, or the errno of an end that cannot go on */
	uint32_t link_layer, lid, mtu, lanes;
	uint32_t recv_depth, recv_size, reads; /* reads: READs served at once */
	uint32_t remote_read, keepalive_ms, flags;
	uint8_t gid[16];
	struct vrb_hello_lane lane[VRB_LANES_MAX];
};

enum vrb_note_kind {
	VRB_NOTE_READY = 1, /* my queue pairs are in RTS */
	VRB_NOTE_PING,
	VRB_NOTE_PONG,
	VRB_NOTE_BYE,	 /* nothing more comes; count[i] messages were sent on lane i */
	VRB_NOTE_BROKEN, /* my end has failed */
	/* of one lane (repair.c): */
	VRB_NOTE_LANE_FAILED, /* it is out */
	VRB_NOTE_LANE_OVER,   /* all that came by it has been handed out; I let go of it */
	VRB_NOTE_LANE_NEW,    /* count[0], count[1]: its new queue pair and PSN */
	VRB_NOTE_LANE_READY   /* that is in RTS */
};

struct vrb_note {
	uint32_t kind, lane;
	uint32_t count[VRB_LANES_MAX];
};

static inline void vrb_frame_emit(void *at, const struct vrb_frame *f)
{
	struct vrb_frame w = {.kind = f->kind,
			      .flags = f->flags,
			      .credits = htole16(f->credits),
			      .len = htole32(f->len),
			      .flow = htole32(f->flow),
			      .immediate = htole32(f->immediate)};

	memcpy(at, &w, sizeof(w));
}

static inline struct vrb_frame vrb_frame_parse(const void *at)
{
	struct vrb_frame w;

	memcpy(&w, at, sizeof(w));
	w.credits = le16toh(w.credits);
	w.len = le32toh(w.len);
	w.flow = le32toh(w.flow);
	w.immediate = le32toh(w.immediate);
	return w;
}

#endif
