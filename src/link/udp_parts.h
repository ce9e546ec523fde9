/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the UDP link share and nobody else sees. */
#ifndef VRB_LINK_UDP_PARTS_H
#define VRB_LINK_UDP_PARTS_H

#include "link/udp.h"

/* udp_rx.c */
int vrb_udp_rx_open(struct vrb_udp *u);
void vrb_udp_rx_close(struct vrb_udp *u);

/* udp_steer.c */
int vrb_udp_steer_open(struct vrb_udp *u, uint32_t slot);
void vrb_udp_steer_close(struct vrb_udp *u);
void vrb_udp_steer_disown(struct vrb_udp *u);
bool vrb_udp_steer_is_probe(const struct vrb_udp *u, const struct vrb_net *net, const uint8_t *at,
			    uint32_t len);
void vrb_udp_steer_answer(struct vrb_udp *u, const struct vrb_net *net, const uint8_t *at);

/* udp_socket.c: one on the local address with any port; -errno */
int vrb_udp_socket(const struct vrb_udp *u);
/* udp_socket.c: the sending socket of a lane, made when it is first used; -errno */
int vrb_udp_lane(struct vrb_udp *u, uint32_t lane);

#endif
