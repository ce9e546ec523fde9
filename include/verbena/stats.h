/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters page of a process that uses the software HCA, for outside readers (verbena top,
 * metrics, the sysfs view). It is a sealed memfd; readers map it read-only (how to get it:
 * src/base/meet.h). All numbers only grow; they are written without locks and read as they are.
 * Bytes count payload, packets count frames of either link; these four stand in the page as they
 * were when somebody last asked for it.
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

/*
 * Rows: the objects of a process as they are at one moment, for whoever asks (VRB_MEET_ROWS in
 * src/base/meet.h). The answer comes with two descriptors: a memfd that holds struct vrb_rows and
 * behind it its queue pairs, CQs and regions, and the counters page. At most VRB_ROWS_MAX of each
 * come at once. Queue pairs go on with the next question, CQs and regions do not: the oldest CQs
 * come, and the newest regions. Names are at most as long as their field, then without a zero.
 */
#define VRB_ROWS_MAGIC 0x565242524f575331ull /* "VRBROWS1" */
#define VRB_ROWS_MAX   512

enum { VRB_ROW_NO_LINK, VRB_ROW_SAME_HOST, VRB_ROW_WIRE };

struct vrb_rows {
	uint64_t magic;
	uint32_t size, qp_size, cq_size, mr_size; /* of the structs */
	uint32_t n_qps, n_cqs, n_mrs;		  /* here */
	uint32_t next;				  /* what to ask for more queue pairs; 0: no more */
	uint32_t pid, slot;
	uint64_t now_ns; /* the device's clock */
	uint64_t registered_bytes;
	char version[16]; /* of Verbena: verdicts are numbered as it does */
};

struct vrb_row_qp {
	uint32_t qpn, peer_qpn;
	uint8_t type, state;  /* numbers of verbs.h */
	uint8_t device;	      /* its row of the counters page */
	uint8_t link;	      /* VRB_ROW_ */
	uint32_t peer_pid;    /* SAME_HOST; 0: not to be seen */
	uint8_t peer_gid[16]; /* WIRE */
	uint32_t pd, send_cq, recv_cq;
	uint32_t srq_used; /* 1: what is received lies in a shared queue */
	uint64_t made_ns;

	/* these only grow */
	uint64_t sent;	/* work requests of the send queue that have ended */
	uint64_t taken; /* messages of the peer: SENDs, WRITEs, READs, atomics; UD: packets */
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	uint64_t retransmits, timeouts, rnr_naks_sent, rnr_naks_received, naks_received;
	uint64_t events; /* of its story */

	uint32_t outstanding;	       /* posted and not ended */
	uint32_t send_used, send_room; /* places of the send queue: taken until polled */
	uint32_t recv_used, recv_room; /* receives that wait, and may */
	uint32_t in_flight, window;    /* packets without an acknowledgement, and at most */
	uint32_t reads;		       /* READs and atomics under way */
	uint64_t rtt_ns;	       /* WIRE, RC; 0: not measured */
	uint64_t verdict_ns;	       /* when it was; 0: there is none */
	char verdict[32];	       /* the last one but for changes of state, or what ended it */
};

struct vrb_row_cq {
	uint32_t number, used, room, refs; /* number: in order of creation; refs: queues on it */
	uint64_t pushed;		   /* completions ever */
	uint8_t device, is_armed, is_dead, has_channel;
	uint32_t reserved;
};

struct vrb_row_mr {
	uint32_t lkey, rkey, access, pd; /* access: numbers of verbs.h */
	uint64_t addr, iova, length;
	uint64_t made_ns;
	uint64_t caller; /* the address that the registering call returns to; 0: not known */
	uint32_t device, reserved;
};

#endif
