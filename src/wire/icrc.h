/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC (RoCEv2 A17.3.3): CRC-32 over what routers leave alone, from eight bytes of
 * ones to the pad, with the changing fields of IP, UDP and BTH replaced by ones.
 *
 * To send:    crc = vrb_icrc_start(net, net_len, headers, headers_len);
 *             crc = vrb_icrc_add_payload(crc, seg, n_seg, len);
 *             vrb_icrc_store(crc, behind the pad)
 */
#ifndef VRB_WIRE_ICRC_H
#define VRB_WIRE_ICRC_H

#include "base/iov.h"
#include "base/types.h"
#include "base/verdict.h"

/* net: IP and UDP header as on the wire, 28 or 48 bytes; headers: BTH and what follows, from 12
 * bytes up to the whole packet (at most VRB_HEADERS_MAX are looked at for masking). */
uint32_t vrb_icrc_start(const uint8_t *net, size_t net_len, const uint8_t *headers, size_t len);

/* Goes on over bytes as they are copied, in one pass. */
uint32_t vrb_icrc_copy(uint32_t crc, void *dst, const void *src, size_t len);

/* The payload of len bytes in n pieces, and its pad. */
uint32_t vrb_icrc_add_payload(uint32_t crc, const struct vrb_seg *seg, uint32_t n, uint32_t len);

void vrb_icrc_store(uint32_t crc, uint8_t out[4]);
uint32_t vrb_icrc_load(const uint8_t bytes[4]);

/* Checks a packet of len bytes from BTH to ICRC. VRB_OK, DROP_SHORT or DROP_ICRC (why may be
 * NULL). */
enum vrb_verdict vrb_icrc_check(const uint8_t *net, size_t net_len, const uint8_t *packet,
				size_t len, struct vrb_report *why);

/*
 * For IPv4 packets from a socket that hides the identification: the check holds for exactly the ID
 * that is returned, or for none (DROP_ICRC). net is the 28 bytes as they must have been, with any
 * ID. A random damage passes once in 65,536: expect the ID to be 0, or to count.
 */
enum vrb_verdict vrb_icrc_solve_ip_id(const uint8_t *net, const uint8_t *packet, size_t len,
				      uint16_t *ip_id, struct vrb_report *why);

/* The same for a stream: net holds the ID that is expected (one CRC when it is right), `back` keeps
 * a factor between packets of one length, zeroed before the first. */
struct vrb_icrc_back {
	uint32_t behind, factor;
};
struct vrb_icrc_hidden {
	uint16_t ip_id;
	struct vrb_report why; /* when refused */
};
enum vrb_verdict vrb_icrc_check_hidden(const uint8_t *net, const uint8_t *packet, size_t len,
				       struct vrb_icrc_back *back, struct vrb_icrc_hidden *out);

#endif
