/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a port, read once: what `counters` reports, and `--watch` twice. */
#ifndef VRB_TOOLS_DOCTOR_COUNTERS_H
#define VRB_TOOLS_DOCTOR_COUNTERS_H

#include "tools/doctor_gids.h"

#define VRB_DOC_COUNTERS 80 /* at most, of vrb_counter_findings */

struct vrb_port_sample {
	char device[64], port[16], netdev[16], slot[32];
	double rate; /* Gb/s, 0 unknown */
	long long packets_out, packets_in, bytes_out, bytes_in;
	long long value[VRB_DOC_COUNTERS]; /* by the row; 0 where there is none */
};

void vrb_port_sample(const struct vrb_doc *d, const struct vrb_doc_device *dev, const char *port,
		     struct vrb_port_sample *s);
/* Adds a finding for each counter that means something; seconds: it has grown in that time; 0: it
 * counts since ever. */
void vrb_port_judge(struct vrb_doc *d, const struct vrb_port_sample *s, int seconds);
/* The value of a row by the counter's name. */
long long vrb_port_value(const struct vrb_port_sample *s, const char *name);

#endif
