/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of CPUs in the list form of /proc and /sys, and sizes in words. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_read.h"

bool vrb_cpus_parse(struct vrb_cpus *c, const char *list)
{
	memset(c, 0, sizeof(*c));
	while (*list) {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = from;

		if (end == list)
			return false;
		if (*end == '-') {
			list = end + 1;
			to = strtoul(list, &end, 10);
			if (end == list)
				return false;
		}
		if (from > to || to >= VRB_DOC_CPUS)
			return false;
		for (unsigned long cpu = from; cpu <= to; cpu++)
			c->word[cpu / 64] |= 1ull << (cpu % 64);
		list = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			return false;
	}
	return true;
}

bool vrb_doc_cpus(const struct vrb_doc *d, struct vrb_cpus *out, const char *fmt, ...)
{
	char path[256], list[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return vrb_doc_line(d, list, sizeof(list), "%s", path) && vrb_cpus_parse(out, list);
}

bool vrb_doc_allowed(const struct vrb_doc *d, struct vrb_cpus *out, char *list, size_t size)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/status", d->pid);
	bool found = text && vrb_doc_field(text, "Cpus_allowed_list:", list, size);

	free(text);
	return found && vrb_cpus_parse(out, list);
}

unsigned vrb_cpus_count(const struct vrb_cpus *c)
{
	return vrb_cpus_common(c, c);
}

bool vrb_cpus_has(const struct vrb_cpus *c, unsigned cpu)
{
	return cpu < VRB_DOC_CPUS && (c->word[cpu / 64] >> (cpu % 64) & 1);
}

unsigned vrb_cpus_common(const struct vrb_cpus *a, const struct vrb_cpus *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < VRB_DOC_CPUS / 64; i++)
		n += (unsigned)__builtin_popcountll(a->word[i] & b->word[i]);
	return n;
}

const char *vrb_doc_size(char *out, size_t size, long long bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	unsigned u = 0;

	if (bytes < 0) {
		snprintf(out, size, "%s", VRB_TR("unlimited"));
		return out;
	}
	while (u < 4 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	while (u < 4 && bytes >= 10 * 1024) {
		bytes /= 1024;
		u++;
	}
	snprintf(out, size, "%lld %s", bytes, units[u]);
	return out;
}
