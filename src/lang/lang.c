/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds and reads share/locale/LANGUAGE/LC_MESSAGES/verbena.mo of the tree that this very program
 * or library lies in: its folder is bin, lib or lib/verbena; from anywhere else nothing is read,
 * since formats come from that file. It is read, not mapped: one that is cut off later must not be
 * a SIGBUS in the program. Its pages are never given back: what runs at exit may still print.
 */
#include "lang/lang.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES (4u << 20)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct vrb_catalog catalog;
static bool is_open;

/* Cuts the last name off. */
static bool cut(char *path, const char *expected)
{
	char *slash = strrchr(path, '/');

	if (!slash || (expected && strcmp(slash + 1, expected) != 0))
		return false;
	*slash = '\0';
	return true;
}

/* The top of the tree. The name that the loader has of the program itself is what it was called by.
 */
static bool find_tree(char path[PATH_MAX])
{
	Dl_info info;
	uintptr_t base, headers = (uintptr_t)getauxval(AT_PHDR);
	bool is_program;

	if (!dladdr((const void *)&catalog, &info) || !info.dli_fname)
		return false;
	base = (uintptr_t)info.dli_fbase;
	is_program = headers >= base && headers - base < 4096;
	if (!realpath(is_program ? "/proc/self/exe" : info.dli_fname, path) || !cut(path, NULL))
		return false;
	if (cut(path, "verbena"))
		return cut(path, "lib");
	return cut(path, "bin") || cut(path, "lib");
}

static const void *read_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t *image = MAP_FAILED;
	size_t n = 0;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    st.st_size <= (off_t)FILE_MAX_BYTES)
		image = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (image != MAP_FAILED && n < (size_t)st.st_size) {
		ssize_t got = read(fd, image + n, (size_t)st.st_size - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	close(fd);
	*size = n;
	return image == MAP_FAILED ? NULL : image;
}

static bool open_language(const char *tree, const char *language)
{
	char path[PATH_MAX + 64];
	const void *image;
	size_t size;

	snprintf(path, sizeof(path), "%s/share/locale/%s/LC_MESSAGES/verbena.mo", tree, language);
	image = read_file(path, &size);
	return image && vrb_catalog_init(&catalog, image, size);
}

/* The language, then without its country. */
static void open_best(void)
{
	const struct vrb_locale l = {.lc_all = getenv("LC_ALL"),
				     .lc_messages = getenv("LC_MESSAGES"),
				     .lang = getenv("LANG"),
				     .language = getenv("LANGUAGE")};
	const char *list = vrb_languages(&l);
	char tree[PATH_MAX], language[VRB_LANGUAGE_BYTES];

	if (!list || !find_tree(tree))
		return;
	while (!is_open && vrb_language_next(&list, language)) {
		is_open = open_language(tree, language);
		if (is_open || !strchr(language, '_'))
			continue;
		*strchr(language, '_') = '\0';
		is_open = open_language(tree, language);
	}
}

const char *vrb_tr(const char *text)
{
	const char *found = NULL;

	pthread_once(&once, open_best);
	if (is_open)
		found = vrb_catalog_find(&catalog, text);
	return found ? found : text;
}
