/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters page: shared memory that outside readers map read-only (include/verbena/stats.h). */
#include "hca/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

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
	struct vrb_stats_device *d = &e->stats->device[dev->index % VRB_STATS_DEVICES];

	if (!d->name[0]) {
		memcpy(d->name, dev->name, sizeof(d->name));
		e->stats->n_devices++;
	}
	return d;
}
