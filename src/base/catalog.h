/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Translations: the file format that msgfmt writes (.mo, little-endian), looked up in memory, and
 * which languages the environment asks for. libc's gettext is not used: it follows setlocale, which
 * a library must not call in other people's programs, and does nothing in C.UTF-8, the only locale
 * of many containers.
 */
#ifndef VRB_BASE_CATALOG_H
#define VRB_BASE_CATALOG_H

#include "base/types.h"

/* Marks a text that is translated where it is printed; scripts/words looks for it. */
#define VRB_TR(text) (text)

#define VRB_LANGUAGE_BYTES 24

/* From an English text to that of another language, or to itself. */
typedef const char *(*vrb_translate)(const char *text);
const char *vrb_translate_none(const char *text);

struct vrb_catalog {
	const uint8_t *image;
	size_t size;
	uint32_t n, ids, texts; /* where the tables of both begin */
};

/* image stays the caller's, and must last as long as c. False: it is no catalogue. What is damaged
 * behind a good head shows in find only, which gives nothing then. */
bool vrb_catalog_init(struct vrb_catalog *c, const void *image, size_t size);
/* NULL: there is none. */
const char *vrb_catalog_find(const struct vrb_catalog *c, const char *msgid);

/* Values of environment variables; NULL where one is not set. */
struct vrb_locale {
	const char *lc_all, *lc_messages, *lang, *language;
};

/* The languages wanted, the best first, separated by colons; NULL: English. Output is UTF-8, so a
 * locale of another encoding is English, too. */
const char *vrb_languages(const struct vrb_locale *l);
/* The next of the list without encoding and variant; false: nothing but English is left. */
bool vrb_language_next(const char **list, char out[VRB_LANGUAGE_BYTES]);

#endif
