/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX  64
#define LIST_BYTES 4096

/* The first two CPUs of a list like "0-3,8,10-11" that are allowed; how many there are, up to 2. */
static int first_two(const char *list, const cpu_set_t *allowed, int cpu[2])
{
	int n = 0;
	char *end;

	while (*list && n < 2) {
		long from = strtol(list, &end, 10), to = from;

		if (end == list)
			break;
		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		for (long c = from; c >= 0 && c <= to && c < CPU_SETSIZE && n < 2; c++)
			if (CPU_ISSET((size_t)c, allowed))
				cpu[n++] = (int)c;
		list = end + (*end == ',');
	}
	return n;
}

bool vrb_perf_nodes_pick(const char *root, const cpu_set_t *allowed, bool together, int cpu[2],
			 char why[PERF_WHY_BYTES])
{
	char path[512], list[LIST_BYTES];
	int found[NODES_MAX][2] = {{0}}, nodes = 0, pair = -1;

	for (int i = 0; i < NODES_MAX; i++) {
		FILE *f;
		int n;

		snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d/cpulist", root, i);
		f = fopen(path, "re");
		if (!f)
			continue;
		n = fgets(list, sizeof(list), f) ? first_two(list, allowed, found[nodes]) : 0;
		fclose(f);
		if (n == 2 && pair < 0)
			pair = nodes;
		nodes += n > 0;
	}
	if (nodes < 2) {
		snprintf(why, PERF_WHY_BYTES, "there is one NUMA node here");
		return false;
	}
	if (together && pair < 0) {
		snprintf(why, PERF_WHY_BYTES, "no NUMA node has two CPUs that may be used");
		return false;
	}
	cpu[0] = found[together ? pair : 0][0];
	cpu[1] = together ? found[pair][1] : found[1][0];
	return true;
}
