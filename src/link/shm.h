/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same-host link: one ring per ordered pair of processes, in a sealed memfd that the sender
 * makes and the receiver maps.
 *
 *   page 0          control: the receiver's progress, the sender's wish for credit
 *   16 KiB          256 lines of 64 bytes; a line is one frame
 *   64 KiB          a slot of 256 bytes for each line: payloads that do not fit into it
 *   4 MiB           data: longer payloads, contiguous, freed in order
 *
 *   line:  0        8        12                                  64
 *          | word   | ack    | extension headers, then payload    |
 *   word:  lap 8 | opcode 8 | destination index 16 | PSN 24 | flags 8     (stored last, with
 * release) ack:   PSN that the sender of the frame acknowledges to the same pair of QPs 24 |
 * payload bytes in the line 8
 *
 * A line holds a frame when its lap byte is the one the receiver expects: the turn of the ring
 * counted from 1, modulo 256, so that a small message costs one cache line. The pages are never
 * unmapped while an engine lives (a dead ring is replaced by zero pages at the same place), so a
 * peek needs no lock. Everything a peer writes is copied before it is checked, and checked before
 * it is used; the worst a liar reaches is a packet with false contents.
 */
#ifndef VRB_LINK_SHM_H
#define VRB_LINK_SHM_H

#include <stdatomic.h>
#include <string.h>

#include "base/iov.h"
#include "base/peek.h"
#include "wire/pkt.h"

#define VRB_SHM_LINES 256u
#define VRB_SHM_SLOT  256u
/* Large enough that what the receiver copies has left the sender's own caches for the shared one,
 * from where it comes several times faster. Costs memory only as far as it has been used. */
#define VRB_SHM_DATA (4u << 20)
#define VRB_SHM_SIZE (4096u + VRB_SHM_LINES * (64u + VRB_SHM_SLOT) + VRB_SHM_DATA)
#define VRB_SHM_BODY 52u /* bytes of a line behind word and ack */
/* What requests leave free, so that answers always find room: lines, and a frame's worth of data.
 */
#define VRB_SHM_KEEP	  8u
#define VRB_SHM_FRAME_MAX 16384u /* payload of one frame: the path MTU of this link */

enum { /* flags of the word */
       VRB_SHM_SE = 1,
       VRB_SHM_ACKREQ = 2,
       VRB_SHM_ACK = 4, /* the ack field counts */
       VRB_SHM_DATA_REF =
	       8, /* the payload lies in the data area; the body ends with its offset and length */
       VRB_SHM_BESIDE = 16, /* it lies in the line's slot; its length is one more than said */
};

/* Not a BTH opcode: the PSN is the next one; operations before it were done directly
 * (hca/direct.h). */
#define VRB_SHM_OP_DIRECT 0xff
/* Nor this: the payload is a packet of the wire that the kernel gave to the wrong process (struct
 * vrb_net, then the bytes from BTH to pad; hca/wire.h). */
#define VRB_SHM_OP_CARRIED 0xfe

/* What was read from a ring is in a register now: the compiler must not read it again after it was
 * checked. */
#define VRB_SHM_ONCE(v) __asm__ volatile("" : "+r"(v))

struct vrb_shm_line {
	_Atomic uint64_t word;
	uint32_t ack;
	uint8_t body[VRB_SHM_BODY];
};

struct vrb_shm_ctl {
	/* written by the receiver */
	_Alignas(64) _Atomic uint32_t lines_used; /* absolute count of lines done with */
	_Atomic uint32_t data_used;		  /* absolute cursor of data done with */
	_Atomic uint32_t attached;		  /* the receiver reads this ring from now on */
	/* written by the sender, cleared by the receiver */
	_Alignas(64) _Atomic uint32_t want_credit;
	_Atomic uint32_t sender_cpu; /* where the sender last looked for work, from 1; 0 unknown */
	/* written by the sender: odd while it writes directly into the receiver's memory
	 * (hca/direct.h) */
	_Alignas(64) _Atomic uint32_t direct_seq;
};

struct vrb_shm_map {
	struct vrb_shm_ctl *ctl;
	struct vrb_shm_line *line;
	uint8_t *slot;
	uint8_t *data;
};

struct vrb_shm_tx {
	struct vrb_shm_map m;
	uint32_t head;	    /* next line, absolute */
	uint32_t used;	    /* the receiver's lines_used as last seen */
	uint32_t data_head; /* absolute; modulo VRB_SHM_DATA an offset */
	uint32_t data_used;
};

struct vrb_shm_rx {
	struct vrb_shm_map m;
	uint32_t tail; /* next line expected; peeked at */
	uint32_t published, data_tail, data_published;
};

/* A received frame: header values, payload by pointer into the ring (valid until vrb_shm_pop). */
struct vrb_shm_frame {
	struct vrb_pkt pkt;
	uint16_t index; /* destination */
	bool has_ack;
	struct vrb_psn ack;
	bool is_direct;	   /* VRB_SHM_OP_DIRECT */
	uint32_t data_end; /* absolute data cursor behind the payload, if has_data */
	bool has_data;
	struct vrb_gid sgid, dgid; /* UD */
	uint8_t traffic_class, hop_limit;
};

/* UD frames carry the addresses of the GRH. */
struct vrb_shm_grh {
	struct vrb_gid sgid, dgid;
	uint8_t traffic_class, hop_limit;
};

static inline uint8_t vrb_shm_lap(uint32_t index)
{
	return (uint8_t)(index / VRB_SHM_LINES + 1); /* 2^32 is a whole number of laps */
}

static inline uint64_t vrb_shm_word(uint32_t index, uint8_t op, uint16_t dest, struct vrb_psn psn,
				    uint8_t flags)
{
	return vrb_shm_lap(index) | (uint64_t)op << 8 | (uint64_t)dest << 16 |
	       (uint64_t)psn.v << 32 | (uint64_t)flags << 56;
}

/* True when a frame waits. Callable without a lock; may be wrong for a moment then. */
static inline bool vrb_shm_peek(const struct vrb_shm_rx *rx)
{
	uint32_t tail = vrb_peek(&rx->tail);
	uint64_t w =
		atomic_load_explicit(&rx->m.line[tail % VRB_SHM_LINES].word, memory_order_acquire);
	return (uint8_t)w == vrb_shm_lap(tail);
}

/* Beside a line: two cache lines apart from its neighbours', since a CPU that reads one fetches the
 * one behind it as well, and would take it away from the sender about to write there. */
static inline uint8_t *vrb_shm_slot(const struct vrb_shm_map *m, uint32_t index)
{
	return m->slot + index % VRB_SHM_LINES * VRB_SHM_SLOT;
}

/* While waiting for a frame: fetches its slot, so that it comes together with the line and not
 * after it. No lock. */
static inline void vrb_shm_expect(const struct vrb_shm_rx *rx)
{
	const uint8_t *at = vrb_shm_slot(&rx->m, vrb_peek(&rx->tail));

	for (uint32_t i = 0; i < VRB_SHM_SLOT; i += 64)
		__builtin_prefetch(at + i);
}

/*
 * Room for a frame and one notice (VRB_SHM_OP_DIRECT) before it, with `keep` lines left over;
 * looking at the receiver's progress only when the last view says full.
 */
static inline bool vrb_shm_line_room(struct vrb_shm_tx *tx, uint32_t keep)
{
	if (vrb_likely(tx->head - tx->used < VRB_SHM_LINES - 1 - keep))
		return true;
	/* pairs with the release in vrb_shm_publish */
	tx->used = atomic_load_explicit(&tx->m.ctl->lines_used, memory_order_acquire);
	return tx->head - tx->used < VRB_SHM_LINES - 1 - keep;
}

/*
 * Contiguous space of len bytes in the data area, or UINT32_MAX. The absolute cursor behind it
 * becomes data_head when the frame is committed.
 */
uint32_t vrb_shm_data_alloc(struct vrb_shm_tx *tx, uint32_t len, uint32_t *end);

/* Room for a frame with len bytes of payload and any headers. */
bool vrb_shm_room(struct vrb_shm_tx *tx, uint32_t len);

/*
 * Writes one frame; the caller has seen vrb_shm_room. ack: PSN to acknowledge along the way, or
 * NULL. grh: UD only. The doorbell is the caller's, once per batch, behind a full fence.
 */
void vrb_shm_push(struct vrb_shm_tx *tx, const struct vrb_pkt *pkt, const struct vrb_seg *seg,
		  const struct vrb_psn *ack, const struct vrb_shm_grh *grh);

/* Reads the next frame without consuming it: 1 there is one, 0 none, -1 malformed (the peer lies).
 */
int vrb_shm_next(struct vrb_shm_rx *rx, struct vrb_shm_frame *f);

/* Done with the frame. */
static inline void vrb_shm_pop(struct vrb_shm_rx *rx, bool has_data, uint32_t data_end)
{
	vrb_poke(&rx->tail, rx->tail + 1);
	if (has_data)
		rx->data_tail = data_end;
}

/* True when enough was consumed to tell the sender. */
static inline bool vrb_shm_publish_due(const struct vrb_shm_rx *rx)
{
	return rx->tail - rx->published >= VRB_SHM_LINES / 4 ||
	       rx->data_tail - rx->data_published >= VRB_SHM_DATA / 8;
}

/* Tells the sender what was consumed; true when it has asked to be woken for that. */
bool vrb_shm_publish(struct vrb_shm_rx *rx);

/* The sender found no room: asks to be woken; true when there is room after all (fenced re-check).
 */
bool vrb_shm_want_credit(struct vrb_shm_tx *tx, uint32_t len);

/* Memory of this size that its owner cannot shrink: only such is mapped, since a mapping past the
 * end of a file is a SIGBUS. */
bool vrb_shm_is_sealed(int fd, uint64_t size);

/* Memory: create a sealed memfd (-errno), map one that came from a peer (refused unless sealed and
 * of the right size). */
int vrb_shm_create(const char *name);
int vrb_shm_map(int fd, void *at,
		struct vrb_shm_map *m); /* at: NULL, or a former mapping to replace in place */
/* Replaces the mapping by zero pages: what reads it sees an empty ring. */
void vrb_shm_blank(struct vrb_shm_map *m);

#endif
