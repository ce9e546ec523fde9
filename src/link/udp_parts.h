/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the UDP link share and nobody else sees. */
#ifndef VRB_LINK_UDP_PARTS_H
#define VRB_LINK_UDP_PARTS_H

#include "link/udp.h"

/* udp_rx.c */
int vrb_udp_rx_open(struct vrb_udp *u);
void vrb_udp_rx_close(struct vrb_udp *u);

/* udp_socket.c: the sending socket of a lane, made when it is first used; -errno */
int vrb_udp_lane(struct vrb_udp *u, uint32_t lane);

#endif
