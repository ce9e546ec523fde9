/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: one call fills several buffers, each with one datagram or a run of equal ones that the
 * kernel has merged (UDP_GRO); packets are cut out of them one by one and their ICRC is checked.
 * How many buffers a call is given follows what the last one found, so that a lone packet costs no
 * second look, and what is filled stays in the cache until it is placed. Everything here is the
 * sender's, and believed only as far as it was checked.
 *
 * The ICRC is checked before anything else is looked at, in a pass of its own: the headers say
 * where the bytes belong, so nothing can be placed before. The copy then finds them in the nearest
 * cache.
 */
#include "link/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <netinet/udp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/bytes.h"
#include "link/udp_addr.h"
#include "link/udp_parts.h"

#define PROBED	   3
#define FILL_BYTES (4 * VRB_UDP_BUFFER) /* by one call, when packets come merged */

struct vrb_udp_rx {
	struct mmsghdr msg[VRB_UDP_RECVS];
	struct iovec iov[VRB_UDP_RECVS];
	union vrb_udp_addr from[VRB_UDP_RECVS];
	union {
		struct cmsghdr h;
		uint8_t bytes[4 * CMSG_SPACE(sizeof(int))];
	} control[VRB_UDP_RECVS];
	uint8_t *buffers;
	bool was_busy;		      /* the last fill found something */
	uint32_t want, n, i;	      /* buffers asked for, filled, being cut */
	uint32_t off, seg_len;	      /* in buffer i; off 0: not begun */
	struct vrb_net net;	      /* of buffer i */
	uint8_t head[VRB_NET_MAX];    /* the same as bytes, for packets of head_len */
	uint32_t head_len, head_size; /* head_len 0: not made yet */
	uint16_t next_id;	      /* the identification expected */
	struct vrb_icrc_back back;
};

/* What the kernel overwrites when it fills a buffer. */
static void restore(struct vrb_udp_rx *rx, uint32_t i)
{
	rx->msg[i].msg_hdr.msg_namelen = sizeof(rx->from[i]);
	rx->msg[i].msg_hdr.msg_controllen = sizeof(rx->control[i]);
}

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
	for (uint32_t i = 0; i < VRB_UDP_RECVS; i++) {
		rx->iov[i] = (struct iovec){rx->buffers + i * VRB_UDP_BUFFER, VRB_UDP_BUFFER};
		rx->msg[i].msg_hdr = (struct msghdr){.msg_name = &rx->from[i],
						     .msg_iov = &rx->iov[i],
						     .msg_iovlen = 1,
						     .msg_control = rx->control[i].bytes};
		restore(rx, i);
	}
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
	uint32_t bytes = 0, max = VRB_UDP_RECVS;

	for (uint32_t i = 0; i < rx->n; i++)
		bytes += rx->msg[i].msg_len;
	if (rx->n && bytes / rx->n > FILL_BYTES / VRB_UDP_RECVS)
		max = FILL_BYTES / VRB_UDP_BUFFER;
	if (rx->n < rx->want)
		rx->want = rx->n ? rx->n : 1;
	else if (rx->was_busy) /* one that comes alone is mostly the last */
		rx->want *= 2;
	rx->was_busy = rx->n > 0;
	if (rx->want > max)
		rx->want = max;
}

/* No cancellation points: the caller holds a lock. */
static long receive(struct vrb_udp *u)
{
	struct vrb_udp_rx *rx = u->rx;
	long n;

	if (rx->want > 1)
		return syscall(SYS_recvmmsg, u->rx_fd, rx->msg, rx->want, MSG_DONTWAIT, NULL);
	/* the look that mostly finds nothing */
	n = syscall(SYS_recvmsg, u->rx_fd, &rx->msg[0].msg_hdr, MSG_DONTWAIT);
	if (n < 0)
		return n;
	rx->msg[0].msg_len = (unsigned)n;
	return 1;
}

bool vrb_udp_has_more(const struct vrb_udp *u)
{
	return u->rx->i != u->rx->n;
}

uint32_t vrb_udp_fill(struct vrb_udp *u)
{
	struct vrb_udp_rx *rx = u->rx;
	long n;

	for (uint32_t i = 0; i < rx->n; i++)
		restore(rx, i);
	n = receive(u);
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
	rx->head_len = 0;
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

/* The headers in front of a packet of len bytes. */
static void make_head(struct vrb_udp_rx *rx, uint32_t len)
{
	if (rx->head_len != len) {
		rx->head_len = len;
		rx->head_size = (uint32_t)vrb_net_emit(&rx->net, len, rx->head);
	}
}

static enum vrb_verdict check(struct vrb_udp_rx *rx, bool v4, const uint8_t *at, uint32_t len,
			      struct vrb_report *why)
{
	struct vrb_icrc_hidden h;
	enum vrb_verdict v;

	rx->net.ip_id = rx->next_id;
	if (len < VRB_BTH_LEN + VRB_ICRC_LEN) {
		*why = (struct vrb_report){.verdict = VRB_V_DROP_SHORT,
					   .val = {len, len ? at[0] : 0}};
		return VRB_V_DROP_SHORT;
	}
	make_head(rx, len);
	if (!v4)
		return vrb_icrc_check(rx->head, rx->head_size, at, len, why);
	/* the header's checksum does not count */
	vrb_put_be16(rx->head + VRB_IPV4_ID, rx->next_id);
	v = vrb_icrc_check_hidden(rx->head, at, len, &rx->back, &h);
	if (v == VRB_OK)
		rx->net.ip_id = h.ip_id;
	else
		*why = h.why;
	return v;
}

/* What has the opcode of ours and no ICRC. 0: it is a packet. */
static int own(struct vrb_udp *u, struct vrb_udp_packet *out)
{
	const uint8_t *at = out->bytes;
	struct vrb_ask ask;

	if (vrb_udp_steer_is_probe(u, &u->rx->net, at, out->len)) {
		vrb_udp_steer_answer(u, &u->rx->net, at);
		return PROBED;
	}
	out->net = u->rx->net;
	return vrb_ask_parse(at, out->len, &ask) ? VRB_UDP_ASK : 0;
}

/* Cuts the next one off: PROBED when it was a probe. */
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
	out->bytes = at;
	out->len = len;
	if (vrb_unlikely(len && at[0] >= VRB_ASK_OPCODE)) {
		int r = own(u, out);

		if (r)
			return r;
	}
	if (check(rx, u->v4, at, len, why) != VRB_OK) {
		out->net = rx->net;
		return -1;
	}
	rx->next_id = (uint16_t)(rx->net.ip_id + 1);
	out->net = rx->net;
	out->len = len - VRB_ICRC_LEN;
	return 1;
}

int vrb_udp_next(struct vrb_udp *u, struct vrb_udp_packet *out, struct vrb_report *why)
{
	int r;

	do /* bounded by what the last fill has brought */
		r = next(u, out, why);
	while (r == PROBED);
	return r;
}
