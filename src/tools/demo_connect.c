/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From nothing to two connected QPs: open the device, make PD, MR, CQs and QP, exchange addresses
 * over TCP, walk INIT, RTR, RTS. Written as a tutorial writes it, without any help from Verbena.
 */
#include "tools/demo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GID_INDEX 0
#define CQ_DEPTH  1024
#define PAGE	  4096

enum { MARK_SYNC = 's', MARK_SETTLED = 'r' };

struct settlement {
	char mark;
	bool ok;
	char why[DEMO_WHY_BYTES];
};

bool vrb_demo_tcp_write(struct demo *d, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(d->sock, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return vrb_demo_fail(d, "TCP write: %s", strerror(errno));
		p += n;
		len -= (size_t)n;
	}
	return true;
}

bool vrb_demo_tcp_read(struct demo *d, void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = read(d->sock, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return vrb_demo_fail(d, "the other process has ended");
		if (n < 0)
			return vrb_demo_fail(d, "TCP read: %s", strerror(errno));
		p += n;
		len -= (size_t)n;
	}
	return true;
}

bool vrb_demo_sync(struct demo *d)
{
	char c = MARK_SYNC;

	if (!vrb_demo_tcp_write(d, &c, 1) || !vrb_demo_tcp_read(d, &c, 1))
		return false;
	if (c == MARK_SYNC)
		return true;
	d->settled_early = true;
	return vrb_demo_fail(d, "the receiver gave up");
}

bool vrb_demo_settle_write(struct demo *d, bool ok)
{
	struct settlement m = {.mark = MARK_SETTLED, .ok = ok};

	memcpy(m.why, d->why, sizeof(m.why));
	return vrb_demo_tcp_write(d, &m, sizeof(m));
}

bool vrb_demo_settle_read(struct demo *d, bool ok)
{
	struct settlement m = {0};
	size_t have = d->settled_early ? 1 : 0; /* vrb_demo_sync has taken the mark */

	if (!ok && !d->settled_early)
		return false;
	if (!vrb_demo_tcp_read(d, (char *)&m + have, sizeof(m) - have))
		return false;
	if (!m.ok)
		memcpy(d->why, m.why, sizeof(d->why));
	return ok && m.ok;
}

static bool open_device(struct demo *d)
{
	struct ibv_device **list;
	int n = 0;

	list = ibv_get_device_list(&n);
	if (!list || !n) {
		if (list)
			ibv_free_device_list(list);
		return vrb_demo_fail(d, "no device: no network interface is up and has an address "
					"(ip link set lo up)");
	}
	for (int i = 0; i < n && !d->ctx; i++) {
		if (d->device_wanted && strcmp(d->device_wanted, ibv_get_device_name(list[i])))
			continue;
		d->ctx = ibv_open_device(list[i]);
		if (!d->ctx)
			vrb_demo_fail(d, "ibv_open_device: %s", strerror(errno));
		else
			n = i;
	}
	ibv_free_device_list(list);
	if (!d->ctx && !d->why[0])
		return vrb_demo_fail(d, "there is no device %s", d->device_wanted);
	return d->ctx;
}

static bool create_objects(struct demo *d)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEMO_SQ_DEPTH,
			.max_recv_wr = DEMO_RQ_DEPTH,
			.max_send_sge = DEMO_SGE,
			.max_recv_sge = DEMO_SGE,
			.max_inline_data = DEMO_INLINE},
	};

	d->buf = aligned_alloc(PAGE, DEMO_BUF_BYTES);
	if (!d->buf)
		return vrb_demo_fail(d, "out of memory");
	memset(d->buf, 0, DEMO_BUF_BYTES);
	d->pd = ibv_alloc_pd(d->ctx);
	if (!d->pd)
		return vrb_demo_fail(d, "ibv_alloc_pd: %s", strerror(errno));
	d->mr = ibv_reg_mr(d->pd, d->buf, DEMO_BUF_BYTES, access);
	if (!d->mr)
		return vrb_demo_fail(d, "ibv_reg_mr: %s", strerror(errno));
	d->channel = ibv_create_comp_channel(d->ctx);
	if (!d->channel)
		return vrb_demo_fail(d, "ibv_create_comp_channel: %s", strerror(errno));
	d->send_cq = ibv_create_cq(d->ctx, CQ_DEPTH, NULL, NULL, 0);
	d->recv_cq = ibv_create_cq(d->ctx, CQ_DEPTH, NULL, d->channel, 0);
	if (!d->send_cq || !d->recv_cq)
		return vrb_demo_fail(d, "ibv_create_cq: %s", strerror(errno));
	init.send_cq = d->send_cq;
	init.recv_cq = d->recv_cq;
	d->qp = ibv_create_qp(d->pd, &init);
	if (!d->qp)
		return vrb_demo_fail(d, "ibv_create_qp: %s", strerror(errno));
	d->max_inline = init.cap.max_inline_data;
	return true;
}

static bool exchange(struct demo *d)
{
	if (ibv_query_gid(d->ctx, 1, GID_INDEX, &d->local.gid))
		return vrb_demo_fail(d, "ibv_query_gid: %s", strerror(errno));
	d->local.qpn = d->qp->qp_num;
	d->local.psn = (uint32_t)(vrb_demo_now_ns() ^ (uint64_t)getpid() << 12) & 0xffffff;
	d->local.rkey = d->mr->rkey;
	d->local.addr = (uintptr_t)d->buf;
	return vrb_demo_tcp_write(d, &d->local, sizeof(d->local)) &&
	       vrb_demo_tcp_read(d, &d->remote, sizeof(d->remote));
}

static bool modify(struct demo *d, struct ibv_qp_attr *attr, int mask, const char *state)
{
	int err = ibv_modify_qp(d->qp, attr, mask);

	return err ? vrb_demo_fail(d, "ibv_modify_qp to %s: %s", state, strerror(err)) : true;
}

static bool bring_up(struct demo *d)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = d->remote.qpn,
		.rq_psn = d->remote.psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = d->remote.gid,
				    .sgid_index = GID_INDEX,
				    .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = d->local.psn,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};

	return modify(d, &init,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		      "INIT") &&
	       modify(d, &rtr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		      "RTR") &&
	       modify(d, &rts,
		      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
		      "RTS");
}

bool vrb_demo_connect(struct demo *d)
{
	return open_device(d) && create_objects(d) && exchange(d) && bring_up(d) &&
	       vrb_demo_sync(d);
}

void vrb_demo_disconnect(struct demo *d)
{
	if (d->qp)
		ibv_destroy_qp(d->qp);
	if (d->send_cq)
		ibv_destroy_cq(d->send_cq);
	if (d->recv_cq)
		ibv_destroy_cq(d->recv_cq);
	if (d->channel)
		ibv_destroy_comp_channel(d->channel);
	if (d->mr)
		ibv_dereg_mr(d->mr);
	if (d->pd)
		ibv_dealloc_pd(d->pd);
	if (d->ctx)
		ibv_close_device(d->ctx);
	free(d->buf);
}
