/* SPDX-License-Identifier: BSD-2-Clause */
/* The NUMA node that the adapter hangs on, and threads on it. */
#ifndef VRB_SEND_NODE_H
#define VRB_SEND_NODE_H

#include <pthread.h>

#include <verbena/verbena.h>

/* The adapter's node, or -1: it has none, or nobody knows. */
int vrb_node_of(const struct vrb_domain *d);

/* "0-3,8" as the kernel writes lists of CPUs. False: it is none, or empty. */
bool vrb_node_parse(const char *text, cpu_set_t *set);

/* A thread of these attributes runs there; where there is no node, anywhere. */
void vrb_node_attr(const struct vrb_domain *d, pthread_attr_t *a);

#endif
