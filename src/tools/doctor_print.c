/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report as text, gravest first, in the user's language, or as JSON, in English. Terminal
 * escapes in what files hold are printed as '?', since a container's files need not be one's own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/lang.h"
#include "tools/doctor.h"
#include "tools/out.h"
#include "tools/wrap.h"

#define LABEL  8 /* where one begins, and how wide it is */
#define WIDTH  7
#define INDENT 16

static const char *const order[] = {VRB_TR("fail"), VRB_TR("warn"), VRB_TR("note"), VRB_TR("ok")};

/* A text of the row in the user's language, filled in; "" where there is none. */
static json_t *text_of(const json_t *f, const char *english)
{
	json_t *evidence = json_copy(json_object_get(f, "evidence")), *text, *value;
	const char *key;

	json_object_foreach(json_object_get(f, "words"), key, value)
	{
		json_object_set_new(
			evidence, key,
			vrb_doc_fill(vrb_tr(json_string_value(value)), evidence, vrb_tr));
	}
	text = vrb_doc_fill(*english ? vrb_tr(english) : "", evidence, vrb_tr);
	json_decref(evidence);
	return text;
}

static void print_costs(const json_t *f, const struct vrb_finding *row)
{
	json_t *text = text_of(f, row->costs);

	if (*json_string_value(text))
		vrb_wrap(vrb_wrap_label(LABEL, WIDTH, vrb_tr("costs")), INDENT,
			 json_string_value(text));
	json_decref(text);
}

/* A command is printed on one line, to be copied. */
static void print_mend(const json_t *f, const struct vrb_finding *row)
{
	json_t *text = text_of(f, row->mend);

	if (*json_string_value(text)) {
		vrb_wrap_label(LABEL, WIDTH + 1, vrb_tr("do"));
		vrb_wrap_line(json_string_value(text));
		putchar('\n');
	}
	json_decref(text);
}

static void print_evidence(const json_t *f)
{
	char *text = json_dumps(json_object_get(f, "evidence"), JSON_COMPACT | JSON_ENSURE_ASCII);

	if (text && strcmp(text, "{}")) {
		vrb_wrap_label(LABEL, WIDTH, vrb_tr("read"));
		printf(" %s\n", text);
	}
	free(text);
}

static void print_finding(const json_t *f, const char *severity, bool verbose)
{
	const char *id = json_string_value(json_object_get(f, "id"));
	const struct vrb_finding *row = vrb_doc_row(id);
	json_t *text = text_of(f, row->sentence);
	int column = vrb_wrap_label(0, 5, severity);

	column += printf(" %s:", id);
	vrb_wrap(column, INDENT, json_string_value(text));
	json_decref(text);
	print_costs(f, row);
	print_mend(f, row);
	if (verbose)
		print_evidence(f);
}

void vrb_doc_print_text(const struct vrb_doc *d, bool verbose, bool quiet)
{
	json_t *f;
	size_t i;

	for (unsigned s = 0; s < (quiet ? 2 : 4); s++) {
		json_array_foreach(d->findings, i, f)
		{
			const char *severity = json_string_value(json_object_get(f, "severity"));

			if (!strcmp(severity, order[s]))
				print_finding(f, vrb_tr(severity), verbose);
		}
	}
	printf(vrb_tr("%u failed, %u warnings, %u notes, %u ok\n"), d->count[VRB_SEV_FAIL],
	       d->count[VRB_SEV_WARN], d->count[VRB_SEV_NOTE], d->count[VRB_SEV_OK]);
}

void vrb_doc_print_json(const struct vrb_doc *d)
{
	json_t *all, *f;
	size_t i;

	json_array_foreach(d->findings, i, f)
	{
		json_object_del(f, "words");
	}
	all = json_pack("{s:s, s:s, s:{s:i, s:i, s:i, s:i}, s:O}", "version", VRB_VERSION, "kernel",
			d->release, "summary", "fail", (int)d->count[VRB_SEV_FAIL], "warn",
			(int)d->count[VRB_SEV_WARN], "note", (int)d->count[VRB_SEV_NOTE], "ok",
			(int)d->count[VRB_SEV_OK], "findings", d->findings);

	vrb_out_json(stdout, all);
	json_decref(all);
}

static void list_rows(json_t *out, const struct vrb_finding *rows, unsigned n)
{
	static const char *const names[] = {"ok", "note", "warn", "fail"};

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(out,
				      json_pack("{s:s, s:s, s:s, s:s}", "id", rows[i].word, "group",
						rows[i].group, "severity", names[rows[i].severity],
						"sentence", rows[i].sentence));
}

void vrb_doc_print_list(bool json)
{
	json_t *out = json_array();

	list_rows(out, vrb_findings, VRB_N_FINDINGS);
	list_rows(out, vrb_counter_findings, vrb_n_counter_findings);
	if (json)
		vrb_out_json(stdout, out);
	else
		vrb_out_table(stdout, out);
	json_decref(out);
}
