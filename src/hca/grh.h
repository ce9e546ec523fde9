/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 40 bytes in front of a received UD payload: an IPv6 header, or 20 zero bytes and an IPv4
 * header (RoCEv2 A17.4.5.1). On the same host no such header was on a wire; it is built from what
 * the frame says, checksum included, because address handles are made from it.
 */
#ifndef VRB_HCA_GRH_H
#define VRB_HCA_GRH_H

#include "link/shm.h"
#include "wire/roce.h"

void vrb_grh_build(uint8_t out[VRB_GRH_LEN], const struct vrb_shm_frame *f, uint32_t payload);
/* ::ffff:224.0.0.0/4 */
bool vrb_grh_is_v4_group(const struct vrb_gid *g);

#endif
