/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 over UDP sockets, without privileges: the packets of one local address. One socket bound
 * to port 4791 receives (several processes of a user share the port, udp_steer.c); sending uses a
 * few unconnected sockets with source ports from 0xC000 up, one for each lane, so that a flow keeps
 * its port.
 *
 * The ICRC covers the IPv4 identification. An unconnected socket with IP_PMTUDISC_DO sends ID 0,
 * and 0, 1, 2, ... for the segments of one send with UDP_SEGMENT: known before the packet leaves.
 * What arrives hides its ID; wire/icrc.h solves for it. Nothing here knows a queue pair. The caller
 * serialises all calls; after a fork only vrb_udp_disown may be called in the child.
 */
#ifndef VRB_LINK_UDP_H
#define VRB_LINK_UDP_H

#include "base/iov.h"
#include "wire/ask.h"
#include "wire/icrc.h"
#include "wire/net.h"
#include "wire/pkt.h"
#include "wire/roce.h"

#define VRB_UDP_LANES	 8u
#define VRB_UDP_PORT_MIN 0xc000u
#define VRB_UDP_SEGMENTS 64u	/* the kernel's bound on one send */
#define VRB_UDP_SEND_MAX 65000u /* bytes of one send */
#define VRB_UDP_RECVS	 16u	/* buffers filled by one call at most */
#define VRB_UDP_BUFFER	 65536u /* of each: the kernel merges segments up to 64 KiB */
#define VRB_UDP_HOPS	 64u	/* when nothing else is asked for */

struct vrb_udp_rx;    /* udp_rx.c */
struct vrb_udp_steer; /* udp_steer.c */

struct vrb_udp {
	struct vrb_gid gid;
	uint32_t ifindex;
	bool v4, no_gso, has_hops;
	int rx_fd;
	struct vrb_udp_lane {
		int fd; /* -1: not opened yet */
		uint16_t port;
		/* What the socket knows (no segment length: 0), and what the last send that had to
		 * say something else has said; sends of one packet since the last of several. */
		uint16_t seg_set, seg_last;
		uint8_t n_lone;
		uint8_t tclass_set, tclass_last, hops_set, hops_last;
	} lane[VRB_UDP_LANES];
	struct vrb_udp_rx *rx;
	struct vrb_udp_steer *steer;
	uint64_t n_sends, n_send_failed; /* system calls; of them those that lost their packets */
	int send_errno;			 /* of the last that failed */
	uint32_t buffer;   /* bytes that may wait to be received, as the kernel counts */
	uint32_t n_probed; /* probes that have come: somebody comes, goes, or has noticed */
};

/* Opens the receiving socket; slot: upper byte of the QPNs that are ours. -EADDRINUSE: another
 * user's process, or the kernel's own soft-RoCE, holds the port. */
int vrb_udp_open(const struct vrb_gid *gid, uint32_t ifindex, uint32_t slot, struct vrb_udp **out);
void vrb_udp_close(struct vrb_udp *u);
void vrb_udp_disown(struct vrb_udp *u); /* in a forked child: closes the descriptors */

/* Packets come with their hop limit from now on (64 is assumed before): it costs a little. */
void vrb_udp_want_hops(struct vrb_udp *u);

/* What the way from u to dst carries, IP header included; -errno when there is no way. */
int vrb_udp_route(const struct vrb_udp *u, const struct vrb_gid *dst, uint32_t *mtu);

/*
 * Whose packets the kernel gives to whom. Steps until false, with vrb_udp_next called in between
 * (our own answer comes that way): after opening, and after a packet for another's slot.
 */
bool vrb_udp_steer_step(struct vrb_udp *u, vrb_ns now);
void vrb_udp_steer_stranger(struct vrb_udp *u, vrb_ns now);
/*
 * Before the end: tells the others, and leaves the group with the socket open, so that what has
 * come for them can still be taken out.
 */
void vrb_udp_leave(struct vrb_udp *u);
void vrb_udp_stop(struct vrb_udp *u); /* nothing is received any more */

/* ---- out */

struct vrb_udp_flow {
	struct vrb_gid dst;
	uint8_t lane, tclass;
	uint8_t hop_limit; /* 0 or 1: the default */
};

/* Packets of one flow that leave by one system call. Zeroed before the first use. */
struct vrb_udp_batch {
	struct vrb_udp *udp;
	struct vrb_udp_flow flow;
	uint32_t n, len, seg_len;
	bool full;		      /* nothing more goes along */
	uint32_t head_len, head_size; /* the headers in front of a packet of head_len; 0 none */
	uint8_t head[VRB_NET_MAX];
	uint8_t bytes[VRB_UDP_SEND_MAX];
};

/*
 * Adds a packet, sending first what is there and does not go together with it. The payload is
 * copied. The kernel cuts a send into equal pieces, of which only the last may be shorter. A batch
 * that is full had better be flushed.
 */
void vrb_udp_push(struct vrb_udp_batch *b, struct vrb_udp *u, const struct vrb_udp_flow *f,
		  const struct vrb_pkt *pkt, const struct vrb_seg *seg);
void vrb_udp_flush(struct vrb_udp_batch *b);
/* Inverts one bit of the packet that was pushed last. */
void vrb_udp_damage(struct vrb_udp_batch *b, uint64_t random);

/* ---- in */

struct vrb_udp_packet {
	struct vrb_net net;   /* with the identification that was found */
	const uint8_t *bytes; /* from the BTH to the pad; valid until the next fill */
	uint32_t len;
};

/* vrb_udp_next has something left. */
bool vrb_udp_has_more(const struct vrb_udp *u);

/* Takes what waits in the socket, one system call; only when nothing is left. Returns the number of
 * buffers filled. */
uint32_t vrb_udp_fill(struct vrb_udp *u);

/* The next packet with a good ICRC: 1; 0 none left; -1 something that is none, why says, with len
 * counting to its end; VRB_UDP_ASK a question (wire/ask.h), which has no ICRC. */
#define VRB_UDP_ASK 2
int vrb_udp_next(struct vrb_udp *u, struct vrb_udp_packet *out, struct vrb_report *why);

/* ---- questions (wire/ask.h) */

/* A socket for questions to the process that has port 4791 of dst; -errno. */
int vrb_udp_ask_open(const struct vrb_udp *u, const struct vrb_gid *dst);
/* What the network has said is forgotten, so that it wakes nobody again. */
void vrb_udp_ask_drain(int fd);
/* Filled with zeros up to len. 0 or -errno, which may be what the network has said before. */
int vrb_udp_ask_send(int fd, const uint8_t ask[VRB_ASK_LEN], uint32_t len);
/* The kernel's table of neighbours says that the next host on the way to dst does not answer. */
bool vrb_udp_no_neighbour(const struct vrb_gid *dst, uint32_t ifindex);
/* To whom has asked by net. */
void vrb_udp_ask_answer(const struct vrb_udp *u, const struct vrb_net *net,
			const uint8_t ask[VRB_ASK_LEN], uint32_t len);

#endif
