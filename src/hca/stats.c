/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters page: shared memory that outside readers map read-only (include/verbena/stats.h).
 * What is counted for each packet is counted at its queue pair, and put into the device's row when
 * somebody asks for the page. Messages are not counted at all: they are what the queue pairs'
 * indices have moved.
 */
#include "hca/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TALLY_NS (60 * VRB_NS_PER_S) /* no queue pair makes 2^32 messages in this time */

int vrb_stats_open(struct vrb_engine *e)
{
	struct vrb_stats_page *p;
	struct timespec t;
	char path[32];
	int fd = memfd_create("verbena-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(*p)) ||
	    (p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	madvise(p, sizeof(*p), MADV_DONTFORK);
	/* Readers cannot write: the seal refuses new writable mappings, ours stays. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	clock_gettime(CLOCK_REALTIME, &t);
	p->magic = VRB_STATS_MAGIC;
	p->size = sizeof(*p);
	p->pid = (uint32_t)getpid();
	p->slot = e->slot;
	p->started_ns = (uint64_t)t.tv_sec * VRB_NS_PER_S + (uint64_t)t.tv_nsec;
	snprintf(path, sizeof(path), "/proc/self/comm");
	{
		FILE *f = fopen(path, "re");

		if (f) {
			if (fgets(p->comm, sizeof(p->comm), f))
				p->comm[strcspn(p->comm, "\n")] = 0;
			fclose(f);
		}
	}
	e->stats = p;
	e->stats_fd = fd;
	return 0;
}

void vrb_stats_close(struct vrb_engine *e)
{
	if (e->stats)
		munmap(e->stats, sizeof(*e->stats));
	if (e->stats_fd >= 0)
		close(e->stats_fd);
	e->stats = NULL;
	e->stats_fd = -1;
}

struct vrb_stats_device *vrb_stats_device(struct vrb_engine *e, const struct vrb_hdev *dev)
{
	uint32_t i = dev->index % VRB_STATS_DEVICES;
	struct vrb_stats_device *d = &e->stats->device[i];

	if (!d->name[0]) {
		memcpy(d->name, dev->name, sizeof(d->name));
		if (e->stats->n_devices <= i)
			e->stats->n_devices = i + 1;
	}
	return d;
}

static void add(struct vrb_hqp_counts *to, const struct vrb_hqp_counts *from)
{
	to->tx_packets += from->tx_packets;
	to->tx_bytes += from->tx_bytes;
	to->rx_packets += from->rx_packets;
	to->rx_bytes += from->rx_bytes;
}

/* Which row of the page a context counts in. */
static uint32_t row_of(const struct vrb_engine *e, const struct vrb_stats_device *d)
{
	return (uint32_t)(d - e->stats->device);
}

static void add_qp(struct vrb_stats_sum *to, struct vrb_hqp *q)
{
	vrb_stats_tally(q);
	to->sent += q->tally.sent;
	to->taken += q->core.type == VRB_QPT_UD ? q->count.rx_packets : q->tally.taken;
}

static void add_cq(struct vrb_stats_sum *to, const struct vrb_hcq *cq)
{
	to->completions += cq->core.n_pushed;
	to->failed += cq->core.n_failed;
}

void vrb_stats_bury(struct vrb_engine *e, struct vrb_hqp *q)
{
	add(&e->gone_counts[row_of(e, q->stats)], &q->count);
	add_qp(&e->sum[row_of(e, q->stats)], q);
}

void vrb_stats_bury_cq(const struct vrb_hcq *cq)
{
	add_cq(vrb_stats_sum_of(cq->ctx), cq);
}

void vrb_stats_sum(struct vrb_engine *e, struct vrb_stats_sum all[VRB_STATS_DEVICES])
{
	memcpy(all, e->sum, sizeof(e->sum));
	for (struct vrb_list *c = e->contexts.next; c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);
		struct vrb_stats_sum *to = &all[row_of(e, ctx->stats)];

		for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next)
			add_qp(to, vrb_list_entry(n, struct vrb_hqp, ctx_node));
		for (struct vrb_list *n = ctx->cqs.next; n != &ctx->cqs; n = n->next)
			add_cq(to, vrb_list_entry(n, struct vrb_hcq, node));
	}
}

void vrb_stats_fold(struct vrb_engine *e)
{
	struct vrb_hqp_counts all[VRB_STATS_DEVICES];

	memcpy(all, e->gone_counts, sizeof(all));
	for (struct vrb_list *c = e->contexts.next; c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);

		for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next)
			add(&all[row_of(e, ctx->stats)],
			    &vrb_list_entry(n, struct vrb_hqp, ctx_node)->count);
	}
	for (uint32_t i = 0; i < VRB_STATS_DEVICES; i++) {
		struct vrb_stats_device *d = &e->stats->device[i];

		vrb_poke(&d->tx_packets, all[i].tx_packets);
		vrb_poke(&d->tx_bytes, all[i].tx_bytes);
		vrb_poke(&d->rx_packets, all[i].rx_packets);
		vrb_poke(&d->rx_bytes, all[i].rx_bytes);
	}
}

/* ---- messages: 32-bit indices of the core, widened before they can pass twice */

void vrb_stats_tally(struct vrb_hqp *q)
{
	struct vrb_hqp_tally *t = &q->tally;

	t->sent += q->core.sq_una - t->sq_una;
	t->taken += q->core.msn - t->msn;
	vrb_stats_tally_from(q);
}

void vrb_stats_tally_from(struct vrb_hqp *q)
{
	q->tally.sq_una = q->core.sq_una;
	q->tally.msn = q->core.msn;
}

void vrb_stats_tick(struct vrb_engine *e, vrb_ns now)
{
	if (vrb_likely(now < e->tally_at))
		return;
	e->tally_at = now + TALLY_NS;
	for (struct vrb_list *c = e->contexts.next; c != &e->contexts; c = c->next) {
		struct vrb_hctx *ctx = vrb_list_entry(c, struct vrb_hctx, node);

		for (struct vrb_list *n = ctx->qps.next; n != &ctx->qps; n = n->next)
			vrb_stats_tally(vrb_list_entry(n, struct vrb_hqp, ctx_node));
	}
}
