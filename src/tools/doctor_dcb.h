/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What data center bridging (IEEE 802.1Q) has been set to at an interface. It is read by netlink
 * and, the pause frames of the whole port, by ioctl, and kept as lines of dcb/NETDEV:
 *
 *   pause rx 0 tx 0            global pause (802.3x)
 *   dcbx 9                     who negotiates: DCB_CAP_DCBX_* of linux/dcbnl.h
 *   ets tc 0 bw 40 tsa 2       a traffic class: percent, algorithm (0 strict, 2 ETS)
 *   map 3 3                    priority to traffic class
 *   pfc 00001000               a digit for each priority, 0 first
 *   app 5 26 3                 selector (5 DSCP, 3 UDP port, 1 EtherType), value, priority
 *   trust 5                    a selector that is trusted (since Linux 6.2)
 */
#ifndef VRB_TOOLS_DOCTOR_DCB_H
#define VRB_TOOLS_DOCTOR_DCB_H

#include <stdio.h>

#include "tools/doctor_netlink.h"
#include "tools/doctor_read.h"

#define VRB_PRIORITIES 8
#define VRB_DSCPS      64

struct vrb_dcb {
	bool has_pfc, has_ets, has_pause;
	bool pause_rx, pause_tx;
	bool has_trust, trusts_dscp; /* has_trust: the driver says whom it trusts */
	uint8_t pfc;		     /* a bit for each priority */
	unsigned dcbx;
	uint8_t class_of[VRB_PRIORITIES], bandwidth[VRB_PRIORITIES], algorithm[VRB_PRIORITIES];
	int8_t by_dscp[VRB_DSCPS]; /* priority, -1 without a row */
	int8_t by_port;		   /* of UDP port 4791 */
	int8_t by_default;
};

/* The lines above from the kernel's answer to RTM_GETDCB, appended to out. */
void vrb_dcb_to_text(FILE *out, struct vrb_nl_part body);
/* False when nothing is known. */
bool vrb_doc_dcb(const struct vrb_doc *d, const char *netdev, struct vrb_dcb *out);
void vrb_dcb_parse(struct vrb_dcb *out, char *text);

#endif
