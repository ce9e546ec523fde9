/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads on the NUMA node that the adapter hangs on (which one: numa.h). */
#ifndef VRB_SEND_NODE_H
#define VRB_SEND_NODE_H

#include <pthread.h>

#include <verbena/verbena.h>

/* A thread of these attributes runs there; where there is no node, anywhere. */
void vrb_node_attr(const struct vrb_domain *d, pthread_attr_t *a);

#endif
