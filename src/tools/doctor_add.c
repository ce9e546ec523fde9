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

static void put_value(struct vrb_text *t, const json_t *v, vrb_translate tr)
{
	char number[32];

	if (json_is_string(v)) {
		vrb_text_str(t, tr(json_string_value(v)));
		return;
	}
	if (json_is_integer(v))
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
	else
		snprintf(number, sizeof(number), "%.1f", json_number_value(v));
	vrb_text_str(t, number);
}

json_t *vrb_doc_fill(const char *text, const json_t *evidence, vrb_translate tr)
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
			put_value(&t, v, tr);
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

static void set_texts(json_t *f, const struct vrb_finding *row, const json_t *evidence)
{
	json_object_set_new(f, "sentence",
			    vrb_doc_fill(row->sentence, evidence, vrb_translate_none));
	json_object_set_new(f, "costs", vrb_doc_fill(row->costs, evidence, vrb_translate_none));
	json_object_set_new(f, "mend", vrb_doc_fill(row->mend, evidence, vrb_translate_none));
}

const struct vrb_finding *vrb_doc_row(const char *word)
{
	for (unsigned i = 0; i < vrb_n_counter_findings; i++)
		if (!strcmp(vrb_counter_findings[i].word, word))
			return &vrb_counter_findings[i];
	for (unsigned i = 0; i < VRB_N_FINDINGS; i++)
		if (!strcmp(vrb_findings[i].word, word))
			return &vrb_findings[i];
	return NULL;
}

void vrb_doc_add_row(struct vrb_doc *d, const struct vrb_finding *row, json_t *evidence)
{
	json_t *f;

	if (!evidence)
		evidence = json_object();
	d->last = NULL;
	if (!wanted(d, row)) {
		json_decref(evidence);
		return;
	}
	f = json_object();
	json_object_set_new(f, "id", json_string(row->word));
	json_object_set_new(f, "group", json_string(row->group));
	json_object_set_new(f, "severity", json_string(severity_names[row->severity]));
	set_texts(f, row, evidence);
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
	vrb_doc_add_row(d, &vrb_findings[id], evidence);
}

void vrb_doc_say(struct vrb_doc *d, const char *name, const char *text)
{
	json_t *f = json_array_get(d->findings, json_array_size(d->findings) - 1), *words,
	       *evidence;

	if (!d->last)
		return;
	words = json_object_get(f, "words");
	if (!words) {
		words = json_object();
		json_object_set_new(f, "words", words);
	}
	json_object_set_new(words, name, json_string(text));
	evidence = json_object_get(f, "evidence");
	json_object_set_new(evidence, name, vrb_doc_fill(text, evidence, vrb_translate_none));
	set_texts(f, d->last, evidence);
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
