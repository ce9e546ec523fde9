/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pcapng file that a capture writes (draft-ietf-opsawg-pcapng): a section header, two
 * interfaces of IP packets, then one enhanced packet block per packet, with its time in
 * nanoseconds, its direction and a comment. Blocks are whole and know nothing of each other, so
 * that several processes may append to one file. Numbers are in the byte order of the writer, which
 * the section header shows.
 */
#ifndef VRB_BASE_PCAPNG_H
#define VRB_BASE_PCAPNG_H

#include "base/types.h"

enum { VRB_PCAPNG_WIRE, VRB_PCAPNG_SAME_HOST }; /* the two interfaces */

#define VRB_PCAPNG_HEAD_MAX    512 /* with a program name of 64 bytes at most */
#define VRB_PCAPNG_PACKET_AT   28  /* where a block holds the packet's bytes */
#define VRB_PCAPNG_COMMENT_MAX 1024

struct vrb_pcapng_packet {
	uint64_t time_ns; /* since 1970 */
	uint32_t interface;
	bool out;
	uint32_t kept, len;  /* bytes of the packet in the block; as it was */
	const char *comment; /* or NULL */
};

/* What a file begins with; returns its length. */
size_t vrb_pcapng_emit_head(uint8_t out[VRB_PCAPNG_HEAD_MAX], const char *program);

/* Writes the block around the p->kept bytes that lie at out + VRB_PCAPNG_PACKET_AT already; returns
 * its length. */
size_t vrb_pcapng_emit_packet(uint8_t *out, const struct vrb_pcapng_packet *p);

/* The block that begins at bytes, of which len are here. False: there is none. */
struct vrb_pcapng_block {
	uint32_t len;  /* of the block */
	bool is_whole; /* all of it is here */
	bool is_packet;
	uint32_t interface, packet_len;
};
bool vrb_pcapng_parse(const uint8_t *bytes, size_t len, struct vrb_pcapng_block *out);

/* Makes len bytes (12 at least, a multiple of 4) a block that readers pass over. */
void vrb_pcapng_emit_gap(uint8_t *bytes, uint32_t len);

#endif
