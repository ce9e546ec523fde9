/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: one call fills several buffers, each with one datagram or a run of equal ones that the
 * kernel has merged (UDP_GRO); packets are cut out of them one by one and their ICRC is checked.
 * How many buffers a call is given follows what the last one found, so that a lone packet costs no
 * second look. Everything here is the sender's, and believed only as far as it was checked.
 */
#include "link/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <netinet/udp.h>
#include <sys/mman.h>

#include "link/udp_addr.h"
#include "link/udp_parts.h"

struct vrb_udp_rx {
	struct mmsghdr msg[VRB_UDP_RECVS];
	struct iovec iov[VRB_UDP_RECVS];
	union vrb_udp_addr from[VRB_UDP_RECVS];
	union {
		struct cmsghdr h;
		uint8_t bytes[4 * CMSG_SPACE(sizeof(int))];
	} control[VRB_UDP_RECVS];
	uint8_t *buffers;
	uint32_t want, n, i;   /* buffers asked for, filled, being cut */
	uint32_t off, seg_len; /* in buffer i; off 0: not begun */
	struct vrb_net net;    /* of buffer i */
	uint16_t next_id;      /* the identification expected */
	struct vrb_icrc_back back;
};

int vrb_udp_rx_open(struct vrb_udp *u)
{
	struct vrb_udp_rx *rx = calloc(1, sizeof(*rx));

	if (!rx)
		return -ENOMEM;
	rx->buffers = mmap(NULL, (size_t)VRB_UDP_RECVS * VRB_UDP_BUFFER, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (rx->buffers == MAP_FAILED) {
		free(rx);
		return -ENOMEM;
	}
	rx->want = 1;
	for (uint32_t i = 0; i < VRB_UDP_RECVS; i++)
		rx->iov[i] = (struct iovec){rx->buffers + i * VRB_UDP_BUFFER, VRB_UDP_BUFFER};
	u->rx = rx;
	return 0;
}

void vrb_udp_rx_close(struct vrb_udp *u)
{
	if (!u->rx)
		return;
	munmap(u->rx->buffers, (size_t)VRB_UDP_RECVS * VRB_UDP_BUFFER);
	free(u->rx);
	u->rx = NULL;
}

static void adapt(struct vrb_udp_rx *rx)
{
	if (rx->n == rx->want)
		rx->want *= 2;
	else
		rx->want = rx->n ? rx->n : 1;
	if (rx->want > VRB_UDP_RECVS)
		rx->want = VRB_UDP_RECVS;
}

uint32_t vrb_udp_fill(struct vrb_udp *u)
{
	struct vrb_udp_rx *rx = u->rx;
	int n;

	for (uint32_t i = 0; i < rx->want; i++)
		rx->msg[i].msg_hdr = (struct msghdr){.msg_name = &rx->from[i],
						     .msg_namelen = sizeof(rx->from[i]),
						     .msg_iov = &rx->iov[i],
						     .msg_iovlen = 1,
						     .msg_control = rx->control[i].bytes,
						     .msg_controllen = sizeof(rx->control[i])};
	n = recvmmsg(u->rx_fd, rx->msg, rx->want, MSG_DONTWAIT, NULL);
	rx->n = n < 0 ? 0 : (uint32_t)n;
	rx->i = rx->off = 0;
	adapt(rx);
	return rx->n;
}

/* The first look at buffer i: who sent it, and what the control messages say. */
static void begin(struct vrb_udp *u)
{
	struct vrb_udp_rx *rx = u->rx;
	struct msghdr *m = &rx->msg[rx->i].msg_hdr;
	struct vrb_net *n = &rx->net;
	int v;

	*n = (struct vrb_net){.dst = u->gid, .df = true, .dport = VRB_ROCE_PORT};
	n->sport = vrb_udp_gid(&rx->from[rx->i], &n->src);
	n->ttl = VRB_UDP_HOPS;
	rx->seg_len = rx->msg[rx->i].msg_len;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		v = *(uint8_t *)CMSG_DATA(h); /* IP_TOS comes as one byte */
		if (h->cmsg_len >= CMSG_LEN(sizeof(v)))
			memcpy(&v, CMSG_DATA(h), sizeof(v));
		if (h->cmsg_level == IPPROTO_UDP)
			rx->seg_len = h->cmsg_type == UDP_GRO && v > 0 ? (uint32_t)v : rx->seg_len;
		else if (h->cmsg_type == (u->v4 ? IP_TOS : IPV6_TCLASS))
			n->tclass = (uint8_t)v;
		else if (h->cmsg_type == (u->v4 ? IP_TTL : IPV6_HOPLIMIT))
			n->ttl = (uint8_t)v;
	}
}

static enum vrb_verdict check(struct vrb_udp_rx *rx, bool v4, const uint8_t *at, uint32_t len,
			      struct vrb_report *why)
{
	uint8_t net[VRB_NET_MAX];
	struct vrb_icrc_hidden h;
	enum vrb_verdict v;

	rx->net.ip_id = rx->next_id;
	if (len < VRB_BTH_LEN + VRB_ICRC_LEN) {
		*why = (struct vrb_report){.verdict = VRB_V_DROP_SHORT,
					   .val = {len, len ? at[0] : 0}};
		return VRB_V_DROP_SHORT;
	}
	if (!v4)
		return vrb_icrc_check(net, vrb_net_emit(&rx->net, len, net), at, len, why);
	(void)vrb_net_emit(&rx->net, len, net);
	v = vrb_icrc_check_hidden(net, at, len, &rx->back, &h);
	if (v == VRB_OK)
		rx->net.ip_id = h.ip_id;
	else
		*why = h.why;
	return v;
}

/* Cuts the next one off: 2 when it was a probe. */
static int next(struct vrb_udp *u, struct vrb_udp_packet *out, struct vrb_report *why)
{
	struct vrb_udp_rx *rx = u->rx;
	const uint8_t *at;
	uint32_t left, len;

	if (rx->i == rx->n)
		return 0;
	if (rx->off == 0)
		begin(u);
	left = rx->msg[rx->i].msg_len - rx->off;
	len = left < rx->seg_len ? left : rx->seg_len;
	at = (uint8_t *)rx->iov[rx->i].iov_base + rx->off;
	/* Verbena's own IDs begin with 0 in each send; others count on. */
	if (rx->off == 0 && rx->next_id < VRB_UDP_SEGMENTS)
		rx->next_id = 0;
	rx->off += len;
	if (len == left) {
		rx->i++;
		rx->off = 0;
	}
	if (vrb_unlikely(vrb_udp_steer_is_probe(u, &rx->net, at, len))) {
		vrb_udp_steer_answer(u, &rx->net, at);
		return 2;
	}
	if (check(rx, u->v4, at, len, why) != VRB_OK)
		return -1;
	rx->next_id = (uint16_t)(rx->net.ip_id + 1);
	out->net = rx->net;
	out->bytes = at;
	out->len = len - VRB_ICRC_LEN;
	return 1;
}

int vrb_udp_next(struct vrb_udp *u, struct vrb_udp_packet *out, struct vrb_report *why)
{
	int r;

	do /* bounded by what the last fill has brought */
		r = next(u, out, why);
	while (r == 2);
	return r;
}
