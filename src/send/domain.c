/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening an adapter: which device, which port, which GID. */
#include "send/domain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "send/fail.h"

/* The first active port from `from` on, or 0. */
static uint8_t find_port(struct ibv_context *ctx, uint8_t from, uint8_t to,
			 struct ibv_port_attr *attr)
{
	for (uint8_t port = from; port <= to && port; port++)
		if (!ibv_query_port(ctx, port, attr) && attr->state == IBV_PORT_ACTIVE)
			return port;
	return 0;
}

/* Opens dev if it is usable; the port it found through *d. */
static bool try_device(struct vrb_domain *d, struct ibv_device *dev, uint8_t port)
{
	struct ibv_context *ctx = ibv_open_device(dev);
	uint8_t found;

	if (!ctx)
		return false;
	if (!ibv_query_device(ctx, &d->attr)) {
		uint8_t last = port ? port : d->attr.phys_port_cnt;

		found = find_port(ctx, port ? port : 1, last, &d->port);
		if (found) {
			d->ctx = ctx;
			d->port_num = found;
			return true;
		}
	}
	ibv_close_device(ctx);
	return false;
}

static int open_device(struct vrb_domain *d, const struct vrb_domain_options *o)
{
	int n = 0, named = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && !d->ctx; i++) {
		if (o->device && strcmp(o->device, ibv_get_device_name(list[i])) != 0)
			continue;
		named++;
		try_device(d, list[i], o->port);
	}
	if (list)
		ibv_free_device_list(list);
	if (d->ctx)
		return 0;
	if (named) {
		(void)vrb_fail(ENETDOWN, VRB_V_SEND_NO_PORT, o->port, 0, 0);
		return vrb_about("%s", o->device ? o->device : "any device");
	}
	(void)vrb_fail(ENODEV, VRB_V_SEND_NO_DEVICE, 0, 0, 0);
	return vrb_about("%s", o->device ? o->device : "any device");
}

static int parse_address(struct vrb_domain *d, const char *text)
{
	uint32_t v4;

	if (!text)
		return 0;
	d->has_want = true;
	if (inet_pton(AF_INET, text, &v4) == 1) {
		vrb_gid_from_ipv4(&d->want, v4);
		return 0;
	}
	if (inet_pton(AF_INET6, text, d->want.raw) == 1)
		return 0;
	(void)vrb_fail(EINVAL, VRB_V_SEND_ADDRESS, 0, 0, 0);
	return vrb_about("address \"%s\"", text);
}

static enum vrb_gid_type type_of(const struct ibv_gid_entry *e)
{
	if (e->gid_type == IBV_GID_TYPE_ROCE_V2)
		return VRB_GID_ROCE2;
	return e->gid_type == IBV_GID_TYPE_ROCE_V1 ? VRB_GID_ROCE1 : VRB_GID_IB;
}

int vrb_domain_gid(const struct vrb_domain *d, const struct vrb_gid *want,
		   struct vrb_gid_entry *out)
{
	struct vrb_gid_entry e[VRB_GIDS_MAX];
	const struct vrb_gid_entry *best;
	uint32_t n = 0;
	char text[INET6_ADDRSTRLEN] = "any";

	for (int i = 0; i < d->port.gid_tbl_len && n < VRB_GIDS_MAX; i++) {
		struct ibv_gid_entry g;

		if (ibv_query_gid_ex(d->ctx, d->port_num, (uint32_t)i, &g, 0))
			continue;
		memcpy(e[n].gid.raw, g.gid.raw, sizeof(g.gid.raw));
		e[n].index = (uint32_t)i;
		e[n++].type = type_of(&g);
	}
	if (d->has_want)
		want = &d->want;
	best = vrb_gid_choose(e, n, d->port.link_layer == IBV_LINK_LAYER_ETHERNET, want);
	if (!best) {
		if (want)
			inet_ntop(AF_INET6, want->raw, text, sizeof(text));
		(void)vrb_fail(EADDRNOTAVAIL, VRB_V_SEND_NO_GID, n, d->port_num, 0);
		return vrb_about("%s", text);
	}
	*out = *best;
	return 0;
}

int vrb_open(const struct vrb_domain_options *options, struct vrb_domain **domain)
{
	static const struct vrb_domain_options none;
	const struct vrb_domain_options *o = options ? options : &none;
	struct vrb_domain *d = calloc(1, sizeof(*d));
	struct vrb_gid_entry gid;
	int r;

	if (!d)
		return vrb_fail(ENOMEM, VRB_V_SEND_POOL, sizeof(*d), ENOMEM, 0);
	pthread_mutex_init(&d->lock, NULL);
	r = parse_address(d, o->address);
	if (r)
		goto err_free;
	r = open_device(d, o);
	if (r)
		goto err_free;
	r = d->has_want ? vrb_domain_gid(d, NULL, &gid) : 0;
	if (r)
		goto err_close;
	d->pd = ibv_alloc_pd(d->ctx);
	if (!d->pd) {
		r = vrb_fail(errno, VRB_V_SEND_CREATE, 1 /* PD */, (uint64_t)errno, 0);
		goto err_close;
	}
	r = vrb_memory_init(d, o);
	if (r)
		goto err_pd;
	r = vrb_keep_init(&d->keep, d->pd, o);
	if (r)
		goto err_memory;
	r = vrb_async_init(d, o);
	if (r)
		vrb_keep_fini(&d->keep);
	if (r)
		goto err_memory;
	*domain = d;
	return 0;
err_memory:
	vrb_memory_fini(d);
err_pd:
	ibv_dealloc_pd(d->pd);
err_close:
	ibv_close_device(d->ctx);
err_free:
	pthread_mutex_destroy(&d->lock);
	free(d);
	return r;
}

int vrb_close(struct vrb_domain *d)
{
	struct vrb_pool_stats s;
	uint32_t users, regions;

	vrb_pool_count(&d->pool, &s);
	pthread_mutex_lock(&d->lock);
	users = d->n_users;
	regions = d->n_regions;
	pthread_mutex_unlock(&d->lock);
	if (users || regions || s.outside) {
		char line[120];

		vrb_memory_first_leak(d, line, sizeof(line));
		(void)vrb_fail(EBUSY, VRB_V_SEND_BUSY, users, regions, s.outside);
		return vrb_about("%s", line);
	}
	vrb_async_fini(d);
	vrb_keep_fini(&d->keep);
	vrb_memory_fini(d);
	ibv_dealloc_pd(d->pd);
	ibv_close_device(d->ctx);
	pthread_mutex_destroy(&d->lock);
	free(d);
	return 0;
}

void vrb_domain_hold(struct vrb_domain *d)
{
	pthread_mutex_lock(&d->lock);
	d->n_users++;
	pthread_mutex_unlock(&d->lock);
}

void vrb_domain_release(struct vrb_domain *d)
{
	pthread_mutex_lock(&d->lock);
	d->n_users--;
	pthread_mutex_unlock(&d->lock);
}

struct ibv_context *vrb_domain_context(const struct vrb_domain *d)
{
	return d->ctx;
}

struct ibv_pd *vrb_domain_pd(const struct vrb_domain *d)
{
	return d->pd;
}
