/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Findings: the table, and how a row and its evidence become an object of the report. --only and
 * the choice of severities are applied here, so that checks need not know of them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tools/doctor.h"

#define SENTENCE_BYTES 1024

const struct vrb_finding vrb_findings[VRB_N_FINDINGS] = {
#define X(name, word, group, severity, sentence, costs, mend)                                      \
	{word, group, VRB_SEV_##severity, sentence, costs, mend},
#include "tools/doctor_table.h"
#undef X
};

static const char *const severity_names[] = {"ok", "note", "warn", "fail"};

static void put_value(struct vrb_text *t, const json_t *v)
{
	char number[32];

	if (json_is_string(v)) {
		vrb_text_str(t, json_string_value(v));
		return;
	}
	if (json_is_integer(v))
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
	else
		snprintf(number, sizeof(number), "%.1f", json_number_value(v));
	vrb_text_str(t, number);
}

/* A name that the evidence does not have stays as it is; the tests look for that. */
static json_t *fill_in(const char *text, const json_t *evidence)
{
	char out[SENTENCE_BYTES], name[32];
	struct vrb_text t;

	vrb_text_init(&t, out, sizeof(out));
	while (*text) {
		size_t len = *text == '{' ? strcspn(text, "}") : 0;
		const json_t *v = NULL;

		if (len && text[len] && len <= sizeof(name)) {
			snprintf(name, sizeof(name), "%.*s", (int)len - 1, text + 1);
			v = json_object_get(evidence, name);
		}
		if (v) {
			put_value(&t, v);
			text += len + 1;
		} else {
			vrb_text_char(&t, *text++);
		}
	}
	/* what a file holds need not be UTF-8 */
	return json_stringn(out, t.len) ?: json_string("?");
}

static bool wanted(const struct vrb_doc *d, const struct vrb_finding *row)
{
	for (unsigned i = 0; i < d->n_only; i++)
		if (!strcmp(d->only[i], row->word) || !strcmp(d->only[i], row->group) ||
		    !strcmp(d->only[i], severity_names[row->severity]))
			return true;
	return !d->n_only;
}

void vrb_doc_add_row(struct vrb_doc *d, const struct vrb_finding *row, json_t *evidence)
{
	json_t *f;

	if (!evidence)
		evidence = json_object();
	if (!wanted(d, row)) {
		json_decref(evidence);
		return;
	}
	f = json_object();
	json_object_set_new(f, "id", json_string(row->word));
	json_object_set_new(f, "group", json_string(row->group));
	json_object_set_new(f, "severity", json_string(severity_names[row->severity]));
	json_object_set_new(f, "sentence", fill_in(row->sentence, evidence));
	json_object_set_new(f, "costs", fill_in(row->costs, evidence));
	json_object_set_new(f, "mend", fill_in(row->mend, evidence));
	json_object_set_new(f, "evidence", evidence);
	json_array_append_new(d->findings, f);
	d->count[row->severity]++;
	d->last = row;
}

void vrb_doc_add(struct vrb_doc *d, enum vrb_finding_id id, const char *fmt, ...)
{
	json_t *evidence;
	va_list ap;

	va_start(ap, fmt);
	evidence = json_vpack_ex(NULL, 0, fmt, ap);
	va_end(ap);
	d->last = NULL;
	vrb_doc_add_row(d, &vrb_findings[id], evidence);
}

void vrb_doc_lower(struct vrb_doc *d)
{
	json_t *f = json_array_get(d->findings, json_array_size(d->findings) - 1);

	if (!d->last || d->last->severity <= VRB_SEV_NOTE)
		return;
	d->count[d->last->severity]--;
	d->count[VRB_SEV_NOTE]++;
	json_object_set_new(f, "severity", json_string(severity_names[VRB_SEV_NOTE]));
}
