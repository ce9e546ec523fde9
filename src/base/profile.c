/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of knobs as data, the profiles that have a name, and the parser. Bounds are those of
 * the device, which asserts that they are (hca/profile.c): a profile takes away, it never adds.
 */
#include "base/profile.h"

#include <string.h>

#define EXPECTED_ENTRIES(min, max) "a number from " #min " to " #max
#define EXPECTED_BYTES(min, max)   "a number of bytes from " #min " to " #max
#define EXPECTED_YESNO(min, max)   "yes or no"

const struct vrb_knob vrb_profile_knobs[] = {
#define X(name, unit, min, max, plain, meaning)                                                    \
	{#name, meaning, EXPECTED_##unit(min, max),	    VRB_KNOB_##unit, min,                  \
	 max,	plain,	 offsetof(struct vrb_profile, name)},
	VRB_PROFILE_KNOBS(X)
#undef X
};
const uint32_t vrb_profile_n_knobs = sizeof(vrb_profile_knobs) / sizeof(vrb_profile_knobs[0]);

/* clang-format off */
const struct vrb_profile_builtin vrb_profile_builtins[] = {
	{"plain",     "the device as it is", ""},
	{"sge1",      "one SGE to send and to receive", "max_send_sge = 1; max_recv_sge = 1"},
	{"sge3",      "three SGEs to send, one to receive", "max_send_sge = 3; max_recv_sge = 1"},
	{"noinline",  "no inline data", "max_inline = 0"},
	{"inline101", "101 bytes of inline data, granted as asked", "max_inline = 101"},
	{"inline220", "220 bytes of inline data, more granted than asked",
		"max_inline = 220; inline_round = 64"},
	{"small",     "queues of 16 entries, one READ at a time",
		"max_qp_wr = 16; max_srq_wr = 16; max_cqe = 16; max_rd_atomic = 1"},
	{"few",       "8 queue pairs, 8 CQs, 16 regions of 1 MiB at most, 4 PDs, 8 address handles",
		"max_qp = 8; max_cq = 8; max_mr = 16; max_mr_size = 1048576; max_pd = 4; max_ah = 8"},
	{"notime",    "no completion timestamps, no CQ moderation",
		"cq_timestamps = no; cq_moderation = no"},
	{"minusone",  "calls that fail return -1 and set errno", "minus_one = yes"},
	{"strict",    "no RESET to RESET, no posts in ERR, no event of the last request",
		"reset_to_reset = no; post_in_err = no; last_wqe_event = no"},
	{"gids",      "a sparse GID table with RoCE v1 entries", "roce_v1_gids = yes; gid_gap = 1"},
	{"memlock",   "registered memory is limited by RLIMIT_MEMLOCK", "memlock = yes"},
	{"cx",        "much like a NIC of today: 30 SGEs, 16 READs, v1 and v2 GIDs in turn, memlock",
		"max_send_sge = 30; max_inline = 956; inline_round = 64; max_rd_atomic = 16;"
		"roce_v1_gids = yes; memlock = yes"},
	{"harsh",     "the worst of all",
		"max_send_sge = 1; max_recv_sge = 1; max_inline = 0; max_qp_wr = 64; max_srq_wr = 64;"
		"max_cqe = 64; max_rd_atomic = 1; cq_timestamps = no; cq_moderation = no;"
		"minus_one = yes; reset_to_reset = no; post_in_err = no; last_wqe_event = no;"
		"roce_v1_gids = yes; gid_gap = 1; memlock = yes"},
};
/* clang-format on */
const uint32_t vrb_profile_n_builtins =
	sizeof(vrb_profile_builtins) / sizeof(vrb_profile_builtins[0]);

static bool is_same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

const struct vrb_profile_builtin *vrb_profile_builtin(const char *name)
{
	for (uint32_t i = 0; i < vrb_profile_n_builtins; i++)
		if (is_same(vrb_profile_builtins[i].name, name))
			return &vrb_profile_builtins[i];
	return NULL;
}

static uint32_t *place(struct vrb_profile *p, const struct vrb_knob *k)
{
	return (uint32_t *)(void *)((char *)p + k->offset);
}

uint32_t vrb_profile_value(const struct vrb_profile *p, const struct vrb_knob *k)
{
	return *(const uint32_t *)(const void *)((const char *)p + k->offset);
}

void vrb_profile_plain(struct vrb_profile *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->name, "plain", sizeof("plain"));
	for (uint32_t i = 0; i < vrb_profile_n_knobs; i++)
		*place(out, &vrb_profile_knobs[i]) = vrb_profile_knobs[i].plain;
}

/* A word ends before an equals sign, which is a word of its own. */
static void cut_at_equals(struct vrb_words *c)
{
	const char *p = c->word;

	while (p < c->word_end && *p != '=')
		p++;
	if (p < c->word_end)
		c->word_end = p == c->word ? p + 1 : p;
}

static void next(struct vrb_words *c)
{
	vrb_words_next(c);
	cut_at_equals(c);
}

static bool parse_value(struct vrb_words *c, const struct vrb_knob *k, uint32_t *out)
{
	uint32_t v;

	if (k->unit == VRB_KNOB_YESNO) {
		if (!vrb_words_is(c, "yes") && !vrb_words_is(c, "no"))
			return vrb_words_fail(c, k->expected);
		*out = vrb_words_is(c, "yes");
		next(c);
		return true;
	}
	{
		struct vrb_words at = *c;

		if (!vrb_words_number(c, k->min, k->expected, &v))
			return false;
		if (v > k->max) {
			*c = at;
			return vrb_words_fail(c, k->expected);
		}
	}
	*out = v;
	return true;
}

static bool parse_line(struct vrb_words *c, struct vrb_profile *out, uint64_t *seen)
{
	uint32_t i = 0;

	cut_at_equals(c);
	while (i < vrb_profile_n_knobs && !vrb_words_is(c, vrb_profile_knobs[i].name))
		i++;
	if (i == vrb_profile_n_knobs)
		return vrb_words_fail(c, "a knob; `verbena run --profile help` lists them");
	if (*seen >> i & 1)
		return vrb_words_fail(c, "a knob that has no value yet");
	*seen |= 1ull << i;
	next(c);
	if (!vrb_words_is(c, "="))
		return vrb_words_fail(c, "=");
	next(c);
	if (!parse_value(c, &vrb_profile_knobs[i], place(out, &vrb_profile_knobs[i])))
		return false;
	return vrb_words_at_end(c) || vrb_words_fail(c, "the end of the line");
}

bool vrb_profile_parse(const char *text, size_t len, struct vrb_profile *out,
		       struct vrb_words_error *err)
{
	struct vrb_words c;
	uint64_t seen = 0;

	vrb_profile_plain(out);
	vrb_words_init(&c, text, len);
	while (vrb_words_sentence(&c)) {
		if (parse_line(&c, out, &seen))
			continue;
		*err = c.error;
		return false;
	}
	return true;
}

uint32_t vrb_profile_gid_index(const struct vrb_profile *p, uint32_t n)
{
	uint32_t each = p->gid_gap + p->roce_v1_gids + 1;

	return n * each + each - 1;
}
