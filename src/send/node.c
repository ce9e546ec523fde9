/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/node.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "send/domain.h"
#include "send/fail.h"

static bool read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(line, size, f);

	if (f)
		fclose(f);
	return ok;
}

int vrb_node_of(const struct vrb_domain *d)
{
	char path[320], line[32];

	snprintf(path, sizeof(path), "%s/device/numa_node", d->ctx->device->ibdev_path);
	return read_line(path, line, sizeof(line)) ? atoi(line) : -1;
}

bool vrb_node_parse(const char *text, cpu_set_t *set)
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

/* The node, or -1. */
static int cpus_of(const struct vrb_domain *d, cpu_set_t *set)
{
	int node = vrb_node_of(d);
	char path[64], line[1024];

	if (node < 0)
		return -1;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	return read_line(path, line, sizeof(line)) && vrb_node_parse(line, set) ? node : -1;
}

void vrb_node_attr(const struct vrb_domain *d, pthread_attr_t *a)
{
	cpu_set_t set;

	if (cpus_of(d, &set) >= 0)
		(void)pthread_attr_setaffinity_np(a, sizeof(set), &set);
}

int vrb_bind_thread(const struct vrb_domain *d)
{
	cpu_set_t set;
	int node = cpus_of(d, &set);

	if (node < 0)
		return vrb_fail(ENODATA, VRB_V_SEND_NO_NODE, 0, 0, 0);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		return vrb_fail(EINVAL, VRB_V_SEND_NO_NODE, (uint64_t)node, 0, 0);
	return node;
}
