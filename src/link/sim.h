/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated link: two ends in one process, a wire with latency and rate between them, on
 * virtual time (the `now` of the calls). Lossless and in order; interposers (link/fault.h) make it
 * worse.
 */
#ifndef VRB_LINK_SIM_H
#define VRB_LINK_SIM_H

#include "link/link.h"

struct vrb_sim_conf {
	uint32_t frame_max;   /* bytes */
	uint32_t queue_max;   /* frames under way in one direction */
	uint32_t latency_ns;  /* from sent to arrived */
	uint32_t ps_per_byte; /* picoseconds: 80 is 100 Gbit/s; 0 is no limit */
};

/* 0 with two ends, each to be closed; -ENOMEM, -EINVAL. */
int vrb_sim_open(const struct vrb_sim_conf *conf, struct vrb_link *end[2]);

#endif
