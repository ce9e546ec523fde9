/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/numa.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef VRB_HWLOC
#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>
#else
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#endif

#define NODES_MAX 1024

int vrb_numa_read(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%d", &n) != 1 || n < 0 || n >= NODES_MAX)
		n = -1;
	(void)fclose(f);
	return n;
}

/* What sysfs says of the device: its node, or -1. */
static int node_in_sysfs(struct ibv_device *dev)
{
	char path[IBV_SYSFS_PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/device/numa_node", dev->ibdev_path);
	return vrb_numa_read(path);
}

bool vrb_numa_parse(const char *text, cpu_set_t *set)
{
	char *end;

	CPU_ZERO(set);
	for (;;) {
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text)
				return false;
		}
		if (last >= CPU_SETSIZE)
			return false;
		for (; first <= last; first++)
			CPU_SET(first, set);
		if (*end != ',')
			return CPU_COUNT(set) > 0;
		text = end + 1;
	}
}

int vrb_numa_cpus(struct ibv_device *dev, cpu_set_t *set)
{
	int node = node_in_sysfs(dev);
	char path[64], line[1024];
	bool ok;
	FILE *f;

	if (node < 0)
		return -1;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	f = fopen(path, "re");
	ok = f && fgets(line, sizeof(line), f) && vrb_numa_parse(line, set);
	if (f)
		(void)fclose(f);
	return ok ? node : -1;
}

/* Looked at first: loading a topology takes long. */
static int has_many(void)
{
	return !access("/sys/devices/system/node/node1", F_OK);
}

#ifdef VRB_HWLOC

static int load(hwloc_topology_t *t)
{
	if (hwloc_topology_init(t))
		return -ENOMEM;
	if (!hwloc_topology_load(*t))
		return 0;
	hwloc_topology_destroy(*t);
	return -ENOSYS;
}

int vrb_numa_node(struct ibv_device *dev)
{
	hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
	hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
	hwloc_topology_t t;
	int node = -1;

	if (cpus && nodes && has_many() && !load(&t)) {
		if (!hwloc_ibv_get_device_cpuset(t, dev, cpus)) {
			hwloc_cpuset_to_nodeset(t, cpus, nodes);
			if (hwloc_bitmap_weight(nodes) == 1) /* else it is near to all */
				node = hwloc_bitmap_first(nodes);
		}
		hwloc_topology_destroy(t);
	}
	hwloc_bitmap_free(cpus);
	hwloc_bitmap_free(nodes);
	return node;
}

int vrb_numa_prefer(void *mem, size_t len, int node)
{
	hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
	hwloc_topology_t t;
	int r = nodes ? load(&t) : -ENOMEM;

	if (!r) {
		hwloc_bitmap_only(nodes, (unsigned)node);
		if (hwloc_set_area_membind(t, mem, len, nodes, HWLOC_MEMBIND_BIND,
					   HWLOC_MEMBIND_BYNODESET))
			r = -errno;
		hwloc_topology_destroy(t);
	}
	hwloc_bitmap_free(nodes);
	return r;
}

#else

int vrb_numa_node(struct ibv_device *dev)
{
	return has_many() ? node_in_sysfs(dev) : -1;
}

int vrb_numa_prefer(void *mem, size_t len, int node)
{
	unsigned long mask[NODES_MAX / (8 * sizeof(long))] = {0};

	mask[(size_t)node / (8 * sizeof(long))] = 1ul << (size_t)node % (8 * sizeof(long));
	return syscall(SYS_mbind, mem, len, MPOL_PREFERRED, mask, NODES_MAX, 0) ? -errno : 0;
}

#endif
