/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A .mo file is a head, a table of sorted originals and one of translations, each with a row of
 * length and offset. A file may be cut or damaged: every number is checked before it is used.
 */
#include "base/catalog.h"

#define MAGIC	   0x950412deu
#define ROW_BYTES  8u
#define HEAD_BYTES 28u

const char *vrb_translate_none(const char *text)
{
	return text;
}

static uint32_t word_at(const struct vrb_catalog *c, size_t at)
{
	const uint8_t *p = c->image + at;

	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool has_table(const struct vrb_catalog *c, uint32_t at)
{
	return at <= c->size && (c->size - at) / ROW_BYTES >= c->n;
}

bool vrb_catalog_init(struct vrb_catalog *c, const void *image, size_t size)
{
	*c = (struct vrb_catalog){.image = image, .size = size};
	/* revision: a minor one changes nothing of what is used here */
	if (size < HEAD_BYTES || word_at(c, 0) != MAGIC || word_at(c, 4) >> 16)
		return false;
	c->n = word_at(c, 8);
	c->ids = word_at(c, 12);
	c->texts = word_at(c, 16);
	return has_table(c, c->ids) && has_table(c, c->texts);
}

/* The text of row i, terminated within the file; NULL: it is not. */
static const char *text_at(const struct vrb_catalog *c, uint32_t table, uint32_t i)
{
	size_t row = table + (size_t)i * ROW_BYTES;
	uint32_t len = word_at(c, row), at = word_at(c, row + 4);

	if (at >= c->size || len >= c->size - at || c->image[at + len])
		return NULL;
	return (const char *)c->image + at;
}

static int compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (uint8_t)*a - (uint8_t)*b;
}

const char *vrb_catalog_find(const struct vrb_catalog *c, const char *msgid)
{
	uint32_t low = 0, high = c->n;

	if (!*msgid)
		return NULL; /* the head of the file stands there */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const char *id = text_at(c, c->ids, middle), *text;
		int order = id ? compare(msgid, id) : 0;

		if (!id)
			return NULL;
		if (!order) {
			text = text_at(c, c->texts, middle);
			return text && *text ? text : NULL;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* ---- which language */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Without regard to case and dashes, up to the end of a name. */
static bool same_encoding(const char *s, const char *name)
{
	for (; *s && *s != '@' && *s != ':'; s++) {
		if (*s == '-')
			continue;
		if (lower(*s) != *name)
			return false;
		name++;
	}
	return !*name;
}

static bool ends(char c)
{
	return !c || c == '.' || c == '@' || c == ':';
}

/* The name up to its encoding. */
static bool is_named(const char *s, const char *name)
{
	while (*name && *s == *name) {
		s++;
		name++;
	}
	return !*name && ends(*s);
}

static const char *first_set(const char *a, const char *b, const char *c)
{
	if (a && *a)
		return a;
	if (b && *b)
		return b;
	return c && *c ? c : NULL;
}

const char *vrb_languages(const struct vrb_locale *l)
{
	const char *name = first_set(l->lc_all, l->lc_messages, l->lang), *dot = name;
	const char *list = l->language && *l->language ? l->language : NULL;

	while (dot && *dot && *dot != '.' && *dot != '@')
		dot++;
	if (!name || (*dot == '.' && !same_encoding(dot + 1, "utf8")))
		return NULL;
	if (!is_named(name, "C") && !is_named(name, "POSIX"))
		return list ? list : name;
	/* C.UTF-8 can show any language, C cannot */
	return *dot == '.' ? list : NULL;
}

bool vrb_language_next(const char **list, char out[VRB_LANGUAGE_BYTES])
{
	while (*list && **list) {
		const char *s = *list;
		size_t n = 0;
		bool fits = true;

		for (; !ends(*s); s++) {
			fits = fits && n + 1 < VRB_LANGUAGE_BYTES &&
			       ((lower(*s) >= 'a' && lower(*s) <= 'z') || *s == '_');
			if (fits)
				out[n++] = *s;
		}
		out[n] = '\0';
		while (*s && *s != ':')
			s++;
		*list = *s ? s + 1 : s;
		if (!fits || !n)
			continue;
		return !is_named(out, "C") && !is_named(out, "POSIX") &&
		       !(out[0] == 'e' && out[1] == 'n' && (!out[2] || out[2] == '_'));
	}
	return false;
}
