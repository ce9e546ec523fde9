/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/node.h"

#include <errno.h>

#include "send/domain.h"
#include "send/fail.h"
#include "send/numa.h"

void vrb_node_attr(const struct vrb_domain *d, pthread_attr_t *a)
{
	cpu_set_t set;

	if (vrb_numa_cpus(d->ctx->device, &set) >= 0)
		(void)pthread_attr_setaffinity_np(a, sizeof(set), &set);
}

int vrb_bind_thread(const struct vrb_domain *d)
{
	cpu_set_t set;
	int node = vrb_numa_cpus(d->ctx->device, &set);

	if (node < 0)
		return vrb_fail(ENODATA, VRB_V_SEND_NO_NODE, 0, 0, 0);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		return vrb_fail(EINVAL, VRB_V_SEND_NO_NODE, (uint64_t)node, 0, 0);
	return node;
}
