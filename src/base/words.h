/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cursor over the words of a text whose sentences end with a line or a semicolon; # begins a
 * comment. Reading calls return true and go on to the next word, or return false with `error` set;
 * then the cursor is not to be used any further.
 */
#ifndef VRB_BASE_WORDS_H
#define VRB_BASE_WORDS_H

#include "base/types.h"

struct vrb_words_error {
	uint32_t line, column; /* from 1; columns are bytes */
	const char *expected;
	const char *at; /* the word that stands there, in the text; at_len 0: the end */
	uint32_t at_len;
};

struct vrb_words {
	const char *end;	     /* of the text */
	const char *word, *word_end; /* equal at the end of a sentence */
	const char *line_start;
	uint32_t line;
	struct vrb_words_error error;
};

void vrb_words_init(struct vrb_words *c, const char *text, size_t len);
/* To the first word of the next sentence; false at the end of the text. */
bool vrb_words_sentence(struct vrb_words *c);

bool vrb_words_at_end(const struct vrb_words *c);
bool vrb_words_is(const struct vrb_words *c, const char *s);
void vrb_words_next(struct vrb_words *c);
/* Next, if it is s. */
bool vrb_words_skip(struct vrb_words *c, const char *s);

/* False always. */
bool vrb_words_fail(struct vrb_words *c, const char *expected);

bool vrb_words_number(struct vrb_words *c, uint32_t min, const char *expected, uint32_t *out);
/* Decimal, or hexadecimal with 0x. */
bool vrb_words_wide(struct vrb_words *c, const char *expected, uint64_t *out);
bool vrb_words_is_percentage(const struct vrb_words *c);
bool vrb_words_percentage(struct vrb_words *c, uint32_t *per_million);
bool vrb_words_duration(struct vrb_words *c, vrb_ns max, vrb_ns *out);

bool vrb_words_is_blank(char c);

/* "line 2, column 4: `losss`, but expected ..." Always terminated. */
size_t vrb_words_error_format(char *out, size_t size, const struct vrb_words_error *err);

#endif
