/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/PID/maps: which file an address of a process is in, and where in the file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/top.h"

#define MAPS_MAX 65536u

struct map {
	uint64_t start, end, offset;
	char name[VRB_LIVE_NAME];
};

struct vrb_maps {
	uint32_t n, room;
	struct map *map;
};

/* The last part of a path, printable. */
static void put_name(char *out, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n;

	snprintf(out, size, "%s", slash ? slash + 1 : path);
	for (n = 0; out[n]; n++)
		if (out[n] < ' ' || out[n] > '~')
			out[n] = out[n] == '\n' ? '\0' : '?';
}

static bool add(struct vrb_maps *m, const char *line)
{
	struct map *bigger;
	struct map one;
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %*s %*s %n", &one.start,
		   &one.end, &one.offset, &at) < 3 ||
	    !at || !strchr(line + at, '/'))
		return true;
	put_name(one.name, sizeof(one.name), line + at);
	if (m->n == m->room) {
		bigger = realloc(m->map, (m->room * 2 + 64) * sizeof(*m->map));
		if (!bigger)
			return false;
		m->map = bigger;
		m->room = m->room * 2 + 64;
	}
	m->map[m->n++] = one;
	return true;
}

struct vrb_maps *vrb_maps_read(pid_t pid)
{
	char path[48], line[512];
	struct vrb_maps *m;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	m = f ? calloc(1, sizeof(*m)) : NULL;
	while (m && m->n < MAPS_MAX && fgets(line, sizeof(line), f) && add(m, line))
		;
	if (f)
		fclose(f);
	return m;
}

const char *vrb_maps_name(char *out, size_t size, const struct vrb_maps *m, uint64_t addr)
{
	snprintf(out, size, "-");
	for (uint32_t i = 0; m && i < m->n; i++) {
		const struct map *k = &m->map[i];

		if (addr < k->start || addr >= k->end)
			continue;
		snprintf(out, size, "%s+0x%" PRIx64, k->name, addr - k->start + k->offset);
		break;
	}
	return out;
}

void vrb_maps_free(struct vrb_maps *m)
{
	if (!m)
		return;
	free(m->map);
	free(m);
}
