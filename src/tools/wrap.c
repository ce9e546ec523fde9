/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text is cut into pieces that stay on one line: words, and single wide characters with the marks
 * that cling to them, so that no line begins with a comma or ends with an open bracket.
 */
#include "tools/wrap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WRAP_COLUMN 96
#define BAD	    0xfffdu

/* The character at s and how many bytes it takes; a byte that is no UTF-8 is one. */
static uint32_t character(const char *s, int *bytes)
{
	static const uint8_t lead[] = {0xc0, 0xe0, 0xf0};
	uint8_t c = (uint8_t)*s;
	int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
	uint32_t v = more ? c & (0x3fu >> more) : c;

	*bytes = 1;
	if (c < 0x80)
		return c;
	if (!more || c < lead[more - 1])
		return BAD;
	for (int i = 1; i <= more; i++) {
		if (((uint8_t)s[i] & 0xc0) != 0x80)
			return BAD;
		v = v << 6 | ((uint8_t)s[i] & 0x3f);
	}
	*bytes = more + 1;
	return v;
}

static bool is_wide(uint32_t c)
{
	return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
	       (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
	       (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
	       (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x20000 && c <= 0x3fffd);
}

static bool is_among(uint32_t c, const char *marks)
{
	int bytes;

	for (; *marks; marks += bytes)
		if (character(marks, &bytes) == c)
			return true;
	return false;
}

static bool may_break(uint32_t before, uint32_t after)
{
	return (is_wide(before) || is_wide(after)) && !is_among(before, "（“([《") &&
	       !is_among(after, "，。；：、）”？！》,.;:)]?!");
}

/* The next piece: its bytes, and its columns. */
static int piece(const char *s, int *columns)
{
	uint32_t before = 0;
	int n = 0, bytes;

	*columns = 0;
	while (s[n] && s[n] != ' ') {
		uint32_t c = character(s + n, &bytes);

		if (n && may_break(before, c))
			break;
		*columns += is_wide(c) ? 2 : 1;
		n += bytes;
		before = c;
	}
	return n;
}

static void print(const char *s, int n)
{
	int bytes;

	for (int i = 0; i < n; i += bytes) {
		uint32_t c = character(s + i, &bytes);

		if (c < ' ' || (c >= 0x7f && c < 0xa0) || c == BAD)
			putchar('?');
		else
			fwrite(s + i, 1, (size_t)bytes, stdout);
	}
}

int vrb_wrap_label(int indent, int width, const char *label)
{
	int columns = 0, bytes;

	for (const char *s = label; *s; s += bytes)
		columns += is_wide(character(s, &bytes)) ? 2 : 1;
	printf("%*s", indent, "");
	print(label, (int)strlen(label));
	if (columns < width)
		printf("%*s", width - columns, "");
	return indent + (columns < width ? width : columns);
}

void vrb_wrap_line(const char *text)
{
	print(text, (int)strlen(text));
}

void vrb_wrap(int column, int indent, const char *text)
{
	int blank = 1, columns, n;

	for (; *text; text += n) {
		n = piece(text, &columns);
		if (column + columns + blank > WRAP_COLUMN) {
			column = printf("\n%*s", indent - 1, "") - 1;
			blank = 1;
		}
		if (blank)
			putchar(' ');
		print(text, n);
		column += columns + blank;
		blank = text[n] == ' ';
		n += (int)strspn(text + n, " ");
	}
	putchar('\n');
}
