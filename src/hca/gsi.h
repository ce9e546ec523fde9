/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 for a connection manager: its messages (wire/mad.h) by UDP, several processes of a user on
 * one address. A communication id names its owner: the upper byte is his slot. A request (REQ,
 * SIDR_REQ) has none; it goes to the process that has claimed its service id, an abstract Unix name
 * per user and network namespace (base/meet.h), which the kernel frees when that process ends.
 * Where nobody has, the request is refused (REJ reason 8, SIDR_REP status 1).
 *
 * Messages are lost like any datagram; whoever sends one repeats it until it is answered. There is
 * no state of a connection here. A service id is the whole process's, on all its addresses.
 */
#ifndef VRB_HCA_GSI_H
#define VRB_HCA_GSI_H

#include "hca/hca.h"
#include "wire/mad.h"

#define VRB_GSI_CLAIMS 1024u /* service ids of one process */

/* A message that has come. bytes, and what cm points to, are valid during the call. */
struct vrb_gsi_mad {
	struct vrb_gid src, dst; /* dst: the address of ours that it came to */
	uint8_t tclass, hop_limit;
	const uint8_t *bytes; /* VRB_MAD_LEN */
	struct vrb_cm cm;
};

/* Called by whichever thread drives the engine, with the engine's lock held: of all calls of
 * hca only vrb_gsi_send_locked and vrb_gsi_new_id_locked may be made. */
typedef void vrb_gsi_on(void *arg, const struct vrb_gsi_mad *mad);

/*
 * The addresses of ctx's device take messages from now on, and what is for this process goes to
 * `on`: one for the whole process, the last given. Again: addresses that have come since. -errno,
 * said, when no address can be had (-EADDRINUSE: another user has the port).
 */
int vrb_gsi_open(struct vrb_hctx *ctx, vrb_gsi_on *on, void *arg);
/* `on` is not called again; all claims are released. */
void vrb_gsi_close(struct vrb_hctx *ctx);

/* Requests for this service id are ours. -EADDRINUSE, said: somebody else's, or ours already;
 * -ENOSPC: too many. After vrb_gsi_open. */
int vrb_gsi_claim(struct vrb_hctx *ctx, uint64_t service_id);
void vrb_gsi_release(struct vrb_hctx *ctx, uint64_t service_id);

/* The next communication id of this process. They come around after 2^24: the caller skips those
 * it still uses. */
uint32_t vrb_gsi_new_id(struct vrb_hctx *ctx);

struct vrb_gsi_to {
	uint32_t sgid_index; /* of ctx's device: the address that it leaves from */
	struct vrb_gid dgid;
	uint8_t tclass, hop_limit; /* 0: the default */
};
/* Once, to QP 1 of dgid. -errno: it has not left. */
int vrb_gsi_send(struct vrb_hctx *ctx, const struct vrb_gsi_to *to, const uint8_t mad[VRB_MAD_LEN]);

/* The same for who has the engine's lock. */
int vrb_gsi_send_locked(struct vrb_hctx *ctx, const struct vrb_gsi_to *to,
			const uint8_t mad[VRB_MAD_LEN]);
uint32_t vrb_gsi_new_id_locked(struct vrb_hctx *ctx);

#endif
