/* SPDX-License-Identifier: BSD-2-Clause */
/* CPUs: frequency governors, idle states, how many the process may use, how much of their time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_read.h"

#define DEEP_US	   50
#define LEVELS_MAX 16

static void check_governor(struct vrb_doc *d, const struct vrb_cpus *online)
{
	char governor[32], worst[32] = "";
	int total = 0, slow = 0;

	for (unsigned cpu = 0; cpu < VRB_DOC_CPUS; cpu++) {
		if (!vrb_cpus_has(online, cpu) ||
		    !vrb_doc_line(d, governor, sizeof(governor),
				  "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu))
			continue;
		total++;
		if (!strcmp(governor, "performance"))
			continue;
		slow++;
		if (strcmp(worst, "powersave"))
			strcpy(worst, governor);
	}
	if (slow)
		vrb_doc_add(d, strcmp(worst, "powersave") ? VRB_F_GOVERNOR_NOTE : VRB_F_GOVERNOR,
			    "{s:i, s:i, s:s, s:s}", "count", slow, "total", total, "governor",
			    worst, "file", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
}

void vrb_check_cpus(struct vrb_doc *d)
{
	struct vrb_cpus online, allowed;
	char list[256], online_list[256];
	unsigned n, last = 0;

	if (!vrb_doc_line(d, online_list, sizeof(online_list), "/sys/devices/system/cpu/online") ||
	    !vrb_cpus_parse(&online, online_list))
		return;
	n = vrb_cpus_count(&online);
	for (unsigned cpu = 0; cpu < VRB_DOC_CPUS; cpu++)
		last = vrb_cpus_has(&online, cpu) ? cpu : last;
	if (n == 1)
		vrb_doc_add(d, VRB_F_ONE_CPU_MACHINE, "{s:s, s:s}", "online", online_list, "file",
			    "/sys/devices/system/cpu/online");
	else if (vrb_doc_allowed(d, &allowed, list, sizeof(list)) && vrb_cpus_count(&allowed) == 1)
		vrb_doc_add(d, VRB_F_ONE_CPU, "{s:s, s:i, s:i, s:s}", "allowed", list, "online",
			    (int)n, "last", (int)last, "file", "/proc/self/status");
	check_governor(d, &online);
}

/* CPU 0 stands for all. */
void vrb_check_idle(struct vrb_doc *d)
{
	long long deepest = 0;
	char deepest_name[32] = "";

	for (int i = 0; i < 16; i++) {
		long long latency, disabled = 0;
		char path[80], name[32];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%d", i);
		if (!vrb_doc_number(d, &latency, "%s/latency", path))
			break;
		(void)vrb_doc_number(d, &disabled, "%s/disable", path);
		if (disabled || latency <= deepest ||
		    !vrb_doc_line(d, name, sizeof(name), "%s/name", path))
			continue;
		deepest = latency;
		strcpy(deepest_name, name);
	}
	if (deepest > DEEP_US)
		vrb_doc_add(d, VRB_F_IDLE_DEEP, "{s:I, s:s, s:s}", "latency", (json_int_t)deepest,
			    "state", deepest_name, "file", "/sys/devices/system/cpu/cpu0/cpuidle");
}

static void add_quota(struct vrb_doc *d, const char *path, long long quota, long long period)
{
	char *stat = vrb_doc_slurp(d, "%s/cpu.stat", path), value[32] = "0", cpus[32];

	if (stat)
		(void)vrb_doc_field(stat, "nr_throttled", value, sizeof(value));
	free(stat);
	snprintf(cpus, sizeof(cpus), "%.3g", (double)quota / (double)period);
	vrb_doc_add(d, VRB_F_QUOTA, "{s:I, s:I, s:s, s:I, s:s}", "quota", (json_int_t)quota,
		    "period", (json_int_t)period, "cpus", cpus, "throttled",
		    (json_int_t)atoll(value), "file", path);
}

/* Both forms of one level of the hierarchy. */
static bool has_quota(const struct vrb_doc *d, const char *path, long long *quota,
		      long long *period)
{
	char line[64];

	if (vrb_doc_line(d, line, sizeof(line), "%s/cpu.max", path))
		return sscanf(line, "%lld %lld", quota, period) == 2 && *period > 0;
	return vrb_doc_number(d, quota, "%s/cpu.cfs_quota_us", path) && *quota > 0 &&
	       vrb_doc_number(d, period, "%s/cpu.cfs_period_us", path) && *period > 0;
}

/* The limits of the groups above count, too; in a container the group is the root of the mount. */
static bool check_levels(struct vrb_doc *d, const char *mount, const char *group)
{
	char path[512];
	long long quota, period;

	if ((size_t)snprintf(path, sizeof(path), "%s%s", mount, group) >= sizeof(path))
		return false;
	for (int level = 0; level < LEVELS_MAX && strlen(path) >= strlen(mount); level++) {
		char *slash;

		if (has_quota(d, path, &quota, &period)) {
			add_quota(d, path, quota, period);
			return true;
		}
		slash = strrchr(path, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	return false;
}

void vrb_check_quota(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/cgroup", d->pid), group[256];
	char *cursor = text, *line;
	bool found = false;

	if (text && vrb_doc_field(text, "0::", group, sizeof(group)))
		found = check_levels(d, "/sys/fs/cgroup", group);
	while (!found && (line = vrb_doc_next_line(&cursor))) {
		char names[64];

		if (sscanf(line, "%*[0-9]:%63[^:]:%255s", names, group) == 2 &&
		    (!strcmp(names, "cpu") || !strcmp(names, "cpu,cpuacct")))
			found = check_levels(d, "/sys/fs/cgroup/cpu", group);
	}
	free(text);
}
