/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verdict table as data, and its sentences with values filled in. A placeholder is {d} or {dx}
 * with d from 0 to 5; anything else in braces is copied as it stands, so a faulty row shows itself
 * in the text instead of reading beyond the values.
 */
#include "base/verdict.h"

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

/* The length of the placeholder at s, or 0; its value and base through the pointers. */
static size_t placeholder(const char *s, size_t *index, bool *hex)
{
	if (s[0] != '{' || s[1] < '0' || s[1] >= (char)('0' + N_VALUES))
		return 0;
	*index = (size_t)(s[1] - '0');
	*hex = s[2] == 'x';
	if (s[*hex ? 3 : 2] != '}')
		return 0;
	return *hex ? 4 : 3;
}

size_t vrb_verdict_format(char *out, size_t size, const struct vrb_report *r)
{
	const char *s = vrb_verdict_info(r->verdict)->sentence;
	struct vrb_text t;

	vrb_text_init(&t, out, size);
	while (*s) {
		size_t index, skip;
		bool hex;

		skip = placeholder(s, &index, &hex);
		if (!skip)
			vrb_text_char(&t, *s++);
		else if (hex)
			vrb_text_hex(&t, r->val[index], 1);
		else
			vrb_text_dec(&t, r->val[index]);
		s += skip;
	}
	return t.len;
}
