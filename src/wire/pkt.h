/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet as values: what the core and the links hand each other. Which of the extension fields
 * mean something follows from the opcode (wire/opcode.h). All numbers are in host order except imm,
 * which travels untouched as the application gave it. payload is the received bytes, valid until
 * the link's next call; on the way out the payload is a gather list of the effect (core/effects.h)
 * and payload is NULL.
 */
#ifndef VRB_WIRE_PKT_H
#define VRB_WIRE_PKT_H

#include "base/psn.h"
#include "base/types.h"
#include "base/verdict.h"
#include "wire/opcode.h"

enum {
	VRB_PKT_SE = 1 << 0, /* solicited event */
	VRB_PKT_ACKREQ = 1 << 1,
	VRB_PKT_FECN = 1 << 2,
	VRB_PKT_BECN = 1 << 3,
	VRB_PKT_MIGREQ = 1 << 4,
};

enum { /* AETH syndrome, IBA table 43: bits 7:5 kind, 4:0 credit count, RNR timer or NAK code */
       VRB_AETH_ACK = 0x00,
       VRB_AETH_RNR = 0x20,
       VRB_AETH_NAK = 0x60,
       VRB_AETH_KIND_MASK = 0xe0,
       VRB_AETH_VALUE_MASK = 0x1f,
       VRB_AETH_CREDITS_UNLIMITED = 0x1f,
       VRB_NAK_PSN_SEQ = 0x60,
       VRB_NAK_INVALID = 0x61,
       VRB_NAK_ACCESS = 0x62,
       VRB_NAK_OPERATIONAL = 0x63,
};

struct vrb_pkt {
	struct vrb_opcode op;
	uint8_t flags;
	uint8_t syndrome; /* AETH */
	uint8_t pad;	  /* parse: as received; emit computes it from len */
	uint16_t pkey;
	uint32_t dqpn;
	struct vrb_psn psn;
	uint32_t len; /* payload bytes without pad */
	const uint8_t *payload;
	const uint8_t *grh; /* UD receive: 40 bytes of GRH space (IPv6 header, or 20 zero bytes and
			       the IPv4 header) */

	uint32_t imm;		    /* ImmDt, network order */
	uint32_t inv_rkey;	    /* IETH */
	uint32_t msn;		    /* AETH */
	uint32_t rkey;		    /* RETH, AtomicETH */
	uint64_t va;		    /* RETH, AtomicETH */
	uint32_t dma_len;	    /* RETH */
	uint32_t qkey;		    /* DETH */
	uint32_t sqpn;		    /* DETH */
	uint64_t swap_add, compare; /* AtomicETH */
	uint64_t atomic_orig;	    /* AtomicAckETH */
};

/*
 * Reads len bytes from the BTH to the end of the pad (the ICRC is checked and cut off before,
 * wire/icrc.h). out->payload points into bytes. VRB_OK, or why it is no packet; then out is
 * undefined and `why` (or NULL) holds the values. Reserved RC opcodes are read as headerless
 * packets: the responder refuses them. Length rules beyond "it fits" are the core's.
 */
enum vrb_verdict vrb_pkt_parse(const uint8_t *bytes, size_t len, struct vrb_pkt *out,
			       struct vrb_report *why);

/* Writes BTH and extension headers, at most VRB_HEADERS_MAX bytes; returns how many. Behind the
 * payload go vrb_pkt_pad(pkt->len) zero bytes. */
size_t vrb_pkt_emit_headers(const struct vrb_pkt *pkt, uint8_t *out);

static inline uint32_t vrb_pkt_pad(uint32_t payload_len)
{
	return (0u - payload_len) & 3u;
}

static inline bool vrb_pkt_is_nak(const struct vrb_pkt *pkt)
{
	return pkt->op.v == (VRB_TP_RC | VRB_OP_ACK) &&
	       (pkt->syndrome & VRB_AETH_KIND_MASK) != VRB_AETH_ACK;
}

/* One line of text for traces and test failures; returns its length. */
size_t vrb_pkt_dump(char *out, size_t size, const struct vrb_pkt *pkt);

#endif
