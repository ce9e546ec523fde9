/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices and contexts. A device stands for a network interface and lives until the process ends;
 * its GID table is read anew whenever devices are listed. A context holds the lists of its objects
 * so that closing it can end what was left.
 */
#include "hca/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "link/netdev.h"

static struct vrb_hdev devices[VRB_DEVICES_MAX];
static uint32_t n_known;
/* Guards the table. Taken for moments only, also under an engine's lock. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_taken(const char *name)
{
	for (uint32_t i = 0; i < n_known; i++)
		if (!strcmp(devices[i].name, name))
			return true;
	return false;
}

/*
 * An interface is told by its index and keeps its device and its name while the process lives,
 * whatever comes and goes before it in the list. NULL: there have been more than VRB_DEVICES_MAX.
 */
static struct vrb_hdev *device_of(const struct vrb_netdev *n)
{
	struct vrb_hdev *d = &devices[n_known];

	for (uint32_t i = 0; i < n_known; i++)
		if (devices[i].ifindex == n->ifindex)
			return &devices[i];
	if (n_known == VRB_DEVICES_MAX)
		return NULL;
	memcpy(d->name, n->name, sizeof(d->name));
	for (uint32_t k = 0; is_taken(d->name); k++)
		snprintf(d->name, sizeof(d->name), "verbena%u", k);
	n_known++;
	return d;
}

/* As the profile has it: with gaps, and with entries of RoCE v1. What does not fit is left out. */
static void fill_gids(struct vrb_hdev *d, const struct vrb_netdev *n)
{
	const struct vrb_profile *p = vrb_hca_profile();

	for (uint32_t i = 0; i < n->n_gids; i++) {
		uint32_t at = vrb_profile_gid_index(p, i);

		if (at >= VRB_GIDS_MAX)
			return;
		d->gid[at] = (struct vrb_gid_entry){
			.gid = n->gid[i], .valid = true, .is_v4 = n->gid_is_v4[i]};
		if (p->roce_v1_gids) {
			d->gid[at - 1] = d->gid[at];
			d->gid[at - 1].is_v1 = true;
		}
		d->n_gids = at + 1;
	}
}

/* Others read a device without the lock: nothing is written but what has changed. */
static void refresh(struct vrb_hdev *dev, const struct vrb_netdev *n)
{
	struct vrb_hdev new, *d = &new;

	memset(d, 0, sizeof(*d));
	memcpy(d->name, dev->name, sizeof(d->name));
	memcpy(d->ifname, n->ifname, sizeof(d->ifname));
	d->index = (uint32_t)(dev - devices);
	d->ifindex = n->ifindex;
	d->netdev_mtu = n->mtu;
	d->speed_mbps = n->speed_mbps;
	d->guid = n->guid;
	d->present = true;
	d->up = n->up;
	d->loopback = n->loopback;
	/* Within a host any path MTU is possible; this is what the wire bears. */
	d->active_mtu = n->path_mtu;
	fill_gids(d, n);
	if (memcmp(dev, d, sizeof(*d)))
		memcpy(dev, d, sizeof(*d));
}

int vrb_hca_devices(struct vrb_hdev **list)
{
	struct vrb_netdev found[VRB_DEVICES_MAX];
	bool seen[VRB_DEVICES_MAX] = {false};
	int n = vrb_netdev_scan(found, VRB_DEVICES_MAX), i, out = 0;

	pthread_mutex_lock(&table_lock);
	for (i = 0; i < n; i++) {
		struct vrb_hdev *d = device_of(&found[i]);

		if (!d)
			continue;
		refresh(d, &found[i]);
		seen[d - devices] = true;
		list[out++] = d;
	}
	for (uint32_t k = 0; n >= 0 && k < n_known; k++)
		if (!seen[k] && devices[k].present)
			devices[k].present = false;
	pthread_mutex_unlock(&table_lock);
	return n < 0 ? n : out;
}

void vrb_devices_lock(bool lock)
{
	if (lock)
		pthread_mutex_lock(&table_lock);
	else
		pthread_mutex_unlock(&table_lock);
}

/* True when gid is an address of this host, whichever device has it. */
bool vrb_gid_is_local(const struct vrb_gid *gid)
{
	static const uint8_t v4_loopback[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
	bool found = false;

	if (!memcmp(gid->raw, v4_loopback, sizeof(v4_loopback)))
		return true;
	pthread_mutex_lock(&table_lock);
	for (uint32_t k = 0; k < n_known; k++)
		for (uint32_t i = 0; devices[k].present && i < devices[k].n_gids; i++)
			found |= devices[k].gid[i].valid &&
				 !memcmp(&devices[k].gid[i].gid, gid, sizeof(*gid));
	pthread_mutex_unlock(&table_lock);
	return found;
}

int vrb_hctx_open(struct vrb_hdev *dev, struct vrb_hctx **out)
{
	int err = vrb_hca_profile_check();
	struct vrb_hctx *c = err ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return err ? err : -ENOMEM;
	c->async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	err = c->async_fd < 0 ? -errno : vrb_engine_get(&c->e);
	if (err) {
		if (c->async_fd >= 0)
			close(c->async_fd);
		free(c);
		return err;
	}
	c->dev = dev;
	vrb_list_init(&c->qps);
	vrb_list_init(&c->cqs);
	vrb_list_init(&c->srqs);
	vrb_list_init(&c->mrs);
	vrb_engine_lock(c->e);
	c->stats = vrb_stats_device(c->e, dev);
	vrb_list_add_tail(&c->e->contexts, &c->node);
	vrb_engine_unlock(c->e);
	*out = c;
	return 0;
}

static void destroy_rest(struct vrb_hctx *c)
{
	while (!vrb_list_empty(&c->qps)) {
		struct vrb_hqp *q = vrb_list_entry(c->qps.next, struct vrb_hqp, ctx_node);

		q->n_mcast = 0;
		vrb_hqp_destroy(q);
	}
	while (!vrb_list_empty(&c->srqs)) {
		struct vrb_hsrq *s = vrb_list_entry(c->srqs.next, struct vrb_hsrq, node);

		s->refs = 0;
		vrb_hsrq_destroy(s);
	}
	while (!vrb_list_empty(&c->cqs)) {
		struct vrb_hcq *q = vrb_list_entry(c->cqs.next, struct vrb_hcq, node);

		q->refs = 0;
		vrb_hcq_destroy(q);
	}
	/* regions stay valid */
	while (!vrb_list_empty(&c->mrs))
		vrb_list_del(c->mrs.next);
}

void vrb_hctx_close(struct vrb_hctx *c)
{
	struct vrb_engine *e = c->e;

	if (!e->foreign) {
		destroy_rest(c);
		vrb_engine_lock(e);
		vrb_list_del(&c->node);
		vrb_engine_unlock(e);
	}
	close(c->async_fd);
	free(c->async);
	free(c);
	vrb_engine_put(e);
}

int vrb_hctx_async_fd(const struct vrb_hctx *c)
{
	return c->async_fd;
}

struct vrb_hdev *vrb_hctx_dev(const struct vrb_hctx *c)
{
	return c->dev;
}

bool vrb_hctx_is_foreign(const struct vrb_hctx *c)
{
	return c->e->foreign;
}
