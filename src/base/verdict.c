/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verdict table as data, and its sentences with values filled in. A placeholder is {d}, or {dk}
 * with d from 0 to 5 and k the kind; anything else in braces is copied as it stands, so a faulty
 * row shows itself in the text instead of reading beyond the values.
 */
#include "base/verdict.h"

#include "base/names.h"
#include "base/text.h"

#define N_VALUES (sizeof(((struct vrb_report *)0)->val) / sizeof(uint64_t))

static const struct vrb_verdict_info table[VRB_N_VERDICTS] = {
	[VRB_OK] = {"OK", "ok", "nothing was refused", "-", "-", VRB_KIND_NOTE},
#define X(name, counter, kind, sentence, clause, hint)                                             \
	[VRB_V_##name] = {#name, counter, sentence, clause, hint, VRB_KIND_##kind},
	VRB_VERDICT_TABLE(X)
#undef X
};

static const struct vrb_verdict_info unknown = {
	"UNKNOWN", "unknown", "a verdict that this version does not know", "-", "-", VRB_KIND_NOTE,
};

const struct vrb_verdict_info *vrb_verdict_info(enum vrb_verdict v)
{
	return (unsigned)v < VRB_N_VERDICTS ? &table[v] : &unknown;
}

/* The length of the placeholder at s, or 0; its value and kind (0: decimal) through the pointers.
 */
static size_t placeholder(const char *s, size_t *index, char *kind)
{
	if (s[0] != '{' || s[1] < '0' || s[1] >= (char)('0' + N_VALUES))
		return 0;
	*index = (size_t)(s[1] - '0');
	*kind = s[2] == '}' ? '\0' : s[2];
	if (!*kind)
		return 3;
	return s[2] && s[3] == '}' ? 4 : 0;
}

/* False: no such kind. */
static bool put_value(struct vrb_text *t, char kind, uint64_t v, vrb_translate tr)
{
	if (kind == 'x')
		vrb_text_hex(t, v, 1);
	else if (!kind)
		vrb_text_dec(t, v);
	else
		return vrb_name_put_in(t, kind, v, tr);
	return true;
}

size_t vrb_verdict_format_in(char *out, size_t size, const struct vrb_report *r, vrb_translate tr)
{
	const char *s = tr(vrb_verdict_info(r->verdict)->sentence);
	struct vrb_text t;

	vrb_text_init(&t, out, size);
	while (*s) {
		size_t index, skip;
		char kind;

		skip = placeholder(s, &index, &kind);
		if (skip && put_value(&t, kind, r->val[index], tr))
			s += skip;
		else
			vrb_text_char(&t, *s++);
	}
	return t.len;
}

size_t vrb_verdict_format(char *out, size_t size, const struct vrb_report *r)
{
	return vrb_verdict_format_in(out, size, r, vrb_translate_none);
}
