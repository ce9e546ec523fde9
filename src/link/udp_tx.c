/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: packets of one flow are laid one behind the other in the batch, with their ICRC, and
 * leave by one call, cut into segments by the kernel or the interface (UDP_SEGMENT). The n-th
 * segment of a send has the identification n. Bytes are copied before the CRC is taken, so that
 * memory which changes meanwhile (a READ of a flag) makes no packet that the receiver drops. A send
 * that fails loses its packets, as a wire would.
 */
#include "link/udp.h"

#include <errno.h>
#include <string.h>
#include <netinet/udp.h>

#include "link/udp_addr.h"
#include "link/udp_parts.h"

static bool same_flow(const struct vrb_udp_flow *a, const struct vrb_udp_flow *b)
{
	return a->lane == b->lane && a->tclass == b->tclass && a->hop_limit == b->hop_limit &&
	       !memcmp(&a->dst, &b->dst, sizeof(a->dst));
}

static bool goes_along(const struct vrb_udp_batch *b, const struct vrb_udp *u,
		       const struct vrb_udp_flow *f, uint32_t len)
{
	return b->udp == u && !b->closed && !u->no_gso && len <= b->seg_len &&
	       b->n < VRB_UDP_SEGMENTS && b->len + len <= VRB_UDP_SEND_MAX &&
	       same_flow(&b->flow, f);
}

static uint8_t *put_payload(uint8_t *at, const struct vrb_seg *seg, uint32_t len)
{
	for (uint32_t done = 0; done < len; seg++) {
		memcpy(at + done, seg->base, seg->len);
		done += seg->len;
	}
	memset(at + len, 0, vrb_pkt_pad(len));
	return at + len + vrb_pkt_pad(len);
}

/* Behind the pad: over the headers as they will be on the wire. */
static void put_icrc(const struct vrb_udp_batch *b, uint8_t *packet, uint32_t len)
{
	uint8_t net[VRB_NET_MAX];
	const struct vrb_net n = {.src = b->udp->gid,
				  .dst = b->flow.dst,
				  .df = true,
				  .ip_id = (uint16_t)b->n,
				  .sport = b->udp->lane_port[b->flow.lane],
				  .dport = VRB_ROCE_PORT};
	size_t net_len = vrb_net_emit(&n, len, net);

	vrb_icrc_store(vrb_icrc_start(net, net_len, packet, len - VRB_ICRC_LEN),
		       packet + len - VRB_ICRC_LEN);
}

void vrb_udp_push(struct vrb_udp_batch *b, struct vrb_udp *u, const struct vrb_udp_flow *f,
		  const struct vrb_pkt *pkt, const struct vrb_seg *seg)
{
	uint8_t headers[VRB_HEADERS_MAX], *at;
	uint32_t n = (uint32_t)vrb_pkt_emit_headers(pkt, headers);
	uint32_t len = n + pkt->len + vrb_pkt_pad(pkt->len) + VRB_ICRC_LEN;

	if (b->n && !goes_along(b, u, f, len))
		vrb_udp_flush(b);
	if (!b->n) {
		b->udp = u;
		b->flow = *f;
		b->seg_len = len;
		/* the port is part of the ICRC: the socket must exist */
		if (vrb_udp_lane(u, f->lane) < 0) {
			u->n_send_failed++;
			return;
		}
	}
	at = b->bytes + b->len;
	memcpy(at, headers, n);
	(void)put_payload(at + n, seg, pkt->len);
	put_icrc(b, at, len);
	b->closed = len < b->seg_len;
	b->len += len;
	b->n++;
}

static void add_control(struct msghdr *m, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *h = (void *)((uint8_t *)m->msg_control + m->msg_controllen);

	h->cmsg_level = level;
	h->cmsg_type = type;
	h->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(h), value, len);
	m->msg_controllen += CMSG_SPACE(len);
}

static void set_control(const struct vrb_udp_batch *b, struct msghdr *m)
{
	const struct vrb_udp_flow *f = &b->flow;
	bool v4 = b->udp->v4;
	uint16_t seg_len = (uint16_t)b->seg_len;
	int v;

	if (b->n > 1)
		add_control(m, IPPROTO_UDP, UDP_SEGMENT, &seg_len, sizeof(seg_len));
	v = f->tclass;
	if (v)
		add_control(m, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &v,
			    sizeof(v));
	/* RoCEv2 A17.4.5: the limit of the address vector. Programs that have never been routed
	 * leave 0 or 1 there; as with kernel drivers, that does not end at the first router. */
	v = f->hop_limit;
	if (v > 1 && v != (int)VRB_UDP_HOPS)
		add_control(m, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_HOPLIMIT, &v,
			    sizeof(v));
	if (!m->msg_controllen)
		m->msg_control = NULL;
}

void vrb_udp_flush(struct vrb_udp_batch *b)
{
	union {
		struct cmsghdr h;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t)) + 2 * CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {b->bytes, b->len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	union vrb_udp_addr to;
	struct vrb_udp *u = b->udp;
	ssize_t sent;

	if (!b->n)
		return;
	m.msg_name = &to;
	m.msg_namelen = vrb_udp_addr(&to, &b->flow.dst, u->ifindex, VRB_ROCE_PORT);
	set_control(b, &m);
	sent = sendmsg(u->lane_fd[b->flow.lane], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	u->n_sends++;
	if (sent < 0) {
		u->n_send_failed++;
		u->send_errno = errno;
		/* a kernel without UDP_SEGMENT: one by one from now on */
		if (errno == EINVAL && b->n > 1)
			u->no_gso = true;
	}
	b->n = b->len = 0;
	b->closed = false;
}
