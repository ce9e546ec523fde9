/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This program meets Verbena's libibverbs by its RPATH. For a NIC it has to meet the system's: it
 * is started once more with that one preloaded, which takes the place of ours by its name.
 */
#include "tools/perf_system.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/launch.h"
#include "tools/tools.h"

#define LIB_NAME "libibverbs.so.1"
#define MARK	 "VERBENA_PERF_SYSTEM"

/* In the folders that the dynamic linker looks into, ours and what the user set left out. */
bool vrb_perf_find_system(char *out, size_t size)
{
	static const char *const more[] = {"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
					   "/usr/lib64", "/usr/lib", "/usr/local/lib"};
	const size_t n_more = sizeof(more) / sizeof(more[0]);
	void *self = dlopen(NULL, RTLD_NOW);
	Dl_serinfo head, *info = NULL;
	struct vrb_launch own;
	bool found = false;

	if (!vrb_launch_find(&own, false))
		own.lib_dir[0] = '\0';
	if (self && !dlinfo(self, RTLD_DI_SERINFOSIZE, &head))
		info = calloc(1, head.dls_size);
	if (info &&
	    (dlinfo(self, RTLD_DI_SERINFOSIZE, info) || dlinfo(self, RTLD_DI_SERINFO, info)))
		info->dls_cnt = 0;
	for (size_t i = 0; !found && i < (info ? info->dls_cnt : 0) + n_more; i++) {
		size_t n = info ? info->dls_cnt : 0;
		const char *dir = i < n ? info->dls_serpath[i].dls_name : more[i - n];
		char *real = realpath(dir, NULL);

		if (real && strcmp(real, own.lib_dir) != 0) {
			snprintf(out, size, "%s/%s", real, LIB_NAME);
			found = !access(out, R_OK) && !strstr(out, "/verbena/");
		}
		free(real);
	}
	free(info);
	return found;
}

int vrb_perf_use_system(const char *file, char **argv)
{
	char path[PATH_MAX + sizeof(LIB_NAME)] = "";

	if (getenv(MARK))
		return unsetenv(MARK) | unsetenv("LD_PRELOAD");
	if (file)
		snprintf(path, sizeof(path), "%s", file);
	if (file ? access(path, R_OK) != 0 : !vrb_perf_find_system(path, sizeof(path))) {
		vrb_complain("--system: %s: there is no %s of the system (package libibverbs1)",
			     file ? file : "no folder of the dynamic linker has it", LIB_NAME);
		return -1;
	}
	if (!setenv("LD_PRELOAD", path, 1) && !setenv(MARK, path, 1))
		execv("/proc/self/exe", argv);
	vrb_complain("--system: cannot start once more: %s", strerror(errno));
	return -1;
}
