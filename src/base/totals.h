/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process has done since it opened a device, a file of its own that it writes anew now and
 * then and when it ends, in the byte order of the machine. The software HCA writes it
 * (hca/totals.h), `verbena run --stat` reads those of all processes. A file of another size than
 * its head says is none.
 */
#ifndef VRB_BASE_TOTALS_H
#define VRB_BASE_TOTALS_H

#include "base/types.h"

#define VRB_TOTALS_ENV	    "VERBENA_STAT" /* the beginning of the files' names: PREFIX.PID.N */
#define VRB_TOTALS_MAGIC    0x314c544f54425256ull
#define VRB_TOTALS_DEVICES  16
#define VRB_TOTALS_VERDICTS 256

struct vrb_totals_device {
	char name[16];
	uint64_t sent;	/* work requests of the send queues that have ended */
	uint64_t taken; /* messages of peers; UD: packets */
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	uint64_t completions, failed; /* all, and those with an error */
	uint64_t events, async_events;
	uint64_t retransmits, timeouts, probes, rnr_naks_sent, rnr_naks_received,
		sequence_naks_sent, sequence_naks_received;
};

struct vrb_totals_file {
	uint64_t magic;
	uint32_t size, pid;
	char comm[16];
	uint64_t began_ns;	     /* CLOCK_MONOTONIC: the first device was opened */
	uint64_t user_ns, system_ns; /* CPU time of the process since it started */
	struct vrb_totals_device device[VRB_TOTALS_DEVICES]; /* without a name: no more */
	uint64_t verdict[VRB_TOTALS_VERDICTS];
};

#endif
