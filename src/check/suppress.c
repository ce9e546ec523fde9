/* SPDX-License-Identifier: BSD-2-Clause */
/* See suppress.h. The file is read at the first finding; what is wrong in it is said and left out.
 */
#include "check/suppress.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

#define RULES_MAX 256
#define WORD_MAX  128

static struct {
	char counter[WORD_MAX], pattern[WORD_MAX];
} rule[RULES_MAX];
static int n_rules = -1;

static void load(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[512];

	n_rules = 0;
	if (!f) {
		fprintf(stderr, "verbena: check: cannot read %s: %m\n", path);
		return;
	}
	while (n_rules < RULES_MAX && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = '\0';
		rule[n_rules].pattern[0] = '\0';
		if (sscanf(line, "%127s %127s", rule[n_rules].counter, rule[n_rules].pattern) >= 1)
			n_rules++;
	}
	fclose(f);
}

static bool matches(const char *pattern, const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	return name && (!fnmatch(pattern, name, 0) || (slash && !fnmatch(pattern, slash + 1, 0)));
}

static bool site_matches(const char *pattern, const struct vrb_chk_site *s)
{
	for (int i = 0; s && i < VRB_CHK_FRAMES; i++) {
		struct vrb_chk_place p;

		if (vrb_chk_place(s->pc[i], &p) &&
		    (matches(pattern, p.object) || matches(pattern, p.symbol)))
			return true;
	}
	return false;
}

bool vrb_chk_suppressed(const char *counter, const struct vrb_chk_site *const *sites, int n)
{
	if (!vrb_chk_options.suppress)
		return false;
	if (n_rules < 0)
		load(vrb_chk_options.suppress);
	for (int i = 0; i < n_rules; i++) {
		if (fnmatch(rule[i].counter, counter, 0))
			continue;
		if (!rule[i].pattern[0])
			return true;
		for (int j = 0; j < n; j++)
			if (site_matches(rule[i].pattern, sites[j]))
				return true;
	}
	return false;
}
