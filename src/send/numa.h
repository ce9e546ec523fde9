/* SPDX-License-Identifier: BSD-2-Clause */
/* On which NUMA node a device is, and memory and CPUs of that node; by hwloc where the library was
 * built with it, else by sysfs and the system call. */
#ifndef VRB_SEND_NUMA_H
#define VRB_SEND_NUMA_H

#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>

/* The node of the device, -1: unknown, or there is but one. */
int vrb_numa_node(struct ibv_device *dev);

/* Pages of this memory come from the node as long as it has some. 0 or -errno. */
int vrb_numa_prefer(void *mem, size_t len, int node);

/* The CPUs of the device's node, also when that is the only one; its number, or -1: it has none, or
 * nobody knows. */
int vrb_numa_cpus(struct ibv_device *dev, cpu_set_t *set);

/* "0-3,8" as the kernel writes lists of CPUs. False: it is none, or empty. */
bool vrb_numa_parse(const char *text, cpu_set_t *set);

/* The number in a file of sysfs, or -1. */
int vrb_numa_read(const char *path);

#endif
