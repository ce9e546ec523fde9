/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters page of a process that uses the software HCA, for outside readers (verbena top,
 * metrics, the sysfs view). It is a sealed memfd; readers map it read-only (how to get it:
 * src/base/meet.h). All numbers only grow; they are written without locks and read as they are.
 * Bytes count payload, packets count frames of either link.
 */
#ifndef VERBENA_STATS_H
#define VERBENA_STATS_H

#include <stdint.h>

#define VRB_STATS_MAGIC	   0x5652425354415431ull /* "VRBSTAT1" */
#define VRB_STATS_DEVICES  16
#define VRB_STATS_VERDICTS 256

struct vrb_stats_device {
	char name[16]; /* "verbena0" */
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	uint64_t tx_multicast, rx_multicast;
	uint64_t qps, cqs, mrs, srqs; /* alive now */
	uint64_t retransmits, timeouts, rnr_naks_sent, rnr_naks_received, sequence_naks_sent,
		sequence_naks_received;
	uint64_t probes; /* oldest packets sent once more after a silence */
	uint64_t ecn_marked, cnps_sent, cnps_handled;
	uint64_t reserved[8];
};

struct vrb_stats_page {
	uint64_t magic;
	uint32_t size; /* sizeof(struct vrb_stats_page) */
	uint32_t pid, slot, n_devices;
	char comm[16];
	uint64_t started_ns; /* CLOCK_REALTIME */
	struct vrb_stats_device device[VRB_STATS_DEVICES];
	uint64_t verdict[VRB_STATS_VERDICTS]; /* by the number of the verdict in src/base/verdict.h
					       */
};

#endif
