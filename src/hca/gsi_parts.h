/* SPDX-License-Identifier: BSD-2-Clause */
/* QP 1 within the engine: what gsi.c, gsi_in.c and their neighbours share. All with the lock held.
 */
#ifndef VRB_HCA_GSI_PARTS_H
#define VRB_HCA_GSI_PARTS_H

#include "hca/gsi.h"
#include "hca/wire.h"

struct vrb_gsi_claim {
	uint64_t service_id;
	int fd; /* listens: -1 free */
};

struct vrb_gsi {
	vrb_gsi_on *on; /* NULL: closed */
	void *arg;
	uint32_t next_id;
	struct vrb_psn psn;
	uint32_t n_claims; /* places in use, free ones among them */
	struct vrb_gsi_claim claim[VRB_GSI_CLAIMS];
	vrb_ns refused_in; /* the second in which n_refused answers were */
	uint32_t n_refused;
};

/* gsi.c */
struct vrb_gsi *vrb_gsi_get(struct vrb_engine *e); /* NULL: no memory */
struct vrb_gsi_claim *vrb_gsi_find_claim(const struct vrb_engine *e, uint64_t service_id);
/* A connection to the process that has claimed it; -ECONNREFUSED: nobody has. Never waits. */
int vrb_gsi_call(uint64_t service_id);
int vrb_gsi_push(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_flow *f,
		 const uint8_t mad[VRB_MAD_LEN]);
/* Somebody connects to a claim's name. */
void vrb_gsi_on_listen(struct vrb_engine *e, int listen_fd);
/* The names of claims are looked at again. */
void vrb_gsi_rewatch(struct vrb_engine *e);
void vrb_gsi_end(struct vrb_engine *e, bool in_child);

/* gsi_in.c: a packet to QP 1; from_socket: by our own (a), else another process has handed it to
 * us. False: it waits for room in the ring of its owner. */
bool vrb_gsi_take(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_packet *p,
		  const struct vrb_pkt *pkt, bool from_socket);

#endif
