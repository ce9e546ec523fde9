/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text is made when it is asked for; a failure costs a few stores. Counters are process-wide:
 * verdicts are about calls, and a call that fails often has no channel yet.
 */
#include "send/fail.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <verbena/error.h>

#include "base/checks.h"
#include "lang/lang.h"

static _Thread_local struct {
	struct vrb_report report;
	int err;
	char about[160];
	char text[640];
} last;

static _Atomic uint64_t counts[VRB_N_VERDICTS];

static void count(enum vrb_verdict v)
{
	atomic_fetch_add_explicit(&counts[v], 1, memory_order_relaxed);
}

int vrb_fail_report(int err, const struct vrb_report *r)
{
	last.report = *r;
	last.err = err;
	last.about[0] = '\0';
	count(r->verdict);
	return -err;
}

int vrb_fail(int err, enum vrb_verdict v, uint64_t a, uint64_t b, uint64_t c)
{
	struct vrb_report r = {.verdict = v, .val = {a, b, c}};

	return vrb_fail_report(err, &r);
}

int vrb_about(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last.about, sizeof(last.about), format, args);
	va_end(args);
	return -last.err;
}

static void put(char *out, size_t size, const struct vrb_report *r, const char *about)
{
	const struct vrb_verdict_info *row = vrb_verdict_info(r->verdict);
	char sentence[320];

	vrb_verdict_format_in(sentence, sizeof(sentence), r, vrb_tr);
	snprintf(out, size, vrb_tr("%s: %s%s%s (hint: %s)"), row->counter, sentence,
		 *about ? ": " : "", about, vrb_tr(row->hint));
}

void vrb_fail_text(char *out, size_t size, enum vrb_verdict v, const uint64_t val[3])
{
	struct vrb_report r = {.verdict = v, .val = {val[0], val[1], val[2]}};

	count(v);
	put(out, size, &r, "");
}

const char *vrb_error_text(void)
{
	if (last.err)
		put(last.text, sizeof(last.text), &last.report, last.about);
	return last.text;
}

const char *vrb_error_name(void)
{
	return last.err ? vrb_verdict_info(last.report.verdict)->counter : "";
}

uint64_t vrb_error_count(const char *name)
{
	for (int v = 0; v < VRB_N_VERDICTS; v++)
		if (!strcmp(name, vrb_verdict_info((enum vrb_verdict)v)->counter))
			return atomic_load_explicit(&counts[v], memory_order_relaxed);
	return 0;
}

const char *vrb_outcome_str(enum vrb_outcome outcome)
{
	static const char *const words[] = {"done",   "timed out", "refused by the peer",
					    "failed", "flushed",   "the file shrank"};

	return (unsigned)outcome < sizeof(words) / sizeof(words[0]) ? words[outcome] : "unknown";
}

void vrb_assert_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "libverbena: a bug of the library: %s, %s:%d\n", expr, file, line);
	abort();
}
