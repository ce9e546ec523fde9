/* SPDX-License-Identifier: BSD-2-Clause */
/* Catalogues of translations: found, not found, damaged in every byte; which language is wanted. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalog.h"
#include "base/verdict.h"

/* What msgfmt makes of three entries, the head among them; offsets count from the start. */
static size_t make(uint8_t *out)
{
	static const char *const pairs[][2] = {
		{"", "Language: xx\n"}, {"one", "eins"}, {"two {0}", "{0} zwei"}};
	enum { N = 3, IDS = 28, TEXTS = IDS + N * 8, STRINGS = TEXTS + N * 8 };
	const uint32_t head[] = {0x950412de, 0, N, IDS, TEXTS, 0, STRINGS};
	size_t at = STRINGS;

	memcpy(out, head, sizeof(head));
	for (int column = 0; column < 2; column++) {
		for (int i = 0; i < N; i++) {
			const char *s = pairs[i][column];
			uint32_t row[2] = {(uint32_t)strlen(s), (uint32_t)at};

			memcpy(out + (column ? TEXTS : IDS) + i * 8, row, sizeof(row));
			memcpy(out + at, s, row[0] + 1);
			at += row[0] + 1;
		}
	}
	return at;
}

static void finds(void **state)
{
	struct vrb_catalog c;
	uint8_t image[256];
	size_t size = make(image);

	(void)state;
	assert_true(vrb_catalog_init(&c, image, size));
	assert_string_equal(vrb_catalog_find(&c, "one"), "eins");
	assert_string_equal(vrb_catalog_find(&c, "two {0}"), "{0} zwei");
	assert_null(vrb_catalog_find(&c, "on"));
	assert_null(vrb_catalog_find(&c, "ones"));
	assert_null(vrb_catalog_find(&c, "zwei"));
	assert_null(vrb_catalog_find(&c, ""));
}

/* A heap block of the exact length, so that the sanitizer sees a step beyond it. */
static void ask_all(const uint8_t *image, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct vrb_catalog c;

	memcpy(copy, image, size);
	if (vrb_catalog_init(&c, copy, size)) {
		const char *s = vrb_catalog_find(&c, "one");

		assert_true(!s || strlen(s) < size);
		(void)vrb_catalog_find(&c, "two {0}");
		(void)vrb_catalog_find(&c, "zzz");
		(void)vrb_catalog_find(&c, "a");
	}
	free(copy);
}

static void survives_damage(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	uint8_t image[256], was;
	size_t size = make(image);

	(void)state;
	for (size_t n = 0; n < size; n++)
		ask_all(image, n);
	for (size_t i = 0; i < size; i++) {
		was = image[i];
		for (size_t v = 0; v < sizeof(values); v++) {
			image[i] = values[v];
			ask_all(image, size);
		}
		image[i] = was;
	}
	memset(image + 8, 0xff, 20);
	ask_all(image, size);
}

/* All candidates, joined by blanks; "-" is English. */
static void wants(const char *lc_all, const char *lang, const char *language, const char *want)
{
	const struct vrb_locale l = {.lc_all = lc_all, .lang = lang, .language = language};
	const char *list = vrb_languages(&l);
	char next[VRB_LANGUAGE_BYTES], all[128] = "";

	while (list && vrb_language_next(&list, next)) {
		strcat(all, *all ? " " : "");
		strcat(all, next);
	}
	assert_string_equal(*all ? all : "-", want);
}

static void chooses(void **state)
{
	(void)state;
	wants(NULL, NULL, NULL, "-");
	wants(NULL, "zh_CN.UTF-8", NULL, "zh_CN");
	wants("", "zh_CN.utf8", "", "zh_CN");
	wants(NULL, "zh_CN", NULL, "zh_CN");
	wants(NULL, "zh_CN.UTF-8@pinyin", NULL, "zh_CN");
	/* who reads another encoding cannot read ours */
	wants(NULL, "zh_CN.GB18030", NULL, "-");
	wants(NULL, "zh_CN.GB18030", "zh_CN", "-");
	wants(NULL, "zh_CN.UTF-88", NULL, "-");
	/* LC_ALL goes first, and C is English whatever LANGUAGE says, as for gettext */
	wants("C", "zh_CN.UTF-8", "zh_CN", "-");
	wants("POSIX", "zh_CN.UTF-8", NULL, "-");
	wants(NULL, NULL, "zh_CN", "-");
	wants("de_DE.UTF-8", "zh_CN.UTF-8", NULL, "de_DE");
	/* C.UTF-8 can show it */
	wants(NULL, "C.UTF-8", NULL, "-");
	wants(NULL, "C.UTF-8", "zh_CN", "zh_CN");
	/* a list; English ends it */
	wants(NULL, "de_DE.UTF-8", "fr:zh_CN.UTF-8:en:it", "fr zh_CN");
	wants(NULL, "zh_CN.UTF-8", "en_US", "-");
	wants(NULL, "zh_CN.UTF-8", "eng:zh", "eng zh");
	/* no name of a language becomes a path */
	wants(NULL, "zh_CN.UTF-8", "../../tmp:/etc:.:a/b:zh_CN", "zh_CN");
	wants(NULL, "zh_CN.UTF-8", "abcdefghijklmnopqrstuvwxyz", "-");
	wants(NULL, "../x.UTF-8", NULL, "-");
}

static const char *shout(const char *text)
{
	return !strcmp(text, "queue pair") ? "QUEUE PAIR" : "{1} objects use the {0b}, {9}{x}";
}

static void orders_values(void **state)
{
	const struct vrb_report r = {.verdict = VRB_V_BUSY, .val = {8, 3}};
	char text[128];

	(void)state;
	vrb_verdict_format_in(text, sizeof(text), &r, shout);
	assert_string_equal(text, "3 objects use the QUEUE PAIR, {9}{x}");
	vrb_verdict_format(text, sizeof(text), &r);
	assert_string_equal(text, "the queue pair is still used by 3 objects");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(chooses),
		cmocka_unit_test(orders_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
