/* SPDX-License-Identifier: BSD-2-Clause */
/* One end in plain verbs: device, memory, CQ and queue pairs, made and taken down. */
#include "tools/perf/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/perf/pages.h"

#define PAGE	    4096u
#define ACCESS	    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define INLINE_ASKS 5

struct ibv_context *vrb_perf_open_device(const char *name, char why[PERF_WHY_BYTES])
{
	int n = 0, named = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && i < n && !ctx; i++) {
		if (*name && strcmp(name, ibv_get_device_name(list[i])) != 0)
			continue;
		named++;
		ctx = ibv_open_device(list[i]);
	}
	if (ctx)
		;
	else if (!n)
		snprintf(why, PERF_WHY_BYTES, "there is no RDMA device");
	else if (!named)
		snprintf(why, PERF_WHY_BYTES,
			 "there is no device %s (`verbena devinfo` lists them)", name);
	else
		snprintf(why, PERF_WHY_BYTES, "ibv_open_device: %s", strerror(errno));
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static bool open_port(struct perf_raw *e)
{
	uint32_t first = e->p->ib_port ? e->p->ib_port : 1, last;

	e->ctx = vrb_perf_open_device(e->p->device, e->run->why);
	if (!e->ctx)
		return false;
	snprintf(e->run->device, sizeof(e->run->device), "%s", ibv_get_device_name(e->ctx->device));
	if (ibv_query_device(e->ctx, &e->attr))
		return vrb_perf_fail(e->run, "ibv_query_device: %s", strerror(errno));
	if (e->p->sges > (uint32_t)e->attr.max_sge)
		return vrb_perf_fail(e->run, "--sges %u: the device has at most %d", e->p->sges,
				     e->attr.max_sge);
	last = e->p->ib_port ? first : e->attr.phys_port_cnt;
	for (uint32_t n = first; n <= last && !e->port_num; n++)
		if (!ibv_query_port(e->ctx, (uint8_t)n, &e->port) &&
		    e->port.state == IBV_PORT_ACTIVE)
			e->port_num = (uint8_t)n;
	if (!e->port_num)
		return vrb_perf_fail(e->run, "no port of %s is active%s",
				     ibv_get_device_name(e->ctx->device),
				     e->p->ib_port ? ", or not the one asked for" : "");
	e->run->ib_port = e->port_num;
	return vrb_perf_raw_find_gid(e);
}

/* The pieces of a message begin a stride apart, so that they are no neighbours; behind them is one
 * area for what arrives. All queue pairs use the same: contents are not looked at. */
static bool make_memory(struct perf_raw *e)
{
	uint32_t align = e->p->align, off = align % PAGE;
	size_t size = e->p->size, tx_len;

	e->piece = (size + e->p->sges - 1) / e->p->sges;
	e->stride = (e->piece + align) / align * align + (align < PAGE ? 0 : align);
	if (e->p->sges == 1)
		e->stride = e->piece;
	tx_len = e->stride * e->p->sges;
	if (e->p->span && e->run->is_client) {
		e->place_len = (size + PAGE - 1) / PAGE * PAGE;
		e->places = (uint32_t)((e->p->span + e->place_len - 1) / e->place_len);
		tx_len = e->places * e->place_len;
	}
	e->rx_at = (off + tx_len + PAGE) / PAGE * PAGE + off;
	e->rx_places = e->p->recv_span / e->p->size;
	e->mem_len = e->rx_at + (e->rx_places ? e->rx_places : 1) * size + PAGE;
	e->mem = vrb_perf_pages_map(&e->mem_len, (enum perf_pages)e->p->pages, e->run->why);
	if (!e->mem)
		return false;
	e->mem[e->rx_at + size - 1] = 0;
	e->mr = ibv_reg_mr(e->pd, e->mem, e->mem_len, ACCESS);
	if (!e->mr)
		return vrb_perf_fail(e->run, "ibv_reg_mr of %zu bytes: %s%s", e->mem_len,
				     strerror(errno), errno == ENOMEM ? " (see ulimit -l)" : "");
	for (uint32_t i = 0, left = e->p->size; i < e->p->sges; i++) {
		uint32_t n = left / (e->p->sges - i);

		e->sge[i] =
			(struct ibv_sge){(uintptr_t)e->mem + off + i * e->stride, n, e->mr->lkey};
		left -= n;
	}
	e->rx = (struct ibv_sge){(uintptr_t)e->mem + e->rx_at, e->p->size, e->mr->lkey};
	return true;
}

static bool make_cq(struct perf_raw *e)
{
	struct ibv_modify_cq_attr mod = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					 .moderate = {.cq_count = (uint16_t)e->p->mod_count,
						      .cq_period = (uint16_t)e->p->mod_us}};
	uint32_t n = e->p->qps * (e->send_depth + e->recv_depth);
	int r;

	if (n > (uint32_t)e->attr.max_cqe || e->send_depth > (uint32_t)e->attr.max_qp_wr ||
	    e->recv_depth > (uint32_t)e->attr.max_qp_wr)
		return vrb_perf_fail(
			e->run,
			"%u sends and %u receives on each of %u queue pairs are more than "
			"the device offers: %d in a queue, %d in a CQ (--depth, "
			"--recv-depth, --qps)",
			e->send_depth, e->recv_depth, e->p->qps, e->attr.max_qp_wr,
			e->attr.max_cqe);
	e->channel = ibv_create_comp_channel(e->ctx);
	if (!e->channel)
		return vrb_perf_fail(e->run, "ibv_create_comp_channel: %s", strerror(errno));
	e->cq = ibv_create_cq(e->ctx, (int)n, NULL, e->channel, 0);
	if (!e->cq)
		return vrb_perf_fail(e->run,
				     "ibv_create_cq of %u entries, for all queues of %u queue "
				     "pairs: %s",
				     n, e->p->qps, strerror(errno));
	if (!e->p->mod_count)
		return true;
	r = ibv_modify_cq(e->cq, &mod);
	return !r || vrb_perf_fail(e->run, "ibv_modify_cq: %s: the device has no CQ moderation",
				   strerror(r));
}

/* No call says how much inline data a queue pair can have: asks for less until it is granted. */
static bool make_qp(struct perf_raw *e, uint32_t index)
{
	static const uint32_t ask[INLINE_ASKS] = {256, 220, 128, 64, 0};
	struct perf_qp *q = &e->qp[index];
	bool once = e->p->inline_bytes != PERF_AUTO;
	uint32_t most = once ? e->p->inline_bytes : index ? e->inline_max : ask[0];
	struct ibv_qp_init_attr a;

	for (int i = 0; i < INLINE_ASKS && !q->qp; i++) {
		if (!once && ask[i] > most)
			continue;
		a = (struct ibv_qp_init_attr){.send_cq = e->cq,
					      .recv_cq = e->cq,
					      .qp_type = IBV_QPT_RC,
					      .cap = {.max_send_wr = e->send_depth,
						      .max_recv_wr = e->recv_depth,
						      .max_send_sge = e->p->sges,
						      .max_recv_sge = 1,
						      .max_inline_data = once ? most : ask[i]}};
		q->qp = ibv_create_qp(e->pd, &a);
		if (once)
			break;
	}
	if (!q->qp)
		return vrb_perf_fail(e->run,
				     "ibv_create_qp with %u sends of %u SGEs, %u receives, %u "
				     "bytes inline: %s",
				     e->send_depth, e->p->sges, e->recv_depth, once ? most : 0,
				     strerror(errno));
	e->inline_max = once ? most : a.cap.max_inline_data < most ? a.cap.max_inline_data : most;
	q->index = index;
	e->n_qps = index + 1;
	return true;
}

static void close_raw(void *arg)
{
	struct perf_raw *e = arg;

	if (e->unacked)
		ibv_ack_cq_events(e->cq, e->unacked);
	for (uint32_t i = 0; i < e->n_qps; i++)
		ibv_destroy_qp(e->qp[i].qp);
	if (e->cq)
		ibv_destroy_cq(e->cq);
	if (e->channel)
		ibv_destroy_comp_channel(e->channel);
	if (e->mr)
		ibv_dereg_mr(e->mr);
	if (e->mem)
		munmap(e->mem, e->mem_len);
	if (e->pd)
		ibv_dealloc_pd(e->pd);
	if (e->ctx)
		ibv_close_device(e->ctx);
	free(e);
}

/* The depths of both queues: one more send for the end, receives for the peer's credits. */
static void set_depths(struct perf_raw *e)
{
	bool sends = e->p->verb == PERF_SEND;

	e->send_depth = e->p->depth + 2;
	e->recv_list =
		e->p->recv_depth / 4 < PERF_RECV_LIST ? e->p->recv_depth / 4 : PERF_RECV_LIST;
	e->recv_depth = PERF_CREDITS;
	if (sends && (e->p->mode == PERF_LAT || !e->run->is_client))
		e->recv_depth = e->p->recv_depth + 2;
	if (sends && !e->run->is_client && e->p->mode != PERF_LAT)
		e->send_depth = 2 * PERF_CREDITS;
}

static void *open_raw(struct perf_run *run, const json_t *peer, json_t **address)
{
	struct perf_raw *e = calloc(1, sizeof(*e));
	bool ok;

	if (!e) {
		vrb_perf_fail(run, "out of memory");
		return NULL;
	}
	e->run = run;
	e->p = run->p;
	set_depths(e);
	ok = open_port(e);
	if (ok) {
		e->pd = ibv_alloc_pd(e->ctx);
		ok = e->pd || vrb_perf_fail(run, "ibv_alloc_pd: %s", strerror(errno));
	}
	ok = ok && make_memory(e) && make_cq(e);
	for (uint32_t i = 0; ok && i < e->p->qps; i++)
		ok = make_qp(e, i);
	*address = ok ? vrb_perf_raw_address(e) : NULL;
	if (ok && peer)
		ok = vrb_perf_raw_connect(e, peer);
	if (ok)
		return e;
	json_decref(*address);
	close_raw(e);
	return NULL;
}

static bool connect_raw(void *arg, const char *host, const json_t *peer)
{
	(void)host;
	return vrb_perf_raw_connect(arg, peer);
}

static bool run_raw(void *arg)
{
	struct perf_raw *e = arg;

	if (e->run->r)
		e->run->r->params.inline_bytes = e->inline_max;
	if (e->p->mode == PERF_LAT)
		return vrb_perf_raw_lat(e);
	return e->run->is_client ? vrb_perf_raw_stream(e) : vrb_perf_raw_sink(e);
}

/* What is posted is flushed, so that whoever sleeps wakes up. */
static void abort_raw(void *arg)
{
	struct perf_raw *e = arg;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	for (uint32_t i = 0; i < e->n_qps; i++)
		(void)ibv_modify_qp(e->qp[i].qp, &a, IBV_QP_STATE);
}

const struct perf_face vrb_perf_raw = {
	.open = open_raw,
	.connect = connect_raw,
	.run = run_raw,
	.abort = abort_raw,
	.close = close_raw,
};
