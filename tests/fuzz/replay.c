/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target over files and folders of inputs, for builds without libFuzzer: the corpus is
 * a test for every compiler. Also tries each input cut short at some places, which costs nothing.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

#define INPUT_MAX 65536u

static unsigned n_inputs;

static void replay_file(const char *path)
{
	static uint8_t buf[INPUT_MAX];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		exit(1);
	}
	n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	for (unsigned part = 1; part <= 4; part++) {
		size_t len = n * part / 4;
		uint8_t *exact = malloc(len ? len : 1); /* a sanitizer sees each byte beyond */

		memcpy(exact, buf, len);
		LLVMFuzzerTestOneInput(exact, len);
		free(exact);
	}
	n_inputs++;
}

static void replay(const char *path)
{
	struct dirent *ent;
	char name[4096];
	DIR *dir = opendir(path);

	if (!dir) {
		replay_file(path);
		return;
	}
	while ((ent = readdir(dir)) != NULL) {
		if (ent->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, ent->d_name);
		replay_file(name);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%u inputs\n", n_inputs);
	return n_inputs ? 0 : 1;
}
