/* SPDX-License-Identifier: BSD-2-Clause */
/* On which NUMA node a device is, and memory on that node; by hwloc where the library was built
 * with it, else by sysfs and the system call. */
#ifndef VRB_SEND_NUMA_H
#define VRB_SEND_NUMA_H

#include <infiniband/verbs.h>

/* The node of the device, -1: unknown, or there is but one. */
int vrb_numa_node(struct ibv_device *dev);

/* Pages of this memory come from the node as long as it has some. 0 or -errno. */
int vrb_numa_prefer(void *mem, size_t len, int node);

/* The number in a file of sysfs, or -1. */
int vrb_numa_read(const char *path);

#endif
