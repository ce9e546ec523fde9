/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight line of a small SEND that arrives by the wire, as hca/fast.c has it for shared
 * memory: no effects and no header values, by the predicates of core/qp_fast.h. What they do not
 * take is left in place for the full step. Requests and acknowledgements always take that one:
 * their timers and the window belong to it.
 */
#include "base/bytes.h"
#include "core/qp_fast.h"
#include "hca/wire.h"
#include "hca/wire_parts.h"

#include <string.h>

#define OP_SEND_ONLY (VRB_TP_RC | VRB_OP_SEND_ONLY)
#define PKEY_DEFAULT 0xffffu

static bool take_send(struct vrb_engine *e, struct vrb_hqp *q, const uint8_t *bth, uint32_t rest)
{
	uint32_t pad = bth[1] >> 4 & 3, len = rest - pad;
	struct vrb_qp *c = &q->core;
	void *dst;

	/* IBA 9.2.3: payload and pad make whole words, with no word of pad alone */
	if (rest % 4 || pad > rest || pad != vrb_pkt_pad(len))
		return false;
	dst = vrb_qp_fast_recv(c, vrb_get_be24(bth + 9), len);
	if (!dst)
		return false;
	memcpy(dst, bth + VRB_BTH_LEN, len);
	vrb_qp_fast_recv_done(c, len, bth[8] & 0x80);
	q->count.rx_packets++;
	q->count.rx_bytes += len;
	if (c->ack_pending)
		vrb_engine_owes(e, q, !vrb_wire_ack_waits(e, q, len));
	return true;
}

bool vrb_wire_fast_take(struct vrb_engine *e, struct vrb_wire_addr *a,
			const struct vrb_udp_packet *p)
{
	const uint8_t *bth = p->bytes;
	vrb_qpn qpn = vrb_get_be24(bth + 5);
	struct vrb_hqp *q = e->qp[qpn & VRB_QPN_INDEX_MASK];

	/* IBA C9-6: transport version 0; 9.6.1.1: the default partition, from its peer only */
	if (bth[0] != OP_SEND_ONLY || vrb_unlikely(e->faults || e->tap) ||
	    (p->net.tclass & VRB_ECN_MASK) == VRB_ECN_CE || qpn >> VRB_QPN_INDEX_BITS != e->slot ||
	    !q || q->core.type != VRB_QPT_RC || q->wire.addr != a || bth[1] & 0x0f ||
	    (vrb_get_be16(bth + 2) & 0x7fff) != (PKEY_DEFAULT & 0x7fff) ||
	    memcmp(&q->wire.dst, &p->net.src, sizeof(p->net.src)))
		return false;
	return take_send(e, q, bth, p->len - VRB_BTH_LEN);
}
