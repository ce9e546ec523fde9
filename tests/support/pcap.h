/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes classic pcap files (Ethernet, or raw IP) of moderate size, whole in memory. */
#ifndef VRB_TESTS_SUPPORT_PCAP_H
#define VRB_TESTS_SUPPORT_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct pcap {
	uint8_t *bytes;
	size_t len, pos;
	uint32_t link_type;
};

struct pcap_frame {
	const uint8_t *ip; /* behind the Ethernet header */
	size_t len;
};

/* False with a message on stderr when path is no pcap file. */
bool pcap_open(struct pcap *p, const char *path);
bool pcap_next(struct pcap *p, struct pcap_frame *f);
void pcap_close(struct pcap *p);

/* A file of raw IP packets (link type 101); NULL on failure. */
FILE *pcap_create(const char *path);
void pcap_write(FILE *f, uint64_t now_ns, const void *ip, size_t len);

#endif
