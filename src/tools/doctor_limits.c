/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of the process and its container, memory, and what one process may do to another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_read.h"

/* Below this, programs with ordinary buffers fail on a NIC. */
#define MEMLOCK_LOW    (1ll << 30)
#define NOFILE_LOW     1024
#define SHM_SMALL      (1ll << 30)
#define CAP_SYS_PTRACE 19
#define KERNEL_COW     5012 /* copies pinned pages at fork */

void vrb_check_memlock(struct vrb_doc *d)
{
	enum vrb_finding_id id = VRB_F_MEMLOCK_SHELL;
	long long soft, hard;
	char a[32], b[32];

	if (!vrb_doc_limit(d, "Max locked memory", &soft, &hard))
		return;
	vrb_doc_size(a, sizeof(a), soft);
	vrb_doc_size(b, sizeof(b), hard);
	if (soft < 0 || soft >= MEMLOCK_LOW)
		id = VRB_F_MEMLOCK_OK;
	else if (d->home != VRB_HOME_HOST)
		id = VRB_F_MEMLOCK_CONTAINER;
	else if (d->unit[0])
		id = VRB_F_MEMLOCK_UNIT;
	vrb_doc_add(d, id, "{s:s, s:s, s:s, s:I, s:s}", "soft", a, "hard", b, "unit", d->unit,
		    "bytes", (json_int_t)soft, "file", "/proc/self/limits");
	if (!d->has_nic)
		vrb_doc_lower(d);
}

static void check_files(struct vrb_doc *d)
{
	long long soft, hard;

	if (vrb_doc_limit(d, "Max open files", &soft, &hard) && soft >= 0 && soft < NOFILE_LOW)
		vrb_doc_add(d, VRB_F_NOFILE_LOW, "{s:I, s:I, s:s}", "soft", (json_int_t)soft,
			    "hard", (json_int_t)hard, "file", "/proc/self/limits");
}

/* rdma.max of the control group: "mlx5_0 hca_handle=2 hca_object=2000" */
static void check_rdma_group(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/cgroup", d->pid), group[256] = "/", file[320];
	char *max, *cursor, *line, current[96] = "?";

	if (text)
		(void)vrb_doc_field(text, "0::", group, sizeof(group));
	free(text);
	snprintf(file, sizeof(file), "/sys/fs/cgroup%s/rdma", group[1] ? group : "");
	max = vrb_doc_slurp(d, "%s.max", file);
	cursor = max;
	while ((line = vrb_doc_next_line(&cursor))) {
		char *limit = strchr(line, ' ');
		char *used;

		if (!limit || !strcmp(limit + 1, "hca_handle=max hca_object=max"))
			continue;
		*limit++ = '\0';
		used = vrb_doc_slurp(d, "%s.current", file);
		if (used)
			(void)vrb_doc_field(used, line, current, sizeof(current));
		free(used);
		strncat(file, ".max", sizeof(file) - strlen(file) - 1);
		vrb_doc_add(d, VRB_F_RDMA_LIMIT, "{s:s, s:s, s:s, s:s}", "device", line, "limit",
			    limit, "current", current, "file", file);
		break;
	}
	free(max);
}

/* The size of a tmpfs from its mount options, in bytes; -1 when it has none. */
static long long shm_size(const struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/mounts", d->pid), *cursor = text, *line;
	long long size = -1;

	while ((line = vrb_doc_next_line(&cursor))) {
		char options[256], *at, *end;

		if (sscanf(line, "%*s /dev/shm tmpfs %255s", options) != 1)
			continue;
		at = strstr(options, "size=");
		if (!at)
			continue;
		size = strtoll(at + 5, &end, 10);
		size *= *end == 'k' ? 1024 : *end == 'm' ? 1 << 20 : *end == 'g' ? 1 << 30 : 1;
	}
	free(text);
	return size;
}

void vrb_check_memory(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/meminfo"), value[64], size[32];
	long long n;

	if (text && vrb_doc_field(text, "HugePages_Total:", value, sizeof(value)) && !atoll(value))
		vrb_doc_add(d, VRB_F_HUGE_NONE, "{s:s, s:s}", "HugePages_Total", value, "file",
			    "/proc/meminfo");
	free(text);
	if (vrb_doc_line(d, value, sizeof(value), "/sys/kernel/mm/transparent_hugepage/enabled") &&
	    strstr(value, "[never]"))
		vrb_doc_add(d, VRB_F_THP_OFF, "{s:s, s:s}", "enabled", value, "file",
			    "/sys/kernel/mm/transparent_hugepage/enabled");
	n = shm_size(d);
	if (n >= 0 && n < SHM_SMALL)
		vrb_doc_add(d, VRB_F_SHM_SMALL, "{s:s, s:I, s:s}", "size",
			    vrb_doc_size(size, sizeof(size), n), "bytes", (json_int_t)n, "file",
			    "/proc/mounts");
	if (vrb_doc_number(d, &n, "/proc/sys/vm/overcommit_memory") && n == 2)
		vrb_doc_add(d, VRB_F_OVERCOMMIT, "{s:i, s:s}", "value", 2, "file",
			    "/proc/sys/vm/overcommit_memory");
}

static void check_fork(struct vrb_doc *d)
{
	static const char *const names[] = {"RDMAV_FORK_SAFE", "IBV_FORK_SAFE"};
	const char *set = NULL;
	char value[16];

	for (int i = 0; i < 2 && !set; i++)
		set = vrb_doc_env(d, names[i], value, sizeof(value)) ? names[i] : NULL;
	if (set && d->kernel >= KERNEL_COW)
		vrb_doc_add(d, VRB_F_FORK_SAFE, "{s:s, s:s}", "variable", set, "release",
			    d->release);
	else if (!set && d->has_nic && d->kernel && d->kernel < KERNEL_COW)
		vrb_doc_add(d, VRB_F_FORK_UNSAFE, "{s:s}", "release", d->release);
}

static void check_user_namespace(struct vrb_doc *d)
{
	char *text = vrb_doc_slurp(d, "/proc/%s/uid_map", d->pid);
	long long inside, outside, count;

	if (text && sscanf(text, "%lld %lld %lld", &inside, &outside, &count) == 3 && outside > 0)
		vrb_doc_add(d, VRB_F_USERNS, "{s:I, s:I, s:s}", "outside", (json_int_t)outside,
			    "count", (json_int_t)count, "file", "/proc/self/uid_map");
	free(text);
}

void vrb_check_process(struct vrb_doc *d)
{
	long long scope;

	check_files(d);
	check_rdma_group(d);
	if (vrb_doc_number(d, &scope, "/proc/sys/kernel/yama/ptrace_scope") && scope > 0 &&
	    (scope > 2 || !(d->caps >> CAP_SYS_PTRACE & 1)))
		vrb_doc_add(d, VRB_F_PTRACE, "{s:I, s:s}", "scope", (json_int_t)scope, "file",
			    "/proc/sys/kernel/yama/ptrace_scope");
	check_fork(d);
	check_user_namespace(d);
}

void vrb_check_kernel(struct vrb_doc *d)
{
	static const struct {
		unsigned below;
		enum vrb_finding_id id;
	} features[] = {
		{3017, VRB_F_KERNEL_MEMFD},
		{4018, VRB_F_KERNEL_GSO},
		{5000, VRB_F_KERNEL_GRO},
		{5001, VRB_F_KERNEL_SEAL},
	};
	bool all = d->kernel != 0;

	for (size_t i = 0; d->kernel && i < sizeof(features) / sizeof(features[0]); i++) {
		if (d->kernel >= features[i].below)
			continue;
		all = false;
		vrb_doc_add(d, features[i].id, "{s:s, s:s}", "release", d->release, "file",
			    "/proc/sys/kernel/osrelease");
	}
	if (all)
		vrb_doc_add(d, VRB_F_KERNEL_OK, "{s:s}", "release", d->release);
}
