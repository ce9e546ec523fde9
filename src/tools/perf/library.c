/* SPDX-License-Identifier: BSD-2-Clause */
/* One end over libverbena: domain, channel, memory, made and taken down. */
#include "tools/perf/library.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE	      4096u
#define POOL_SPARE    (16u << 20)
#define BUFFER_FRONT  192u /* what a buffer costs beyond its bytes, at most */
#define CLOSE_NS      (30 * (int64_t)VRB_NS_PER_S) /* of a machine that is busy with others */
#define INLINE_FRAME  16u
#define RECV_OVERHEAD 64u /* receives that the library keeps for itself */

static bool fail(struct perf_library *e, const char *what)
{
	return vrb_perf_fail(e->run, "%s: %.200s", what, vrb_error_text());
}

static bool open_domain(struct perf_library *e)
{
	const struct perf_params *p = e->p;
	struct vrb_domain_options o = {.device = *p->device ? p->device : NULL,
				       .port = (uint8_t)p->ib_port};
	size_t unit = (p->recv_size + BUFFER_FRONT + PAGE - 1) / PAGE * PAGE;

	o.pool_bytes = p->qps * (p->recv_depth + RECV_OVERHEAD + p->depth) * unit + POOL_SPARE +
		       64 * (size_t)p->size;
	if (vrb_open(&o, &e->domain))
		return fail(e, "vrb_open");
	snprintf(e->run->device, sizeof(e->run->device), "%s",
		 ibv_get_device_name(vrb_domain_context(e->domain)->device));
	e->run->ib_port = p->ib_port ? p->ib_port : 1;
	return true;
}

/* Pieces that are no neighbours, as in raw_open.c. */
static bool make_memory(struct perf_library *e)
{
	const struct perf_params *p = e->p;
	size_t piece = (p->size + p->sges - 1) / p->sges, off = p->align % PAGE;
	size_t stride = (piece + p->align) / p->align * p->align + p->align;

	e->mem_len = (off + stride * p->sges + PAGE) / PAGE * PAGE;
	e->mem = mmap(NULL, e->mem_len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (e->mem == MAP_FAILED) {
		e->mem = NULL;
		return vrb_perf_fail(e->run, "%zu bytes of memory: %s", e->mem_len,
				     strerror(errno));
	}
	memset(e->mem, 1, e->mem_len);
	if (vrb_register(e->domain, e->mem, e->mem_len, VRB_REMOTE_READ | VRB_REMOTE_WRITE,
			 &e->region))
		return fail(e, "vrb_register");
	for (uint32_t i = 0, left = p->size; i < p->sges; i++) {
		uint32_t n = left / (p->sges - i);

		e->iov[i] = (struct iovec){e->mem + off + i * stride, n};
		left -= n;
	}
	return true;
}

static void set_options(struct perf_library *e)
{
	static const enum vrb_engine engine[] = {VRB_BUSY, VRB_SLEEPY, VRB_ADAPTIVE};
	const struct perf_params *p = e->p;
	struct vrb_channel_options *o = &e->options;

	o->qps = p->qps;
	o->engine = engine[p->engine];
	o->send_depth = p->depth;
	o->recv_depth = p->recv_depth;
	o->recv_size = p->recv_size;
	o->signal_every = p->signal < p->depth / 2 ? p->signal : p->depth / 2;
	o->path_mtu = p->mtu;
	o->sges = p->sges + 1; /* the frame is one */
	if (p->inline_bytes != PERF_AUTO)
		o->inline_bytes = p->inline_bytes ? p->inline_bytes : UINT32_MAX;
}

void vrb_perf_library_drop(struct perf_library *e)
{
	if (e->each)
		(void)vrb_unregister(e->each);
	e->each = NULL;
	free(e->each_mem);
	e->each_mem = NULL;
}

static void close_library(void *arg)
{
	struct perf_library *e = arg;

	if (e->arrived)
		vrb_buf_put(e->arrived);
	if (e->channel)
		(void)vrb_disconnect(e->channel, e->closed ? 0 : CLOSE_NS);
	vrb_perf_library_drop(e);
	if (e->listener)
		vrb_unlisten(e->listener);
	if (e->region)
		(void)vrb_unregister(e->region);
	if (e->domain && vrb_close(e->domain))
		vrb_perf_fail(e->run, "vrb_close: %.200s", vrb_error_text());
	if (e->mem)
		munmap(e->mem, e->mem_len);
	free(e);
}

static bool listen_and_tell(struct perf_library *e, json_t **address)
{
	struct vrb_remote r = {0};

	if (e->run->is_client) {
		*address = json_object();
		return true;
	}
	if (vrb_listen(e->domain, NULL, "0", &e->options, &e->listener))
		return fail(e, "vrb_listen");
	if (vrb_export(e->region, &r))
		return fail(e, "vrb_export");
	*address =
		json_pack("{s:i, s:I, s:I, s:I}", "port", vrb_listener_port(e->listener), "addr",
			  (json_int_t)r.addr, "len", (json_int_t)r.len, "rkey", (json_int_t)r.rkey);
	return true;
}

static void *open_library(struct perf_run *run, const json_t *peer, json_t **address)
{
	struct perf_library *e = calloc(1, sizeof(*e));

	(void)peer;
	if (!e) {
		vrb_perf_fail(run, "out of memory");
		return NULL;
	}
	e->run = run;
	e->p = run->p;
	set_options(e);
	if (open_domain(e) && make_memory(e) && listen_and_tell(e, address))
		return e;
	close_library(e);
	return NULL;
}

static bool connect_library(void *arg, const char *host, const json_t *peer)
{
	struct perf_library *e = arg;
	struct vrb_channel_info info;
	char port[16];

	snprintf(port, sizeof(port), "%d", (int)json_integer_value(json_object_get(peer, "port")));
	e->peer.addr = (uint64_t)json_integer_value(json_object_get(peer, "addr"));
	e->peer.len = (uint64_t)json_integer_value(json_object_get(peer, "len"));
	e->peer.rkey = (uint32_t)json_integer_value(json_object_get(peer, "rkey"));
	if (vrb_connect(e->domain, host, port, &e->options, &e->channel))
		return fail(e, "vrb_connect");
	vrb_channel_info(e->channel, &info);
	e->run->r->params.mtu = info.path_mtu;
	e->run->r->params.inline_bytes = e->inline_max =
		info.inline_bytes > INLINE_FRAME ? info.inline_bytes - INLINE_FRAME : 0;
	return true;
}

static bool run_library(void *arg)
{
	return vrb_perf_library_run(arg);
}

/* The run looks at the connection itself now and then. */
static void abort_library(void *arg)
{
	(void)arg;
}

const struct perf_face vrb_perf_library = {
	.open = open_library,
	.connect = connect_library,
	.run = run_library,
	.abort = abort_library,
	.close = close_library,
};
