/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices and contexts. A device's public object lives until the process ends, one per interface
 * the HCA stands on, so that pointers stay good after ibv_free_device_list. Opening makes a context
 * with complete ops tables; its cmd_fd is a descriptor of its own (clients dup() it and nothing
 * more), its async_fd is the device's.
 */
#include "verbs/verbs.h"
#include "verbs/ret.h"

#include <endian.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct vv_device *devices[VRB_DEVICES_MAX];
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

static struct vv_device *make_device(struct vrb_hdev *h)
{
	struct vv_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->h = h;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->ibv.name, sizeof(d->ibv.name), "%s", h->name);
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "uverbs%u", h->index);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/%s",
		 d->ibv.dev_name);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s", h->name);
	return d;
}

/* The public object of h, made at first sight. The caller holds devices_lock. */
static struct vv_device *device_of_locked(struct vrb_hdev *h)
{
	for (int i = 0; i < VRB_DEVICES_MAX; i++) {
		if (!devices[i])
			devices[i] = make_device(h);
		if (!devices[i] || devices[i]->h == h)
			return devices[i];
	}
	return NULL;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct vrb_hdev *h[VRB_DEVICES_MAX];
	int n, n_out = 0;
	struct ibv_device **list;

	if (num_devices)
		*num_devices = 0;
	list = calloc(VRB_DEVICES_MAX + 1, sizeof(*list));
	if (!list)
		return vv_null(ENOMEM);
	pthread_mutex_lock(&devices_lock);
	n = vrb_hca_devices(h);
	for (int i = 0; i < n && i < VRB_DEVICES_MAX; i++) {
		struct vv_device *d = device_of_locked(h[i]);

		if (d)
			list[n_out++] = &d->ibv;
	}
	pthread_mutex_unlock(&devices_lock);
	if (n < 0) {
		free(list);
		return vv_null(n);
	}
	if (num_devices)
		*num_devices = n_out;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return (int)vv_device(device)->h->index;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return vv_device(device)->h->guid;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct vv_context *c = calloc(1, sizeof(*c));
	struct ibv_context *ctx;
	int err = ENOMEM;

	if (!c)
		return vv_null(ENOMEM);
	ctx = &c->vctx.context;
	c->dev = vv_device(device)->h;
	vrb_hca_event_given = vv_event_given;
	vv_take_profile();
	err = vrb_hctx_open(c->dev, &c->h);
	if (err)
		goto err_free;
	ctx->cmd_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->cmd_fd < 0) {
		err = errno;
		goto err_close;
	}
	ctx->device = device;
	ctx->async_fd = vrb_hctx_async_fd(c->h);
	ctx->num_comp_vectors = VV_COMP_VECTORS;
	pthread_mutex_init(&ctx->mutex, NULL);
	vv_ops_init(c);
	return ctx;

err_close:
	vrb_hctx_close(c->h);
err_free:
	free(c);
	return vv_null(err);
}

int ibv_close_device(struct ibv_context *context)
{
	struct vv_context *c = vv_context(context);

	vv_count_close(context);
	vrb_hctx_close(c->h);
	close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	free(c);
	return 0;
}

/* Registered memory is read and written in place by this process and shared mappings are kept from
 * children, so nothing has to be prepared for fork. */
int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* Exported for provider libraries; no public header has them. */
VV_EXPORT int ibv_dontfork_range(void *base, size_t size);
VV_EXPORT int ibv_dofork_range(void *base, size_t size);

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
