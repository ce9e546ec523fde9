/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words of a small language, without libc. What does not fit is remembered with its place and with
 * what could have stood there; the first such call ends the parsing.
 */
#include "base/words.h"

#include "base/text.h"

bool vrb_words_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_sentence(char c)
{
	return c == '\n' || c == ';' || c == '#';
}

void vrb_words_next(struct vrb_words *c)
{
	const char *p = c->word_end;

	while (p < c->end && vrb_words_is_blank(*p))
		p++;
	c->word = p;
	while (p < c->end && !vrb_words_is_blank(*p) && !ends_sentence(*p))
		p++;
	c->word_end = p;
}

bool vrb_words_at_end(const struct vrb_words *c)
{
	return c->word == c->word_end;
}

bool vrb_words_is(const struct vrb_words *c, const char *s)
{
	size_t n = (size_t)(c->word_end - c->word);

	for (size_t i = 0; i < n; i++)
		if (!s[i] || s[i] != c->word[i])
			return false;
	return n > 0 && !s[n];
}

bool vrb_words_skip(struct vrb_words *c, const char *s)
{
	if (!vrb_words_is(c, s))
		return false;
	vrb_words_next(c);
	return true;
}

void vrb_words_init(struct vrb_words *c, const char *text, size_t len)
{
	*c = (struct vrb_words){
		.end = text + len, .word = text, .word_end = text, .line_start = text, .line = 1};
}

bool vrb_words_sentence(struct vrb_words *c)
{
	const char *p = c->word;

	while (p < c->end && (vrb_words_is_blank(*p) || ends_sentence(*p))) {
		if (*p == '#')
			while (p + 1 < c->end && p[1] != '\n')
				p++;
		if (*p++ != '\n')
			continue;
		c->line++;
		c->line_start = p;
	}
	c->word_end = p;
	vrb_words_next(c);
	return p < c->end;
}

bool vrb_words_fail(struct vrb_words *c, const char *expected)
{
	c->error = (struct vrb_words_error){
		.line = c->line,
		.column = (uint32_t)(c->word - c->line_start) + 1,
		.expected = expected,
		.at = c->word,
		.at_len = (uint32_t)(c->word_end - c->word),
	};
	return false;
}

/* ---- numbers */

/* Digits with up to 9 decimals, in billionths; how many characters, 0: none or too large. */
static size_t decimal(const char *p, const char *end, uint64_t *out)
{
	const char *start = p;
	uint64_t whole = 0, part = 0, unit = 100000000;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		whole = whole * 10 + (uint64_t)(*p - '0');
		if (whole > UINT32_MAX)
			return 0;
	}
	if (p > start && p + 1 < end && *p == '.' && p[1] >= '0' && p[1] <= '9')
		for (p++; p < end && *p >= '0' && *p <= '9'; p++, unit /= 10)
			part += unit * (uint64_t)(*p - '0');
	*out = whole * 1000000000 + part;
	return (size_t)(p - start);
}

bool vrb_words_number(struct vrb_words *c, uint32_t min, const char *expected, uint32_t *out)
{
	uint64_t v = 0;
	const char *p;

	for (p = c->word; p < c->word_end && *p >= '0' && *p <= '9' && v <= UINT32_MAX; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	if (vrb_words_at_end(c) || p < c->word_end || v < min || v >= UINT32_MAX)
		return vrb_words_fail(c, expected);
	*out = (uint32_t)v;
	vrb_words_next(c);
	return true;
}

/* Decimal or 0x. */
bool vrb_words_wide(struct vrb_words *c, const char *expected, uint64_t *out)
{
	bool hex = c->word_end - c->word > 2 && c->word[0] == '0' && c->word[1] == 'x';
	const char *p = c->word + (hex ? 2 : 0);
	uint64_t v = 0, base = hex ? 16 : 10;

	for (; p < c->word_end; p++) {
		uint64_t digit = base;

		if (*p >= '0' && *p <= '9')
			digit = (uint64_t)(*p - '0');
		else if (hex && (*p | 32) >= 'a' && (*p | 32) <= 'f')
			digit = (uint64_t)((*p | 32) - 'a' + 10);
		if (digit == base || v > (UINT64_MAX - 15) / base)
			return vrb_words_fail(c, expected);
		v = v * base + digit;
	}
	if (vrb_words_at_end(c))
		return vrb_words_fail(c, expected);
	*out = v;
	vrb_words_next(c);
	return true;
}

bool vrb_words_is_percentage(const struct vrb_words *c)
{
	return !vrb_words_at_end(c) && c->word_end[-1] == '%';
}

bool vrb_words_percentage(struct vrb_words *c, uint32_t *per_million)
{
	static const char expected[] = "a percentage, such as 0.5%";
	uint64_t v;
	size_t n;

	if (!vrb_words_is_percentage(c))
		return vrb_words_fail(c, expected);
	n = decimal(c->word, c->word_end, &v);
	if (c->word + n + 1 != c->word_end || v > 100000000000)
		return vrb_words_fail(c, "a percentage from 0.0001% to 100%");
	*per_million = (uint32_t)(v / 100000);
	if (!*per_million)
		return vrb_words_fail(c, "a percentage from 0.0001% to 100%");
	vrb_words_next(c);
	return true;
}

bool vrb_words_duration(struct vrb_words *c, vrb_ns max, vrb_ns *out)
{
	static const struct {
		char name[3];
		uint32_t part; /* billionths of it in a nanosecond */
	} unit[] = {{"ns", 1000000000}, {"us", 1000000}, {"ms", 1000}, {"s", 1}};
	uint64_t v;
	size_t n = decimal(c->word, c->word_end, &v);
	const char *number_end = c->word + n;

	for (size_t i = 0; n && i < sizeof(unit) / sizeof(unit[0]); i++) {
		struct vrb_words suffix = {.word = number_end, .word_end = c->word_end};

		if (!vrb_words_is(&suffix, unit[i].name))
			continue;
		*out = v / unit[i].part;
		if (*out > max)
			return vrb_words_fail(c, "a shorter time");
		vrb_words_next(c);
		return true;
	}
	return vrb_words_fail(c, "a time with its unit, such as 200us, 1.5ms or 2s");
}

/* ---- what was wrong */

size_t vrb_words_error_format(char *out, size_t size, const struct vrb_words_error *err)
{
	struct vrb_text t;

	vrb_text_init(&t, out, size);
	vrb_text_str(&t, "line ");
	vrb_text_dec(&t, err->line);
	vrb_text_str(&t, ", column ");
	vrb_text_dec(&t, err->column);
	vrb_text_str(&t, ": ");
	if (err->at_len) {
		vrb_text_char(&t, '`');
		for (uint32_t i = 0; i < err->at_len && i < 40; i++)
			vrb_text_char(&t, err->at[i] >= ' ' && err->at[i] < 127 ? err->at[i] : '?');
		vrb_text_str(&t, "`, but expected ");
	} else {
		vrb_text_str(&t, "the line ends, but expected ");
	}
	vrb_text_str(&t, err->expected);
	return t.len;
}
