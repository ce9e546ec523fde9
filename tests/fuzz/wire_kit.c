/* SPDX-License-Identifier: BSD-2-Clause */
/* See wire_kit.h: the engine, its memory, and the calls that are replaced. */
#include "fuzz/wire_kit.h"

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "fuzz/calls.h"
#include "hca/wire.h"
#include "link/udp_addr.h"
#include "wire/ask.h"

#define QUEUED	 8u
#define QKEY	 7u
#define FIRST_QP 256u
#define FILL	 0xca

struct wk wk;
static struct arrival {
	uint32_t len, seg_len;
	struct wk_from from;
	uint8_t bytes[WK_BURST_MAX];
} arrival[QUEUED];
static uint32_t n_arrived, n_taken;
static struct slot {
	bool open;
	uint32_t len; /* bytes that may be written */
	uint32_t generation;
} slot[WK_SLOTS];
static uint32_t next_slot;
static uint8_t fixed_copy[WK_AREA], fill[WK_SLOT];

struct vrb_engine *wk_engine(void)
{
	return wk.node.ctx->e;
}

/* ---- replaced calls */

vrb_ns __real_vrb_clock_now(void);
vrb_ns __wrap_vrb_clock_now(void);

vrb_ns __wrap_vrb_clock_now(void)
{
	return fz_live ? wk.now : __real_vrb_clock_now();
}

void __real_vrb_wire_settle(struct vrb_engine *e, struct vrb_wire_addr *a);
void __wrap_vrb_wire_settle(struct vrb_engine *e, struct vrb_wire_addr *a);

/* No answer to a probe of the steering could come while the sockets are ours. */
void __wrap_vrb_wire_settle(struct vrb_engine *e, struct vrb_wire_addr *a)
{
	if (!fz_live)
		__real_vrb_wire_settle(e, a);
}

static void add_control(struct msghdr *m, int level, int type, int v)
{
	struct cmsghdr *h = (void *)((uint8_t *)m->msg_control + m->msg_controllen);

	h->cmsg_level = level;
	h->cmsg_type = type;
	h->cmsg_len = CMSG_LEN(sizeof(v));
	memcpy(CMSG_DATA(h), &v, sizeof(v));
	m->msg_controllen += CMSG_SPACE(sizeof(v));
}

static void give(const struct arrival *a, struct mmsghdr *to)
{
	struct msghdr *m = &to->msg_hdr;
	size_t room = m->msg_controllen;

	FZ_CHECK(m->msg_iovlen == 1 && m->msg_iov->iov_len >= a->len);
	FZ_CHECK(room >= 3 * CMSG_SPACE(sizeof(int)));
	memcpy(m->msg_iov->iov_base, a->bytes, a->len);
	to->msg_len = a->len;
	m->msg_namelen = vrb_udp_addr(m->msg_name, &a->from.src, 0, a->from.sport);
	m->msg_controllen = 0;
	if (a->seg_len)
		add_control(m, IPPROTO_UDP, UDP_GRO, (int)a->seg_len);
	add_control(m, wk.v6 ? IPPROTO_IPV6 : IPPROTO_IP, wk.v6 ? IPV6_TCLASS : IP_TOS,
		    a->from.tclass);
	add_control(m, wk.v6 ? IPPROTO_IPV6 : IPPROTO_IP, wk.v6 ? IPV6_HOPLIMIT : IP_TTL,
		    a->from.ttl);
}

unsigned int fz_receive(struct mmsghdr *m, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && n_taken != n_arrived; i++, n_taken++)
		give(&arrival[n_taken % QUEUED], &m[i]);
	return i;
}

/* What leaves is a packet of ours: right in every field that the peer would look at. */
static void check_sent(const uint8_t *at, uint32_t len, const struct vrb_net *way)
{
	struct vrb_net net = *way;
	uint8_t headers[VRB_NET_MAX];
	struct vrb_report why = {0};
	struct vrb_pkt pkt;

	FZ_CHECK(vrb_icrc_check(headers, vrb_net_emit(&net, len, headers), at, len, &why) ==
		 VRB_OK);
	FZ_CHECK(vrb_pkt_parse(at, len - VRB_ICRC_LEN, &pkt, &why) == VRB_OK);
	FZ_CHECK(pkt.len <= (vrb_op_transport(pkt.op) == VRB_TP_UD ? VRB_UD_MTU : wk.mtu));
	FZ_CHECK(pkt.pkey == 0xffff);
	/* a congestion notification about a datagram goes to whom that names */
	if (pkt.op.v == VRB_OPCODE_CNP)
		return;
	if (wk_gsi_sent(&pkt))
		return;
	FZ_CHECK(pkt.dqpn - WK_PEER_QPN < WK_N_QPS);
	wk.last_which = pkt.dqpn - WK_PEER_QPN;
	wk.last_len = len - VRB_ICRC_LEN;
	memcpy(wk.last, at, wk.last_len);
}

void fz_sent(const struct fz_out *out)
{
	struct vrb_net way = {.src = wk.self, .df = true, .dport = VRB_ROCE_PORT};
	union vrb_udp_addr from, to;
	struct vrb_gid self;
	socklen_t n = sizeof(from);
	uint32_t len;

	/* A question about a silent peer, or an answer to one: of no queue pair. */
	if (out->bytes[0] == VRB_ASK_OPCODE) {
		FZ_CHECK(out->len == VRB_ASK_LEN);
		return;
	}
	FZ_CHECK(!getsockname(out->fd, &from.sa, &n));
	memcpy(&to, out->to, wk.v6 ? sizeof(to.v6) : sizeof(to.v4));
	way.sport = vrb_udp_gid(&from, &self);
	/* a datagram is answered to whomever it came from, the peer or a stranger */
	FZ_CHECK(vrb_udp_gid(&to, &way.dst) == VRB_ROCE_PORT);
	for (uint32_t off = 0; off < out->len; off += len, way.ip_id++) {
		len = out->len - off < out->seg_len ? out->len - off : out->seg_len;
		check_sent(out->bytes + off, len, &way);
	}
}

/* ---- what comes in */

void wk_arrive(const uint8_t *bytes, uint32_t len, uint32_t seg_len, const struct wk_from *from)
{
	struct arrival *a = &arrival[n_arrived % QUEUED];

	if (n_arrived - n_taken == QUEUED || len > WK_BURST_MAX)
		return;
	n_arrived++;
	a->len = len;
	a->seg_len = seg_len;
	a->from = *from;
	memcpy(a->bytes, bytes, len);
}

void wk_seal(uint8_t *packet, uint32_t len, uint16_t ip_id, const struct wk_from *from)
{
	struct vrb_net net = {.src = from->src,
			      .dst = wk.self,
			      .df = true,
			      .ip_id = ip_id,
			      .sport = from->sport,
			      .dport = VRB_ROCE_PORT};
	uint8_t headers[VRB_NET_MAX];
	size_t n = vrb_net_emit(&net, len + VRB_ICRC_LEN, headers);

	vrb_icrc_store(vrb_icrc_start(headers, n, packet, len), packet + len);
}

/* ---- slots */

bool wk_slot_take(uint32_t len, uint64_t *id, uint64_t *addr)
{
	for (uint32_t i = 0; i < WK_SLOTS; i++) {
		uint32_t at = next_slot++ % WK_SLOTS;

		if (slot[at].open)
			continue;
		slot[at].open = true;
		slot[at].len = len;
		*id = (uint64_t)++slot[at].generation << 8 | at;
		*addr = (uintptr_t)wk.mem.landing + at * WK_SLOT;
		return true;
	}
	return false;
}

static void close_slot(uint32_t at)
{
	slot[at].open = false;
	slot[at].len = 0;
	memset(wk.mem.landing + at * WK_SLOT, FILL, WK_SLOT);
}

void wk_poll(void)
{
	struct vrb_wc wc;

	for (;;) {
		int n = vrb_cq_poll(&wk.node.cq->core, 1, &wc);
		uint32_t at = wc.wr_id & 0xff;

		if (n != 1)
			return;
		/* one completion for each work request */
		FZ_CHECK(at < WK_SLOTS && slot[at].open);
		FZ_CHECK(slot[at].generation == wc.wr_id >> 8);
		close_slot(at);
	}
}

void wk_check_memory(void)
{
	FZ_CHECK(!memcmp(wk.mem.fixed, fixed_copy, WK_AREA));
	for (uint32_t at = 0; at < WK_SLOTS; at++)
		FZ_CHECK(!memcmp(wk.mem.landing + at * WK_SLOT + slot[at].len, fill,
				 WK_SLOT - slot[at].len));
}

/* ---- queue pairs */

static void to_rtr(struct vrb_hqp *q, enum wk_which which)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_RTR,
				.path_mtu = wk.mtu == 256 ? 1 : 3,
				.dest_qpn = WK_PEER_QPN + which,
				.rq_psn = 0xfffffd,
				.min_rnr_timer = 1,
				.max_dest_rd_atomic = which == WK_RC_SRQ ? 40 : 4,
				.sgid_index = wk.av.sgid_index,
				.dgid = wk.peer};

	FZ_CHECK(!vrb_hqp_modify(q, &a,
				 VRB_QPA_STATE | VRB_QPA_AV | VRB_QPA_PATH_MTU | VRB_QPA_DEST_QPN |
					 VRB_QPA_RQ_PSN | VRB_QPA_MAX_DEST_RD_ATOMIC |
					 VRB_QPA_MIN_RNR_TIMER));
}

static void to_rts(struct vrb_hqp *q)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_RTS,
				.sq_psn = 0xfffffe,
				.timeout = 8,
				.retry_cnt = 3,
				.rnr_retry = 3,
				.max_rd_atomic = 4};

	FZ_CHECK(!vrb_hqp_modify(q, &a,
				 VRB_QPA_STATE | VRB_QPA_TIMEOUT | VRB_QPA_RETRY_CNT |
					 VRB_QPA_RNR_RETRY | VRB_QPA_SQ_PSN |
					 VRB_QPA_MAX_QP_RD_ATOMIC));
}

struct vrb_hqp *wk_make_qp(enum wk_which which)
{
	struct vrb_hqp_init init = {.type = which == WK_UC   ? VRB_QPT_UC
					    : which == WK_UD ? VRB_QPT_UD
							     : VRB_QPT_RC,
				    .scq = wk.node.cq,
				    .rcq = wk.node.cq,
				    .srq = which == WK_RC_SRQ ? wk.srq : NULL,
				    .max_send_wr = 16,
				    .max_recv_wr = which == WK_RC_SRQ ? 0 : 16,
				    .max_send_sge = 2,
				    .max_recv_sge = 2,
				    .user = &wk};
	struct vrb_qp_attr a = {.state = VRB_QPS_INIT, .port = 1, .qkey = QKEY};
	struct vrb_hqp *q;

	/* all rights but on one, which has none of the remote ones */
	a.access = which == WK_RC_CLOSED ? VRB_ACC_LOCAL_WRITE : 15;
	FZ_CHECK(!vrb_hqp_create(wk.node.pd, &init, &q));
	FZ_CHECK(!vrb_hqp_modify(q, &a, VRB_QPA_STATE | VRB_QPA_ACCESS | VRB_QPA_QKEY));
	wk.qp[which] = q;
	if (wk.n_held) /* by the number that it has got now */
		wk.held |= 1u << which;
	if (which == WK_RC_INIT)
		return q;
	if (which == WK_UD) {
		FZ_CHECK(!node_to(q, VRB_QPS_RTR));
		FZ_CHECK(!node_to(q, VRB_QPS_RTS));
		return q;
	}
	to_rtr(q, which);
	if (which != WK_RC_RTR)
		to_rts(q);
	return q;
}

/* What it had posted is not written any more, and never completes. */
void wk_end_qp(enum wk_which which)
{
	struct vrb_qp *c = &wk.qp[which]->core;

	wk_poll();
	for (uint32_t i = c->sq_una; i != c->sq.tail; i++)
		close_slot(((struct vrb_swqe *)vrb_wq_entry(&c->sq, i))->wr_id & 0xff);
	for (uint32_t i = c->rq.head; i != c->rq.tail; i++)
		close_slot(((struct vrb_rwqe *)vrb_wq_entry(&c->rq, i))->wr_id & 0xff);
	if (c->have_rwqe)
		close_slot(c->cur_rwqe->wr_id & 0xff);
	FZ_CHECK(!vrb_hqp_destroy(wk.qp[which]));
	wk.qp[which] = NULL;
}

/* ---- life */

/* libFuzzer has threads later. */
__attribute__((constructor)) static void own_network(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd;

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET))
		_exit(77);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r))
		_exit(77);
	close(fd);
	setenv("VERBENA_LINK", "udp", 1);
}

static void begin(void)
{
	if (wk.node.ctx)
		return;
	node_open(&wk.node, false);
	vrb_helper_stop(wk_engine());
	wk_gsi_begin();
	FZ_CHECK(!vrb_hsrq_create(wk.node.pd, 64, 2, 0, &wk.srq, &wk.srq));
}

static uint8_t find_gid(bool v6)
{
	const struct vrb_hdev *dev = wk.node.ctx->dev;

	for (uint32_t i = 0; i < dev->n_gids; i++)
		if (dev->gid[i].valid && dev->gid[i].is_v4 != v6)
			return (uint8_t)i;
	_exit(77);
}

static uint8_t *area(uint32_t access, struct vrb_hmr **mr)
{
	uint8_t *p = malloc(WK_AREA);

	FZ_CHECK(p);
	FZ_CHECK(!vrb_hmr_reg(wk.node.pd, p, WK_AREA, (uintptr_t)p, access, mr));
	return p;
}

static void make_memory(void)
{
	struct wk_mem *m = &wk.mem;

	m->open = area(15, &m->open_mr);
	memset(m->open, 0, WK_AREA);
	m->fixed = area(VRB_ACC_REMOTE_READ, &m->fixed_mr);
	for (uint32_t i = 0; i < WK_AREA; i++)
		m->fixed[i] = fixed_copy[i] = (uint8_t)(i * 31 + 7);
	m->landing = area(VRB_ACC_LOCAL_WRITE, &m->landing_mr);
	memset(m->landing, FILL, WK_AREA);
	memset(slot, 0, sizeof(slot));
	memset(fill, FILL, sizeof(fill));
	next_slot = 0;
}

void wk_start(bool v6, uint8_t mtu_code)
{
	static const struct vrb_gid near4 = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}};

	fz_live = false;
	begin();
	wk.v6 = v6;
	wk.mtu = 128u << mtu_code;
	wk.av = (struct vrb_av){.sgid_index = find_gid(v6), .hop_limit = 64};
	wk.self = wk.node.ctx->dev->gid[wk.av.sgid_index].gid;
	wk.peer = v6 ? wk.self : near4;
	wk.av.dgid = wk.peer;
	wk.now = __real_vrb_clock_now();
	wk.last_len = 0;
	wk.held = wk.n_held = 0;
	n_arrived = n_taken = 0;
	wk_engine()->qp_cursor = FIRST_QP;
	make_memory();
	FZ_CHECK(!vrb_hah_create(wk.node.pd, &wk.av));
	for (uint32_t i = 0; i < WK_N_QPS; i++)
		wk_make_qp(i);
	fz_live = true;
}

void wk_end(void)
{
	struct vrb_engine *e = wk_engine();
	struct vrb_wc wc;

	for (uint32_t i = 0; i < WK_N_QPS; i++)
		if (wk.qp[i])
			wk_end_qp(i);
	vrb_hah_destroy(wk.node.pd, &wk.av);
	vrb_engine_lock(e);
	while (vrb_wire_drain(e, wk.now)) /* what has nobody to go to any more */
		;
	vrb_engine_unlock(e);
	for (uint32_t i = 0; i < e->wire->n; i++)
		FZ_CHECK(e->wire->addr[i].refs == 0);
	while (vrb_cq_poll(&wk.node.cq->core, 1, &wc))
		;
	wk.srq->core.wq.head = wk.srq->core.wq.tail;
	FZ_CHECK(!vrb_hmr_dereg(wk.mem.open_mr) && !vrb_hmr_dereg(wk.mem.fixed_mr));
	FZ_CHECK(!vrb_hmr_dereg(wk.mem.landing_mr));
	free(wk.mem.open);
	free(wk.mem.fixed);
	free(wk.mem.landing);
	fz_live = false;
}
