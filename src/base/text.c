/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers as text, without stdio: decimal and hexadecimal of 64 bits. Digits are made from the
 * least significant on into a small buffer and then appended, so the target may be of any size.
 */
#include "base/text.h"

#define MAX_DIGITS 20u /* of 2^64 - 1 in decimal */

static void number(struct vrb_text *t, uint64_t v, unsigned base, unsigned min_digits)
{
	char digits[MAX_DIGITS];
	unsigned n = 0;

	do {
		digits[n++] = "0123456789abcdef"[v % base];
		v /= base;
	} while (n < MAX_DIGITS && (v || n < min_digits));
	while (n)
		vrb_text_char(t, digits[--n]);
}

void vrb_text_dec(struct vrb_text *t, uint64_t v)
{
	number(t, v, 10, 1);
}

void vrb_text_hex(struct vrb_text *t, uint64_t v, unsigned min_digits)
{
	vrb_text_str(t, "0x");
	number(t, v, 16, min_digits);
}
