/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: packets of one flow are laid one behind the other in the batch, with their ICRC, and
 * leave by one call, cut into segments by the kernel or the interface (UDP_SEGMENT). The n-th
 * segment of a send has the identification n. The CRC is that of the bytes copied, so that memory
 * which changes meanwhile (a READ of a flag) makes no packet that the receiver drops. A send that
 * fails loses its packets, as a wire would. System calls are bare ones: the caller holds a lock,
 * and a thread is not cancelled in it.
 */
#include "link/udp.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <netinet/udp.h>
#include <sys/syscall.h>

#include "base/bytes.h"
#include "link/udp_addr.h"
#include "link/udp_parts.h"

#define LONE_SENDS 4u

static bool same_flow(const struct vrb_udp_flow *a, const struct vrb_udp_flow *b)
{
	return a->lane == b->lane && a->tclass == b->tclass && a->hop_limit == b->hop_limit &&
	       !memcmp(&a->dst, &b->dst, sizeof(a->dst));
}

static bool goes_along(const struct vrb_udp_batch *b, const struct vrb_udp *u,
		       const struct vrb_udp_flow *f, uint32_t len)
{
	return !b->full && b->udp == u && len <= b->seg_len && same_flow(&b->flow, f);
}

/* Nothing more goes along; last: the length of the last packet. */
static bool is_full(const struct vrb_udp_batch *b, uint32_t last)
{
	return last < b->seg_len || b->n == VRB_UDP_SEGMENTS ||
	       b->len + b->seg_len > VRB_UDP_SEND_MAX || b->udp->no_gso;
}

/* The payload and its pad to at, behind what crc covers; then the ICRC. */
static void put_payload(uint8_t *at, const struct vrb_seg *seg, uint32_t len, uint32_t crc)
{
	static const uint8_t zeros[3];
	uint32_t pad = vrb_pkt_pad(len);

	for (uint32_t left = len; left; seg++) {
		crc = vrb_icrc_copy(crc, at, seg->base, seg->len);
		at += seg->len;
		left -= seg->len;
	}
	if (pad)
		crc = vrb_icrc_copy(crc, at, zeros, pad);
	vrb_icrc_store(crc, at + pad);
}

/* The ICRC's beginning: over the headers as they will be on the wire. len: of the packet. */
static uint32_t start_icrc(struct vrb_udp_batch *b, const uint8_t *headers, uint32_t n,
			   uint32_t len)
{
	if (b->head_len != len) {
		const struct vrb_net net = {.src = b->udp->gid,
					    .dst = b->flow.dst,
					    .df = true,
					    .sport = b->udp->lane[b->flow.lane].port,
					    .dport = VRB_ROCE_PORT};

		b->head_len = len;
		b->head_size = (uint32_t)vrb_net_emit(&net, len, b->head);
	}
	/* the header's checksum does not count */
	if (b->udp->v4)
		vrb_put_be16(b->head + VRB_IPV4_ID, b->n);
	return vrb_icrc_start(b->head, b->head_size, headers, n);
}

void vrb_udp_push(struct vrb_udp_batch *b, struct vrb_udp *u, const struct vrb_udp_flow *f,
		  const struct vrb_pkt *pkt, const struct vrb_seg *seg)
{
	uint8_t headers[VRB_HEADERS_MAX], *at;
	uint32_t n = (uint32_t)vrb_pkt_emit_headers(pkt, headers);
	uint32_t len = n + pkt->len + vrb_pkt_pad(pkt->len) + VRB_ICRC_LEN;
	int fd;

	if (b->n && !goes_along(b, u, f, len))
		vrb_udp_flush(b);
	if (!b->n) {
		b->udp = u;
		b->flow = *f;
		b->seg_len = len;
		b->head_len = 0;
		/* the port is part of the ICRC: the socket must exist */
		fd = vrb_udp_lane(u, f->lane);
		if (fd < 0) {
			u->n_send_failed++;
			u->send_errno = -fd;
			return;
		}
	}
	at = b->bytes + b->len;
	memcpy(at, headers, n);
	put_payload(at + n, seg, pkt->len, start_icrc(b, headers, n, len));
	b->len += len;
	b->n++;
	b->full = is_full(b, len);
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

/* RoCEv2 A17.4.5: the limit of the address vector. Programs that have never been routed leave 0 or
 * 1 there; as with kernel drivers, that does not end at the first router. */
static uint8_t hops_of(const struct vrb_udp_flow *f)
{
	return f->hop_limit > 1 ? f->hop_limit : VRB_UDP_HOPS;
}

static void set_control(const struct vrb_udp_batch *b, struct msghdr *m)
{
	const struct vrb_udp_flow *f = &b->flow;
	const struct vrb_udp_lane *l = &b->udp->lane[f->lane];
	bool v4 = b->udp->v4;
	uint16_t seg_len = b->n > 1 ? (uint16_t)b->seg_len : 0;
	int v;

	if (seg_len || l->seg_set)
		add_control(m, IPPROTO_UDP, UDP_SEGMENT, &seg_len, sizeof(seg_len));
	v = f->tclass;
	if (v != l->tclass_set)
		add_control(m, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &v,
			    sizeof(v));
	v = hops_of(f);
	if (v != l->hops_set)
		add_control(m, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_HOPLIMIT, &v,
			    sizeof(v));
	if (!m->msg_controllen)
		m->msg_control = NULL;
}

static void set_segment(struct vrb_udp_lane *l, uint32_t len)
{
	int v = (int)len;

	if (!setsockopt(l->fd, IPPROTO_UDP, UDP_SEGMENT, &v, sizeof(v)))
		l->seg_set = (uint16_t)len;
}

/* The same for what says how packets travel. */
static void learn_way(const struct vrb_udp_batch *b, struct vrb_udp_lane *l)
{
	int level = b->udp->v4 ? IPPROTO_IP : IPPROTO_IPV6, v = b->flow.tclass;
	uint8_t hops = hops_of(&b->flow);

	if (l->tclass_last == v && l->hops_last == hops) {
		if (!setsockopt(l->fd, level, b->udp->v4 ? IP_TOS : IPV6_TCLASS, &v, sizeof(v)))
			l->tclass_set = (uint8_t)v;
		v = hops;
		if (!setsockopt(l->fd, level, b->udp->v4 ? IP_TTL : IPV6_UNICAST_HOPS, &v,
				sizeof(v)))
			l->hops_set = hops;
	}
	l->tclass_last = b->flow.tclass;
	l->hops_last = hops;
}

static bool knows_way(const struct vrb_udp_batch *b, const struct vrb_udp_lane *l)
{
	return b->flow.tclass == l->tclass_set && hops_of(&b->flow) == l->hops_set;
}

/* The socket does as it should without being told. */
static bool is_plain(const struct vrb_udp_batch *b, const struct vrb_udp_lane *l)
{
	if (!knows_way(b, l))
		return false;
	return b->n > 1 ? l->seg_set == b->seg_len : !l->seg_set || b->len <= l->seg_set;
}

/* A flow mostly sends packets of one length: the socket learns it when it comes twice, since a send
 * without control messages is quicker. Told of a length, it is slower with a lone packet: it
 * forgets when only such come. */
static void learn_segment(const struct vrb_udp_batch *b, struct vrb_udp_lane *l)
{
	if (b->n == 1) {
		if (l->n_lone == LONE_SENDS || ++l->n_lone < LONE_SENDS)
			return;
		l->seg_last = 0;
		if (l->seg_set)
			set_segment(l, 0);
		return;
	}
	l->n_lone = 0;
	if (l->seg_set == b->seg_len)
		return;
	if (l->seg_last == b->seg_len)
		set_segment(l, b->seg_len);
	l->seg_last = (uint16_t)b->seg_len;
}

static long send_batch(const struct vrb_udp_batch *b)
{
	union {
		struct cmsghdr h;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t)) + 2 * CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {(void *)(uintptr_t)b->bytes, b->len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	struct vrb_udp_lane *l = &b->udp->lane[b->flow.lane];
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	union vrb_udp_addr to;
	socklen_t to_len = vrb_udp_addr(&to, &b->flow.dst, b->udp->ifindex, VRB_ROCE_PORT);

	learn_segment(b, l);
	if (!knows_way(b, l))
		learn_way(b, l);
	if (is_plain(b, l))
		return syscall(SYS_sendto, l->fd, b->bytes, b->len, flags, &to, to_len);
	m.msg_name = &to;
	m.msg_namelen = to_len;
	set_control(b, &m);
	return syscall(SYS_sendmsg, l->fd, &m, flags);
}

void vrb_udp_flush(struct vrb_udp_batch *b)
{
	struct vrb_udp *u = b->udp;

	if (!b->n)
		return;
	u->n_sends++;
	if (send_batch(b) < 0) {
		u->n_send_failed++;
		u->send_errno = errno;
		/* a kernel without UDP_SEGMENT: one by one from now on */
		if (errno == EINVAL && b->n > 1)
			u->no_gso = true;
		if (u->lane[b->flow.lane].seg_set)
			set_segment(&u->lane[b->flow.lane], 0);
	}
	b->n = b->len = 0;
	b->full = false;
}
