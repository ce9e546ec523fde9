/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cutting what the socket gives (link/udp_rx.c): buffers of any bytes, merged at any size, with any
 * control messages. Each piece comes out once, as a packet that lies inside its buffer or as a
 * verdict, and a piece whose ICRC was right for it comes out as a packet.
 */
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "fuzz/calls.h"
#include "fuzz/fuzz.h"
#include "link/udp_addr.h"
#include "link/udp_parts.h"

#define BUFFERS 6u
#define BUFFER	(1u << 12)

struct buffer {
	uint32_t len, seg_len, tclass, ttl;
	bool tos_byte, sealed;
	uint8_t bytes[BUFFER];
};

static const struct vrb_gid self4 = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};
static const struct vrb_gid peer4 = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};
static const struct vrb_gid self6 = {{0xfd, [15] = 1}}, peer6 = {{0xfd, [15] = 2}};
static struct vrb_udp udp;
static struct buffer buffer[BUFFERS];
static uint32_t n_buffers, n_given;
static bool hang_up; /* the kernel has given no control messages */

static void add_control(struct msghdr *m, int level, int type, const void *v, size_t len)
{
	struct cmsghdr *h = (void *)((uint8_t *)m->msg_control + m->msg_controllen);

	h->cmsg_level = level;
	h->cmsg_type = type;
	h->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(h), v, len);
	m->msg_controllen += CMSG_SPACE(len);
}

static void give(const struct buffer *b, struct mmsghdr *to)
{
	struct msghdr *m = &to->msg_hdr;
	uint8_t tos = (uint8_t)b->tclass;
	int v = (int)b->seg_len, level = udp.v4 ? IPPROTO_IP : IPPROTO_IPV6;

	FZ_CHECK(m->msg_iovlen == 1 && m->msg_iov->iov_len >= b->len);
	memcpy(m->msg_iov->iov_base, b->bytes, b->len);
	to->msg_len = b->len;
	m->msg_namelen = vrb_udp_addr(m->msg_name, udp.v4 ? &peer4 : &peer6, 0, 0xc001);
	m->msg_controllen = 0;
	if (hang_up)
		return;
	if (b->seg_len)
		add_control(m, IPPROTO_UDP, UDP_GRO, &v, sizeof(v));
	if (b->tos_byte && udp.v4)
		add_control(m, level, IP_TOS, &tos, sizeof(tos));
	else
		add_control(m, level, udp.v4 ? IP_TOS : IPV6_TCLASS, &b->tclass, sizeof(b->tclass));
	add_control(m, level, udp.v4 ? IP_TTL : IPV6_HOPLIMIT, &b->ttl, sizeof(b->ttl));
}

unsigned int fz_receive(struct mmsghdr *m, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && n_given < n_buffers; i++)
		give(&buffer[n_given++], &m[i]);
	return i;
}

void fz_sent(const struct fz_out *out)
{
	(void)out;
	FZ_CHECK(false); /* only probes are answered, and none comes */
}

static uint32_t piece_len(const struct buffer *b)
{
	return b->seg_len && !hang_up && b->seg_len < b->len ? b->seg_len : b->len;
}

/* The ICRC that each piece needs, with identifications that count. */
static void seal(struct buffer *b, uint16_t first_id)
{
	struct vrb_net net = {.src = udp.v4 ? peer4 : peer6,
			      .dst = udp.gid,
			      .df = true,
			      .ip_id = first_id,
			      .sport = 0xc001,
			      .dport = VRB_ROCE_PORT};
	uint8_t headers[VRB_NET_MAX], *at = b->bytes;

	b->sealed = true;
	for (uint32_t left = b->len, n; left; left -= n, at += n, net.ip_id++) {
		n = left < piece_len(b) ? left : piece_len(b);
		if (n < VRB_BTH_LEN + VRB_ICRC_LEN)
			continue;
		vrb_icrc_store(vrb_icrc_start(headers, vrb_net_emit(&net, n, headers), at,
					      n - VRB_ICRC_LEN),
			       at + n - VRB_ICRC_LEN);
	}
}

static void fill(struct fz *f, struct buffer *b)
{
	uint8_t shape = fz_u8(f), seed = fz_u8(f);

	memset(b, 0, offsetof(struct buffer, bytes));
	b->len = fz_u32(f) % (BUFFER + 1);
	if (shape & 1)
		b->len %= 256;
	if (shape & 2)
		b->seg_len = shape & 4 ? fz_u8(f) : fz_u32(f) % 70000u;
	b->tos_byte = shape & 8;
	b->tclass = fz_u8(f);
	b->ttl = fz_u8(f);
	for (uint32_t i = 0; i < b->len; i++)
		b->bytes[i] = (uint8_t)(i < 64 && f->n ? fz_u8(f) : seed + i);
	if (shape & 16)
		seal(b, shape & 32 ? (uint16_t)fz_u32(f) : 0);
}

/* All pieces of one buffer. A probe of our own address is none of them: its source is the peer. */
static void take(const struct buffer *b)
{
	uint32_t piece = piece_len(b), left = b->len;
	struct vrb_report why;
	struct vrb_udp_packet p;

	do {
		uint32_t n = left < piece ? left : piece;
		int r = vrb_udp_next(&udp, &p, &why);

		FZ_CHECK(r == 1 || r == -1 || r == VRB_UDP_ASK);
		if (r == VRB_UDP_ASK) {
			struct vrb_ask ask;

			FZ_CHECK(p.len == n && n >= VRB_ASK_LEN);
			(void)vrb_ask_parse(p.bytes, p.len, &ask);
		} else if (r == 1) {
			FZ_CHECK(p.len + VRB_ICRC_LEN == n);
			FZ_CHECK(!memcmp(p.bytes, b->bytes + (b->len - left), p.len));
			FZ_CHECK(!memcmp(&p.net.dst, &udp.gid, sizeof(udp.gid)));
			FZ_CHECK(hang_up || p.net.tclass == (uint8_t)b->tclass);
		} else {
			FZ_CHECK(why.verdict == VRB_V_DROP_SHORT || why.verdict == VRB_V_DROP_ICRC);
			FZ_CHECK(!b->sealed || n < VRB_BTH_LEN + VRB_ICRC_LEN);
		}
		left -= n;
	} while (left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz f = {data, size};
	uint8_t b = fz_u8(&f);
	struct vrb_report why;
	struct vrb_udp_packet p;
	uint32_t taken = 0;

	udp = (struct vrb_udp){.rx_fd = -1, .v4 = b & 1, .gid = b & 1 ? self4 : self6};
	hang_up = (b & 6) == 6;
	FZ_CHECK(!vrb_udp_rx_open(&udp) && !vrb_udp_steer_open(&udp, 1));
	n_given = n_buffers = 0;
	fz_live = true;
	while (n_buffers < BUFFERS && f.n)
		fill(&f, &buffer[n_buffers++]);
	while (vrb_udp_fill(&udp))
		for (; taken < n_given; taken++)
			take(&buffer[taken]);
	FZ_CHECK(taken == n_buffers && vrb_udp_next(&udp, &p, &why) == 0);
	vrb_udp_steer_close(&udp);
	vrb_udp_rx_close(&udp);
	return 0;
}
