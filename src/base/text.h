/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded line of text, for layers that may not call stdio: verdict sentences and packet dumps.
 * The text is always terminated; what does not fit is dropped. Start with vrb_text_init.
 */
#ifndef VRB_BASE_TEXT_H
#define VRB_BASE_TEXT_H

#include "base/types.h"

struct vrb_text {
	char *out;
	size_t size; /* of out, with the terminator */
	size_t len;  /* without it */
};

static inline void vrb_text_init(struct vrb_text *t, char *out, size_t size)
{
	t->out = out;
	t->size = size;
	t->len = 0;
	if (size)
		out[0] = '\0';
}

static inline void vrb_text_char(struct vrb_text *t, char c)
{
	if (t->len + 1 >= t->size)
		return;
	t->out[t->len++] = c;
	t->out[t->len] = '\0';
}

static inline void vrb_text_str(struct vrb_text *t, const char *s)
{
	while (*s)
		vrb_text_char(t, *s++);
}

void vrb_text_dec(struct vrb_text *t, uint64_t v);

/* "0x" and at least min_digits digits. */
void vrb_text_hex(struct vrb_text *t, uint64_t v, unsigned min_digits);

#endif
