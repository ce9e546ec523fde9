/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of a pcapng file: type, length, body, length; each part filled up to four bytes. */
#include "base/pcapng.h"

#include <string.h>

#define PROGRAM_MAX 64

enum {
	SECTION = 0x0a0d0d0a,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	INTERFACE = 1,
	ENHANCED_PACKET = 6,
	LINKTYPE_RAW = 101, /* begins with an IPv4 or IPv6 header */
	BLOCK_MIN = 12,
};

#define GAP 0x80000badu /* of the types that are left for local use */

enum { /* options */
       END_OF_OPTIONS = 0,
       COMMENT = 1,
       EPB_FLAGS = 2,
       SHB_USERAPPL = 4,
       IF_NAME = 2,
       IF_TSRESOL = 9,
};

static uint8_t *put16(uint8_t *at, uint32_t v)
{
	uint16_t n = (uint16_t)v;

	memcpy(at, &n, sizeof(n));
	return at + sizeof(n);
}

static uint8_t *put32(uint8_t *at, uint32_t v)
{
	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

static size_t text_len(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static uint8_t *put_option(uint8_t *at, uint32_t code, const void *value, size_t len)
{
	at = put16(at, code);
	at = put16(at, (uint32_t)len);
	memset(at, 0, padded(len));
	memcpy(at, value, len);
	return at + padded(len);
}

/* The end of the options, and both lengths of the block that starts at `block`. */
static uint8_t *end_block(uint8_t *block, uint8_t *at)
{
	uint32_t len;

	at = put16(at, END_OF_OPTIONS);
	at = put16(at, 0);
	len = (uint32_t)(at - block) + 4;
	put32(block + 4, len);
	return put32(at, len);
}

static uint8_t *put_interface(uint8_t *block, const char *name)
{
	const uint8_t nanoseconds = 9;
	uint8_t *at = put32(block, INTERFACE) + 4;

	at = put16(at, LINKTYPE_RAW);
	at = put16(at, 0);
	at = put32(at, 0); /* no limit */
	at = put_option(at, IF_NAME, name, text_len(name, PROGRAM_MAX));
	at = put_option(at, IF_TSRESOL, &nanoseconds, 1);
	return end_block(block, at);
}

size_t vrb_pcapng_emit_head(uint8_t out[VRB_PCAPNG_HEAD_MAX], const char *program)
{
	uint8_t *at = put32(out, SECTION) + 4;
	at = put32(at, BYTE_ORDER_MAGIC);
	at = put16(at, 1); /* version 1.0 */
	at = put16(at, 0);
	memset(at, 0xff, 8); /* the section's length is not known */
	at = put_option(at + 8, SHB_USERAPPL, program, text_len(program, PROGRAM_MAX));
	at = end_block(out, at);
	at = put_interface(at, "wire");
	at = put_interface(at, "same-host");
	return (size_t)(at - out);
}

static size_t comment_len(const struct vrb_pcapng_packet *p)
{
	return p->comment ? text_len(p->comment, VRB_PCAPNG_COMMENT_MAX) : 0;
}

size_t vrb_pcapng_emit_packet(uint8_t *out, const struct vrb_pcapng_packet *p)
{
	const uint32_t flags = p->out ? 2 : 1; /* bits 1:0: 1 inbound, 2 outbound */
	uint8_t *at = put32(out, ENHANCED_PACKET) + 4;

	at = put32(at, p->interface);
	at = put32(at, (uint32_t)(p->time_ns >> 32));
	at = put32(at, (uint32_t)p->time_ns);
	at = put32(at, p->kept);
	at = put32(at, p->len) + p->kept;
	memset(at, 0, padded(p->kept) - p->kept);
	at = put_option(at + padded(p->kept) - p->kept, EPB_FLAGS, &flags, sizeof(flags));
	if (comment_len(p))
		at = put_option(at, COMMENT, p->comment, comment_len(p));
	return (size_t)(end_block(out, at) - out);
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

bool vrb_pcapng_parse(const uint8_t *bytes, size_t len, struct vrb_pcapng_block *out)
{
	*out = (struct vrb_pcapng_block){0};
	if (len < BLOCK_MIN)
		return false;
	out->len = get32(bytes + 4);
	if (out->len < BLOCK_MIN || out->len % 4)
		return false;
	out->is_whole = out->len <= len;
	if (out->is_whole && get32(bytes + out->len - 4) != out->len)
		return false;
	if (get32(bytes) != ENHANCED_PACKET)
		return true;
	if (len < VRB_PCAPNG_PACKET_AT || out->len < VRB_PCAPNG_PACKET_AT + 4)
		return false;
	out->is_packet = true;
	out->interface = get32(bytes + 8);
	out->packet_len = get32(bytes + 24);
	return true;
}

void vrb_pcapng_emit_gap(uint8_t *bytes, uint32_t len)
{
	put32(bytes, GAP);
	put32(bytes + 4, len);
	put32(bytes + len - 4, len);
}
