/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making a channel. Over TCP both ends say what they have; the smaller number holds. Then:
 *
 *	client  hello ------------------->  creates its queue pairs, to RTS
 *	        to RTS  <------------ hello  server
 *	        READY ------------------->
 *	        <-------------------- READY
 *
 * Nobody sends before the other is in RTS, and its receives were posted before it said hello.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "send/async.h"
#include "send/channel.h"
#include "send/fail.h"
#include "send/tcp.h"

enum { STEP_HELLO = 1, STEP_READY };

struct vrb_listener {
	struct vrb_domain *d;
	struct vrb_channel_options opt;
	int fd;
};

/* All fields behind the magic but the GID are words. */
static void swap_hello(struct vrb_hello *h)
{
	uint32_t *w = &h->version;

	h->magic = htole64(h->magic);
	for (; (void *)w < (void *)h->gid; w++)
		*w = htole32(*w);
	for (uint32_t i = 0; i < VRB_LANES_MAX; i++) {
		h->lane[i].qpn = htole32(h->lane[i].qpn);
		h->lane[i].psn = htole32(h->lane[i].psn);
	}
}

static uint32_t own_mtu(const struct vrb_channel *ch)
{
	uint32_t port = 128u << ch->d->port.active_mtu;

	return port < ch->opt.path_mtu ? port : ch->opt.path_mtu;
}

static int put_hello(struct vrb_channel *ch)
{
	const struct vrb_domain *d = ch->d;
	struct vrb_hello h = {.magic = VRB_HELLO_MAGIC,
			      .version = VRB_HELLO_VERSION,
			      .link_layer = d->port.link_layer,
			      .lid = d->port.lid,
			      .mtu = own_mtu(ch),
			      .lanes = ch->n_lanes,
			      .recv_depth = ch->lane_depth,
			      .recv_size = ch->opt.recv_size,
			      .reads = d->attr.max_qp_rd_atom > 16 ? 16
				       : d->attr.max_qp_rd_atom > 0
					       ? (uint32_t)d->attr.max_qp_rd_atom
					       : 1,
			      .remote_read = d->remote_read,
			      .flags = ch->opt.failover ? VRB_HELLO_FAILOVER : 0};

	memcpy(h.gid, ch->gid.gid.raw, sizeof(h.gid));
	for (uint32_t i = 0; i < ch->n_lanes; i++)
		h.lane[i] = (struct vrb_hello_lane){.qpn = ch->lane[i]->qp->qp_num,
						    .psn = ch->lane[i]->psn};
	swap_hello(&h);
	return vrb_tcp_put(ch->tcp, &h, sizeof(h), STEP_HELLO);
}

static bool is_sane(const struct vrb_hello *h)
{
	return h->lanes >= 1 && h->lanes <= VRB_LANES_MAX && h->recv_depth >= 1 &&
	       h->recv_depth <= 1u << 20 && h->recv_size >= 64 && h->recv_size <= 1u << 30 &&
	       h->mtu >= 256 && h->mtu <= 4096 && h->reads >= 1;
}

/* The peer's hello has come, as it was sent. */
static int check_hello(struct vrb_channel *ch)
{
	struct vrb_hello *h = &ch->peer;

	swap_hello(h);
	if (h->magic != VRB_HELLO_MAGIC || h->version != VRB_HELLO_VERSION)
		return vrb_fail(EPROTO, VRB_V_SEND_STRANGER, h->magic, h->version, h->link_layer);
	if (h->status)
		return vrb_fail(ECONNREFUSED, VRB_V_SEND_PEER_REFUSED, h->status, 0, 0);
	if (!is_sane(h) || h->link_layer != ch->d->port.link_layer)
		return vrb_fail(EPROTO, VRB_V_SEND_STRANGER, h->magic, h->version, h->link_layer);
	return 0;
}

static int get_hello(struct vrb_channel *ch, uint64_t deadline)
{
	int r = vrb_tcp_get(ch->tcp, &ch->peer, sizeof(ch->peer), deadline, STEP_HELLO);

	return r ? r : check_hello(ch);
}

/* After both hellos. */
static int agree(struct vrb_channel *ch)
{
	ch->mtu = own_mtu(ch);
	if (ch->peer.mtu < ch->mtu)
		ch->mtu = ch->peer.mtu;
	ch->peer_recv_size = ch->peer.recv_size;
	ch->peer_reads = ch->peer.remote_read;
	ch->failover = ch->opt.failover && ch->peer.flags & VRB_HELLO_FAILOVER;
	ch->max_message = ch->d->remote_read ? UINT32_MAX - VRB_FRONT : ch->peer.recv_size;
	return vrb_lanes_connect(ch);
}

int vrb_client_ready(const struct vrb_note *n)
{
	if (le32toh(n->kind) != VRB_NOTE_READY)
		return vrb_fail(EPROTO, VRB_V_SEND_EXCHANGE, STEP_READY, EPROTO, 0);
	return 0;
}

static int get_ready(struct vrb_channel *ch, uint64_t deadline)
{
	struct vrb_note n;
	int r = vrb_tcp_get(ch->tcp, &n, sizeof(n), deadline, STEP_READY);

	return r ? r : vrb_client_ready(&n);
}

static int add(const struct vrb_channel *ch, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(ch->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* What a connection brings to be waited for. */
int vrb_channel_watch(struct vrb_channel *ch)
{
	int flags = fcntl(ch->comp->fd, F_GETFL);

	if (flags >= 0 && !fcntl(ch->comp->fd, F_SETFL, flags | O_NONBLOCK) &&
	    !add(ch, ch->comp->fd) && !add(ch, ch->tcp))
		return 0;
	return vrb_fail(errno, VRB_V_SEND_CREATE, 5 /* channel */, (uint64_t)errno, 0);
}

static int watch(struct vrb_channel *ch)
{
	int r = vrb_async_enter(ch);

	if (r)
		return r;
	ch->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ch->epoll < 0 || add(ch, ch->wake) ||
	    (ch->d->async.stop_fd < 0 && add(ch, ch->d->ctx->async_fd)))
		return vrb_fail(errno, VRB_V_SEND_CREATE, 5 /* channel */, (uint64_t)errno, 0);
	return vrb_channel_watch(ch);
}

void vrb_flows_spread(struct vrb_channel *ch)
{
	for (uint32_t i = 0; i < VRB_FLOWS; i++)
		ch->flow_lane[i] = (uint8_t)(i % ch->n_lanes);
}

/* The last steps of both ends: room for events, flows on lanes. */
static int complete(struct vrb_channel *ch)
{
	/* What one look may bring, twice: vrb_drain leaves up to half of it there (close.c). */
	uint32_t most =
		ch->opt.qps * 4 * (ch->opt.send_depth + ch->opt.recv_depth + 2 * VRB_OFFERS_MAX) +
		128;
	uint32_t size = 1;

	while (size < most)
		size *= 2;
	ch->ring = calloc(size, sizeof(*ch->ring));
	if (!ch->ring)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, size * sizeof(*ch->ring), ENOMEM, 0);
	ch->ring_mask = size - 1;
	vrb_flows_spread(ch);
	return watch(ch);
}

static int own_gid(struct vrb_channel *ch)
{
	struct vrb_gid want;

	vrb_tcp_address(ch->tcp, &want);
	return vrb_domain_gid(ch->d, &want, &ch->gid);
}

static int say_ready(struct vrb_channel *ch)
{
	if (!vrb_note_send(ch, VRB_NOTE_READY))
		return 0;
	return vrb_fail(EPIPE, VRB_V_SEND_EXCHANGE, STEP_READY, EPIPE, 0);
}

int vrb_client_begin(struct vrb_channel *ch)
{
	int r = own_gid(ch);

	r = r ? r : vrb_lanes_create(ch, ch->opt.qps);
	return r ? r : put_hello(ch);
}

int vrb_client_agree(struct vrb_channel *ch)
{
	int r = check_hello(ch);

	r = r ? r : agree(ch);
	r = r ? r : complete(ch);
	return r ? r : say_ready(ch);
}

static int as_client(struct vrb_channel *ch, uint64_t deadline)
{
	int r = vrb_client_begin(ch);

	r = r ? r : vrb_tcp_get(ch->tcp, &ch->peer, sizeof(ch->peer), deadline, STEP_HELLO);
	r = r ? r : vrb_client_agree(ch);
	return r ? r : get_ready(ch, deadline);
}

/* The client learns that it cannot be, and looks no further. */
static int refuse(struct vrb_channel *ch, int r)
{
	struct vrb_hello h = {
		.magic = VRB_HELLO_MAGIC, .version = VRB_HELLO_VERSION, .status = (uint32_t)-r};

	swap_hello(&h);
	(void)send(ch->tcp, &h, sizeof(h), MSG_NOSIGNAL);
	return r;
}

static int as_server(struct vrb_channel *ch, uint64_t deadline)
{
	int r = get_hello(ch, deadline);

	if (r)
		return r;
	r = own_gid(ch);
	r = r ? r
	      : vrb_lanes_create(ch, ch->opt.qps < ch->peer.lanes ? ch->opt.qps : ch->peer.lanes);
	r = r ? r : agree(ch);
	r = r ? r : complete(ch);
	if (r)
		return refuse(ch, r);
	r = put_hello(ch);
	r = r ? r : get_ready(ch, deadline);
	return r ? r : say_ready(ch);
}

/* tcp belongs to the channel from here on, whatever happens. */
static int make(struct vrb_domain *d, const struct vrb_channel_options *o, int tcp, bool client,
		struct vrb_channel **channel)
{
	uint64_t deadline = vrb_now() + o->connect_ms * VRB_NS_PER_MS;
	struct vrb_channel *ch;
	int r = vrb_channel_make(d, o, &ch);

	if (r) {
		close(tcp);
		return r;
	}
	ch->tcp = tcp;
	ch->is_client = client;
	ch->again.to_len = sizeof(ch->again.to);
	if (getpeername(tcp, (struct sockaddr *)&ch->again.to, &ch->again.to_len))
		ch->again.to_len = 0;
	ch->again.up_ns = vrb_now();
	r = client ? as_client(ch, deadline) : as_server(ch, deadline);
	if (r)
		vrb_channel_free(ch);
	else
		*channel = ch;
	return r;
}

int vrb_connect(struct vrb_domain *d, const char *host, const char *port,
		const struct vrb_channel_options *options, struct vrb_channel **channel)
{
	struct vrb_channel_options o;
	int r = vrb_options_fill(options, d, &o), tcp;

	if (r)
		return r;
	tcp = vrb_tcp_connect(host, port, vrb_now() + o.connect_ms * VRB_NS_PER_MS);
	return tcp < 0 ? tcp : make(d, &o, tcp, true, channel);
}

int vrb_listen(struct vrb_domain *d, const char *host, const char *port,
	       const struct vrb_channel_options *options, struct vrb_listener **listener)
{
	struct vrb_channel_options o;
	struct vrb_listener *l;
	int r = vrb_options_fill(options, d, &o), fd;

	if (r)
		return r;
	fd = vrb_tcp_listen(host, port);
	if (fd < 0)
		return fd;
	l = calloc(1, sizeof(*l));
	if (!l) {
		close(fd);
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*l), ENOMEM, 0);
	}
	*l = (struct vrb_listener){.d = d, .opt = o, .fd = fd};
	vrb_domain_hold(d);
	*listener = l;
	return 0;
}

int vrb_accept(struct vrb_listener *l, int64_t timeout_ns, struct vrb_channel **channel)
{
	uint64_t deadline = timeout_ns < 0 ? VRB_NS_NEVER : vrb_now() + (uint64_t)timeout_ns;
	int tcp = vrb_tcp_accept(l->fd, deadline);

	return tcp < 0 ? tcp : make(l->d, &l->opt, tcp, false, channel);
}

int vrb_listener_port(const struct vrb_listener *l)
{
	return vrb_tcp_port(l->fd);
}

int vrb_listener_fd(const struct vrb_listener *l)
{
	return l->fd;
}

void vrb_unlisten(struct vrb_listener *l)
{
	close(l->fd);
	vrb_domain_release(l->d);
	free(l);
}
