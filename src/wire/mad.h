/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams of the connection manager (IBA chapters 12 and 13): the payload of a UD SEND
 * Only from QP 1 to QP 1. Always 256 bytes: a header of 24, then what the message's kind, its
 * attribute id, says.
 *
 *   0        8        16       24      31
 *   +--------+--------+--------+--------+
 *   | base 1 | class 7| vers 2 | method 3|
 *   +--------+--------+--------+--------+
 *   |   status 0      |        0        |
 *   +--------+--------+--------+--------+
 *   |  transaction id, 8 bytes          |   the same for a whole exchange
 *   +--------+--------+--------+--------+
 *   |  attribute id   |        0        |   enum vrb_cm_kind
 *   +--------+--------+--------+--------+
 *   |  attribute modifier 0             |
 *   +--------+--------+--------+--------+
 *   |  local communication id           |   of whoever sends it; REJ: 0 where there is none
 *   +--------+--------+--------+--------+
 *   |  remote communication id          |   of whoever gets it; REQ: reserved
 *   +--------+--------+--------+--------+
 *   |  ... private data to the end      |
 *
 * Both SIDR messages have one id in the first place, that of who has asked. LAP and APR, which move
 * a connection to another path, are known by their ids only.
 */
#ifndef VRB_WIRE_MAD_H
#define VRB_WIRE_MAD_H

#include "base/psn.h"
#include "base/types.h"
#include "base/verdict.h"

#define VRB_MAD_LEN	   256u
#define VRB_MAD_HEADER_LEN 24u
#define VRB_GSI_QPN	   1u
#define VRB_GSI_QKEY	   0x80010000u /* IBA 3.5.3: of QP 1, everywhere */

/* Where a steering program finds them, from the beginning of the MAD. */
enum { VRB_MAD_AT_ATTRIBUTE = 16, VRB_MAD_AT_LOCAL_ID = 24, VRB_MAD_AT_REMOTE_ID = 28 };

/* Names: base/names.h, kind c. */
enum vrb_cm_kind {
	VRB_CM_REQ = 0x10,
	VRB_CM_MRA,
	VRB_CM_REJ,
	VRB_CM_REP,
	VRB_CM_RTU,
	VRB_CM_DREQ,
	VRB_CM_DREP,
	VRB_CM_SIDR_REQ,
	VRB_CM_SIDR_REP,
	VRB_CM_LAP,
	VRB_CM_APR,
};

enum { /* what MRA and REJ are about */ VRB_CM_ABOUT_REQ = 0,
       VRB_CM_ABOUT_REP,
       VRB_CM_ABOUT_OTHER };
enum { VRB_CM_REJ_SERVICE_ID = 8, VRB_CM_REJ_CONSUMER = 28 }; /* IBA 12.6.7.2 */
enum { VRB_CM_SIDR_VALID = 0, VRB_CM_SIDR_NO_SERVICE = 1 };   /* IBA 12.11: SIDR_REP status */

struct vrb_cm_path {
	struct vrb_gid local, remote;
	uint16_t local_lid, remote_lid; /* 0xffff on RoCE */
	uint32_t flow_label;
	uint8_t rate, tclass, hop_limit, sl, ack_timeout;
	bool subnet_local;
};

/* A message as values. Which fields mean something follows from the kind: behind each the kinds
 * that have it. */
struct vrb_cm {
	enum vrb_cm_kind kind;
	uint64_t tid;
	uint32_t local_id, remote_id; /* SIDR_REQ: local, SIDR_REP: remote */
	uint64_t service_id;	      /* REQ, SIDR_REQ, SIDR_REP */
	vrb_qpn qpn;		      /* REQ, REP, SIDR_REP: the sender's; DREQ: the receiver's */
	uint32_t qkey;		      /* REQ, REP, SIDR_REP */
	uint16_t pkey;		      /* REQ, SIDR_REQ */
	uint64_t guid;		      /* REQ, REP: of the sender's adapter */
	struct vrb_psn psn;	      /* REQ, REP: with which the receiver begins to send */
	uint8_t resources, depth;     /* REQ, REP: READs served, and made */
	uint8_t remote_timeout, local_timeout, max_retries; /* REQ: of CM messages */
	uint8_t transport, ext_transport;		    /* REQ */
	uint8_t mtu, retry;				    /* REQ */
	uint8_t rnr_retry;				    /* REQ, REP */
	bool flow_control, srq;				    /* REQ, REP */
	uint8_t ack_delay, failover;			    /* REP */
	uint8_t about;					    /* MRA, REJ */
	uint8_t service_timeout;			    /* MRA */
	uint16_t reason;				    /* REJ */
	uint8_t status;					    /* SIDR_REP */
	struct vrb_cm_path path, alternate;		    /* REQ */
	const uint8_t *info;				    /* REJ, SIDR_REP: additional */
	uint8_t info_len;
	const uint8_t *data; /* private; parse: as long as the kind's place */
	uint32_t data_len;
};

/* Reads len bytes; info and data point into them. VRB_OK, or why it is no message; then out is
 * undefined and `why` (or NULL) holds the values. */
enum vrb_verdict vrb_cm_parse(const uint8_t *bytes, size_t len, struct vrb_cm *out,
			      struct vrb_report *why);

/* Writes all of out. False, with nothing written: the kind is none, or private data or additional
 * information have no room. */
bool vrb_cm_emit(const struct vrb_cm *cm, uint8_t out[VRB_MAD_LEN]);

/* One line of text: kind, service id, ids, why; returns its length. */
size_t vrb_cm_dump(char *out, size_t size, const struct vrb_cm *cm);

/* Bytes of private data that a message may carry; 0: no such kind. */
uint32_t vrb_cm_data_max(uint32_t kind);

/* True: it asks for a service, and belongs to who listens there; else to the owner of remote_id. */
static inline bool vrb_cm_asks(enum vrb_cm_kind kind)
{
	return kind == VRB_CM_REQ || kind == VRB_CM_SIDR_REQ;
}

/* What a REQ or SIDR_REQ is answered where nobody listens. False: cm is neither. */
bool vrb_cm_refuse_service(const struct vrb_cm *cm, struct vrb_cm *answer);

#endif
