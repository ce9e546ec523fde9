/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/environ.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tools/perf/session.h"

#define LINE_BYTES   256
#define CLOCK_ROUNDS 1000u

static json_t *cpu_model(void)
{
	char line[LINE_BYTES];
	FILE *f = fopen("/proc/cpuinfo", "re");
	json_t *model = NULL;

	while (f && !model && fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !at)
			continue;
		line[strcspn(line, "\n")] = '\0';
		model = json_string(at + 1 + strspn(at + 1, " "));
	}
	if (f)
		fclose(f);
	return model ? model : json_null();
}

static json_t *affinity(void)
{
	json_t *list = json_array();
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return list;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			json_array_append_new(list, json_integer(i));
	return list;
}

static double clock_cost_ns(void)
{
	uint64_t start = vrb_perf_now(), end = start;

	for (unsigned i = 0; i < CLOCK_ROUNDS; i++)
		end = vrb_perf_now();
	return (double)(end - start) / CLOCK_ROUNDS;
}

static json_t *library(void)
{
	Dl_info info;

	if (!dladdr((void *)ibv_open_device, &info) || !info.dli_fname)
		return json_null();
	return json_string(info.dli_fname);
}

json_t *vrb_perf_environ(void)
{
	json_t *o = json_object();
	double load[3] = {0};
	struct utsname u;
	char when[64];
	time_t now = time(NULL);
	struct tm tm;

	memset(&u, 0, sizeof(u));
	uname(&u);
	if (getloadavg(load, 3) < 3)
		load[0] = load[1] = load[2] = -1;
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	json_object_set_new(o, "version", json_string(VRB_VERSION));
	json_object_set_new(o, "libibverbs", library());
	json_object_set_new(o, "time", json_string(when));
	json_object_set_new(o, "cpu", cpu_model());
	json_object_set_new(o, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(o, "affinity", affinity());
	json_object_set_new(o, "kernel", json_sprintf("%s %s %s", u.sysname, u.release, u.machine));
	json_object_set_new(o, "load", json_pack("[f, f, f]", load[0], load[1], load[2]));
	json_object_set_new(o, "clock_read_ns", json_real(clock_cost_ns()));
	return o;
}
