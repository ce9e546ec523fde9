/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes to QP 1: is it a message, and whose? The kernel's program (link/udp_steer.c) has
 * looked at the same bytes; when members come and go it is wrong for a moment, and several messages
 * merged into one buffer go where the first belongs. So everything is looked at again here, and
 * handed on once at most: by the ring of its owner's slot as any stranger's packet is, or, a
 * request, by the name of its service id.
 */
#include "hca/faults.h"
#include "hca/gsi_parts.h"
#include "hca/peer.h"
#include "hca/tap.h"
#include "hca/wire_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PKEY_DEFAULT	   0xffffu
#define SLOT_SHIFT	   24
#define REFUSED_PER_SECOND 1000u

static void refuse(struct vrb_engine *e, const struct vrb_report *why)
{
	vrb_hca_refuse(why);
	if (vrb_unlikely(e->tap))
		vrb_tap_stray(e, why, false);
}

static void drop(struct vrb_engine *e, enum vrb_verdict v, uint64_t a, uint64_t b, uint64_t c)
{
	const struct vrb_report r = {.verdict = v, .val = {a, b, c}};

	refuse(e, &r);
}

/* IBA 9.6.1 and 13.5: who may send to QP 1, and how. */
static bool is_for_gsi(const struct vrb_pkt *pkt, struct vrb_report *why)
{
	*why = (struct vrb_report){0};
	if (pkt->op.v != (VRB_TP_UD | VRB_OP_SEND_ONLY))
		*why = (struct vrb_report){.verdict = VRB_V_DROP_TRANSPORT,
					   .val = {pkt->op.v, VRB_QPT_UD}};
	else if ((pkt->pkey & 0x7fffu) != (PKEY_DEFAULT & 0x7fffu))
		*why = (struct vrb_report){.verdict = VRB_V_DROP_PKEY,
					   .val = {pkt->pkey, PKEY_DEFAULT}};
	else if (pkt->qkey != VRB_GSI_QKEY)
		*why = (struct vrb_report){.verdict = VRB_V_DROP_QKEY,
					   .val = {pkt->qkey, VRB_GSI_QKEY}};
	else if (pkt->sqpn != VRB_GSI_QPN)
		*why = (struct vrb_report){.verdict = VRB_V_DROP_GSI_SOURCE, .val = {pkt->sqpn}};
	return why->verdict == VRB_OK;
}

static bool is_struck(struct vrb_engine *e, const struct vrb_udp_packet *p)
{
	const struct vrb_faults_aside a = {VRB_GSI_QPN, 0, VRB_FAULT_RX,
					   (uint32_t)vrb_net_len(&p->net) + p->len + VRB_ICRC_LEN};

	return e->faults && vrb_faults_aside(e->faults, &a);
}

static void deliver(struct vrb_engine *e, const struct vrb_udp_packet *p, const struct vrb_pkt *pkt,
		    const struct vrb_cm *cm)
{
	struct vrb_gsi *g = e->gsi;
	const struct vrb_gsi_mad mad = {.src = p->net.src,
					.dst = p->net.dst,
					.tclass = p->net.tclass,
					.hop_limit = p->net.ttl,
					.bytes = pkt->payload,
					.cm = *cm};

	if (!g || !g->on) {
		drop(e, VRB_V_CM_NO_OWNER, cm->kind, cm->remote_id, 0);
		return;
	}
	if (vrb_unlikely(e->tap))
		vrb_tap_stray(e, NULL, false);
	g->on(g->arg, &mad);
}

/* ---- requests */

static bool may_refuse(struct vrb_engine *e)
{
	vrb_ns second = vrb_peek(&e->now) / VRB_NS_PER_S;
	struct vrb_gsi *g = vrb_gsi_get(e);

	if (!g)
		return false;
	if (g->refused_in != second) {
		g->refused_in = second;
		g->n_refused = 0;
	}
	return g->n_refused++ < REFUSED_PER_SECOND;
}

/* IBA 12.6.7, 12.11: as any connection manager does, so that the client need not wait in vain. */
static void refuse_service(struct vrb_engine *e, struct vrb_wire_addr *a,
			   const struct vrb_udp_packet *p, const struct vrb_cm *cm)
{
	struct vrb_udp_flow f = {.dst = p->net.src,
				 .tclass = p->net.tclass & (uint8_t)~VRB_ECN_MASK};
	uint8_t mad[VRB_MAD_LEN];
	struct vrb_cm answer;

	if (!may_refuse(e)) {
		drop(e, VRB_V_CM_UNANSWERED, REFUSED_PER_SECOND, 0, 0);
		return;
	}
	drop(e, VRB_V_CM_NO_LISTENER, cm->kind, cm->service_id, cm->service_id & 0xffff);
	f.lane = vrb_wire_lane(vrb_wire_hash_addresses(&a->udp->gid, &f.dst),
			       vrb_wire_hash_qpns(VRB_GSI_QPN, 0));
	if (vrb_cm_refuse_service(cm, &answer) && vrb_cm_emit(&answer, mad))
		(void)vrb_gsi_push(e, a, &f, mad);
}

/* To the process that has claimed the service id. 0, -ECONNREFUSED: none has, or -errno. */
static int hand_over(struct vrb_engine *e, const struct vrb_udp_packet *p, uint64_t service_id)
{
	const struct vrb_meet_hello hello = {.magic = VRB_MEET_MAGIC,
					     .version = VRB_MEET_VERSION,
					     .type = VRB_MEET_MAD,
					     .slot = e->slot,
					     .pid = (uint32_t)getpid()};
	int old = vrb_cancel_off(), sock = vrb_gsi_call(service_id), err = sock;
	struct iovec iov[] = {{(void *)(uintptr_t)&hello, sizeof(hello)},
			      {(void *)(uintptr_t)&p->net, sizeof(p->net)},
			      {(void *)(uintptr_t)p->bytes, p->len}};
	const struct msghdr m = {.msg_iov = iov, .msg_iovlen = 3};

	if (sock >= 0) {
		err = sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
		close(sock);
	}
	vrb_cancel_restore(old);
	return err;
}

static void take_request(struct vrb_engine *e, struct vrb_wire_addr *a,
			 const struct vrb_udp_packet *p, const struct vrb_pkt *pkt,
			 const struct vrb_cm *cm)
{
	int err;

	if (vrb_gsi_find_claim(e, cm->service_id)) {
		deliver(e, p, pkt, cm);
		return;
	}
	/* a == NULL: handed to us because we had the claim a moment ago */
	err = a ? hand_over(e, p, cm->service_id) : -ENOENT;
	if (err == -ECONNREFUSED)
		refuse_service(e, a, p, cm);
	else if (err)
		drop(e, VRB_V_CM_BUSY, cm->kind, cm->service_id, (uint64_t)-err);
}

/* ---- all */

bool vrb_gsi_take(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_packet *p,
		  const struct vrb_pkt *pkt, bool from_socket)
{
	struct vrb_report why;
	struct vrb_cm cm;
	uint32_t slot;

	if (!is_for_gsi(pkt, &why) || vrb_cm_parse(pkt->payload, pkt->len, &cm, &why) != VRB_OK) {
		refuse(e, &why);
		return true;
	}
	if (from_socket && is_struck(e, p))
		return true;
	if (vrb_cm_asks(cm.kind)) {
		take_request(e, from_socket ? a : NULL, p, pkt, &cm);
		return true;
	}
	slot = cm.remote_id >> SLOT_SHIFT;
	if (slot == e->slot) {
		deliver(e, p, pkt, &cm);
		return true;
	}
	if (from_socket) {
		enum vrb_wire_fate fate = vrb_wire_pass_on(e, a, p, slot, VRB_GSI_QPN);

		if (fate != VRB_WIRE_GOES)
			return fate == VRB_WIRE_KEPT;
	}
	drop(e, VRB_V_CM_NO_OWNER, cm.kind, cm.remote_id, 0);
	return true;
}
