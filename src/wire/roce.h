/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RoCEv2 packet on one page (IBA vol. 1 chapters 5 and 9, annex A17). All numbers on the wire
 * are big-endian, except the ICRC, which is stored least significant byte first.
 *
 *   | Ethernet | IPv4 20 or IPv6 40 | UDP 8 | BTH 12 | extension headers | payload | pad | ICRC 4 |
 *                                           |<--- a multiple of 4 bytes, 16 at least --->......|
 *
 * BTH, in every packet                                   byte 1: SE solicited event, M MigReq,
 *   0        8        16       24      31                        P pad count, TVer = 0
 *   +--------+-+-+--+----+--------+--------+             byte 4: F FECN, B BECN, reserved
 *   | opcode |S|M| P|TVer|      P_Key      |             byte 8: A AckReq, reserved
 *   +-+-+----+-+-+--+----+--------+--------+
 *   |F|B| rsv|     destination QP          |
 *   +-+-+----+--------+--------+-----------+
 *   |A| rsv  |            PSN              |
 *   +-+------+-----------------------------+
 *
 * Extension headers, in this order; the opcode says which (wire/opcode.c)
 *   RETH       16   | virtual address 8 | R_Key 4 | DMA length 4 |
 *   AtomicETH  28   | virtual address 8 | R_Key 4 | swap or add 8 | compare 8 |
 *   AETH        4   | syndrome 1 | MSN 3 |
 *   DETH        8   | Q_Key 4 | reserved 1 | source QP 3 |
 *   AtomicAck   8   | original value 8 |
 *   ImmDt       4   | immediate data, passed through untouched |
 *   IETH        4   | R_Key to invalidate |
 *
 * The longest header is BTH + AtomicETH; the longest UD one BTH + DETH + ImmDt.
 */
#ifndef VRB_WIRE_ROCE_H
#define VRB_WIRE_ROCE_H

#define VRB_ROCE_PORT 4791u /* UDP destination port */

enum {
	VRB_BTH_LEN = 12,
	VRB_RETH_LEN = 16,
	VRB_ATOMICETH_LEN = 28,
	VRB_AETH_LEN = 4,
	VRB_DETH_LEN = 8,
	VRB_ATOMICACKETH_LEN = 8,
	VRB_IMMDT_LEN = 4,
	VRB_IETH_LEN = 4,
	VRB_ICRC_LEN = 4,
	VRB_GRH_LEN = 40, /* what a UD receive finds in front of the payload */
	VRB_CNP_PAYLOAD_LEN = 16,

	VRB_HEADERS_MAX = VRB_BTH_LEN + VRB_ATOMICETH_LEN, /* what emit may write */
	VRB_MTU_MAX = 4096,				   /* IBA 9.7.4.1: path MTU code 5 */
	/* BTH to ICRC of the largest packet: a SEND, WRITE or UD SEND of 4096 bytes */
	VRB_ROCE_PACKET_MAX =
		VRB_BTH_LEN + VRB_RETH_LEN + VRB_IMMDT_LEN + VRB_MTU_MAX + VRB_ICRC_LEN,

	VRB_IPV4_LEN = 20, /* options are not used */
	VRB_IPV4_ID = 4,   /* where the identification lies */
	VRB_IPV6_LEN = 40,
	VRB_UDP_LEN = 8,
	VRB_NET_MAX = VRB_IPV6_LEN + VRB_UDP_LEN,
	VRB_FRAME_MAX = VRB_NET_MAX + VRB_ROCE_PACKET_MAX,
};

#endif
