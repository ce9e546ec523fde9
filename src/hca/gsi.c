/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1: who takes messages (claims of service ids, communication ids) and how they leave. gsi_in.c
 * has what comes. A claim's socket only listens: whoever has received a request connects to it,
 * sees by SO_PEERCRED that it is this user's, and leaves the datagram there (VRB_MEET_MAD).
 */
#include "hca/faults.h"
#include "hca/gsi_parts.h"
#include "hca/peer.h"
#include "hca/tap.h"
#include "hca/wire_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ID_BITS	     24
#define ID_MASK	     0xffffffu
#define PKEY_DEFAULT 0xffffu
#define BACKLOG	     256 /* requests that wait for the process to look */

struct vrb_gsi *vrb_gsi_get(struct vrb_engine *e)
{
	struct vrb_gsi *g = e->gsi;
	uint32_t seed[2];

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	/* an id that a former owner of the slot had is not met again soon */
	if (getrandom(seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed[0] = seed[1] = (uint32_t)vrb_clock_now() ^ (uint32_t)getpid() << 8;
	g->next_id = seed[0] & ID_MASK;
	g->psn = vrb_psn(seed[1] & VRB_PSN_MASK);
	e->gsi = g;
	return g;
}

int vrb_gsi_open(struct vrb_hctx *ctx, vrb_gsi_on *on, void *arg)
{
	const struct vrb_hdev *dev = ctx->dev;
	struct vrb_engine *e = ctx->e;
	struct vrb_wire_addr *a;
	struct vrb_gsi *g;
	int err = -EADDRNOTAVAIL, one;

	if (e->foreign)
		return -EIO;
	vrb_engine_lock(e);
	g = vrb_gsi_get(e);
	for (uint32_t i = 0; g && i < dev->n_gids; i++) {
		if (!dev->gid[i].valid || dev->gid[i].is_v1)
			continue;
		one = vrb_wire_addr_get(e, dev, i, &a, true);
		err = err ? one : 0;
	}
	if (g && !err) {
		g->on = on;
		g->arg = arg;
	}
	vrb_engine_unlock(e);
	return g ? err : -ENOMEM;
}

/* ---- claims */

static socklen_t name_of(struct sockaddr_un *sa, uint64_t service_id)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, VRB_MEET_CLAIM,
		     (unsigned)geteuid(), (unsigned long long)service_id);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

struct vrb_gsi_claim *vrb_gsi_find_claim(const struct vrb_engine *e, uint64_t service_id)
{
	struct vrb_gsi *g = e->gsi;

	for (uint32_t i = 0; g && i < g->n_claims; i++)
		if (g->claim[i].fd >= 0 && g->claim[i].service_id == service_id)
			return &g->claim[i];
	return NULL;
}

static struct vrb_gsi_claim *place(struct vrb_gsi *g)
{
	for (uint32_t i = 0; i < g->n_claims; i++)
		if (g->claim[i].fd < 0)
			return &g->claim[i];
	return g->n_claims < VRB_GSI_CLAIMS ? &g->claim[g->n_claims++] : NULL;
}

/* Binding is the claim: one process has a name. */
static int bind_name(uint64_t service_id)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;
	struct sockaddr_un sa;
	socklen_t n = name_of(&sa, service_id);

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&sa, n) && !listen(fd, BACKLOG))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int vrb_gsi_call(uint64_t service_id)
{
	struct sockaddr_un sa;
	socklen_t n = name_of(&sa, service_id);

	return vrb_meet_call(&sa, n);
}

static void say_why(uint64_t service_id, int err)
{
	struct vrb_report r = {.verdict = VRB_V_CM_SERVICE_TAKEN,
			       .val = {service_id, service_id & 0xffff}};
	int sock = err == -EADDRINUSE ? vrb_gsi_call(service_id) : -1;

	if (err != -EADDRINUSE)
		r = (struct vrb_report){.verdict = VRB_V_LINK_SYSTEM, .val = {(uint64_t)-err}};
	if (sock >= 0) {
		r.val[2] = (uint64_t)vrb_meet_pid(sock);
		close(sock);
	}
	vrb_hca_refuse(&r);
}

static int claim(struct vrb_engine *e, uint64_t service_id)
{
	struct vrb_gsi *g = e->gsi;
	struct vrb_gsi_claim *c;
	int fd, err;

	if (!g || !g->on)
		return -ENOTCONN;
	c = place(g);
	if (!c)
		return -ENOSPC;
	c->fd = -1;
	fd = bind_name(service_id);
	if (fd < 0)
		return fd;
	err = vrb_meet_watch(e, VRB_EV_CLAIM, fd);
	if (err) {
		close(fd);
		return err;
	}
	*c = (struct vrb_gsi_claim){.service_id = service_id, .fd = fd};
	return 0;
}

int vrb_gsi_claim(struct vrb_hctx *ctx, uint64_t service_id)
{
	struct vrb_engine *e = ctx->e;
	int err, old;

	if (e->foreign)
		return -EIO;
	old = vrb_cancel_off();
	vrb_engine_lock(e);
	err = claim(e, service_id);
	if (err)
		say_why(service_id, err);
	vrb_engine_unlock(e);
	vrb_cancel_restore(old);
	return err;
}

void vrb_gsi_release(struct vrb_hctx *ctx, uint64_t service_id)
{
	struct vrb_engine *e = ctx->e;
	struct vrb_gsi_claim *c;
	int old = vrb_cancel_off();

	vrb_engine_lock(e);
	c = e->foreign ? NULL : vrb_gsi_find_claim(e, service_id);
	if (c)
		vrb_meet_unwatch(e, &c->fd);
	vrb_engine_unlock(e);
	vrb_cancel_restore(old);
}

void vrb_gsi_on_listen(struct vrb_engine *e, int listen_fd)
{
	uint32_t i = 0;

	/* An event of a moment ago may be about a descriptor that is another's by now: to accept
	 * there would take the program's connection, or wait for one. */
	while (e->gsi && i < e->gsi->n_claims && e->gsi->claim[i].fd != listen_fd)
		i++;
	if (e->gsi && i < e->gsi->n_claims)
		vrb_meet_on_listen(e, VRB_EV_CLAIM, listen_fd);
}

void vrb_gsi_rewatch(struct vrb_engine *e)
{
	for (uint32_t i = 0; e->gsi && i < e->gsi->n_claims; i++)
		if (e->gsi->claim[i].fd >= 0)
			(void)vrb_meet_rewatch(e, VRB_EV_CLAIM, e->gsi->claim[i].fd);
}

static void release_all(struct vrb_engine *e, bool in_child)
{
	struct vrb_gsi *g = e->gsi;

	for (uint32_t i = 0; i < g->n_claims; i++) {
		/* the epoll instance is the parent's, too */
		if (in_child && g->claim[i].fd >= 0)
			close(g->claim[i].fd);
		else
			vrb_meet_unwatch(e, &g->claim[i].fd);
		g->claim[i].fd = -1;
	}
	g->n_claims = 0;
	g->on = NULL;
}

void vrb_gsi_close(struct vrb_hctx *ctx)
{
	struct vrb_engine *e = ctx->e;
	int old = vrb_cancel_off();

	vrb_engine_lock(e);
	if (e->gsi && !e->foreign)
		release_all(e, false);
	vrb_engine_unlock(e);
	vrb_cancel_restore(old);
}

void vrb_gsi_end(struct vrb_engine *e, bool in_child)
{
	if (!e->gsi)
		return;
	release_all(e, in_child);
	free(e->gsi);
	e->gsi = NULL;
}

/* ---- ids */

uint32_t vrb_gsi_new_id_locked(struct vrb_hctx *ctx)
{
	struct vrb_gsi *g = vrb_gsi_get(ctx->e);

	return g ? ctx->e->slot << ID_BITS | (g->next_id++ & ID_MASK) : 0;
}

uint32_t vrb_gsi_new_id(struct vrb_hctx *ctx)
{
	uint32_t id;

	vrb_engine_lock(ctx->e);
	id = vrb_gsi_new_id_locked(ctx);
	vrb_engine_unlock(ctx->e);
	return id;
}

/* ---- out */

static bool is_struck(struct vrb_engine *e, const struct vrb_udp *u)
{
	uint32_t head = (u->v4 ? VRB_IPV4_LEN : VRB_IPV6_LEN) + VRB_UDP_LEN;
	const struct vrb_faults_aside a = {VRB_GSI_QPN, 0, VRB_FAULT_TX,
					   head + VRB_BTH_LEN + VRB_DETH_LEN + VRB_MAD_LEN +
						   VRB_ICRC_LEN};

	return e->faults && vrb_faults_aside(e->faults, &a);
}

int vrb_gsi_push(struct vrb_engine *e, struct vrb_wire_addr *a, const struct vrb_udp_flow *f,
		 const uint8_t mad[VRB_MAD_LEN])
{
	const struct vrb_seg seg = {mad, VRB_MAD_LEN};
	uint64_t failed = a->udp->n_send_failed;
	struct vrb_gsi *g = vrb_gsi_get(e);
	struct vrb_pkt pkt = {.op = vrb_opcode(VRB_TP_UD, VRB_OP_SEND_ONLY),
			      /* AckReq: nobody acknowledges, but so do the kernel's */
			      .flags = VRB_PKT_ACKREQ | VRB_PKT_MIGREQ,
			      .pkey = PKEY_DEFAULT,
			      .dqpn = VRB_GSI_QPN,
			      .qkey = VRB_GSI_QKEY,
			      .sqpn = VRB_GSI_QPN,
			      .len = VRB_MAD_LEN};

	if (!g)
		return -ENOMEM;
	pkt.psn = g->psn;
	g->psn = vrb_psn_add(g->psn, 1);
	if (is_struck(e, a->udp))
		return 0;
	vrb_udp_push(&e->wire->batch, a->udp, f, &pkt, &seg);
	if (vrb_unlikely(e->tap))
		vrb_tap_gsi_out(e, &(struct vrb_tap_gsi){a->udp, f, &pkt, &seg});
	vrb_wire_flush(e);
	return a->udp->n_send_failed != failed ? -a->udp->send_errno : 0;
}

int vrb_gsi_send_locked(struct vrb_hctx *ctx, const struct vrb_gsi_to *to,
			const uint8_t mad[VRB_MAD_LEN])
{
	struct vrb_udp_flow f = {.dst = to->dgid, .tclass = to->tclass, .hop_limit = to->hop_limit};
	struct vrb_wire_addr *a;
	int err;

	if (to->sgid_index >= ctx->dev->n_gids || !ctx->dev->gid[to->sgid_index].valid)
		return -EADDRNOTAVAIL;
	if (vrb_gid_is_ipv4(&ctx->dev->gid[to->sgid_index].gid) != vrb_gid_is_ipv4(&to->dgid))
		return -EAFNOSUPPORT;
	err = vrb_wire_addr_get(ctx->e, ctx->dev, to->sgid_index, &a, true);
	if (err)
		return err;
	f.lane = vrb_wire_lane(vrb_wire_hash_addresses(&a->udp->gid, &f.dst),
			       vrb_wire_hash_qpns(VRB_GSI_QPN, 0));
	return vrb_gsi_push(ctx->e, a, &f, mad);
}

int vrb_gsi_send(struct vrb_hctx *ctx, const struct vrb_gsi_to *to, const uint8_t mad[VRB_MAD_LEN])
{
	int err, old;

	if (ctx->e->foreign)
		return -EIO;
	old = vrb_cancel_off();
	vrb_engine_lock(ctx->e);
	err = vrb_gsi_send_locked(ctx, to, mad);
	if (vrb_unlikely(ctx->e->tap))
		vrb_tap_flush(ctx->e);
	vrb_engine_unlock(ctx->e);
	vrb_cancel_restore(old);
	return err;
}
